//! One shard of the version log: its segments from the oldest to the one that grows.
//!
//! Invariant: segments have consecutive numbers and are dropped from the front only, so a pointer
//! either leads to the record that it was given for or to nothing. A number is never used twice:
//! an emptied segment that is used again gets the next one. The records of a commit lie in one
//! shard, in the order in which they were kept; the first is marked, so that commits can be
//! counted.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard};

use crate::version::segment::{Body, VersionSegment};
use crate::version::segment::{FIRST_OF_COMMIT, Record, TO_PURGE};

pub(crate) const SHARDS: usize = 16;
/// Bits of a pointer that say where in the segment.
const OFFSET_BITS: u32 = 20;
/// Longest segment, in bytes: what an offset can say.
pub(crate) const SEGMENT_BYTES_MAX: usize = 1 << OFFSET_BITS;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub shard: usize,
    pub sequence: u64,
    pub offset: usize,
}

impl Target {
    #[inline]
    pub(crate) fn of(pointer: u64) -> Self {
        let id = pointer >> OFFSET_BITS;
        let offset = (pointer & (SEGMENT_BYTES_MAX as u64 - 1)) as usize;
        Self { shard: id as usize % SHARDS, sequence: id / SHARDS as u64, offset }
    }

    #[inline]
    pub(crate) fn pointer(self) -> u64 {
        let id = self.sequence * SHARDS as u64 + self.shard as u64;
        id << OFFSET_BITS | self.offset as u64
    }
}

#[derive(Debug)]
pub(crate) struct Shard {
    index: usize,
    segment_bytes: usize,
    segments: VecDeque<VersionSegment>,
    /// Number of the first segment, at least 1, so that no pointer is 0.
    first: u64,
    /// No segment before this one can be spilled.
    spill_from: u64,
    pub kept: u64,
    /// Commits ever that kept some.
    pub commits: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Dropped {
    pub memory: usize,
    pub slot: Option<u64>,
}

#[derive(Debug)]
pub(crate) struct SpillJob {
    pub sequence: u64,
    pub bytes: Arc<Vec<u8>>,
}

impl Shard {
    pub(crate) fn new(index: usize, segment_bytes: usize) -> Self {
        let segments = VecDeque::new();
        Self { index, segment_bytes, segments, first: 1, spill_from: 1, kept: 0, commits: 0 }
    }

    /// Keeps a record; gives its pointer and by how much the memory grew.
    #[inline]
    pub(crate) fn append(&mut self, record: &Record<'_>) -> (u64, usize) {
        let (len, most) = (record.len(), self.segment_bytes);
        if !self.segments.back().is_some_and(|last| last.has_room(len, most)) {
            self.open_next();
        }
        self.kept += 1;
        self.commits += u64::from(record.marks & FIRST_OF_COMMIT != 0);
        let last = self.segments.len() - 1;
        let (offset, grown) = self.segments[last].append(record, most);
        let sequence = self.first + last as u64;
        (Target { shard: self.index, sequence, offset }.pointer(), grown)
    }

    #[cold]
    fn open_next(&mut self) {
        if let Some(last) = self.segments.back_mut() {
            last.seal();
        }
        self.segments.push_back(VersionSegment::new(Vec::new()));
    }

    #[inline]
    fn index_of(&self, sequence: u64) -> Option<usize> {
        usize::try_from(sequence.checked_sub(self.first)?).ok()
    }

    #[inline]
    pub(crate) fn find(&self, sequence: u64) -> Option<&VersionSegment> {
        self.segments.get(self.index_of(sequence)?)
    }

    /// The oldest segment, which purge reads.
    pub(crate) fn front(&self) -> Option<&VersionSegment> {
        self.segments.front()
    }

    pub(crate) fn segments(&self) -> impl Iterator<Item = &VersionSegment> {
        self.segments.iter()
    }

    /// Drops the oldest segment. The memory of the one that grows is used again.
    pub(crate) fn drop_front(&mut self) -> Dropped {
        let Some(mut front) = self.segments.pop_front() else { return Dropped::default() };
        self.first += 1;
        let before = front.memory();
        match &mut front.body {
            Body::Open(bytes) => {
                let mut memory = std::mem::take(bytes);
                memory.clear();
                // A record that is too long for a segment leaves more than a segment needs.
                memory.shrink_to(self.segment_bytes);
                let freed = before - memory.capacity();
                self.segments.push_back(VersionSegment::new(memory));
                Dropped { memory: freed, slot: None }
            }
            Body::Sealed(_) => Dropped { memory: before, slot: None },
            Body::Spilled { slot, .. } => Dropped { memory: 0, slot: Some(*slot) },
        }
    }

