//! Settings that only a database has.
//!
//! Invariant: a setting of a database is taken by its form (`engine.NAME`, `server.NAME`,
//! `database.NAME` for either, or `second.NAME` for a second engine next to the first). Names and
//! values of the engine are then checked by its catalogue, at their place in the text; only the
//! server itself can check its own.

use iostrata_innodb::{SettingError, Settings};

use crate::TransactionSpec;

use super::catalogue::{ENGINE, OF_BOTH, OF_ENGINE, OF_SECOND, OF_SERVER, SettingId};
use super::{Setting, SettingKind, SettingName, Takes};

/// What stands before the names, with what they are settings of.
const KINDS: [(&str, &str); 4] = [
    (OF_ENGINE, "A setting of the engine"),
    (OF_SERVER, "An option of the server"),
    (OF_BOTH, "A setting of the database"),
    (OF_SECOND, "A setting of the second engine"),
];
/// Longest own name, in characters.
const NAME_CHARS_MAX: usize = 48;

/// The study places the redo: on the volume that it measures, or on another.
pub const REDO_DIRECTORY: &str = "redo_directory";
/// The shared setting whose name at a server depends on the version.
pub const REDO_CAPACITY: &str = "redo_log_capacity";
/// Settings of the engine that servers have too, by the names of both.
pub const SHARED: [(&str, &str); 15] = [
    ("buffer_pool_size", "innodb_buffer_pool_size"),
    ("page_size", "innodb_page_size"),
    ("flush_method", "innodb_flush_method"),
    ("flush_log_at_commit", "innodb_flush_log_at_trx_commit"),
    ("doublewrite", "innodb_doublewrite"),
    ("io_capacity", "innodb_io_capacity"),
    ("io_capacity_max", "innodb_io_capacity_max"),
    ("max_dirty_pages_pct", "innodb_max_dirty_pages_pct"),
    ("max_dirty_pages_pct_lwm", "innodb_max_dirty_pages_pct_lwm"),
    ("adaptive_flushing_lwm", "innodb_adaptive_flushing_lwm"),
    ("flush_neighbors", "innodb_flush_neighbors"),
    ("max_purge_lag", "innodb_max_purge_lag"),
    ("max_purge_lag_delay", "innodb_max_purge_lag_delay"),
    ("purge_threads", "innodb_purge_threads"),
    ("log_buffer_size", "innodb_log_buffer_size"),
];
/// A machine with much memory would give the engine of a study much more than its tables need.
const SMALL: [(&str, &str); 3] =
    [("buffer_pool_size", "128M"), (REDO_CAPACITY, "128M"), ("autoextend_increment", "8M")];

/// The setting of a database with this whole name; none for a name that is of no such form.
pub(super) fn setting(name: &str) -> Option<Setting> {
    let (own, doc) = KINDS.iter().find_map(|(of, doc)| Some((name.strip_prefix(of)?, *doc)))?;
    let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let fits = !own.is_empty() && own.len() <= NAME_CHARS_MAX && own.chars().all(is_name);
    if !fits {
        return None;
    }
    let name = SettingName::of(name)?;
    // Nearly every option of a server's InnoDB begins with its name.
    let plain = own.strip_prefix("innodb_").unwrap_or(own);
    Some(Setting {
        id: SettingId::Database(name),
        name,
        aliases: &[],
        kind: SettingKind::Transactions,
        takes: Takes::Text,
        default: None,
        short: SettingName::of(plain.split('_').next().unwrap_or_default())?,
        doc,
    })
}

/// Why a database does not have or take a setting, and the fix.
pub(in crate::study) fn wrong_with(name: &str, value: &str) -> Option<(String, String)> {
    if name.starts_with(OF_SERVER) {
        return None;
    }
    let own = [OF_ENGINE, OF_SECOND, OF_BOTH].iter().find_map(|of| name.strip_prefix(of));
    let own = own.unwrap_or(name);
    if own == REDO_DIRECTORY {
        let fix = "leave it away: redo lies on the volume, with the data, or set redo_volume";
        return Some(("is not for studies".to_owned(), fix.to_owned()));
    }
    let shared: Vec<&str> = SHARED.iter().map(|(name, _)| *name).chain([REDO_CAPACITY]).collect();
    if name.starts_with(OF_BOTH) && !shared.contains(&own) {
        let why = format!("{own} is no setting that the engine and servers share");
        let names = shared.join(", ");
        return Some((why, format!("use engine.NAME or server.NAME; shared are {names}")));
    }
    let error = Settings::default().set(own, value).err()?;
    let fix = match error {
        SettingError::Unknown { .. } => "docs/settings.md lists the settings of the engine",
        _ => "see docs/settings.md",
    };
    Some((error.to_string(), fix.to_owned()))
}

/// The engine's settings for a load.
#[must_use]
pub fn engine_settings(load: &TransactionSpec) -> Vec<(String, String)> {
    let own = |(name, value): (&String, &String)| {
        Some((name.strip_prefix(OF_ENGINE)?.to_owned(), value.clone()))
    };
    let small = SMALL.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    small.chain(load.settings.iter().filter_map(own)).collect()
}

/// Whether the engine's settings of a load go together.
///
/// # Errors
/// The first two that do not.
pub(in crate::study) fn together(load: &TransactionSpec) -> Result<(), SettingError> {
    if load.target != ENGINE {
        return Ok(());
    }
    let mut settings = Settings::default();
    for (name, value) in engine_settings(load) {
        settings.set(&name, &value)?;
    }
    settings.check()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_databases_are_taken_by_their_form() {
        let named =
            |name: &str| Setting::named(name).map(|set| format!("{} {}", set.name, set.short));
        let is = |name: &str, said: &str| assert_eq!(named(name).as_deref(), Some(said));
        is("engine.redo-log-capacity", "engine.redo_log_capacity redo");
        is("engine.policy", "engine.policy policy");
        is("second.redo_log_capacity", "second.redo_log_capacity redo");
        is("server.innodb_io_capacity", "server.innodb_io_capacity io");
        is("database.io_capacity", "database.io_capacity io");
        let again = Setting::named("engine.policy");
        assert_eq!(again, Setting::named("engine.policy"), "the same each time");
        for odd in ["engine.", "engine", "other.policy", "engine.a.b", "engine.a b"] {
            assert_eq!(named(odd), None, "{odd}");
        }
    }

    #[test]
    fn sizes_have_one_form_and_words_stay_as_they_are() {
        let label = |text: &str| {
            let setting = Setting::named("engine.redo_log_capacity").unwrap();
            setting.label(&setting.parse(text).unwrap())
        };
        for (text, shown) in
            [("1024m", "1G"), ("0.125G", "128M"), ("400000", "400000"), ("O_DIRECT", "O_DIRECT")]
        {
            assert_eq!(label(text), shown, "{text}");
        }
        let capacity = Setting::named("engine.redo_log_capacity").unwrap();
        assert_eq!(capacity.number("128M"), Some(134_217_728.0));
        assert_eq!(capacity.number("adaptive"), None);
        assert!(capacity.parse(" ").is_err());
    }
}
