//! Segments of the version log: bytes in memory or in a slot of the spill file, and what is known
//! of the records inside, which lie back to back.
//!
//! Form of a record: replacing number u64, marks u8, cell flags u8, table u32, key length u32,
//! value length u32, key, value; numbers are little-endian. Invariant: only an open segment grows;
//! the counts are those of its records. Reading is total; what does not fit into the bytes at hand
//! is no record.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::sync::{Arc, Mutex};

use crate::sync::locked;

/// Least memory of a segment that has records.
const LEAST_BYTES: usize = 4096;

#[derive(Debug)]
pub(crate) enum Body {
    /// Grows: the last segment of its shard.
    Open(Vec<u8>),
    /// Grows no more.
    Sealed(Arc<Vec<u8>>),
    /// In this slot of the spill file, with so many bytes.
    Spilled { slot: u64, len: usize },
}

#[derive(Debug)]
pub(crate) struct VersionSegment {
    pub body: Body,
    /// Somebody writes it to the spill file.
    pub is_spilling: bool,
    pub greatest: u64,
    pub records: u32,
    /// Records that are the first of their commit.
    pub commits: u32,
    pub purges: u32,
}

impl VersionSegment {
    pub(crate) fn new(memory: Vec<u8>) -> Self {
        let body = Body::Open(memory);
        Self { body, is_spilling: false, greatest: 0, records: 0, commits: 0, purges: 0 }
    }

    /// Whether a record of `len` bytes goes into the segment, which may have `most` bytes. A longer
    /// record goes into an empty segment.
    #[inline]
    pub(crate) fn has_room(&self, len: usize, most: usize) -> bool {
        match &self.body {
            Body::Open(bytes) => bytes.is_empty() || bytes.len() + len <= most,
            _ => false,
        }
    }

    /// Appends a record to an open segment; gives its offset and by how much the memory grew.
    #[inline]
    pub(crate) fn append(&mut self, record: &Record<'_>, most: usize) -> (usize, usize) {
        let Body::Open(bytes) = &mut self.body else {
            unreachable!("only an open segment has room");
        };
        let (at, before) = (bytes.len(), bytes.capacity());
        if before - at < record.len() {
            make_room(bytes, record.len(), most);
        }
        record.push_to(bytes);
        self.greatest = self.greatest.max(record.number);
        self.records += 1;
        self.commits += u32::from(record.marks & FIRST_OF_COMMIT != 0);
        self.purges += u32::from(record.marks & TO_PURGE != 0);
        (at, bytes.capacity() - before)
    }

    pub(crate) fn seal(&mut self) {
        if let Body::Open(bytes) = &mut self.body {
            self.body = Body::Sealed(Arc::new(std::mem::take(bytes)));
        }
    }

    pub(crate) fn memory(&self) -> usize {
        match &self.body {
            Body::Open(bytes) => bytes.capacity(),
            Body::Sealed(bytes) => bytes.capacity(),
            Body::Spilled { .. } => 0,
        }
    }
}

/// Doubles the memory, to at most that of a full segment.
#[cold]
fn make_room(bytes: &mut Vec<u8>, len: usize, most: usize) {
    let needed = bytes.len() + len;
    let wanted = (2 * bytes.capacity()).max(LEAST_BYTES).min(most).max(needed);
    bytes.reserve_exact(wanted - bytes.len());
}

/// A file of slots of `segment_bytes` each. It is never synced: after a restart nobody reads it.
pub trait SpillFile: Send + Sync {
    /// Writes `bytes`, at most `segment_bytes`, to the beginning of a slot. Slots are numbered from
    /// 0, the lowest free one is taken first.
    ///
    /// # Errors
    /// What the file says. The segment stays in memory then.
    fn write(&self, slot: u64, bytes: &[u8]) -> io::Result<()>;

    /// Fills `into` from the bytes of a slot that begin at `at`. All of them were written before.
    fn read(&self, slot: u64, at: usize, into: &mut [u8]) -> io::Result<()>;
}

#[derive(Debug, thiserror::Error)]
#[error("the spill file gave back other bytes than were written")]
struct NotWhatWasWritten;

