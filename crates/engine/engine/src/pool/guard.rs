//! What a caller holds: a pin, on top of it a latch, or a copy to read.
//!
//! Invariants: a guard owns its pin, so the page stays in its frame as long as the guard lives; the
//! latch is released before the pin. Guards may be moved and kept in collections. Readers meet at
//! copies of pages: the reader of a copy writes nothing that other threads read, so that threads
//! that go down one tree do not wait for each other's cache lines. A copy holds what its frame held
//! at one version of the latch, and never changes. As long as [`ReadCopy::is_current`] returns
//! true, the page holds the same, and no thread is changing it. A copy keeps no page in the pool;
//! it is handed out only where a use of its page need not be noted, so that pages which are read by
//! their copies alone still count as used.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use arc_swap::{ArcSwap, Guard};
use iostrata_innodb::{Lsn, NO_PAGE, PageNo};

use crate::error::EngineError;
use crate::pool::Pool;
use crate::pool::frames::{ExclusiveLatch, Frame, SharedLatch};
use crate::pool::table::{PIN, Word};

/// A page that stays in the pool as long as this lives; its bytes are not accessible yet.
pub struct Pin<'p> {
    pool: &'p Pool,
    entry: &'p AtomicU64,
    frame: &'p Frame,
    page: PageNo,
}

impl<'p> Pin<'p> {
    /// Takes over a pin that is counted in the entry already.
    #[inline]
    pub(crate) fn counted(
        pool: &'p Pool,
        entry: &'p AtomicU64,
        frame: &'p Frame,
        page: PageNo,
    ) -> Self {
        Self { pool, entry, frame, page }
    }

    #[inline]
    pub fn page_no(&self) -> PageNo {
        self.page
    }

    /// Another number whenever the page's place in its tree changed or it was read into the pool
    /// again. Numbers do not repeat within 2^32 such changes of the whole pool.
    #[inline]
    pub fn page_version(&self) -> u32 {
        self.frame.page_version.load(Ordering::Acquire)
    }

    #[inline]
    pub fn shared(self) -> Shared<'p> {
        Shared { latch: SharedLatch::new(self.frame), pin: self }
    }

    #[inline]
    pub fn exclusive(self) -> Exclusive<'p> {
        Exclusive { latch: ExclusiveLatch::new(self.frame), pin: self }
    }

    #[inline]
    pub fn try_shared(self) -> Result<Shared<'p>, Self> {
        match SharedLatch::try_new(self.frame) {
            Some(latch) => Ok(Shared { latch, pin: self }),
            None => Err(self),
        }
    }

    #[inline]
    pub fn try_exclusive(self) -> Result<Exclusive<'p>, Self> {
        match ExclusiveLatch::try_new(self.frame) {
            Some(latch) => Ok(Exclusive { latch, pin: self }),
            None => Err(self),
        }
    }

    pub(crate) fn frame(&self) -> &'p Frame {
        self.frame
    }
}

impl Clone for Pin<'_> {
    #[inline]
    fn clone(&self) -> Self {
        let was = Word(self.entry.fetch_add(PIN, Ordering::Relaxed));
        debug_assert!(was.pinned().is_resident(), "{was:?}");
        Self { pool: self.pool, entry: self.entry, frame: self.frame, page: self.page }
    }
}

impl Drop for Pin<'_> {
    #[inline]
    fn drop(&mut self) {
        // Released, so that an eviction sees what was done to the page.
        let was = Word(self.entry.fetch_sub(PIN, Ordering::Release));
        debug_assert!(was.is_resident() && was.pins() > 0, "{was:?}");
    }
}

impl fmt::Debug for Pin<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Pin(page {}, frame {})", self.page.0, self.frame.index)
    }
}

pub struct Shared<'p> {
    // Before the pin, so that it goes first.
    latch: SharedLatch<'p>,
    pin: Pin<'p>,
}

impl<'p> Shared<'p> {
    #[inline]
    pub fn page_no(&self) -> PageNo {
        self.pin.page
    }

    #[inline]
    pub fn page_version(&self) -> u32 {
        self.pin.page_version()
    }

    #[inline]
    pub fn unlatch(self) -> Pin<'p> {
        let Self { latch, pin } = self;
        drop(latch);
        pin
    }

    pub(crate) fn frame(&self) -> &'p Frame {
        self.pin.frame
    }
}

impl Deref for Shared<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.latch.bytes()
    }
}

impl fmt::Debug for Shared<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Shared({:?})", self.pin)
    }
}

