//! Copies of pages at which readers meet: who reads a copy writes nothing that other threads read,
//! so that threads that go down one tree do not wait for each other's cache lines.
//!
//! Invariant: a copy holds what its frame held at one version of the latch, and never changes. As
//! long as [`ReadCopy::is_current`] says so, the page holds the same, and nobody is changing it.
//! What it does not do: it keeps no page in the pool, and does not know which pages deserve a copy.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use arc_swap::{ArcSwap, Guard};
use iostrata_page::{NO_PAGE, PageNo};

use crate::frames::Frame;
use crate::guard::Shared;
use crate::pool::Pool;
use crate::word::Word;

/// One frame in so many has a copy, at most: inner pages are far fewer unless keys are very long.
const SHARE: usize = 32;
/// Small pools may have this many.
const COPIES_MIN: usize = 8;

#[derive(Debug)]
struct Taken {
    page: PageNo,
    page_version: u32,
    latch_version: u64,
    bytes: Box<[u8]>,
}

/// What is kept for one frame.
struct Slot {
    taken: ArcSwap<Taken>,
    /// The version of the latch of which there is a copy, and 1; 0 for none. A hint: it spares
    /// readers the look at the copy.
    version: AtomicU64,
}

/// The copies of all frames.
pub(crate) struct ReadCopies {
    slots: Box<[Slot]>,
    none: Arc<Taken>,
    count: AtomicUsize,
}

impl ReadCopies {
    pub fn new(frames: usize) -> Self {
        let bytes = Box::default();
        let none = Arc::new(Taken { page: NO_PAGE, page_version: 0, latch_version: 0, bytes });
        let slot = |_| Slot { taken: ArcSwap::from(Arc::clone(&none)), version: AtomicU64::new(0) };
        Self { slots: (0..frames).map(slot).collect(), none, count: AtomicUsize::new(0) }
    }

    /// Gives back the memory of a frame's copy: the page leaves.
    pub fn forget(&self, frame: u32) {
        let slot = &self.slots[frame as usize];
        if slot.version.swap(0, Ordering::Relaxed) != 0 {
            self.replace(slot, Arc::clone(&self.none));
        }
    }

    fn replace(&self, slot: &Slot, taken: Arc<Taken>) {
        let comes = taken.page != NO_PAGE;
        let goes = slot.taken.swap(taken).page != NO_PAGE;
        match (comes, goes) {
            (true, false) => _ = self.count.fetch_add(1, Ordering::Relaxed),
            (false, true) => _ = self.count.fetch_sub(1, Ordering::Relaxed),
            _ => {}
        }
    }
}

/// A copy of a page, and the way to find out whether the page is still the same.
pub struct ReadCopy<'p> {
    frame: &'p Frame,
    taken: Guard<Arc<Taken>>,
}

impl ReadCopy<'_> {
    /// Which page it is.
    #[inline]
    #[must_use]
    pub fn page_no(&self) -> PageNo {
        self.taken.page
    }

    /// Whether the page holds this now. Whoever latched another page before asking knows that both
    /// were so at one moment: this page was not being changed then, and nobody changes the other.
    #[inline]
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.frame.version_at_rest() == Some(self.taken.latch_version)
            && self.frame.page_version.load(Ordering::Acquire) == self.taken.page_version
    }
}

impl Deref for ReadCopy<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.taken.bytes
    }
}