pub(crate) fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, NotWhatWasWritten)
}

/// Which slots of the spill file are free, each given out once until it is given back: the lowest
/// first, so that the file stays short.
#[derive(Debug, Default)]
pub(crate) struct FreeSlots {
    state: Mutex<SlotNumbers>,
}

#[derive(Debug, Default)]
struct SlotNumbers {
    given_back: BinaryHeap<Reverse<u64>>,
    next: u64,
}

impl FreeSlots {
    pub(crate) fn take(&self) -> u64 {
        let mut state = locked(&self.state);
        if let Some(Reverse(slot)) = state.given_back.pop() {
            return slot;
        }
        state.next += 1;
        state.next - 1
    }

    pub(crate) fn give_back(&self, slot: u64) {
        let mut state = locked(&self.state);
        state.given_back.push(Reverse(slot));
    }
}

pub(crate) const FIRST_OF_COMMIT: u8 = 1;
pub(crate) const TO_PURGE: u8 = 2;

pub(crate) const HEADER_BYTES: usize = 22;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record<'a> {
    pub number: u64,
    /// `FIRST_OF_COMMIT`, `TO_PURGE`.
    pub marks: u8,
    pub flags: u8,
    /// Table of the key; 0 without a key.
    pub table: u32,
    /// Key to purge, or empty.
    pub key: &'a [u8],
    /// Value of the cell with its version.
    pub value: &'a [u8],
}

impl<'a> Record<'a> {
    #[inline]
    pub(crate) fn len(&self) -> usize {
        HEADER_BYTES + self.key.len() + self.value.len()
    }

    #[inline]
    pub(crate) fn push_to(&self, out: &mut Vec<u8>) {
        let mut header = [0; HEADER_BYTES];
        header[..8].copy_from_slice(&self.number.to_le_bytes());
        header[8] = self.marks;
        header[9] = self.flags;
        header[10..14].copy_from_slice(&self.table.to_le_bytes());
        header[14..18].copy_from_slice(&(self.key.len() as u32).to_le_bytes());
        header[18..].copy_from_slice(&(self.value.len() as u32).to_le_bytes());
        out.extend_from_slice(&header);
        out.extend_from_slice(self.key);
        out.extend_from_slice(self.value);
    }

    /// The record at `at`, and where the next one begins.
    #[inline]
    pub(crate) fn read(bytes: &'a [u8], at: usize) -> Option<(Self, usize)> {
        let bytes = bytes.get(at..)?;
        let len = record_len(bytes)?;
        let (header, rest) = bytes.get(..len)?.split_at(HEADER_BYTES);
        let (key, value) = rest.split_at(u32_at(header, 14) as usize);
        let number = u64::from_le_bytes(header[..8].try_into().ok()?);
        let (marks, flags, table) = (header[8], header[9], u32_at(header, 10));
        Some((Self { number, marks, flags, table, key, value }, at + len))
    }
}

/// Bytes of the record that `bytes` begin with, of which the header must be there.
#[inline]
pub(crate) fn record_len(bytes: &[u8]) -> Option<usize> {
    let header = bytes.get(..HEADER_BYTES)?;
    Some(HEADER_BYTES + u32_at(header, 14) as usize + u32_at(header, 18) as usize)
}

#[inline]
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut four = [0; 4];
    four.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(four)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_back_and_cut_ones_are_none() {
        let one = Record { number: 7, marks: 3, flags: 9, table: 5, key: b"key", value: b"value" };
        let two = Record { number: 1 << 60, key: b"", value: b"", ..one };
        let mut bytes = Vec::new();
        one.push_to(&mut bytes);
        two.push_to(&mut bytes);
        assert_eq!(Record::read(&bytes, 0), Some((one, one.len())));
        assert_eq!(Record::read(&bytes, one.len()), Some((two, bytes.len())));
        assert_eq!(Record::read(&bytes, bytes.len()), None);
        for end in 0..one.len() {
            assert_eq!(Record::read(&bytes[..end], 0), None);
        }
    }
}
