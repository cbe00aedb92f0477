//! Numbers of a series as a compressed column.
//!
//! Form: each number becomes a 64-bit word, the words become LEB128 bytes, those are deflated
//! (zlib) and written as base64. A column of whole numbers (`int`) keeps the zigzag-coded
//! difference to the number before; any other column (`real`) keeps the bits of the f64, xored with
//! the bits of the number before and then reversed, so that equal leading bits and short fractions
//! cost little. An absent number is the word of a quiet NaN.
//! Invariant: what is read is bit for bit what was written.

use std::io::{Read, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use serde::{Deserialize, Serialize};

/// Whole numbers up to here are exact in an f64.
const INTEGER_MAX: f64 = 9_007_199_254_740_992.0;

/// A column as it stands in the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Column {
    kind: ColumnKind,
    n: usize,
    data: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ColumnKind {
    Int,
    Real,
}

impl Column {
    /// Compresses numbers.
    pub(crate) fn pack(numbers: &[Option<f64>]) -> Self {
        let kind = if numbers.iter().all(is_whole) { ColumnKind::Int } else { ColumnKind::Real };
        let mut bytes = Vec::with_capacity(numbers.len() * 2);
        let mut before = 0_u64;
        for number in numbers {
            let bits = number.unwrap_or(f64::NAN).to_bits();
            let (word, next) = match kind {
                ColumnKind::Int => {
                    let whole = number.unwrap_or(0.0) as u64;
                    (zigzag(whole.wrapping_sub(before) as i64), whole)
                }
                ColumnKind::Real => ((bits ^ before).reverse_bits(), bits),
            };
            push_leb128(&mut bytes, word);
            before = next;
        }
        Self { kind, n: numbers.len(), data: STANDARD.encode(deflate(&bytes)) }
    }

    /// The numbers again.
    pub(crate) fn unpack(&self) -> Result<Vec<Option<f64>>, String> {
        let packed = STANDARD.decode(&self.data).map_err(|error| error.to_string())?;
        // Every word takes at least one byte and at most ten.
        let mut bytes = Vec::new();
        let most = (self.n as u64).saturating_mul(10);
        let mut inflater = ZlibDecoder::new(packed.as_slice()).take(most.saturating_add(1));
        inflater.read_to_end(&mut bytes).map_err(|error| error.to_string())?;
        let mut rest = bytes.as_slice();
        let mut before = 0_u64;
        let mut numbers = Vec::new();
        while numbers.len() < self.n {
            let word = take_leb128(&mut rest).ok_or("a column is shorter than its length")?;
            numbers.push(match self.kind {
                ColumnKind::Int => {
                    before = before.wrapping_add(unzigzag(word) as u64);
                    Some(before as f64)
                }
                ColumnKind::Real => {
                    before ^= word.reverse_bits();
                    Some(f64::from_bits(before)).filter(|number| !number.is_nan())
                }
            });
        }
        if rest.is_empty() { Ok(numbers) } else { Err("a column is longer than its length".into()) }
    }
}

fn is_whole(number: &Option<f64>) -> bool {
    number.is_some_and(|number| {
        number.fract() == 0.0 && (0.0..INTEGER_MAX).contains(&number) && number.is_sign_positive()
    })
}

fn deflate(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    let packed = encoder.write_all(bytes).and_then(|()| encoder.finish());
    match packed {
        Ok(packed) => packed,
        Err(error) => unreachable!("writing to memory cannot fail: {error}"),
    }
}

fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)) as u64
}

fn unzigzag(word: u64) -> i64 {
    (word >> 1) as i64 ^ -((word & 1) as i64)
}

fn push_leb128(bytes: &mut Vec<u8>, mut word: u64) {
    while word >= 0x80 {
        bytes.push(word as u8 | 0x80);
        word >>= 7;
    }
    bytes.push(word as u8);
}

fn take_leb128(bytes: &mut &[u8]) -> Option<u64> {
    let mut word = 0_u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        word |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(word);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn steady_counts_take_little_room() {
        let counts: Vec<_> = (0..300).map(|i| Some(f64::from(10_000 + i % 7))).collect();
        let column = Column::pack(&counts);
        assert_eq!(column.unpack().unwrap(), counts);
        assert!(column.data.len() < 100, "{}", column.data.len());
    }

    #[test]
    fn damage_is_found() {
        let column = Column::pack(&[Some(1.0), Some(2.0), Some(3.5)]);
        let broken = |change: fn(&mut Column)| {
            let mut column = column.clone();
            change(&mut column);
            column.unpack()
        };
        assert!(broken(|c| c.n = 4).is_err());
        assert!(broken(|c| c.n = 2).is_err());
        assert!(broken(|c| c.n = usize::MAX).is_err());
        assert!(broken(|c| c.data.truncate(8)).is_err());
        assert!(broken(|c| c.data = "?".into()).is_err());
    }

    proptest! {
        #[test]
        fn numbers_come_back(numbers: Vec<Option<f64>>, counts: Vec<u32>) {
            let numbers: Vec<_> =
                numbers.into_iter().map(|n| n.filter(|n| !n.is_nan())).collect();
            let back = Column::pack(&numbers).unpack().unwrap();
            let bits = |all: &[Option<f64>]| -> Vec<_> {
                all.iter().map(|n| n.map(f64::to_bits)).collect()
            };
            prop_assert_eq!(bits(&back), bits(&numbers));
            let counts: Vec<_> = counts.into_iter().map(|n| Some(f64::from(n))).collect();
            prop_assert_eq!(Column::pack(&counts).unpack().unwrap(), counts);
        }
    }
}
