//! What a study can set, and how the text of each setting becomes a value.
//!
//! Purpose: one catalogue that the reader of study texts, the documents and the error messages
//! share. Invariant: every setting has one name, one line of explanation and one parser.

mod catalogue;
mod database;
mod name;
mod value;

pub use catalogue::{
    ENGINE, INSERT, OF_BOTH, OF_ENGINE, OF_SECOND, OF_SERVER, REQUESTS, SETTINGS, STRESS,
    SettingId, TPCC, TPCC_COMPAT, UPDATES,
};
pub use database::{REDO_CAPACITY, REDO_DIRECTORY, SHARED, engine_settings};
pub(in crate::study) use database::{together, wrong_with};
pub use name::SettingName;
pub use value::SettingValue;

use iostrata_stats::units::parse_size;

use super::nearest::nearest;
use crate::Words;

/// What a setting belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SettingKind {
    /// The volume: made once for all points that need the same one.
    Volume,
    /// What is switched from point to point on a volume.
    Conditions,
    /// The requests.
    Workload,
    /// The transactions, where those are the workload, and the database that they run on.
    Transactions,
}

impl SettingKind {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            SettingKind::Volume => "volume",
            SettingKind::Conditions => "conditions",
            SettingKind::Workload => "workload",
            SettingKind::Transactions => "transactions",
        }
    }
}

/// What the value of a setting looks like.
#[derive(Clone, Copy, Debug)]
pub enum Takes {
    /// A word of a closed set.
    Word(WordSet),
    /// A whole number between two, both included.
    Count(u64, u64),
    /// Bytes between two, both included.
    Bytes(u64, u64),
    /// true or false.
    Switch,
    /// A number from 0 to this.
    Number(f64),
    /// `defaults`, or options with this character between them.
    Options(char),
    /// `uniform`, `coverage` or `zipf:THETA`.
    Distribution,
    /// An emulated disk, or `none`.
    Disk,
    /// The embedded engine, or a server's flavour with or without its version.
    Database,
    /// Whatever the database takes; it is checked there.
    Text,
}

/// The words that a setting takes, whatever their values are.
#[derive(Clone, Copy, Debug)]
pub struct WordSet {
    /// The names that are shown.
    pub names: fn() -> Vec<&'static str>,
    /// The name that is shown for a text.
    pub name_of: fn(&str) -> Option<&'static str>,
}

impl WordSet {
    /// The words of a set of values.
    pub(crate) const fn of<T: Words>() -> Self {
        Self { names: T::names, name_of: |text| Some(T::of(text)?.name()) }
    }
}

/// One setting.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Which one.
    pub id: SettingId,
    /// Its name, with underscores; dashes are taken as well.
    pub name: SettingName,
    /// Other names for it.
    pub aliases: &'static [&'static str],
    /// What it belongs to.
    pub kind: SettingKind,
    /// What its value looks like.
    pub takes: Takes,
    /// Its value where a study does not set it; without one it is left alone.
    pub default: Option<&'static str>,
    /// What stands before its level in the name of a point.
    pub short: SettingName,
    /// One line for a reader.
    pub doc: &'static str,
}

impl PartialEq for Setting {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Setting {
    /// The setting with this name or alias. Any setting of a database is one, whether the database
    /// has it or not.
    pub fn named(name: &str) -> Option<Setting> {
        let name = name.replace('-', "_");
        let is_it = |one: &&Setting| *one.name == *name || one.aliases.contains(&&*name);
        SETTINGS.iter().find(is_it).copied().or_else(|| database::setting(&name))
    }

    /// The setting with this identity.
    pub fn of(id: SettingId) -> Setting {
        let found = match id {
            SettingId::Database(name) => database::setting(&name),
            id => SETTINGS.iter().find(|setting| setting.id == id).copied(),
        };
        assert!(found.is_some(), "every setting is in the catalogue");
        found.unwrap_or(SETTINGS[0])
    }

    /// The name that is nearest to a misspelt one.
    pub fn nearest(name: &str) -> Option<&'static str> {
        let names = SETTINGS.iter().flat_map(|setting| {
            std::iter::once(&*setting.name).chain(setting.aliases.iter().copied())
        });
        nearest(&name.replace('-', "_"), names)
    }

    /// A level of an axis as a number.
    pub fn number(&self, label: &str) -> Option<f64> {
        match self.parse(label).ok()? {
            SettingValue::Count(count) => Some(count as f64),
            SettingValue::Bytes(bytes) => Some(bytes as f64),
            SettingValue::Number(number) => Some(number),
            SettingValue::Text(text) => parse_size(&text).ok().map(|size| size as f64),
            _ => None,
        }
    }

    /// A level as a place on an axis. A rate of 0 has none: unlimited has no place among rates.
    pub fn position(&self, label: &str) -> Option<f64> {
        let is_rate = matches!(
            self.id,
            SettingId::RatePct
                | SettingId::RateIops
                | SettingId::RateTps
                | SettingId::SecondRateTps
        );
        self.number(label).filter(|number| !is_rate || *number > 0.0)
    }

    /// Whether its levels are numbers on an axis. Block sizes are not: requests of another size are
    /// other work, so that there is no curve over them.
    pub fn is_axis(&self) -> bool {
        *self.name != *"bs"
            && matches!(
                self.takes,
                Takes::Count(..) | Takes::Bytes(..) | Takes::Number(_) | Takes::Text
            )
            && self.id != SettingId::StorageEngine
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_found_with_dashes_and_aliases() {
        let mut names: Vec<&str> = SETTINGS
            .iter()
            .flat_map(|setting| {
                std::iter::once(&*setting.name).chain(setting.aliases.iter().copied())
            })
            .collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
        for name in ["mount-options", "numjobs", "nrfiles", "read_ahead_kb"] {
            assert!(Setting::named(name).is_some(), "{name}");
        }
        assert_eq!(Setting::nearest("wrokers"), Some("workers"));
        assert_eq!(Setting::nearest("qqqqqqqq"), None);
    }

    #[test]
    fn every_setting_is_there_once_and_its_default_is_a_value_it_takes() {
        for (at, setting) in SETTINGS.iter().enumerate() {
            assert_eq!(SETTINGS.iter().position(|other| other.id == setting.id), Some(at));
            assert!(!setting.doc.is_empty() && !setting.doc.ends_with('.'), "{}", setting.name);
            if let Some(default) = setting.default {
                let value = setting.parse(default).unwrap();
                assert_eq!(setting.label(&value), default, "{}", setting.name);
            }
        }
    }
}
