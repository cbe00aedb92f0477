//! The log of old versions: shards in memory, and segments in the spill file.
//!
//! Invariant: no file is touched while a shard is locked. A slot of the spill file is given back
//! when its segment was dropped; purge drops what is at or below every snapshot, so who reads a
//! version under a snapshot keeps the slot that it reads from.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use crossbeam_utils::CachePadded;

use crate::sync::{locked, thread_number};
use crate::version::segment::{
    Body, FreeSlots, HEADER_BYTES, Record, SpillFile, damaged, record_len,
};
use crate::version::shard::{Keeper, SHARDS, Shard, SpillJob, Target};

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
