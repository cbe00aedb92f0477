//! Facts about a server, read from its variables.
//!
//! Invariant: what a server lacks is unknown, never assumed.

use std::collections::BTreeMap;

use iostrata_run::TransactionDurability;

use crate::connect::TextRows;
use crate::flavour::ServerVersion;

/// Names and values: the global variables of a server, or its status.
pub(crate) type Variables = BTreeMap<String, String>;

/// Rows of names and values.
pub(crate) fn named(rows: TextRows) -> Variables {
    let pair = |row: Vec<Option<String>>| {
        let mut row = row.into_iter();
        Some((row.next()??, row.next()?.unwrap_or_default()))
    };
    rows.into_iter().filter_map(pair).collect()
}

/// MariaDB from 11.0 on has four switches for how files are written; its `innodb_flush_method`
/// keeps what it was started with.
const FILE_SWITCHES: [&str; 4] = [
    "innodb_data_file_buffering",
    "innodb_data_file_write_through",
    "innodb_log_file_buffering",
    "innodb_log_file_write_through",
];

/// What a commit survives, as the variables have it.
pub(crate) fn durability(version: &ServerVersion, variables: &Variables) -> TransactionDurability {
    if !version.flavour.has_innodb() {
        return TransactionDurability::default();
    }
    let word = |name: &str| variables.get(name).cloned();
    let is_on = |name: &str| {
        variables.get(name).map(|value| matches!(value.to_ascii_uppercase().as_str(), "ON" | "1"))
    };
    let has_switches = FILE_SWITCHES.iter().all(|name| variables.contains_key(*name));
    let flush_method = if has_switches {
        let switches: Vec<String> = FILE_SWITCHES
            .iter()
            .map(|name| {
                let value = variables.get(*name).map_or("", String::as_str);
                format!("{}={value}", name.trim_start_matches("innodb_"))
            })
            .collect();
        Some(switches.join(" "))
    } else {
        word("innodb_flush_method")
    };
    TransactionDurability {
        flush_log_at_commit: word("innodb_flush_log_at_trx_commit").and_then(|v| v.parse().ok()),
        doublewrite: word("innodb_doublewrite"),
        flush_method: flush_method.filter(|method| !method.is_empty()),
        binlog: is_on("log_bin"),
        sync_binlog: word("sync_binlog").and_then(|value| value.parse().ok()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(version: &str, variables: &[(&str, &str)]) -> TransactionDurability {
        let version = ServerVersion::recognise(version, "");
        let pairs = variables.iter().map(|(name, value)| (name.to_string(), value.to_string()));
        durability(&version, &pairs.collect())
    }

    #[test]
    fn every_flavour_says_it_in_its_own_words() {
        let usual = [
            ("innodb_flush_log_at_trx_commit", "1"),
            ("innodb_doublewrite", "ON"),
            ("innodb_flush_method", "O_DIRECT"),
            ("log_bin", "OFF"),
            ("sync_binlog", "0"),
        ];
        let expected = TransactionDurability {
            flush_log_at_commit: Some(1),
            doublewrite: Some("ON".to_owned()),
            flush_method: Some("O_DIRECT".to_owned()),
            binlog: Some(false),
            sync_binlog: Some(0),
        };
        assert_eq!(of("10.11.2-MariaDB", &usual), expected);
        let switches = FILE_SWITCHES.map(|name| (name, "OFF"));
        let newer = of("11.4.5-MariaDB", &[&usual[..], &switches].concat());
        assert_eq!(
            newer.flush_method.as_deref(),
            Some(
                "data_file_buffering=OFF data_file_write_through=OFF \
                 log_file_buffering=OFF log_file_write_through=OFF"
            )
        );
        assert_eq!(of("8.0.11-TiDB-v7.5.0", &usual), TransactionDurability::default());
    }

    #[test]
    fn what_is_missing_is_unknown() {
        assert_eq!(of("5.6.24", &[("innodb_flush_method", "")]), TransactionDurability::default());
        assert_eq!(of("9.7.4", &[("innodb_doublewrite", "DETECT_ONLY")]).binlog, None);
    }
}