pub struct Exclusive<'p> {
    // Before the pin, so that it goes first.
    latch: ExclusiveLatch<'p>,
    pin: Pin<'p>,
}

impl<'p> Exclusive<'p> {
    #[inline]
    pub fn page_no(&self) -> PageNo {
        self.pin.page
    }

    #[inline]
    pub fn page_version(&self) -> u32 {
        self.pin.page_version()
    }

    /// The page is about to change. `at` is the end of the redo read just before the change is
    /// appended to it; call this first, then append, then change and stamp the bytes, all under
    /// this one latch.
    #[inline]
    pub fn mark_dirty(&mut self, at: Lsn) {
        self.pin.pool.dirty.mark(self.pin.frame, at);
    }

    /// The page's place in its tree changes: split, merged, linked elsewhere, freed.
    pub fn bump_page_version(&mut self) {
        self.pin.pool.bump_page_version(self.pin.frame);
    }
}

impl Deref for Exclusive<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.latch.bytes()
    }
}

impl DerefMut for Exclusive<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        self.latch.bytes_mut()
    }
}

impl fmt::Debug for Exclusive<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Exclusive({:?})", self.pin)
    }
}

impl Pool {
    /// Pins a page. When it is absent, this thread reads it; others that want it wait for that.
    /// The caller holds no latch.
    #[inline]
    pub fn pin(&self, page: PageNo) -> Result<Pin<'_>, EngineError> {
        self.requests.count();
        let entry = self.table.entry(page)?;
        match self.pin_resident(entry, page) {
            Some(pin) => Ok(pin),
            None => self.pin_absent(entry, page),
        }
    }

    /// Pins a page that is resident. May be called under latches. A page that the replacement is
    /// examining may seem absent.
    #[inline]
    pub fn try_pin(&self, page: PageNo) -> Option<Pin<'_>> {
        let pin = self.pin_resident(self.table.existing(page)?, page)?;
        self.requests.count();
        Some(pin)
    }

    /// Brings a page that is about to be pinned and searched nearer to the processor, if it is
    /// resident.
    #[inline]
    pub fn bring_near(&self, page: PageNo) {
        if let Some(entry) = self.table.existing(page) {
            let word = Word(entry.load(Ordering::Relaxed));
            if word.is_resident() {
                self.frames.prefetch(word.frame());
            }
        }
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

    /// A pin that does not count as a use: for writing the page.
    pub(crate) fn pin_quietly(&self, page: PageNo, in_frame: u32) -> Option<Pin<'_>> {
        let entry = self.table.existing(page)?;
        let step = |word| {
            let word = Word(word);
            (word.is_resident() && word.frame() == in_frame).then(|| word.pinned().0)
        };
        entry.fetch_update(Ordering::Acquire, Ordering::Relaxed, step).ok()?;
        Some(Pin::counted(self, entry, self.frames.get(in_frame), page))
    }
}

impl Pool {
    /// The copy of a page, if it has one that holds what the page does. None as well when the use
    /// of the page has to be noted: then it is pinned, as without copies.
    #[inline]
    pub fn read_copy(&self, page: PageNo) -> Option<ReadCopy<'_>> {
        if self.read_copies.is_empty() {
            return None;
        }
        let word = Word(self.table.existing(page)?.load(Ordering::Acquire));
        if !word.is_resident() || word.is_unread() {
            return None;
        }
        let frame = self.frames.get(word.frame());
        let since = frame.since.load(Ordering::Relaxed);
        if !word.is_used_most() && self.queues.counts_use(since) {
            return None;
        }
        let copy = self.read_copies.current(frame, page)?;
        self.requests.count();
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
        page.frame().forget_meeting();
        self.read_copies.take(page.frame(), page.page_no(), page);
    }
}

/// One frame in so many has a copy, at most: inner pages are far fewer unless keys are very long.
const SHARE: usize = 32;
/// Small pools may have this many.
const COPIES_MIN: usize = 8;

#[derive(Debug)]
struct CopiedPage {
    page: PageNo,
    page_version: u32,
    latch_version: u64,
    bytes: Box<[u8]>,
}

struct CopySlot {
    copied: ArcSwap<CopiedPage>,
    /// The version of the latch of which there is a copy, and 1; 0 for none. A hint: it spares
    /// readers the look at the copy.
    version: AtomicU64,
}

pub(crate) struct ReadCopies {
    slots: Box<[CopySlot]>,
    none: Arc<CopiedPage>,
    count: AtomicUsize,
}

