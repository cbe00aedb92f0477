//! Every setting of the engine's I/O path: typed fields and the catalogue that describes them.
//!
//! Purpose: set and read by name, judge whether settings go together, and write and read the text
//! that keeps them with the data, one `name = value` per line.

mod catalogue;
mod flush_plan;
mod kind;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use iostrata_stats::units::Size;

pub use catalogue::{CATALOGUE, Settings};
pub use flush_plan::{FilePlan, FlushPlan, SyncRule};
pub use kind::{
    ChecksumAlgorithm, Doublewrite, FlushLogAt, FlushMethod, FlushWriteLimit, InnoDb, IoMethod,
    MaxPurgeLagVersion, PolicyName, Setting, SettingError, ValueKind, When,
};

#[cfg(test)]
mod tests;

/// The setting that goes by this name: InnoDB's prefix, dashes and capitals make no difference.
#[must_use]
pub fn find(name: &str) -> Option<&'static Setting> {
    let name = plain(name);
    CATALOGUE
        .iter()
        .find(|setting| setting.name == name || setting.aliases.contains(&name.as_str()))
}

/// A name as the catalogue spells it.
fn plain(name: &str) -> String {
    let name = name.trim().to_ascii_lowercase().replace('-', "_");
    name.strip_prefix("innodb_").map_or_else(|| name.clone(), str::to_owned)
}

// Setting, reading, and whether the settings go together.

/// Fewest frames that the pool works with: a change of the deepest tree pins this many at worst.
pub const FRAMES_MIN: u64 = 64;

/// Fewest pages that the redo must be able to hold whole, and the log buffer.
///
/// A change that splits pages up to the root logs images of two pages on each of some five levels.
const REDO_PAGES_MIN: u64 = 16;
const LOG_BUFFER_PAGES_MIN: u64 = 4;

/// The share of memory that the pool takes on a dedicated machine.
const POOL_MEMORY_SHARE: u64 = 4;

impl Settings {
    /// For a machine with this much memory that serves one engine: the pool is a quarter of it, in
    /// whole MiB, redo and growth are sized for a load that lasts. The rest is as by default.
    #[must_use]
    pub fn for_server(memory_bytes: u64) -> Settings {
        let share = memory_bytes / POOL_MEMORY_SHARE / (1 << 20) * (1 << 20);
        Settings {
            buffer_pool_size: share.clamp(8 << 20, 1 << 44),
            redo_log_capacity: 2 << 30,
            autoextend_increment: 64 << 20,
            ..Settings::default()
        }
    }

    /// Sets one setting from text. What does not go together is found by `check`, so that the order
    /// does not matter.
    ///
    /// As in InnoDB, an `io_capacity` above `io_capacity_max` raises that to twice it.
    ///
    /// # Errors
    /// An unknown name, or a value that the setting does not take; nothing is changed then.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), SettingError> {
        let setting = known(name)?;
        let found = value.trim();
        if !self.put(setting, found) {
            let found = found.to_owned();
            return Err(SettingError::Value { name: setting.name, found, kind: setting.kind });
        }
        if setting.name == "io_capacity" && self.io_capacity_max < self.io_capacity {
            self.io_capacity_max = self.io_capacity.saturating_mul(2);
        }
        Ok(())
    }

    /// As `set`, for an engine that runs: what cannot change then is refused, and so is what does
    /// not go together with the rest; nothing is changed then.
    ///
    /// # Errors
    /// As `set` and `check`, and settings that cannot change while the engine runs.
    pub fn set_live(&mut self, name: &str, value: &str) -> Result<(), SettingError> {
        let setting = known(name)?;
        if setting.when != When::Live {
            let found = value.trim().to_owned();
            let name = setting.name;
            return Err(SettingError::NotLive { name, found, when: setting.when });
        }
        let mut next = self.clone();
        next.set(name, value)?;
        next.check()?;
        *self = next;
        Ok(())
    }

    /// The value of a setting as text that parses back to it.
    ///
    /// # Errors
    /// An unknown name.
    pub fn get(&self, name: &str) -> Result<String, SettingError> {
        known(name).map(|setting| self.print(setting))
    }

    /// Frames that the pool has.
    #[must_use]
    pub fn frames(&self) -> u64 {
        self.buffer_pool_size / u64::from(self.page_size.max(1))
    }

    /// Whether every value is in its range and all go together.
    ///
    /// # Errors
    /// The first setting that is not, with what would do.
    pub fn check(&self) -> Result<(), SettingError> {
        for setting in CATALOGUE {
            let found = self.print(setting);
            if !self.clone().put(setting, &found) {
                return Err(SettingError::Value { name: setting.name, found, kind: setting.kind });
            }
        }
        self.check_sizes()?;
        if self.io_capacity_max < self.io_capacity {
            let fix = format!("io_capacity_max must be at least {}", self.io_capacity);
            return Err(self.conflict("io_capacity_max", "io_capacity", fix));
        }
        if self.max_dirty_pages_pct_lwm > self.max_dirty_pages_pct {
            let fix = format!("the former must be at most {}", self.max_dirty_pages_pct);
            return Err(self.conflict("max_dirty_pages_pct_lwm", "max_dirty_pages_pct", fix));
        }
        Ok(())
    }

    fn check_sizes(&self) -> Result<(), SettingError> {
        let page = u64::from(self.page_size);
        let needs = [
            ("buffer_pool_size", self.buffer_pool_size, FRAMES_MIN),
            ("redo_log_capacity", self.redo_log_capacity, REDO_PAGES_MIN),
            ("log_buffer_size", self.log_buffer_size, LOG_BUFFER_PAGES_MIN),
        ];
        for (name, bytes, pages) in needs {
            if bytes < pages * page {
                let least = Size(pages * page);
                let fix = format!("{name} must be at least {pages} pages, that is {least}");
                return Err(self.conflict(name, "page_size", fix));
            }
        }
        Ok(())
    }

    /// Whether data that was created with the settings `kept` can be opened with these.
    ///
    /// # Errors
    /// The first setting that only creation decides and that differs.
    pub fn check_reopen(&self, kept: &Settings) -> Result<(), SettingError> {
        for setting in CATALOGUE.iter().filter(|setting| setting.when == When::Creation) {
            let (found, kept) = (self.print(setting), kept.print(setting));
            if found != kept {
                return Err(SettingError::Fixed { name: setting.name, found, kept });
            }
        }
        Ok(())
    }

    fn conflict(&self, name: &'static str, other: &'static str, fix: String) -> SettingError {
        let text = |name| self.get(name).unwrap_or_default();
        SettingError::Conflict { name, found: text(name), other, other_found: text(other), fix }
    }
}

