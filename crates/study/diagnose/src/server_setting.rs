//! The settings of servers that advice names: which releases have them, and since when they can be
//! set while the server runs.
//!
//! Invariant: one row per setting; sections of option files, ranges of versions and the way to set
//! and undo derive from it. Tried on MySQL 5.6.24 and 9.7.4 and on MariaDB 10.11.19, 11.4.5 and
//! 11.8.9; for releases between, according to their manuals.

/// Major, minor and patch level.
pub type Release = (u16, u16, u16);

/// What is probed for or watched, by whose settings it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// MySQL and Percona Server.
    MySql,
    /// MariaDB.
    MariaDb,
    /// The embedded engine.
    Engine,
}

/// The releases of a family that have a setting.
#[derive(Clone, Copy, Debug)]
struct Releases {
    /// The first.
    from: Release,
    /// The first that has it no more, or goes by another one.
    before: Option<Release>,
    /// The first that changes it while it runs.
    dynamic_from: Option<Release>,
    /// What it is unless it is set.
    default: &'static str,
}

/// A setting of InnoDB that advice may name.
#[derive(Clone, Copy, Debug)]
pub struct ServerSetting {
    /// Its name in an option file.
    pub name: &'static str,
    mysql: Option<Releases>,
    mariadb: Option<Releases>,
}

/// The start of every name below.
const PREFIX: &str = "innodb_";
/// Before every release.
const ALWAYS: Release = (0, 0, 0);

const fn always(default: &'static str) -> Option<Releases> {
    Some(Releases { from: ALWAYS, before: None, dynamic_from: Some(ALWAYS), default })
}

const fn since(from: Release, default: &'static str) -> Option<Releases> {
    Some(Releases { from, before: None, dynamic_from: Some(from), default })
}

const fn dynamic_since(from: Release, default: &'static str) -> Option<Releases> {
    Some(Releases { from: ALWAYS, before: None, dynamic_from: Some(from), default })
}

const fn at_start(before: Option<Release>, default: &'static str) -> Option<Releases> {
    Some(Releases { from: ALWAYS, before, dynamic_from: None, default })
}

/// The first MySQL that goes by one capacity of redo instead of files.
const REDO_CAPACITY: Release = (8, 0, 30);
/// The first MariaDB with four switches in place of the flush method.
const FLUSH_SWITCHES: Release = (11, 0, 0);

/// All of them, by name.
pub static SERVER_SETTINGS: &[ServerSetting] = &[
    row("innodb_adaptive_flushing", always("ON"), always("ON")),
    row(
        "innodb_buffer_pool_size",
        dynamic_since((5, 7, 5), "128M"),
        dynamic_since((10, 2, 2), "128M"),
    ),
    row("innodb_data_file_buffering", None, since(FLUSH_SWITCHES, "OFF")),
    row(
        "innodb_flush_method",
        at_start(None, "fsync; O_DIRECT from 8.4"),
        at_start(Some(FLUSH_SWITCHES), "O_DIRECT from 10.6"),
    ),
    row("innodb_flush_neighbors", always("1; 0 from 8.0"), always("1")),
    row("innodb_io_capacity", always("200; 10000 from 8.4"), always("200")),
    row("innodb_io_capacity_max", always("2000; 20000 from 8.4"), always("2000")),
    row(
        "innodb_log_buffer_size",
        dynamic_since((8, 0, 11), "16M; 64M from 8.4"),
        at_start(None, "16M"),
    ),
    row(
        "innodb_log_file_size",
        at_start(Some(REDO_CAPACITY), "48M"),
        dynamic_since((10, 9, 0), "96M"),
    ),
    row("innodb_log_file_write_through", None, since(FLUSH_SWITCHES, "OFF")),
    row("innodb_max_dirty_pages_pct", always("75; 90 from 8.0"), always("90")),
    row("innodb_max_dirty_pages_pct_lwm", always("0; 10 from 8.0"), always("0")),
    row("innodb_purge_threads", at_start(None, "4"), dynamic_since((10, 5, 2), "4")),
    row("innodb_redo_log_capacity", since(REDO_CAPACITY, "100M"), None),
    row("innodb_use_fdatasync", since((8, 0, 26), "OFF; ON from 8.4"), None),
];

const fn row(
    name: &'static str,
    mysql: Option<Releases>,
    mariadb: Option<Releases>,
) -> ServerSetting {
    ServerSetting { name, mysql, mariadb }
}

