//! The settings of a load as options of a server.
//!
//! Invariant: pure; what both the engine and a server have is named once and becomes what that
//! flavour and version calls it. The study's own options come last, so that they win.

use std::path::Path;

use iostrata_plan::TransactionSpec;
use iostrata_plan::study::setting::{OF_BOTH, OF_SERVER, REDO_CAPACITY, SHARED};
use iostrata_server::private::ProgramVersion;
use iostrata_stats::units::parse_size;

const LOG_DIRECTORY: &str = "innodb_log_group_home_dir";
/// Of servers where a study says nothing: what the engine has there, or what keeps a restarted
/// server from reading on its own what it had in memory before.
const DEFAULTS: [(&str, &str); 3] =
    [("buffer_pool_size", "128M"), (REDO_CAPACITY, "128M"), ("flush_method", "O_DIRECT")];
const ALWAYS: [&str; 4] = [
    "loose-innodb-buffer-pool-load-at-startup=OFF",
    "loose-innodb-buffer-pool-dump-at-shutdown=OFF",
    "loose-performance-schema=OFF",
    "loose-local-infile=ON",
];
/// While tables are loaded nothing has to survive a crash.
const LOADING: [&str; 2] = ["innodb-flush-log-at-trx-commit=0", "innodb-buffer-pool-size=256M"];
/// Decided when the data is created.
const OF_DATA: [&str; 7] = [
    "innodb_page_size",
    "innodb_data_file_path",
    "innodb_undo_tablespaces",
    "innodb_checksum_algorithm",
    LOG_DIRECTORY,
    "innodb_file_per_table",
    "lower_case_table_names",
];

/// What a server is started with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerOptions {
    /// What its data was created with.
    pub of_data: Vec<String>,
    /// Everything else.
    pub at_start: Vec<String>,
}

impl ServerOptions {
    /// The options of a load on a server of this version.
    pub fn of(version: &ProgramVersion, load: &TransactionSpec) -> Self {
        let mut all: Vec<String> = ALWAYS.map(str::to_owned).to_vec();
        let shared = load
            .settings
            .iter()
            .filter_map(|(name, value)| Some((name.strip_prefix(OF_BOTH)?, value.as_str())));
        let shared: Vec<(&str, &str)> = shared.collect();
        let unsaid = DEFAULTS.iter().filter(|(name, _)| shared.iter().all(|own| own.0 != *name));
        for (name, value) in unsaid.copied().chain(shared.iter().copied()) {
            all.extend(named_by(version, name, value));
        }
        if let Some(engine) = load.settings.get("storage_engine") {
            // So that a server without it says so.
            all.push(format!("default-storage-engine={engine}"));
        }
        all.extend(load.settings.iter().filter_map(|(name, value)| {
            Some(format!("{}={value}", name.strip_prefix(OF_SERVER)?))
        }));
        let (of_data, at_start) = all.into_iter().partition(|option| is_of_data(option));
        Self { of_data, at_start }
    }

    /// The same with its redo in another directory, where one is named; the study's own words win.
    pub fn with_redo(mut self, dir: Option<&Path>) -> Self {
        let option = dir.map(|dir| format!("{LOG_DIRECTORY}={}", dir.display()));
        self.of_data.splice(0..0, option);
        self
    }

    /// The options under which tables are loaded.
    pub fn for_loading(&self) -> Vec<String> {
        self.at_start.iter().cloned().chain(LOADING.map(str::to_owned)).collect()
    }
}

fn is_of_data(option: &str) -> bool {
    let name = option.split('=').next().unwrap_or(option).replace('-', "_");
    OF_DATA.contains(&name.as_str())
}

/// A shared setting as a version calls it.
fn named_by(version: &ProgramVersion, name: &str, value: &str) -> Vec<String> {
    if name == REDO_CAPACITY {
        return redo(version, value);
    }
    let own = SHARED.iter().find(|(engine, _)| *engine == name);
    own.map(|(_, server)| format!("{server}={}", in_bytes(value))).into_iter().collect()
}

/// One file, several, or a capacity.
fn redo(version: &ProgramVersion, value: &str) -> Vec<String> {
    let has_capacity = !version.is_mariadb
        && (version.is_from(8, 1) || (version.is_from(8, 0) && version.number.2 >= 30));
    if has_capacity {
        return vec![format!("innodb_redo_log_capacity={}", in_bytes(value))];
    }
    if version.is_mariadb && version.is_from(10, 5) {
        return vec![format!("innodb_log_file_size={}", in_bytes(value))];
    }
    match parse_size(value) {
        Ok(bytes) => vec![
            format!("innodb_log_file_size={}", bytes / 2),
            "innodb_log_files_in_group=2".to_owned(),
        ],
        Err(_) => vec![format!("innodb_log_file_size={value}")],
    }
}

/// Sizes as plain numbers: not every version takes every unit.
fn in_bytes(value: &str) -> String {
    let has_unit = value.ends_with(|c: char| c.is_ascii_alphabetic());
    let size = parse_size(value).ok().filter(|_| has_unit);
    size.map_or_else(|| value.to_owned(), |bytes| bytes.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(said: &str) -> ProgramVersion {
        ProgramVersion::parse(&format!("mysqld  Ver {said} for Linux on x86_64")).unwrap()
    }

    fn options(said: &str, settings: &[(&str, &str)]) -> ServerOptions {
        let mut load = TransactionSpec::new("tpcc", "mysql");
        let own = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        load.settings.extend(own);
        ServerOptions::of(&version(said), &load)
    }

    #[test]
    fn one_name_becomes_what_each_version_calls_it() {
        let settings = [("database.redo_log_capacity", "1G"), ("database.io_capacity", "200")];
        let redo = |said: &str| -> Vec<String> {
            let all = options(said, &settings).at_start;
            assert!(all.contains(&"innodb_io_capacity=200".to_owned()), "{all:?}");
            all.into_iter().filter(|one| one.contains("log_file") || one.contains("redo")).collect()
        };
        assert_eq!(redo("9.7.4"), ["innodb_redo_log_capacity=1073741824"]);
        assert_eq!(redo("10.11.6-MariaDB"), ["innodb_log_file_size=1073741824"]);
        let halves = ["innodb_log_file_size=536870912", "innodb_log_files_in_group=2"];
        assert_eq!(redo("5.6.24"), halves);
        assert_eq!(redo("8.0.29"), halves);
    }

    #[test]
    fn what_the_study_says_of_the_server_comes_last_and_data_is_apart() {
        let found = options(
            "9.7.4",
            &[
                ("server.innodb_flush_method", "fsync"),
                ("server.innodb_page_size", "4096"),
                ("storage_engine", "MyISAM"),
            ],
        );
        assert_eq!(found.of_data, ["innodb_page_size=4096"]);
        let place = |word: &str| found.at_start.iter().position(|one| one == word);
        let (own, default) = ("innodb_flush_method=fsync", "innodb_flush_method=O_DIRECT");
        assert!(place(own) > place(default) && place(default).is_some(), "{found:?}");
        assert!(place("default-storage-engine=MyISAM").is_some());
    }
}
