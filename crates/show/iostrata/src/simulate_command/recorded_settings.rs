//! From the settings of a recorded target to those that the engine's model has.
//!
//! Invariant: what the target does not tell, or the model does not have, is assumed and named.

use std::collections::BTreeMap;

use iostrata_innodb::{PolicyName, Settings};
use iostrata_run::FlushAssumption;
use iostrata_server::{Flavour, ServerVersion};
use iostrata_sim::flush::FOLLOWED;
use iostrata_stats::units::Size;

use super::flush_plan::{POOL_BYTES, REDO_BYTES, SERVER_SETTINGS};

/// Settings that say how large the redo is, where one by itself does not.
const REDO_FILES: [&str; 2] = ["log_file_size", "log_files_in_group"];

/// Whether flushing follows a setting of a target, by the target's name of it.
pub fn is_recorded(name: &str) -> bool {
    let bare = bare(name);
    FOLLOWED.contains(&bare) || REDO_FILES.contains(&bare)
}

/// The engine's name of a setting; servers put one word before it.
fn bare(name: &str) -> &str {
    name.strip_prefix("innodb_").unwrap_or(name)
}

/// The target that was recorded.
pub struct Had<'a> {
    pub flavour: &'a str,
    pub version: &'a str,
    pub settings: &'a BTreeMap<String, String>,
    /// Whether its disk is known to turn.
    pub turns: bool,
}

/// The engine's settings that are nearest to the target's.
pub fn settings(had: &Had<'_>, assumed: &mut Vec<FlushAssumption>) -> Settings {
    let of = |wanted: &str| {
        let found = had.settings.iter().find(|(name, _)| bare(name) == wanted);
        found.map(|(_, value)| value.as_str())
    };
    let mut settings = Settings::default();
    let mut assume = |what: &str, taken_as: String| {
        assumed.push(FlushAssumption { what: what.to_owned(), taken_as });
    };
    // The policy is told by the version, the redo may be several files, and files are written
    // directly in the model.
    let own = ["policy", "redo_log_capacity", "flush_method"];
    for (name, value) in had.settings.iter().filter(|(name, _)| !own.contains(&bare(name))) {
        if FOLLOWED.contains(&bare(name)) && settings.set(bare(name), value).is_err() {
            let taken = settings.get(bare(name)).unwrap_or_default();
            assume(name, format!("{taken}; the model has no {value}"));
        }
    }
    // A delay of 0 leaves the limit without effect.
    if settings.max_purge_lag_delay == 0 {
        settings.max_purge_lag = 0;
    }
    for (name, value) in SERVER_SETTINGS.iter().filter(|(name, _)| of(name).is_none()) {
        // Both are values of the catalogue.
        if settings.set(name, value).is_ok() {
            assume(name, (*value).to_owned());
        }
    }
    if of("buffer_pool_size").is_none() {
        settings.buffer_pool_size = POOL_BYTES;
        assume("buffer pool", Size(POOL_BYTES).to_string());
    }
    if had.flavour != "engine" && of("flush_neighbors").is_none() {
        assume("flush_neighbors", "0".to_owned());
    } else if settings.flush_neighbors > 0 && has_effect_on_turning_disks_alone(had) && !had.turns {
        settings.flush_neighbors = 0;
        let why = "0; a MariaDB follows it on disks that turn, and --device names none";
        assume("innodb_flush_neighbors", why.to_owned());
    }
    let number = |name: &str| of(name)?.parse::<u64>().ok();
    let files = || Some(number("log_file_size")? * number("log_files_in_group").unwrap_or(1));
    let redo = of("redo_log_capacity").map(str::to_owned);
    let redo = redo.or_else(|| files().map(|bytes| bytes.to_string()));
    if redo.is_none_or(|text| settings.set("redo_log_capacity", &text).is_err()) {
        settings.redo_log_capacity = REDO_BYTES;
        assume("redo", Size(REDO_BYTES).to_string());
    }
    let policy = match had.flavour {
        "engine" => of("policy")
            .and_then(|word| PolicyName::ALL.iter().find(|name| name.word() == word).copied()),
        flavour => policy_of(&ServerVersion::recognise(had.version, flavour)),
    };
    settings.policy = policy.unwrap_or_else(|| {
        let name = match had.flavour {
            "engine" => PolicyName::Steady,
            _ => PolicyName::PageCleaner84,
        };
        assume("policy", name.word().to_owned());
        name
    });
    settings
}

/// From 10.4 on a MariaDB looks at the kernel's flag of the disk before it writes neighbours.
fn has_effect_on_turning_disks_alone(had: &Had<'_>) -> bool {
    let version = ServerVersion::recognise(had.version, had.flavour);
    version.flavour == Flavour::MariaDb && (version.numbers.0, version.numbers.1) >= (10, 4)
}

