//! Sizes in bytes. K, M, G, T are powers of 1024; a bare number is bytes.

use std::fmt;
use std::str::FromStr;

use crate::units::{UnitError, split};

const EXAMPLE: &str = "4k, 512M or 1.5G";

/// A number of bytes that parses from and prints as `4K`, `1536M`, `512`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Size(pub u64);

/// Bytes in a text such as `4k`, `1.5GiB` or `512`.
///
/// # Errors
/// When there is no number, the unit is unknown, or the size does not fit 64 bits.
pub fn parse_size(text: &str) -> Result<u64, UnitError> {
    let (number, unit) = split(text, EXAMPLE)?;
    let shift = match unit.trim_end_matches("ib").trim_end_matches('b') {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        _ => {
            let found = text.to_owned();
            return Err(UnitError::UnknownUnit { found, unit, known: "K, M, G, T" });
        }
    };
    let bytes = number * f64::from(1_u32 << (shift / 2)) * f64::from(1_u32 << (shift - shift / 2));
    if bytes >= 9.0e18 {
        return Err(UnitError::TooLarge { found: text.to_owned() });
    }
    Ok(bytes.round() as u64)
}

impl FromStr for Size {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        parse_size(text).map(Size)
    }
}

impl fmt::Display for Size {
    /// The largest unit that divides the size exactly, so that the text parses back to it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (shift, unit) in [(40, 'T'), (30, 'G'), (20, 'M'), (10, 'K')] {
            if self.0 != 0 && self.0.is_multiple_of(1 << shift) {
                return write!(f, "{}{unit}", self.0 >> shift);
            }
        }
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_powers_of_1024() {
        for (text, bytes) in [
            ("0", 0),
            ("512", 512),
            ("4k", 4096),
            ("4K", 4096),
            ("4KiB", 4096),
            ("4kb", 4096),
            ("1.5M", 1_572_864),
            ("100G", 107_374_182_400),
            ("2T", 2_199_023_255_552),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn odd_texts_are_refused_by_name() {
        for text in ["", "k", "-4k", "4x", "4kk", "1e9", "..", "99999999T"] {
            assert!(parse_size(text).is_err(), "{text} was taken");
        }
        let error = parse_size("-4k").unwrap_err().to_string();
        assert!(error.contains("`-4k` is negative"), "{error}");
        let error = parse_size("4q").unwrap_err().to_string();
        assert!(error.contains("`q`") && error.contains("K, M, G, T"), "{error}");
    }

    #[test]
    fn what_is_printed_parses_back() {
        for bytes in [0, 1, 512, 4096, 4097, 1 << 20, 3 << 30, 5 << 40, 123_456_789] {
            assert_eq!(Size(bytes).to_string().parse(), Ok(Size(bytes)));
        }
    }
}
