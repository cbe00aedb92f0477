//! Settings that only a database knows.
//!
//! Invariant: a setting of a database is taken by its form alone (`engine.NAME`, `server.NAME`,
//! `database.NAME` for either, or `second.NAME` for a second engine beside the first), since its
//! catalogue lies in a higher tier: whoever runs the study has to ask the database before anything
//! is touched. A name is kept for good once it is met, and there is room for so many names.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::catalogue::{OF_BOTH, OF_ENGINE, OF_SECOND, OF_SERVER, SettingId};
use super::{Setting, SettingKind, Takes};

/// What stands before the names, with what they are settings of.
const KINDS: [(&str, &str); 4] = [
    (OF_ENGINE, "A setting of the engine"),
    (OF_SERVER, "An option of the server"),
    (OF_BOTH, "A setting of the database"),
    (OF_SECOND, "A setting of the second engine"),
];
/// Longest name, in characters, and the most names: texts come from anywhere.
const NAME_CHARS_MAX: usize = 48;
const NAMES_MAX: usize = 1024;

static MET: Mutex<BTreeMap<String, &'static Setting>> = Mutex::new(BTreeMap::new());

/// The setting of a database with this whole name; none for a name that is of no such form.
pub(super) fn setting(name: &str) -> Option<&'static Setting> {
    let (own, doc) = KINDS.iter().find_map(|(of, doc)| Some((name.strip_prefix(of)?, *doc)))?;
    let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let fits = !own.is_empty() && own.len() <= NAME_CHARS_MAX && own.chars().all(is_name);
    if !fits {
        return None;
    }
    let mut met = MET.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(setting) = met.get(name) {
        return Some(setting);
    }
    if met.len() == NAMES_MAX {
        return None;
    }
    let kept: &'static str = Box::leak(name.to_owned().into_boxed_str());
    // Nearly every option of a server's InnoDB begins with its name.
    let plain = own.strip_prefix("innodb_").unwrap_or(own);
    let first_word = plain.split('_').next().unwrap_or_default().len();
    let at = kept.len() - plain.len();
    let setting: &'static Setting = Box::leak(Box::new(Setting {
        id: SettingId::Database(kept),
        name: kept,
        aliases: &[],
        kind: SettingKind::Transactions,
        takes: Takes::Text,
        default: None,
        short: &kept[at..at + first_word],
        doc,
    }));
    met.insert(name.to_owned(), setting);
    Some(setting)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_databases_are_taken_by_their_form() {
        let named = |name| Setting::named(name).map(|setting| (setting.name, setting.short));
        assert_eq!(named("engine.redo-log-capacity"), Some(("engine.redo_log_capacity", "redo")));
        assert_eq!(named("engine.policy"), Some(("engine.policy", "policy")));
        assert_eq!(named("second.redo_log_capacity"), Some(("second.redo_log_capacity", "redo")));
        assert_eq!(named("server.innodb_io_capacity"), Some(("server.innodb_io_capacity", "io")));
        assert_eq!(named("database.io_capacity"), Some(("database.io_capacity", "io")));
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
