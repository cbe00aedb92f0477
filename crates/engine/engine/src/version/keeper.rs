//! What one commit keeps.
//!
//! Invariant: the records of a commit lie in one shard, in the order in which they were kept; the
//! first of them is marked, so that commits can be counted.

use std::sync::MutexGuard;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::version::record::{FIRST_OF_COMMIT, Record, TO_PURGE};
use crate::version::shard::Shard;

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