impl ReadCopies {
    pub fn new(frames: usize) -> Self {
        let bytes = Box::default();
        let none = Arc::new(CopiedPage { page: NO_PAGE, page_version: 0, latch_version: 0, bytes });
        let slot =
            |_| CopySlot { copied: ArcSwap::from(Arc::clone(&none)), version: AtomicU64::new(0) };
        Self { slots: (0..frames).map(slot).collect(), none, count: AtomicUsize::new(0) }
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }

    /// The copy of a page that is in this frame, if it holds what the page does.
    #[inline]
    pub fn current<'p>(&self, frame: &'p Frame, page: PageNo) -> Option<ReadCopy<'p>> {
        let slot = &self.slots[frame.index as usize];
        if slot.version.load(Ordering::Acquire) != frame.version_at_rest()? + 1 {
            return None;
        }
        let copy = ReadCopy { frame, copied: slot.copied.load() };
        (copy.page_no() == page && copy.is_current()).then_some(copy)
    }

    /// Copies a page of which the caller holds the latch, unless there is a copy of this version
    /// already, or there are too many.
    pub fn take(&self, frame: &Frame, page: PageNo, bytes: &[u8]) {
        let (page_version, latch_version) =
            (frame.page_version.load(Ordering::Acquire), frame.version());
        let slot = &self.slots[frame.index as usize];
        let most = (self.slots.len() / SHARE).max(COPIES_MIN);
        let is_full = self.count.load(Ordering::Relaxed) >= most;
        let version = slot.version.load(Ordering::Relaxed);
        if version == latch_version + 1 || (is_full && version == 0) {
            return;
        }
        let copied = CopiedPage { page, page_version, latch_version, bytes: bytes.into() };
        self.replace(slot, Arc::new(copied));
        slot.version.store(latch_version + 1, Ordering::Release);
    }

    /// Gives back the memory of a frame's copy: the page leaves.
    pub fn forget(&self, frame: u32) {
        let slot = &self.slots[frame as usize];
        if slot.version.swap(0, Ordering::Relaxed) != 0 {
            self.replace(slot, Arc::clone(&self.none));
        }
    }

    fn replace(&self, slot: &CopySlot, copied: Arc<CopiedPage>) {
        let comes = copied.page != NO_PAGE;
        let goes = slot.copied.swap(copied).page != NO_PAGE;
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
    copied: Guard<Arc<CopiedPage>>,
}

impl ReadCopy<'_> {
    #[inline]
    pub fn page_no(&self) -> PageNo {
        self.copied.page
    }

    /// Whether the page holds this now. If the caller latched another page before, both were so at
    /// one moment: this page was not being changed then, and the other cannot be.
    #[inline]
    pub fn is_current(&self) -> bool {
        self.frame.version_at_rest() == Some(self.copied.latch_version)
            && self.frame.page_version.load(Ordering::Acquire) == self.copied.page_version
    }
}

impl Deref for ReadCopy<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.copied.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::PageSize;
    use crate::pool::{Nothing, PoolSettings};

    fn pool(frames: usize) -> Pool {
        let settings = PoolSettings::new(PageSize::new(4096).unwrap(), frames);
        let settings = PoolSettings { copies_always: true, ..settings };
        Pool::new(settings, Arc::default(), Arc::new(Nothing), Arc::new(Nothing))
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
        assert!(!copy.is_current() && pool.read_copy(page).is_none(), "it may be being written");
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
        assert!(pool.read_copies.is_empty());
        assert_eq!(copy.len(), 4096, "who still reads it may");
    }

    #[test]
    fn copies_are_bounded() {
        let pool = pool(64);
        for page in 1..60 {
            offer(&pool, PageNo(page));
        }
        assert_eq!(pool.read_copies.len(), 8);
    }

    #[test]
    fn nothing_is_copied_before_readers_meet() {
        let settings = PoolSettings::new(PageSize::new(4096).unwrap(), 4);
        let pool = Pool::new(settings, Arc::default(), Arc::new(Nothing), Arc::new(Nothing));
        offer(&pool, PageNo(3));
        assert!(pool.read_copy(PageNo(3)).is_none());
        pool.pin(PageNo(3)).unwrap().frame().note_meeting();
        offer(&pool, PageNo(3));
        assert!(pool.read_copy(PageNo(3)).is_some());
        assert!(!pool.pin(PageNo(3)).unwrap().frame().have_readers_met());
    }
}