/// The setting of this name, or an error that suggests one.
fn known(name: &str) -> Result<&'static Setting, SettingError> {
    find(name)
        .ok_or_else(|| SettingError::Unknown { name: name.trim().to_owned(), near: nearest(name) })
}

/// Edits beyond which a name is another one.
const EDITS_MAX: usize = 4;

/// The setting whose name is nearest to this one, when one is near.
fn nearest(name: &str) -> Option<&'static str> {
    let name = plain(name);
    if name.len() > 64 {
        return None;
    }
    let names = CATALOGUE
        .iter()
        .flat_map(|setting| std::iter::once(setting.name).chain(setting.aliases.iter().copied()));
    let allowed = EDITS_MAX.min(name.len() / 3);
    names
        .map(|known| (!is_part(&name, known), strsim::levenshtein(&name, known), known))
        .filter(|(is_other, edits, _)| !is_other || *edits <= allowed)
        .min()
        .map(|(_, _, known)| known)
}

/// Whether a long piece of a name was typed for the whole.
fn is_part(name: &str, known: &str) -> bool {
    name.len() >= 6 && known.contains(name)
}

// The text that keeps settings with the data: one `name = value` per line.

const HEADER: &str = "\
# Settings of this data. Lines that are left out have their default, but redo_log_capacity = 2G
# and autoextend_increment = 64M.
";

/// Why a text is not settings. Lines count from 1.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TextError {
    /// A line without `=`.
    #[error("line {line} is `{found}`; write name = value, or # for a comment")]
    NotASetting {
        /// Its number.
        line: usize,
        /// The line.
        found: String,
    },
    /// A line that sets what was set before.
    #[error("line {line} sets {name} again; line {first} did")]
    Twice {
        /// Its number.
        line: usize,
        /// The setting.
        name: &'static str,
        /// The line that set it first.
        first: usize,
    },
    /// A line whose setting is refused.
    #[error("line {line}: {cause}")]
    Refused {
        /// Its number.
        line: usize,
        /// Why.
        cause: SettingError,
    },
}

impl Settings {
    /// The values of lines that are left out of a kept text: the defaults when the first was kept.
    /// They stay as they are whatever the defaults become, or data would change with the program.
    #[must_use]
    pub fn left_out() -> Settings {
        Settings {
            redo_log_capacity: 2 << 30,
            autoextend_increment: 64 << 20,
            ..Settings::default()
        }
    }

    /// What differs from `defaults`, and everything that only creation decides.
    #[must_use]
    pub fn to_text(&self, defaults: &Settings) -> String {
        let mut text = HEADER.to_owned();
        for setting in CATALOGUE {
            let value = self.print(setting);
            if setting.when == When::Creation || value != defaults.print(setting) {
                let _never_fails = writeln!(text, "{} = {value}", setting.name);
            }
        }
        text
    }

    /// The settings of a text, on top of `defaults`. Empty lines and `#` comments are left out.
    ///
    /// # Errors
    /// The first line that is not a setting, is refused or comes twice. What does not go together
    /// is found by `check`.
    pub fn from_text(text: &str, defaults: Settings) -> Result<Settings, TextError> {
        let mut settings = defaults;
        let mut seen = BTreeMap::new();
        for (line, found) in (1..).zip(text.lines().map(str::trim)) {
            if found.is_empty() || found.starts_with('#') {
                continue;
            }
            let Some((name, value)) = found.split_once('=') else {
                return Err(TextError::NotASetting { line, found: found.to_owned() });
            };
            if let Some(setting) = find(name)
                && let Some(first) = seen.insert(setting.name, line)
            {
                return Err(TextError::Twice { line, name: setting.name, first });
            }
            settings.set(name, value).map_err(|cause| TextError::Refused { line, cause })?;
        }
        Ok(settings)
    }
}

#[cfg(test)]
mod near_tests {
    use super::*;

    #[test]
    fn near_names_are_suggested_and_far_ones_are_not() {
        for (typed, meant) in [
            ("io_capacty", Some("io_capacity")),
            ("innodb-bufer-pool-size", Some("buffer_pool_size")),
            ("redo_log_capasity", Some("redo_log_capacity")),
            ("double_write", Some("doublewrite")),
            ("pool_size", Some("buffer_pool_size")),
            ("query_cache_type", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(nearest(typed), meant, "{typed}");
        }
    }
}