/// The policy of a server's version.
fn policy_of(version: &ServerVersion) -> Option<PolicyName> {
    let (major, minor, _) = version.numbers;
    match (version.flavour, (major, minor)) {
        (Flavour::MariaDb, (10, 5..) | (11.., _)) => Some(PolicyName::Mariadb),
        (Flavour::MariaDb, (10, 2..=4)) => Some(PolicyName::PageCleaner57),
        (Flavour::MariaDb, (10, _)) => Some(PolicyName::PageCleaner56),
        (Flavour::Percona, (5, 6)) => Some(PolicyName::PerconaHighCheckpoint),
        (Flavour::MySql, (5, 6)) => Some(PolicyName::PageCleaner56),
        (Flavour::MySql | Flavour::Percona, (5, 7)) => Some(PolicyName::PageCleaner57),
        (Flavour::MySql | Flavour::Percona, (8.., _)) => Some(PolicyName::PageCleaner84),
        (Flavour::MySql, (5, 5)) => Some(PolicyName::Adaptive),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_server_has_the_policy_of_its_version() {
        for (flavour, version, policy) in [
            ("mysql", "5.6.24", Some(PolicyName::PageCleaner56)),
            ("mysql", "5.7.44-log", Some(PolicyName::PageCleaner57)),
            ("mysql", "8.4.6", Some(PolicyName::PageCleaner84)),
            ("mysql", "9.7.4", Some(PolicyName::PageCleaner84)),
            ("mariadb", "5.5.5-10.11.2-MariaDB-log", Some(PolicyName::Mariadb)),
            ("mariadb", "11.8.9-MariaDB-4 from Debian", Some(PolicyName::Mariadb)),
            ("mariadb", "10.4.34-MariaDB", Some(PolicyName::PageCleaner57)),
            ("percona", "5.6.51-91.0", Some(PolicyName::PerconaHighCheckpoint)),
            ("tidb", "8.0.11-TiDB-v7.5.0", None),
        ] {
            let found = policy_of(&ServerVersion::recognise(version, flavour));
            assert_eq!(found, policy, "{flavour} {version}");
        }
    }

    #[test]
    fn what_a_target_does_not_tell_is_assumed_and_named() {
        let mut had = BTreeMap::new();
        for (name, value) in [
            ("innodb_log_file_size", "104857600"),
            ("innodb_io_capacity", "1000"),
            ("innodb_max_dirty_pages_pct", "90.000000"),
            ("innodb_doublewrite", "fast"),
            ("innodb_max_purge_lag", "1000"),
        ] {
            had.insert(name.to_owned(), value.to_owned());
            assert!(is_recorded(name));
        }
        let mut assumed = Vec::new();
        let version = "11.8.9-MariaDB";
        let server = Had { flavour: "mariadb", version, settings: &had, turns: false };
        let found = settings(&server, &mut assumed);
        assert_eq!((found.redo_log_capacity, found.io_capacity), (100 << 20, 1000));
        assert_eq!((found.policy, found.max_purge_lag), (PolicyName::Mariadb, 0));
        let what: Vec<&str> = assumed.iter().map(|one| one.what.as_str()).collect();
        let known = ["innodb_doublewrite", "io_capacity_max", "buffer pool", "flush_neighbors"];
        assert_eq!(what, known);
        let mut assumed = Vec::new();
        let none = Had { flavour: "", version: "", settings: &BTreeMap::new(), turns: false };
        let found = settings(&none, &mut assumed);
        assert_eq!((found.io_capacity, found.redo_log_capacity), (200, 1 << 30));
        assert_eq!(found.policy, PolicyName::PageCleaner84);
        assert_eq!(assumed.len(), 6, "{assumed:?}");
    }

    #[test]
    fn neighbours_of_a_mariadb_are_written_along_on_disks_that_turn() {
        let had = [("innodb_flush_neighbors".to_owned(), "1".to_owned())].into();
        let of = |flavour, version, turns| {
            let mut assumed = Vec::new();
            let server = Had { flavour, version, settings: &had, turns };
            let found = settings(&server, &mut assumed).flush_neighbors;
            (found, assumed.iter().any(|one| one.what == "innodb_flush_neighbors"))
        };
        assert_eq!(of("mariadb", "10.11.6-MariaDB", false), (0, true));
        assert_eq!(of("mariadb", "10.11.6-MariaDB", true), (1, false));
        assert_eq!(of("mariadb", "10.3.39-MariaDB", false), (1, false));
        assert_eq!(of("mysql", "5.7.44", false), (1, false));
    }
}
