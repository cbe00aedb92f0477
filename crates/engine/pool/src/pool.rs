//! The pool: what a hit does, and what can be asked at any time.
//!
//! Invariant: a hit is one compare-and-swap on the page's entry; it takes no lock and waits for
//! nobody. Where missing pages come from is in `load`, how they leave in `evict`, how they are
//! written in `flushing`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use iostrata_page::{Lsn, PageNo};

use crate::border::{PageSource, PoolSettings, Supply};
use crate::buffers::Buffers;
use crate::counters::{Counting, PoolCounters};
use crate::dirty::Dirty;
use crate::error::PoolError;
use crate::frames::{Frame, Frames};
use crate::guard::Pin;
use crate::queues::Queues;
use crate::table::Table;
use crate::waiting::Waiting;
use crate::word::Word;

/// Buffers kept for copies, at most.
const BUFFERS_MAX: usize = 256;

/// Pages in memory, shared by all threads.
pub struct Pool {
    pub(crate) frames: Frames,
    pub(crate) table: Table,
    pub(crate) queues: Queues,
    pub(crate) dirty: Dirty,
    pub(crate) waiting: Waiting,
    pub(crate) buffers: Buffers,
    pub(crate) counting: Counting,
    pub(crate) source: Arc<dyn PageSource>,
    pub(crate) supply: Arc<dyn Supply>,
    pub(crate) settings: PoolSettings,
    structures: AtomicU32,
}

impl Pool {
    /// An empty pool.
    ///
    /// # Panics
    /// When it is to have no frame, or more than memory can have.
    #[must_use]
    pub fn new(
        settings: PoolSettings,
        source: Arc<dyn PageSource>,
        supply: Arc<dyn Supply>,
    ) -> Self {
        let PoolSettings { page_size, frames, old_pct, bucket_bytes, .. } = settings;
        Self {
            frames: Frames::new(page_size, frames),
            table: Table::new(),
            queues: Queues::new(frames, old_pct),
            dirty: Dirty::new(frames, bucket_bytes),
            waiting: Waiting::new(),
            buffers: Buffers::new(page_size, (frames / 4).clamp(2, BUFFERS_MAX)),
            counting: Counting::new(),
            source,
            supply,
            settings,
            structures: AtomicU32::new(0),
        }
    }

    /// Pins a page. When it is absent, this thread reads it; others that want it wait for that.
    /// The caller holds no latch.
    ///
    /// # Errors
    /// What the source said; no frame became free; no such page can exist.
    #[inline]
    pub fn pin(&self, page: PageNo) -> Result<Pin<'_>, PoolError> {
        self.counting.request();
        let entry = self.table.entry(page)?;
        match self.pin_resident(entry, page) {
            Some(pin) => Ok(pin),
            None => self.pin_absent(entry, page),
        }
    }

    /// Pins a page that is resident. May be called under latches. A page that is just being looked
    /// at by the replacement may seem absent.
    #[inline]
    #[must_use]
    pub fn try_pin(&self, page: PageNo) -> Option<Pin<'_>> {
        let pin = self.pin_resident(self.table.existing(page)?, page)?;
        self.counting.request();
        Some(pin)
    }

    /// A pin that counts as a use.
    #[inline]
    pub(crate) fn pin_resident<'p>(
        &'p self,
        entry: &'p AtomicU64,
        page: PageNo,
    ) -> Option<Pin<'p>> {
        let mut word = Word(entry.load(Ordering::Relaxed));
        while word.is_resident() {
            let frame = self.frames.get(word.frame());
            let next = if word.is_used_most() { word } else { self.noted(word, frame) }.pinned();
            // Acquired, so that the content is seen that was there before the page was resident.
            let swap =
                entry.compare_exchange_weak(word.0, next.0, Ordering::Acquire, Ordering::Relaxed);
            match swap {
                Ok(_) => return Some(Pin::counted(self, entry, frame, page)),
                Err(now) => word = Word(now),
            }
        }
        None
    }

    /// The word after a use. The first use of a page read ahead is its arrival.
    #[inline]
    fn noted(&self, word: Word, frame: &Frame) -> Word {
        if word.is_unread() {
            frame.since.store(self.queues.arrivals(), Ordering::Relaxed);
            return word.with_unread(false);
        }
        let counts = self.queues.counts_use(frame.since.load(Ordering::Relaxed));
        if counts { word.used() } else { word }
    }

    /// A pin that is no use: of whoever writes pages.
    pub(crate) fn pin_quietly(&self, page: PageNo, in_frame: u32) -> Option<Pin<'_>> {
        let entry = self.table.existing(page)?;
        let step = |word| {
            let word = Word(word);
            (word.is_resident() && word.frame() == in_frame).then(|| word.pinned().0)
        };
        entry.fetch_update(Ordering::Acquire, Ordering::Relaxed, step).ok()?;
        Some(Pin::counted(self, entry, self.frames.get(in_frame), page))
    }

    /// Gives the frame's page a structure number that no other has.
    pub(crate) fn restructure(&self, frame: &Frame) {
        let next = self.structures.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        frame.structure.store(next, Ordering::Release);
    }

    /// The least `at` of all pages that are dirty or being written.
    #[must_use]
    pub fn oldest(&self) -> Option<Lsn> {
        self.dirty.oldest()
    }

    /// Dirty pages by age: where a bucket of the redo begins, and how many pages are dirty or being
    /// written since then. Oldest first; buckets without pages are left out.
    #[must_use]
    pub fn age_histogram(&self) -> Vec<(Lsn, u32)> {
        self.dirty.histogram()
    }

    /// Pages dirty or being written.
    #[must_use]
    pub fn dirty_pages(&self) -> usize {
        self.dirty.held()
    }

    /// Pages being written.
    #[must_use]
    pub fn flying_pages(&self) -> usize {
        self.dirty.flying()
    }

    /// All frames.
    #[must_use]
    pub fn frames(&self) -> usize {
        self.frames.len()
    }

    /// Frames with no page.
    #[must_use]
    pub fn free_frames(&self) -> usize {
        self.queues.free()
    }

    /// Frames with a page, those on their way in or out included.
    #[must_use]
    pub fn resident(&self) -> usize {
        self.frames.len() - self.queues.free()
    }

    /// Sets the share of the pool for pages not yet proven to be used again, in percent (5 to 95).
    pub fn set_old_pct(&self, old_pct: u32) {
        self.queues.set_old_pct(old_pct);
    }

    /// What happened so far.
    #[must_use]
    pub fn counters(&self) -> PoolCounters {
        self.counting.read()
    }
}