    /// Greatest number of the oldest segment that can be spilled.
    pub(crate) fn spill_age(&mut self) -> Option<u64> {
        let at = self.next_spill()?;
        Some(self.segments[at].greatest)
    }

    fn next_spill(&mut self) -> Option<usize> {
        self.spill_from = self.spill_from.max(self.first);
        while let Some(at) = self.index_of(self.spill_from) {
            let segment = self.segments.get(at)?;
            match &segment.body {
                Body::Open(_) => return None,
                Body::Sealed(bytes) if bytes.len() > self.segment_bytes => {}
                Body::Sealed(_) if !segment.is_spilling => return Some(at),
                _ => {}
            }
            self.spill_from += 1;
        }
        None
    }

    /// Begins to spill the oldest segment that can be.
    pub(crate) fn begin_spill(&mut self) -> Option<SpillJob> {
        let at = self.next_spill()?;
        let segment = &mut self.segments[at];
        let Body::Sealed(bytes) = &segment.body else { return None };
        let bytes = Arc::clone(bytes);
        segment.is_spilling = true;
        Some(SpillJob { sequence: self.first + at as u64, bytes })
    }

    /// Ends it: the segment is in `slot`, or stays in memory. Gives the memory that came free, or
    /// None when the segment was dropped meanwhile.
    pub(crate) fn end_spill(&mut self, sequence: u64, slot: Option<u64>) -> Option<usize> {
        let at = self.index_of(sequence)?;
        let segment = self.segments.get_mut(at)?;
        segment.is_spilling = false;
        let Some(slot) = slot else {
            self.spill_from = self.spill_from.min(sequence);
            return Some(0);
        };
        let memory = segment.memory();
        if let Body::Sealed(bytes) = &segment.body {
            segment.body = Body::Spilled { slot, len: bytes.len() };
        }
        Some(memory)
    }
}

/// Keeps what one commit replaces. It holds a shard of the log until it is dropped, so while there
/// is one its thread latches no page, and of [`Versions`](super::Versions) calls nothing but the
/// clock and the snapshots.
#[derive(Debug)]
pub struct Keeper<'v> {
    shard: MutexGuard<'v, Shard>,
    memory: &'v AtomicU64,
    /// `FIRST_OF_COMMIT` until there is a record.
    marks: u8,
}

impl<'v> Keeper<'v> {
    #[inline]
    pub(crate) fn new(shard: MutexGuard<'v, Shard>, memory: &'v AtomicU64) -> Self {
        Self { shard, memory, marks: FIRST_OF_COMMIT }
    }

    /// Keeps a cell that the commit `number` replaces: its flags and its value with its
    /// version. Gives the pointer to it, never 0.
    #[inline]
    pub fn replaced(&mut self, number: u64, flags: u8, value: &[u8]) -> u64 {
        self.append(&Record { number, marks: self.marks, flags, table: 0, key: &[], value })
    }

    /// Keeps a cell that the commit `number` deletes, and the key, which is to be purged later.
    /// Gives the pointer to the cell, never 0.
    #[inline]
    pub fn deleted(&mut self, number: u64, table: u32, key: &[u8], flags: u8, value: &[u8]) -> u64 {
        let marks = self.marks | TO_PURGE;
        self.append(&Record { number, marks, flags, table, key, value })
    }

    #[inline]
    fn append(&mut self, record: &Record<'_>) -> u64 {
        self.marks = 0;
        let (pointer, grown) = self.shard.append(record);
        if grown > 0 {
            self.memory.fetch_add(grown as u64, Ordering::Relaxed);
        }
        pointer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_say_where() {
        for target in [
            Target { shard: 0, sequence: 1, offset: 0 },
            Target { shard: 15, sequence: (1 << 40) - 1, offset: SEGMENT_BYTES_MAX - 1 },
            Target { shard: 7, sequence: 3, offset: 22 },
        ] {
            assert_ne!(target.pointer(), 0);
            assert_eq!(Target::of(target.pointer()), target);
        }
    }
}
