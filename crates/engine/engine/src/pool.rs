//! The buffer pool of the embedded engine: pages in memory, which are in use, which are dirty.
//!
//! Purpose: frames in one allocation, a flat page table, pins and latches, replacement, and dirty
//! pages in buckets of the redo. Invariants: a hit takes no lock; a pinned page stays in its frame;
//! the bytes of a page are reached only under its latch; a dirty page is never evicted; the
//! [`Pool::oldest`] LSN never exceeds the LSN of a page which is dirty or being written; a wait for
//! a page ends with it or with a typed error. What it deliberately does not do: it writes nothing,
//! has no thread and no clock, reads no byte of a page but its LSN, and does not guess what to read
//! ahead. The caller holds no latch when it requests a page that may be absent. What it needs from
//! outside is here too: settings, pages, and a supply of free frames.

mod dirty;
mod frames;
mod guard;
mod latch;
mod load;
mod queues;
mod table;

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crossbeam_utils::CachePadded;
use iostrata_innodb::PageNo;
use iostrata_io::disk::Aligned;

pub use dirty::{Flight, PageFlush};
pub(crate) use frames::{bring_near, check_memory};
pub use guard::{Exclusive, Pin, ReadCopy, Shared};

use crate::counts::Counts;
use crate::error::EngineError;
use crate::page::PageSize;
use crate::sync::{locked, thread_number};
use dirty::Dirty;
use frames::{Frame, Frames};
use guard::ReadCopies;
use load::LoadWaits;
use queues::Queues;
use table::PageTable;

/// Buffers kept for copies, at most.
const BUFFERS_MAX: usize = 256;

pub struct Pool {
    pub frames: Frames,
    pub(crate) table: PageTable,
    pub queues: Queues,
    pub dirty: Dirty,
    pub(crate) waiting: LoadWaits,
    pub(crate) buffers: Buffers,
    pub(crate) read_copies: ReadCopies,
    pub counts: Arc<Counts>,
    pub requests: Requests,
    pub read_waits: AtomicU64,
    pub(crate) source: Arc<dyn PageSource>,
    pub(crate) supply: Arc<dyn Supply>,
    pub(crate) settings: PoolSettings,
    page_versions: AtomicU32,
}

impl Pool {
    /// An empty pool.
    ///
    /// # Panics
    /// When it is to have no frame, or more than memory can have.
    pub fn new(
        settings: PoolSettings,
        counts: Arc<Counts>,
        source: Arc<dyn PageSource>,
        supply: Arc<dyn Supply>,
    ) -> Self {
        let PoolSettings { page_size, frames, old_pct, bucket_bytes, .. } = settings;
        Self {
            frames: Frames::new(page_size, frames),
            table: PageTable::new(),
            queues: Queues::new(frames, old_pct),
            dirty: Dirty::new(frames, bucket_bytes),
            waiting: LoadWaits::new(),
            buffers: Buffers::new(page_size, (frames / 4).clamp(2, BUFFERS_MAX)),
            read_copies: ReadCopies::new(frames),
            counts,
            requests: Requests::new(),
            read_waits: AtomicU64::new(0),
            source,
            supply,
            settings,
            page_versions: AtomicU32::new(0),
        }
    }

    /// Gives the frame's page a page version that no other has.
    pub(crate) fn bump_page_version(&self, frame: &Frame) {
        let next = self.page_versions.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        frame.page_version.store(next, Ordering::Release);
    }

    /// Frames with a page, those on their way in or out included.
    pub fn resident(&self) -> usize {
        self.frames.len() - self.queues.free()
    }
}

const CELLS: usize = 64;

/// Page requests. Each thread counts in a cell of its own, without an atomic read-modify-write.
/// With more than 64 threads two of them may share a cell and lose a count now and then.
pub struct Requests(Box<[CachePadded<AtomicU64>]>);

impl Requests {
    fn new() -> Self {
        Self((0..CELLS).map(|_| CachePadded::default()).collect())
    }

    #[inline]
    pub fn count(&self) {
        let cell = &self.0[thread_number() % CELLS];
        // No other thread writes this cell, or its count is allowed to be lost.
        cell.store(cell.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    pub fn sum(&self) -> u64 {
        self.0.iter().map(|cell| cell.load(Ordering::Relaxed)).sum()
    }
}

/// Page-sized buffers that are used again.
pub struct Buffers {
    page_bytes: usize,
    kept_max: usize,
    kept: Mutex<Vec<Aligned>>,
}

impl Buffers {
    pub fn new(page_size: PageSize, kept_max: usize) -> Self {
        Self { page_bytes: page_size.bytes(), kept_max, kept: Mutex::default() }
    }

    /// A buffer with whatever it held last.
    pub fn take(&self) -> Aligned {
        let kept = locked(&self.kept).pop();
        kept.unwrap_or_else(|| Aligned::zeroed(self.page_bytes))
    }

    pub fn give(&self, buffer: Aligned) {
        let mut kept = locked(&self.kept);
        if kept.len() < self.kept_max && buffer.len() == self.page_bytes {
            kept.push(buffer);
        }
    }
}

/// How a pool is laid out. All but `old_pct` are fixed while it lives.
#[derive(Clone, Copy, Debug)]
pub struct PoolSettings {
    pub page_size: PageSize,
    /// Pages that fit; at least 1.
    pub frames: usize,
    /// Share of the pool for pages not yet proven to be used again, in percent (5 to 95).
    pub old_pct: u32,
    /// Bytes of redo that one bucket of dirty pages covers; at least 1. A few hundred buckets over
    /// the redo's capacity are enough.
    pub bucket_bytes: u64,
    /// Failed requests for a free frame in a row before a typed error; at least 1.
    pub tries_max: u32,
    /// Whether a page is copied whenever that is offered, also where readers never met: for tests.
    pub copies_always: bool,
}

impl PoolSettings {
    pub fn new(page_size: PageSize, frames: usize) -> Self {
        Self {
            page_size,
            frames,
            old_pct: 37,
            bucket_bytes: 1 << 20,
            tries_max: 200,
            copies_always: false,
        }
    }
}

/// One page of a batch that is read ahead.
pub struct ReadAheadPage {
    pub page: PageNo,
    pub bytes: Aligned,
    pub result: Result<(), EngineError>,
}

pub trait PageSource: Send + Sync {
    /// Reads one page, verified. `into` is a page long and keeps its length.
    fn read(&self, page: PageNo, into: &mut Aligned) -> Result<(), EngineError>;

    /// Reads several pages, each with a result of its own. One by one unless the source can batch.
    fn read_many(&self, wanted: &mut [ReadAheadPage]) {
        for one in wanted {
            one.result = self.read(one.page, &mut one.bytes);
        }
    }
}

pub trait Supply: Send + Sync {
    /// There is no free frame. Called without latches, perhaps by many threads at once: either
    /// wakes the cleaner and waits a moment, or runs a step of it inline, which may call anything
    /// of the pool that pins no absent page.
    fn free_wanted(&self);
}

/// For tests: every page is zeros, and no frame ever becomes free.
#[cfg(test)]
pub(crate) struct Nothing;

#[cfg(test)]
impl PageSource for Nothing {
    fn read(&self, _: PageNo, _: &mut Aligned) -> Result<(), EngineError> {
        Ok(())
    }
}

#[cfg(test)]
impl Supply for Nothing {
    fn free_wanted(&self) {}
}