impl ServerSetting {
    /// By its full name, or by its name without the prefix.
    pub fn of(name: &str) -> Option<&'static Self> {
        let bare = name.strip_prefix(PREFIX).unwrap_or(name);
        SERVER_SETTINGS.iter().find(|one| one.name.strip_prefix(PREFIX) == Some(bare))
    }

    fn releases(&self, family: Family) -> Option<Releases> {
        match family {
            Family::MySql => self.mysql,
            Family::MariaDb => self.mariadb,
            Family::Engine => None,
        }
    }

    /// Whether a server goes by it.
    pub fn is_in(&self, family: Family, version: Release) -> bool {
        self.releases(family).is_some_and(|releases| {
            version >= releases.from && releases.before.is_none_or(|before| version < before)
        })
    }

    /// Whether a server takes a new value while it runs.
    pub fn is_dynamic(&self, family: Family, version: Release) -> bool {
        let from = self.releases(family).and_then(|releases| releases.dynamic_from);
        from.is_some_and(|from| version >= from)
    }

    /// The only family that has it, where one has not.
    pub fn only_in(&self) -> Option<Family> {
        match (self.mysql, self.mariadb) {
            (Some(_), None) => Some(Family::MySql),
            (None, Some(_)) => Some(Family::MariaDb),
            _ => None,
        }
    }

    /// The default of a family: `200; 10000 from 8.4`.
    pub fn default_of(&self, family: Family) -> Option<String> {
        self.releases(family).map(|releases| releases.default.to_owned())
    }

    /// Defaults of both families: `MySQL 200; 10000 from 8.4. MariaDB 200`.
    pub fn defaults(&self) -> String {
        let of = |name: &str, releases: Option<Releases>| {
            releases.map(|releases| format!("{name} {}", releases.default))
        };
        let all = [of("MySQL", self.mysql), of("MariaDB", self.mariadb)];
        all.into_iter().flatten().collect::<Vec<_>>().join(". ")
    }

    /// The releases that go by it, where not all do: `MySQL 8.0.26 and later`.
    pub fn versions(&self) -> Option<String> {
        let in_all = |releases: Option<Releases>| {
            releases.is_some_and(|one| one.from == ALWAYS && one.before.is_none())
        };
        if in_all(self.mysql) && in_all(self.mariadb) {
            return None;
        }
        let of = |name: &str, releases: Option<Releases>| {
            let Releases { from, before, .. } = releases?;
            Some(match (from == ALWAYS, before) {
                (true, None) => name.to_owned(),
                (true, Some(before)) => format!("{name} before {}", words(before)),
                (false, None) => format!("{name} {} and later", words(from)),
                (false, Some(before)) => format!("{name} {} to {}", words(from), words(before)),
            })
        };
        let all = [of("MySQL", self.mysql), of("MariaDB", self.mariadb)];
        Some(all.into_iter().flatten().collect::<Vec<_>>().join(", "))
    }

    /// Where its manual describes it.
    pub fn source(&self) -> String {
        let manual = |of: &str| format!("{of}: {}", self.name);
        match self.only_in() {
            Some(Family::MariaDb) => manual("MariaDB documentation, InnoDB system variables"),
            _ => manual("MySQL Reference Manual, InnoDB startup options and system variables"),
        }
    }
}

/// `8.0.26`, `11.0`.
fn words((major, minor, patch): Release) -> String {
    if patch == 0 { format!("{major}.{minor}") } else { format!("{major}.{minor}.{patch}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_known_by_either_name_and_by_its_releases() {
        let method = ServerSetting::of("flush_method").unwrap();
        assert!(method.is_in(Family::MariaDb, (10, 11, 19)));
        assert!(!method.is_in(Family::MariaDb, (11, 4, 5)));
        assert_eq!(method.versions().unwrap(), "MySQL, MariaDB before 11.0");
        let sync = ServerSetting::of("innodb_use_fdatasync").unwrap();
        assert!(!sync.is_in(Family::MySql, (8, 0, 25)));
        assert!(sync.is_in(Family::MySql, (8, 0, 26)));
        assert_eq!(sync.versions().unwrap(), "MySQL 8.0.26 and later");
        assert_eq!(ServerSetting::of("io_capacity").unwrap().versions(), None);
        assert_eq!(sync.only_in(), Some(Family::MySql));
        assert!(ServerSetting::of("innodb_turbo").is_none());
    }

    #[test]
    fn names_are_in_order_and_begin_alike() {
        assert!(SERVER_SETTINGS.windows(2).all(|pair| pair[0].name < pair[1].name));
        assert!(SERVER_SETTINGS.iter().all(|one| one.name.starts_with(PREFIX)));
    }
}
