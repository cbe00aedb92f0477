//! The log of old versions: shards in memory, and segments in the spill file.
//!
//! Invariant: no file is touched while a shard is locked. A slot of the spill file is given back
//! when its segment was dropped; purge drops what is at or below every snapshot, so a reader of a
//! version under a snapshot keeps the slot that it reads from.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use crossbeam_utils::CachePadded;

use crate::sync::{locked, thread_number};

/// Bytes of a first read from the spill file: most records are shorter.
const FIRST_READ_BYTES: usize = 512;

pub struct VersionLog {
    shards: [CachePadded<Mutex<Shard>>; SHARDS],
    memory: CachePadded<AtomicU64>,
    memory_max: u64,
    slots: FreeSlots,
    spill: Option<Box<dyn SpillFile>>,
}

impl VersionLog {
    pub(crate) fn new(
        segment_bytes: usize,
        memory_max: u64,
        spill: Option<Box<dyn SpillFile>>,
    ) -> Self {
        let shard = |index| CachePadded::new(Mutex::new(Shard::new(index, segment_bytes)));
        let (memory, slots) = (CachePadded::default(), FreeSlots::default());
        Self { shards: std::array::from_fn(shard), memory, memory_max, slots, spill }
    }

    #[inline]
    pub(crate) fn lock(&self, shard: usize) -> MutexGuard<'_, Shard> {
        locked(&self.shards[shard])
    }

    pub(crate) fn memory(&self) -> u64 {
        self.memory.load(Ordering::Relaxed)
    }

    /// Keeps what one commit replaces. It locks one shard of the log until it is dropped, touches
    /// memory only, and is made to be called under page latches.
    #[inline]
    pub fn keep(&self) -> Keeper<'_> {
        Keeper::new(self.lock(thread_number() % SHARDS), &self.memory)
    }

    /// Puts the value that `pointer` leads to into `into`, in place of what was there: with its
    /// version. Gives the flags of the cell; None when the version was dropped, which does
    /// not happen to a pointer that a registered snapshot follows from a number above its own.
    pub fn read(&self, pointer: u64, into: &mut Vec<u8>) -> io::Result<Option<u8>> {
        into.clear();
        let target = Target::of(pointer);
        let (slot, len) = {
            let shard = self.lock(target.shard);
            match shard.find(target.sequence).map(|segment| &segment.body) {
                None => return Ok(None),
                Some(Body::Open(bytes)) => return Ok(copy_value(bytes, target.offset, into)),
                Some(Body::Sealed(bytes)) => return Ok(copy_value(bytes, target.offset, into)),
                Some(&Body::Spilled { slot, len }) => (slot, len),
            }
        };
        if target.offset + HEADER_BYTES > len {
            return Ok(None);
        }
        self.read_spilled(slot, target.offset, len, into).map(Some)
    }

    /// Reads the record of a spilled segment of `len` bytes. No lock is held: the reader's snapshot
    /// keeps the segment, and so the slot.
    fn read_spilled(&self, slot: u64, at: usize, len: usize, into: &mut Vec<u8>) -> io::Result<u8> {
        let file = self.file()?;
        let mut bytes = vec![0; FIRST_READ_BYTES.min(len - at)];
        file.read(slot, at, &mut bytes)?;
        let record = record_len(&bytes).filter(|record| at + record <= len);
        let record = record.ok_or_else(damaged)?;
        let first = bytes.len();
        if record > first {
            bytes.resize(record, 0);
            file.read(slot, at + first, &mut bytes[first..])?;
        }
        copy_value(&bytes, 0, into).ok_or_else(damaged)
    }

    pub(crate) fn load(&self, slot: u64, len: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; len];
        self.file()?.read(slot, 0, &mut bytes)?;
        Ok(bytes)
    }

    fn file(&self) -> io::Result<&dyn SpillFile> {
        self.spill.as_deref().ok_or_else(damaged)
    }

    pub(crate) fn drop_front(&self, shard: &mut Shard) {
        let dropped = shard.drop_front();
        self.release(dropped.memory);
        if let Some(slot) = dropped.slot {
            self.slots.give_back(slot);
        }
    }

    fn release(&self, memory: usize) {
        self.memory.fetch_sub(memory as u64, Ordering::Relaxed);
    }

    /// When there is more in memory than allowed, writes the oldest full segment to the spill file,
    /// without a lock. False when there was nothing to do. Several threads may call it.
    pub fn spill_step(&self) -> io::Result<bool> {
        let Some(file) = &self.spill else { return Ok(false) };
        if self.memory() <= self.memory_max {
            return Ok(false);
        }
        let ages = (0..SHARDS).filter_map(|shard| Some((self.lock(shard).spill_age()?, shard)));
        let Some((_, shard)) = ages.min() else { return Ok(false) };
        let Some(SpillJob { sequence, bytes }) = self.lock(shard).begin_spill() else {
            // It was dropped, or another thread spills it.
            return Ok(true);
        };
        let slot = self.slots.take();
        let written = file.write(slot, &bytes);
        let freed = self.lock(shard).end_spill(sequence, written.is_ok().then_some(slot));
        self.release(freed.unwrap_or(0));
        if written.is_err() || freed.is_none() {
            self.slots.give_back(slot);
        }
        written.map(|()| true)
    }
}

