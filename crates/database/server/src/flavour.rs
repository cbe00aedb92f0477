//! Which server answers, by what it reports about itself.
//!
//! Invariant: pure. An unknown server keeps its words and gets the dialect that requires the least
//! of it.

/// A family of servers that speak the same dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Flavour {
    /// Oracle's MySQL, and servers that report no more.
    MySql,
    /// MariaDB.
    MariaDb,
    /// Percona Server.
    Percona,
    /// TiDB.
    TiDb,
    /// Vitess.
    Vitess,
    /// Something else that speaks the protocol.
    Unknown,
}

impl Flavour {
    /// As documents name it.
    pub fn word(self) -> &'static str {
        match self {
            Self::MySql => "mysql",
            Self::MariaDb => "mariadb",
            Self::Percona => "percona",
            Self::TiDb => "tidb",
            Self::Vitess => "vitess",
            Self::Unknown => "unknown",
        }
    }

    /// Whether `innodb_*` variables describe how this server writes. TiDB shows them for
    /// compatibility with clients, and they mean nothing there.
    pub fn has_innodb(self) -> bool {
        !matches!(self, Self::TiDb)
    }
}

/// What a server is and how it is talked to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerVersion {
    /// Its family.
    pub flavour: Flavour,
    /// Major, minor, patch; of the server itself, not of the MySQL that it stands in for.
    pub numbers: (u16, u16, u16),
    /// As it calls itself.
    pub text: String,
}

/// What a dialect allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dialect {
    /// A transaction is begun by a statement of its own; otherwise by its first statement.
    pub begins: bool,
    /// One UPDATE changes many rows, joined with a derived table.
    pub joins_updates: bool,
    /// LOAD DATA LOCAL is tried where the server allows it.
    pub loads_local: bool,
}

/// What every server understands.
const LEAST: Dialect = Dialect { begins: true, joins_updates: false, loads_local: false };

impl ServerVersion {
    /// The version in `VERSION()` and `@@version_comment`.
    ///
    /// MariaDB puts `5.5.5-` before its version for old replicas; TiDB and Vitess put the MySQL
    /// version they emulate first.
    pub fn recognise(version: &str, comment: &str) -> Self {
        let lower = version.to_ascii_lowercase();
        let comment = comment.to_ascii_lowercase();
        let says = |word: &str| lower.contains(word) || comment.contains(word);
        let (flavour, own) = if let Some((_, own)) = lower.split_once("-tidb-v") {
            (Flavour::TiDb, own)
        } else if let Some((_, own)) = lower.split_once("-vitess") {
            (Flavour::Vitess, own.trim_start_matches('-'))
        } else if says("mariadb") {
            (Flavour::MariaDb, lower.strip_prefix("5.5.5-").unwrap_or(&lower))
        } else if says("percona") {
            (Flavour::Percona, lower.as_str())
        } else if says("mysql") || comment == "source distribution" || comment == "(debian)" {
            (Flavour::MySql, lower.as_str())
        } else if has_percona_build(&lower) {
            (Flavour::Percona, lower.as_str())
        } else {
            (Flavour::Unknown, lower.as_str())
        };
        let numbers = numbers_of(own).or_else(|| numbers_of(&lower)).unwrap_or_default();
        Self { flavour, numbers, text: version.to_owned() }
    }

    /// What documents call the flavour; an unknown one is called by its own words.
    pub fn name(&self) -> String {
        match self.flavour {
            Flavour::Unknown => format!("unknown ({})", self.text),
            known => known.word().to_owned(),
        }
    }

    pub(crate) fn dialect(&self, asks_least: bool) -> Dialect {
        match self.flavour {
            _ if asks_least => LEAST,
            Flavour::MySql | Flavour::MariaDb | Flavour::Percona => {
                Dialect { begins: false, joins_updates: true, loads_local: true }
            }
            Flavour::TiDb => Dialect { begins: true, joins_updates: true, loads_local: false },
            Flavour::Vitess | Flavour::Unknown => LEAST,
        }
    }
}

