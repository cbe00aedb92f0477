//! The pool: what a hit does, and what can be asked at any time.
//!
//! Invariant: a hit is one compare-and-swap on the page's entry; it takes no lock and waits for
//! nobody. Where missing pages come from is in `load`, how they leave in `evict`, how they are
//! written in `flushing`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use iostrata_innodb::Lsn;

use crate::counts::Counts;
use crate::pool::border::{PageSource, PoolSettings, Supply};
use crate::pool::buffers::Buffers;
use crate::pool::counters::Requests;
use crate::pool::dirty::Dirty;
use crate::pool::frames::{Frame, Frames};
use crate::pool::queues::Queues;
use crate::pool::read_copies::ReadCopies;
use crate::pool::table::PageTable;
use crate::pool::waiting::Waiting;

/// Buffers kept for copies, at most.
const BUFFERS_MAX: usize = 256;

/// Pages in memory, shared by all threads.
pub struct Pool {
    pub(crate) frames: Frames,
    pub(crate) table: PageTable,
    pub(crate) queues: Queues,
    pub(crate) dirty: Dirty,
    pub(crate) waiting: Waiting,
    pub(crate) buffers: Buffers,
    pub(crate) read_copies: ReadCopies,
    pub counts: Arc<Counts>,
    pub(crate) requests: Requests,
    pub(crate) read_waits: AtomicU64,
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

    /// The least `at` of all pages that are dirty or being written.
    pub fn oldest(&self) -> Option<Lsn> {
        self.dirty.oldest()
    }

    /// As [`Pool::oldest`], without the lock that changing threads take: that, or less by a part of
    /// a bucket. Good for deciding what to write, not for a checkpoint.
    pub fn oldest_seen(&self) -> Option<Lsn> {
        self.dirty.oldest_seen()
    }

    /// Dirty pages by age: where a bucket of the redo begins, and how many pages are dirty or being
    /// written since then. Oldest first; buckets without pages are left out. No lock is taken: a
    /// page that changes meanwhile may count twice or not at all.
    pub fn age_histogram(&self) -> Vec<(Lsn, u32)> {
        self.dirty.histogram()
    }

    /// Pages dirty or being written.
    pub fn dirty_pages(&self) -> usize {
        self.dirty.held()
    }

    /// Pages being written.
    pub fn flying_pages(&self) -> usize {
        self.dirty.flying()
    }

    /// All frames.
    pub fn frames(&self) -> usize {
        self.frames.len()
    }

    /// Frames with no page.
    pub fn free_frames(&self) -> usize {
        self.queues.free()
    }

    /// Frames with a page, those on their way in or out included.
    pub fn resident(&self) -> usize {
        self.frames.len() - self.queues.free()
    }

    /// Sets the share of the pool for pages not yet proven to be used again, in percent (5 to 95).
    pub fn set_old_pct(&self, old_pct: u32) {
        self.queues.set_old_pct(old_pct);
    }

    /// Pages asked for so far.
    pub fn requests(&self) -> u64 {
        self.requests.sum()
    }

    /// Times that a thread found a page which another was loading or evicting.
    pub fn read_waits(&self) -> u64 {
        self.read_waits.load(Ordering::Relaxed)
    }
}
