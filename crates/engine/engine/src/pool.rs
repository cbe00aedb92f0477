//! The buffer pool of the embedded engine: pages in memory, who holds them, which are dirty.
//!
//! Purpose: frames in one allocation, a flat page table, pins and latches, replacement, and dirty
//! pages in buckets of the redo. Invariants: a hit takes no lock; a pinned page stays in its frame;
//! the bytes of a page are reached only under its latch; a dirty page is never evicted; the
//! [`Pool::oldest`] LSN never exceeds that of a page which is dirty or being written; whoever waits
//! for a page ends with it or with a typed error. What it deliberately does not do: it writes
//! nothing, has no thread and no clock, looks at no byte of a page but its LSN, and does not guess
//! what to read ahead. The caller holds no latch when it asks for a page that may be absent.

mod border;
mod dirty;
mod evict;
mod flushing;
mod frames;
mod guard;
mod latch;
mod load;
mod queues;
mod read_copies;
mod table;

pub use border::{PageSource, PoolSettings, Supply, Wanted};
pub use flushing::{Flight, Flushing};
pub(crate) use frames::{bring_near, check_memory};
pub use guard::{Exclusive, Pin, Shared};
pub use read_copies::ReadCopy;

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crossbeam_utils::CachePadded;
use iostrata_io::disk::Aligned;

use self::dirty::Dirty;
use self::frames::{Frame, Frames};
use self::load::Waiting;
use self::queues::Queues;
use self::read_copies::ReadCopies;
use self::table::PageTable;
use crate::counts::Counts;
use crate::page::PageSize;
use crate::sync::{locked, thread_number};

/// Buffers kept for copies, at most.
const BUFFERS_MAX: usize = 256;

pub struct Pool {
    pub frames: Frames,
    pub(crate) table: PageTable,
    pub queues: Queues,
    pub dirty: Dirty,
    pub(crate) waiting: Waiting,
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
            waiting: Waiting::new(),
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

/// Pages asked for. Each thread counts in a cell of its own, without an atomic read-modify-write.
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