/// Percona numbers its own builds behind MySQL's version: `8.0.35-27`, `5.7.44-48-log`.
fn has_percona_build(version: &str) -> bool {
    let Some((_, build)) = version.split_once('-') else {
        return false;
    };
    let build = build.split(['-', '.']).next().unwrap_or_default();
    !build.is_empty() && build.bytes().all(|byte| byte.is_ascii_digit())
}

/// The numbers with which a text begins, at least one of them.
fn numbers_of(text: &str) -> Option<(u16, u16, u16)> {
    let mut parts = text.split('.').map(|part| {
        let end = part.find(|char: char| !char.is_ascii_digit()).unwrap_or(part.len());
        part[..end].parse::<u16>().ok()
    });
    let major = parts.next().flatten()?;
    let mut next = || parts.next().flatten().unwrap_or(0);
    Some((major, next(), next()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_known_by_their_own_words() {
        use Flavour::*;
        for (version, comment, flavour, numbers) in [
            ("5.6.24", "MySQL Community Server (GPL)", MySql, (5, 6, 24)),
            ("5.6.24-log", "Source distribution", MySql, (5, 6, 24)),
            ("9.7.4-2", "(Debian)", MySql, (9, 7, 4)),
            ("8.4.3-commercial", "MySQL Enterprise Server - Commercial", MySql, (8, 4, 3)),
            ("8.0.39-0ubuntu0.22.04.1", "(Ubuntu) MySQL", MySql, (8, 0, 39)),
            ("10.11.19-MariaDB-0+deb12u1", "Debian 12", MariaDb, (10, 11, 19)),
            ("5.5.5-10.11.2-MariaDB-log", "mariadb.org binary distribution", MariaDb, (10, 11, 2)),
            ("11.4.5-MariaDB", "managed elsewhere", MariaDb, (11, 4, 5)),
            ("11.8.9-MariaDB-4 from Debian", "-- Please help get to 10k", MariaDb, (11, 8, 9)),
            ("10.6.17-MariaDB-1:10.6.17+maria~ubu2204", "", MariaDb, (10, 6, 17)),
            ("10.6.16-11-MariaDB-enterprise-log", "MariaDB Enterprise", MariaDb, (10, 6, 16)),
            ("8.0.35-27", "Percona Server (GPL), Release 27", Percona, (8, 0, 35)),
            ("5.7.44-48-log", "GPL", Percona, (5, 7, 44)),
            ("8.0.11-TiDB-v7.5.0", "TiDB Server (Apache License 2.0)", TiDb, (7, 5, 0)),
            ("5.7.25-TiDB-v6.1.0-alpha", "", TiDb, (6, 1, 0)),
            ("8.0.30-Vitess", "Version: 18.0.0", Vitess, (8, 0, 30)),
            ("8.0.40-vitess-21.0.1", "", Vitess, (21, 0, 1)),
            ("5.1.0-weird", "A Database", Unknown, (5, 1, 0)),
            ("", "", Unknown, (0, 0, 0)),
        ] {
            let found = ServerVersion::recognise(version, comment);
            assert_eq!((found.flavour, found.numbers), (flavour, numbers), "{version}");
            assert_eq!(found.text, version);
        }
    }

    #[test]
    fn what_is_unknown_keeps_its_words_and_is_asked_for_little() {
        let odd = ServerVersion::recognise("5.1.0-weird", "A Database");
        assert_eq!(odd.name(), "unknown (5.1.0-weird)");
        assert_eq!(odd.dialect(false), LEAST);
        let known = ServerVersion::recognise("9.7.4", "MySQL Community Server");
        assert_eq!(known.name(), "mysql");
        assert!(known.dialect(false).joins_updates && !known.dialect(false).begins);
        assert_eq!(known.dialect(true), LEAST, "behind a proxy");
    }
}
