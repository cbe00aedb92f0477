//! What a server program says of its version.
//!
//! Invariant: pure; what cannot be read is `None`, never a guess.

use std::fmt;

/// Version of a server program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramVersion {
    /// MariaDB; otherwise MySQL or one of its close relatives.
    pub is_mariadb: bool,
    /// Major, minor and patch.
    pub number: (u32, u32, u32),
    /// As the program says it, as `11.4.5-MariaDB`.
    pub text: String,
}

impl ProgramVersion {
    /// Reads what `--version` printed, as `mysqld  Ver 8.4.3 for Linux on x86_64 (...)`.
    pub fn parse(said: &str) -> Option<Self> {
        let line = said.lines().find(|line| line.contains("Ver "))?;
        let (_, rest) = line.split_once("Ver ")?;
        let text = rest.split(" for ").next()?.trim();
        let digits = |part: &str| {
            let end = part.find(|char: char| !char.is_ascii_digit()).unwrap_or(part.len());
            part[..end].parse::<u32>().ok()
        };
        let mut parts = text.splitn(3, '.').map(digits);
        let number = (parts.next()??, parts.next()??, parts.next()??);
        Some(Self { is_mariadb: line.contains("MariaDB"), number, text: text.to_owned() })
    }

    /// Whether it is at least this one.
    pub fn is_from(&self, major: u32, minor: u32) -> bool {
        (self.number.0, self.number.1) >= (major, minor)
    }
}

impl fmt::Display for ProgramVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if self.is_mariadb { "MariaDB" } else { "MySQL" };
        let (major, minor, patch) = self.number;
        write!(f, "{name} {major}.{minor}.{patch}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read() {
        for (said, shown, text) in [
            (
                "/usr/sbin/mariadbd  Ver 10.11.6-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64 \
                 (Debian 12)",
                "MariaDB 10.11.6",
                "10.11.6-MariaDB-0+deb12u1",
            ),
            (
                "mariadbd  Ver 11.8.2-MariaDB-1 from Debian for debian-linux-gnu on x86_64 (--)",
                "MariaDB 11.8.2",
                "11.8.2-MariaDB-1 from Debian",
            ),
            ("mysqld  Ver 5.6.51 for Linux on x86_64 (Source)", "MySQL 5.6.51", "5.6.51"),
            ("/opt/mysqld  Ver 9.1.0-2 for Linux on x86_64 ((Debian))", "MySQL 9.1.0", "9.1.0-2"),
            (
                "warning: a\nmysqld  Ver 8.0.35-27 for Linux on x86_64 (Percona Server (GPL))",
                "MySQL 8.0.35",
                "8.0.35-27",
            ),
            (
                "mysqld  Ver 5.5.68-MariaDB for Linux on x86_64 (MariaDB Server)",
                "MariaDB 5.5.68",
                "5.5.68-MariaDB",
            ),
        ] {
            let version = ProgramVersion::parse(said).unwrap();
            assert_eq!((version.to_string().as_str(), version.text.as_str()), (shown, text));
        }
        for said in ["", "GNU bash, version 5.2", "x  Ver 8 for Linux", "x  Ver a.b.c for Linux"] {
            assert_eq!(ProgramVersion::parse(said), None, "{said}");
        }
    }

    #[test]
    fn versions_are_compared() {
        let version = ProgramVersion::parse("x  Ver 10.11.6-MariaDB for Linux").unwrap();
        assert!(version.is_from(10, 6) && version.is_from(10, 11) && !version.is_from(11, 0));
    }
}
