//! The pool: what a hit does, and what can be asked at any time.
//!
//! Invariant: a hit is one compare-and-swap on the page's entry; it takes no lock and waits for
//! nobody. Where missing pages come from is in `load`, how they leave in `evict`, how they are
//! written in `flushing`.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crossbeam_utils::CachePadded;
use iostrata_io::disk::Aligned;

use crate::counts::Counts;
use crate::page::PageSize;
use crate::pool::border::{PageSource, PoolSettings, Supply};
use crate::pool::dirty::Dirty;
use crate::pool::frames::{Frame, Frames};
use crate::pool::queues::Queues;
use crate::pool::read_copies::ReadCopies;
use crate::pool::table::PageTable;
use crate::pool::waiting::Waiting;
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
    pub fn new() -> Self {
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
