//! The text that keeps settings with the data: one `name = value` per line.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::kind::When;
use super::{CATALOGUE, SettingError, Settings, find};

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
    /// What lines stand for that are left out of a kept text: the defaults when the first was kept.
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
