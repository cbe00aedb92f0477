//! The name of a setting.
//!
//! Invariant: a plain value of bounded length, so that options of servers, which no catalogue has,
//! are settings like the others.

use std::fmt;
use std::ops::Deref;

/// Longest name, in bytes.
const BYTES_MAX: usize = 57;

/// The name of a setting.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SettingName {
    // Filled up with zeros, so that names sort as their texts do.
    bytes: [u8; BYTES_MAX],
    len: u8,
}

impl SettingName {
    /// A name of the catalogue.
    pub(super) const fn known(name: &str) -> Self {
        let (text, mut bytes, mut at) = (name.as_bytes(), [0; BYTES_MAX], 0);
        while at < text.len() {
            bytes[at] = text[at];
            at += 1;
        }
        Self { bytes, len: at as u8 }
    }

    /// A name from a text; none if it is too long.
    pub(super) fn of(name: &str) -> Option<Self> {
        (name.len() <= BYTES_MAX).then(|| Self::known(name))
    }
}

impl Deref for SettingName {
    type Target = str;

    fn deref(&self) -> &str {
        // It was made from a whole text.
        std::str::from_utf8(&self.bytes[..usize::from(self.len)]).unwrap_or_default()
    }
}

impl fmt::Debug for SettingName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(formatter)
    }
}

impl fmt::Display for SettingName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(formatter)
    }
}