/// The value of the record at `at`, into `into`; gives the flags.
fn copy_value(bytes: &[u8], at: usize, into: &mut Vec<u8>) -> Option<u8> {
    let (record, _) = Record::read(bytes, at)?;
    into.extend_from_slice(record.value);
    Some(record.flags)
}

// Segments of the version log: bytes in memory or in a slot of the spill file, and what is known
// of the records inside, which lie back to back.
//
// Form of a record: replacing number u64, marks u8, cell flags u8, table u32, key length u32,
// value length u32, key, value; numbers are little-endian. Invariant: only an open segment grows;
// the counts are those of its records. Reading is total; what does not fit into the bytes at hand
// is no record.

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
    /// A thread is writing it to the spill file.
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

/// Doubles the memory, to at most the size of a full segment.
#[cold]
fn make_room(bytes: &mut Vec<u8>, len: usize, most: usize) {
    let needed = bytes.len() + len;
    let wanted = (2 * bytes.capacity()).max(LEAST_BYTES).min(most).max(needed);
    bytes.reserve_exact(wanted - bytes.len());
}

/// A file of slots of `segment_bytes` each. It is never synced: after a restart it is not read.
pub trait SpillFile: Send + Sync {
    /// Writes `bytes`, at most `segment_bytes`, to the beginning of a slot. Slots are numbered from
    /// 0, the lowest free one is taken first.
    ///
    /// # Errors
    /// An error of the file. The segment stays in memory then.
    fn write(&self, slot: u64, bytes: &[u8]) -> io::Result<()>;

    /// Fills `into` from the bytes of a slot that begin at `at`. All of them were written before.
    fn read(&self, slot: u64, at: usize, into: &mut [u8]) -> io::Result<()>;
}

#[derive(Debug, thiserror::Error)]
#[error("the spill file gave back other bytes than were written")]
struct SpillCorruption;

pub(crate) fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, SpillCorruption)
}

/// Which slots of the spill file are free, each given out once until it is given back: the lowest
/// first, so that the file stays short.
#[derive(Debug, Default)]
struct FreeSlots {
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
fn record_len(bytes: &[u8]) -> Option<usize> {
    let header = bytes.get(..HEADER_BYTES)?;
    Some(HEADER_BYTES + u32_at(header, 14) as usize + u32_at(header, 18) as usize)
}

#[inline]
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut four = [0; 4];
    four.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(four)
}

// One shard of the version log: its segments from the oldest to the growing one.
//
// Invariant: segments have consecutive numbers and are dropped from the front only, so a pointer
// either leads to the record that it was given for or to nothing. A number is never used twice:
// an emptied segment that is used again gets the next one. The records of a commit lie in one
// shard, in the order in which they were kept; the first is marked, so that commits can be
// counted.

pub(crate) const SHARDS: usize = 16;

/// Bits of a pointer that hold the offset in the segment.
const OFFSET_BITS: u32 = 20;

/// Longest segment, in bytes: the range of an offset.
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
pub(crate) struct SegmentSpace {
    pub memory: usize,
    pub slot: Option<u64>,
}

#[derive(Debug)]
struct SpillJob {
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

    /// Drops the oldest segment. The growing segment reuses its memory.
    pub(crate) fn drop_front(&mut self) -> SegmentSpace {
        let Some(mut front) = self.segments.pop_front() else { return SegmentSpace::default() };
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
                SegmentSpace { memory: freed, slot: None }
            }
            Body::Sealed(_) => SegmentSpace { memory: before, slot: None },
            Body::Spilled { slot, .. } => SegmentSpace { memory: 0, slot: Some(*slot) },
        }
    }

    /// Greatest number of the oldest segment that can be spilled.
    fn spill_age(&mut self) -> Option<u64> {
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
    fn begin_spill(&mut self) -> Option<SpillJob> {
        let at = self.next_spill()?;
        let segment = &mut self.segments[at];
        let Body::Sealed(bytes) = &segment.body else { return None };
        let bytes = Arc::clone(bytes);
        segment.is_spilling = true;
        Some(SpillJob { sequence: self.first + at as u64, bytes })
    }

    /// Ends it: the segment is in `slot`, or stays in memory. Gives the memory that came free, or
    /// None when the segment was dropped meanwhile.
    fn end_spill(&mut self, sequence: u64, slot: Option<u64>) -> Option<usize> {
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