impl Pool {
    /// The copy of a page, if it has one that holds what the page does. None as well when the use
    /// of the page has to be noted: then it is pinned, as without copies.
    #[inline]
    #[must_use]
    pub fn read_copy(&self, page: PageNo) -> Option<ReadCopy<'_>> {
        if self.read_copies.count.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let word = Word(self.table.existing(page)?.load(Ordering::Acquire));
        if !word.is_resident() || word.is_unread() {
            return None;
        }
        let frame = self.frames.get(word.frame());
        let slot = &self.read_copies.slots[word.frame() as usize];
        if slot.version.load(Ordering::Acquire) != frame.version_at_rest()? + 1 {
            return None;
        }
        let is_use_known =
            word.is_used_most() || !self.queues.counts_use(frame.since.load(Ordering::Relaxed));
        let copy = ReadCopy { frame, taken: slot.taken.load() };
        if !is_use_known || copy.page_no() != page || !copy.is_current() {
            return None;
        }
        self.counting.request();
        Some(copy)
    }

    /// Copies a page that is latched, if readers met at it since it was copied last.
    #[inline]
    pub fn offer_read_copy(&self, page: &Shared<'_>) {
        if self.settings.copies_always || page.frame().have_readers_met() {
            self.take_read_copy(page);
        }
    }

    #[cold]
    fn take_read_copy(&self, page: &Shared<'_>) {
        let (frame, latch_version) = (page.frame(), page.latch_version());
        frame.forget_meeting();
        let slot = &self.read_copies.slots[frame.index as usize];
        let most = (self.frames.len() / SHARE).max(COPIES_MIN);
        let is_full = self.read_copies.count.load(Ordering::Relaxed) >= most;
        let version = slot.version.load(Ordering::Relaxed);
        if version == latch_version + 1 || (is_full && version == 0) {
            return;
        }
        let (page_no, page_version) = (page.page_no(), page.page_version());
        let taken = Taken { page: page_no, page_version, latch_version, bytes: page[..].into() };
        self.read_copies.replace(slot, Arc::new(taken));
        slot.version.store(latch_version + 1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use iostrata_io::disk::Aligned;
    use iostrata_page::{Lsn, PageSize};

    use super::*;
    use crate::border::{PageSource, PoolSettings, Supply};
    use crate::error::Failure;

    struct Nothing;

    impl PageSource for Nothing {
        fn read(&self, _: PageNo, _: &mut Aligned) -> Result<(), Failure> {
            Ok(())
        }
    }

    impl Supply for Nothing {
        fn free_wanted(&self) {}
    }

    fn pool(frames: usize) -> Pool {
        let settings = PoolSettings::new(PageSize::new(4096).unwrap(), frames);
        let settings = PoolSettings { copies_always: true, ..settings };
        Pool::new(settings, Arc::new(Nothing), Arc::new(Nothing))
    }

    /// After so many uses that another one would not be noted.
    fn offer(pool: &Pool, page: PageNo) {
        (0..8).for_each(|_| drop(pool.pin(page).unwrap()));
        pool.offer_read_copy(&pool.pin(page).unwrap().shared());
    }

    #[test]
    fn a_copy_is_good_until_the_page_is_held_exclusively() {
        let pool = pool(4);
        let page = PageNo(3);
        assert!(pool.read_copy(page).is_none());
        offer(&pool, page);
        let copy = pool.read_copy(page).unwrap();
        assert!(copy.is_current() && copy.iter().all(|byte| *byte == 0));
        let mut held = pool.pin(page).unwrap().exclusive();
        assert!(!copy.is_current() && pool.read_copy(page).is_none(), "somebody may be writing");
        held.mark_dirty(Lsn(1));
        held[100] = 7;
        drop(held);
        assert!(!copy.is_current() && pool.read_copy(page).is_none(), "it is another page now");
        assert_eq!(copy[100], 0);
        offer(&pool, page);
        assert_eq!(pool.read_copy(page).unwrap()[100], 7);
    }

    #[test]
    fn a_page_that_leaves_takes_its_copy_along() {
        let pool = pool(1);
        offer(&pool, PageNo(1));
        let copy = pool.read_copy(PageNo(1)).unwrap();
        for page in 2..9 {
            drop(pool.pin(PageNo(page)).unwrap());
        }
        assert!(!copy.is_current() && pool.read_copy(PageNo(1)).is_none());
        assert_eq!(pool.read_copies.count.load(Ordering::Relaxed), 0);
        assert_eq!(copy.len(), 4096, "who still reads it may");
    }

    #[test]
    fn copies_are_bounded() {
        let pool = pool(64);
        for page in 1..60 {
            offer(&pool, PageNo(page));
        }
        assert_eq!(pool.read_copies.count.load(Ordering::Relaxed), COPIES_MIN);
    }

    #[test]
    fn nothing_is_copied_before_readers_meet() {
        let settings = PoolSettings::new(PageSize::new(4096).unwrap(), 4);
        let pool = Pool::new(settings, Arc::new(Nothing), Arc::new(Nothing));
        offer(&pool, PageNo(3));
        assert!(pool.read_copy(PageNo(3)).is_none());
        pool.pin(PageNo(3)).unwrap().frame().note_meeting();
        offer(&pool, PageNo(3));
        assert!(pool.read_copy(PageNo(3)).is_some());
        assert!(!pool.pin(PageNo(3)).unwrap().frame().have_readers_met());
    }
}
