//! Sizes and durations as users type them, and quantities as users read them.
//!
//! Purpose: one parser and one printer for each, so that the same text means the same thing in
//! every option, file and report. Invariant: pure, and whatever is printed exactly parses back. It
//! does not know any option by name; errors name what was found and what would have been accepted.

mod duration;
mod print;
mod size;

pub use duration::parse_duration;
pub use print::{bytes, capital, count, grouped, microseconds, percent, rate, seconds, times};
pub use size::{Size, parse_size};

/// Why a text is not a quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// The text is empty.
    #[error("a value is missing; write for example {example}")]
    Empty {
        /// What could be written instead.
        example: &'static str,
    },
    /// No number at the start.
    #[error("`{found}` is not a number with a unit; write for example {example}")]
    NotANumber {
        /// The text as it was given.
        found: String,
        /// What could be written instead.
        example: &'static str,
    },
    /// A minus in front.
    #[error("`{found}` is negative; write for example {example}")]
    Negative {
        /// The text as it was given.
        found: String,
        /// What could be written instead.
        example: &'static str,
    },
    /// A unit that does not exist.
    #[error("`{unit}` in `{found}` is not a unit; use one of {known}")]
    UnknownUnit {
        /// The text as it was given.
        found: String,
        /// The unit in it.
        unit: String,
        /// The known units.
        known: &'static str,
    },
    /// More than 64 bits hold.
    #[error("`{found}` is too large")]
    TooLarge {
        /// The text as it was given.
        found: String,
    },
}

/// Splits `12.5ms` into its number and its unit.
fn split(text: &str, example: &'static str) -> Result<(f64, String), UnitError> {
    let text = text.trim();
    if text.is_empty() {
        return Err(UnitError::Empty { example });
    }
    if text.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit())) {
        return Err(UnitError::Negative { found: text.to_owned(), example });
    }
    let not_a_number = || UnitError::NotANumber { found: text.to_owned(), example };
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..end].parse().map_err(|_| not_a_number())?;
    if !number.is_finite() {
        return Err(not_a_number());
    }
    Ok((number, text[end..].trim().to_ascii_lowercase()))
}
