//! From the text of a setting to its value and back, with the range held.

use std::path::PathBuf;

use iostrata_stats::units::{Size, parse_size};

use super::ValueKind;

/// A type that a field of the settings may have.
pub(super) trait Value: Sized {
    /// The value of a text without outer spaces, or nothing when the setting does not take it.
    fn parse(text: &str, kind: &ValueKind) -> Option<Self>;
    /// The text that parses back to the value.
    fn print(&self, kind: &ValueKind) -> String;
}

impl Value for u64 {
    fn parse(text: &str, kind: &ValueKind) -> Option<u64> {
        match *kind {
            ValueKind::Size { min, max, is_power_of_two } => parse_size(text)
                .ok()
                .filter(|bytes| (min..=max).contains(bytes))
                .filter(|bytes| !is_power_of_two || bytes.is_power_of_two()),
            ValueKind::Count { min, max } => {
                let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
                text.parse().ok().filter(|count| is_plain && (min..=max).contains(count))
            }
            _ => None,
        }
    }

    fn print(&self, kind: &ValueKind) -> String {
        match kind {
            ValueKind::Size { .. } => Size(*self).to_string(),
            _ => self.to_string(),
        }
    }
}

impl Value for u32 {
    fn parse(text: &str, kind: &ValueKind) -> Option<u32> {
        u64::parse(text, kind).and_then(|value| u32::try_from(value).ok())
    }

    fn print(&self, kind: &ValueKind) -> String {
        u64::from(*self).print(kind)
    }
}

impl Value for f64 {
    fn parse(text: &str, kind: &ValueKind) -> Option<f64> {
        let ValueKind::Percent { min, max } = *kind else { return None };
        let number = text.strip_suffix('%').unwrap_or(text).trim_end();
        let is_plain = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        number.parse().ok().filter(|share| is_plain && (min..=max).contains(share))
    }

    fn print(&self, _kind: &ValueKind) -> String {
        self.to_string()
    }
}

impl Value for bool {
    fn parse(text: &str, _kind: &ValueKind) -> Option<bool> {
        match text.to_ascii_lowercase().as_str() {
            "on" | "1" | "true" | "yes" => Some(true),
            "off" | "0" | "false" | "no" => Some(false),
            _ => None,
        }
    }

    fn print(&self, _kind: &ValueKind) -> String {
        if *self { "ON" } else { "OFF" }.to_owned()
    }
}

impl Value for Option<PathBuf> {
    fn parse(text: &str, _kind: &ValueKind) -> Option<Option<PathBuf>> {
        let is_one_line = !text.contains(|letter: char| letter.is_control());
        is_one_line.then(|| (!text.is_empty()).then(|| PathBuf::from(text)))
    }

    fn print(&self, _kind: &ValueKind) -> String {
        self.as_ref().map_or_else(String::new, |path| path.to_string_lossy().into_owned())
    }
}
