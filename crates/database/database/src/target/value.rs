//! One value of a row.

use std::fmt;

/// One value of a row. Amounts are whole numbers of the smallest unit of their column (cents of a
/// decimal with two places), moments are seconds since 1970 in UTC.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Value<'a> {
    /// Nothing.
    Null,
    /// A number, an amount or a moment.
    Int(i64),
    /// Characters, as their bytes.
    Text(&'a [u8]),
}

impl<'a> Value<'a> {
    /// The number.
    ///
    /// # Panics
    /// When it is none: the operation that gave it declares the column's type.
    #[track_caller]
    pub fn int(self) -> i64 {
        match self {
            Self::Int(number) => number,
            other => panic!("{other:?} in place of a number"),
        }
    }

    /// The characters.
    ///
    /// # Panics
    /// When there are none: the operation that gave it declares the column's type.
    #[track_caller]
    pub fn text(self) -> &'a [u8] {
        match self {
            Self::Text(text) => text,
            other => panic!("{other:?} in place of characters"),
        }
    }

    /// Whether there is nothing.
    pub fn is_null(self) -> bool {
        self == Self::Null
    }
}

impl From<i64> for Value<'_> {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl<'a> From<&'a [u8]> for Value<'a> {
    fn from(text: &'a [u8]) -> Self {
        Self::Text(text)
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text.as_bytes())
    }
}

impl fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Int(number) => write!(f, "{number}"),
            Self::Text(text) => write!(f, "{:?}", String::from_utf8_lossy(text)),
        }
    }
}
