//! Why a value or an argument cannot be taken, and the small things about characters.

use iostrata_database::target::Value;

use crate::key::KeyMisfit;

/// Why a value does not go into its column.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "each text says what its fields are")]
pub enum ValueError {
    #[error("column {column} always holds something, and nothing was given")]
    Null { column: String },
    #[error("column {column} holds {takes}, and {found} was given")]
    Kind { column: String, takes: &'static str, found: String },
    #[error("{found} is beyond column {column}, which holds {least} to {most}")]
    Range { column: String, found: String, least: i64, most: i64 },
    #[error("column {column} holds {most} {unit}, and {found} were given")]
    Long { column: String, most: usize, unit: &'static str, found: usize },
}

impl ValueError {
    /// Characters where a number belongs, or the other way round.
    pub(crate) fn kind(column: &str, is_text: bool, found: Value<'_>) -> Self {
        let takes = if is_text { "characters" } else { "a number" };
        Self::Kind { column: column.to_owned(), takes, found: format!("{found:?}") }
    }

    /// A value that cannot stand in a key.
    pub(crate) fn misfit(
        column: &str,
        found: Value<'_>,
        misfit: KeyMisfit,
        (least, most): (i64, i64),
    ) -> Self {
        let column = column.to_owned();
        match misfit {
            KeyMisfit::Null => Self::Null { column },
            KeyMisfit::Kind => Self::kind(&column, matches!(found, Value::Int(_)), found),
            KeyMisfit::Below | KeyMisfit::Above => {
                Self::Range { column, found: format!("{found:?}"), least, most }
            }
        }
    }
}

/// How many characters there are; of what is no UTF-8, how many bytes that begin one.
pub(crate) fn characters(text: &[u8]) -> usize {
    if text.is_ascii() {
        return text.len();
    }
    text.iter().filter(|byte| begins_character(**byte)).count()
}

/// How many bytes the first characters take, at most so many of them.
pub(crate) fn bytes_of_characters(text: &[u8], most: usize) -> usize {
    if text.len() <= most {
        return text.len();
    }
    let beginnings = text.iter().enumerate().filter(|(_, byte)| begins_character(**byte));
    beginnings.map(|(at, _)| at).nth(most).unwrap_or(text.len())
}

fn begins_character(byte: u8) -> bool {
    byte & 0xc0 != 0x80
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_counted_and_cut_as_a_whole() {
        for (text, count) in [("", 0), ("abc", 3), ("a\u{e4}\u{20ac}b", 4)] {
            assert_eq!(characters(text.as_bytes()), count, "{text}");
            for most in 0..6 {
                let cut: String = text.chars().take(most).collect();
                assert_eq!(bytes_of_characters(text.as_bytes(), most), cut.len(), "{text} {most}");
            }
        }
    }
}
