//! The difference between two values of a row.
//!
//! Purpose: the form in which a Revise record carries a new value: for each stretch of new bytes
//! `bytes kept since the end of the last one varint, bytes that follow varint, these bytes`, back
//! to back. Invariant: positions are those of both values, nothing is shifted. What no hunk covers
//! stays as it was; what the old value does not have is covered. Reading is total.

use std::ops::Range;

use iostrata_innodb::PageNo;

use crate::page::fault::{ApplyFault, CellFault};
use crate::page::numbers::{Reader, push, put};

/// Least bytes that a hunk takes besides its new bytes. Hunks no further apart than this are
/// joined: writing the bytes between them again costs no more.
const HUNK_BYTES: usize = 2;

const WORD_BYTES: usize = 8;
const LOW_BITS: u64 = u64::from_le_bytes([0x7f; WORD_BYTES]);
const TOP_BITS: u64 = !LOW_BITS;

/// What turns one value into another, as a Revise carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hunks<'a> {
    bytes: &'a [u8],
}

impl<'a> Hunks<'a> {
    /// The hunks in `bytes`, written by [`Hunks::between`]. Damage shows when they are applied.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// The encoded form; empty when the new value is the beginning of the old one, or the same.
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// What turns `old` into the two parts of `new` one behind the other. `out` is emptied first
    /// and holds the hunks: at most 6 bytes more than the new value.
    #[inline]
    pub fn between(old: &[u8], new: [&[u8]; 2], out: &'a mut Vec<u8>) -> Self {
        out.clear();
        let mut joined = Joined { new, out, last_end: 0, open: 0..0 };
        let (first, rest) = old.split_at(new[0].len().min(old.len()));
        joined.compare(0, first, new[0]);
        joined.compare(new[0].len(), rest, new[1]);
        let len = new[0].len() + new[1].len();
        if old.len() < len {
            joined.note(old.len()..len);
        }
        joined.write_open();
        Self { bytes: out }
    }

    /// Whether they turn a value of `old_len` bytes into one of `len`.
    #[inline]
    pub(crate) fn check(
        self,
        (page, slot): (PageNo, usize),
        old_len: usize,
        len: usize,
    ) -> Result<(), ApplyFault> {
        let mut reader = Reader::new(self.bytes);
        let mut end = 0;
        while reader.left() > 0 {
            let (kept, bytes) =
                read(&mut reader).map_err(|fault| ApplyFault::Hunks { page, fault })?;
            let (from, count) = (end + kept, bytes.len());
            if from + count > len {
                return Err(ApplyFault::OutOfRange { page, from, count, len });
            }
            let at = old_len.max(end);
            if from > at {
                return Err(ApplyFault::Uncovered { page, slot, at });
            }
            end = from + count;
        }
        let at = old_len.max(end);
        if len > at { Err(ApplyFault::Uncovered { page, slot, at }) } else { Ok(()) }
    }

    /// Writes the new bytes over a value that they were checked for.
    #[inline]
    pub(crate) fn write_to(self, value: &mut [u8]) {
        let mut reader = Reader::new(self.bytes);
        let mut end = 0;
        while let Ok((kept, bytes)) = read(&mut reader) {
            put(value, end + kept, bytes);
            end += kept + bytes.len();
        }
    }
}

/// Bytes kept, and the new bytes behind them.
#[inline]
fn read<'a>(reader: &mut Reader<'a>) -> Result<(usize, &'a [u8]), CellFault> {
    let (kept, count) = (reader.small()?, reader.small()?);
    Ok((kept, reader.bytes(count)?))
}

/// Hunks while they are found.
struct Joined<'n, 'o> {
    new: [&'n [u8]; 2],
    out: &'o mut Vec<u8>,
    /// Where the last hunk that was written ends.
    last_end: usize,
    /// The hunk that may still grow; empty before the first.
    open: Range<usize>,
}

impl Joined<'_, '_> {
    /// Notes where the values differ as far as both have bytes, `at` being the place of the first.
    #[inline]
    fn compare(&mut self, mut at: usize, old: &[u8], new: &[u8]) {
        let len = old.len().min(new.len());
        let (old, old_rest) = old[..len].as_chunks();
        let (new, new_rest) = new[..len].as_chunks();
        for (old, new) in old.iter().zip(new) {
            self.note_word(at, u64::from_le_bytes(*old) ^ u64::from_le_bytes(*new));
            at += WORD_BYTES;
        }
        self.note_word(at, padded(old_rest) ^ padded(new_rest));
    }

    /// Notes the bytes at `at` that are not zero in `difference`.
    #[inline]
    fn note_word(&mut self, at: usize, difference: u64) {
        // The top bit of every byte that is not zero.
        let mut tops = (((difference & LOW_BITS) + LOW_BITS) | difference) & TOP_BITS;
        if tops == TOP_BITS {
            return self.note(at..at + WORD_BYTES);
        }
        while tops != 0 {
            let byte = at + tops.trailing_zeros() as usize / 8;
            self.note(byte..byte + 1);
            tops &= tops - 1;
        }
    }

    /// More bytes of a hunk, behind those noted before.
    #[inline]
    fn note(&mut self, bytes: Range<usize>) {
        if self.open.is_empty() || bytes.start > self.open.end + HUNK_BYTES {
            self.write_open();
            self.open = bytes;
        } else {
            self.open.end = bytes.end;
        }
    }

    #[inline]
    fn write_open(&mut self) {
        let Range { start, end } = self.open;
        if start == end {
            return;
        }
        push(self.out, (start - self.last_end) as u64);
        push(self.out, (end - start) as u64);
        let [first, second] = self.new;
        let cut = first.len();
        self.out.extend_from_slice(&first[start.min(cut)..end.min(cut)]);
        self.out.extend_from_slice(&second[start.max(cut) - cut..end.max(cut) - cut]);
        self.last_end = end;
    }
}

#[inline]
fn padded(rest: &[u8]) -> u64 {
    rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}
