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
use iostrata_innodb::{NO_PAGE, PageNo};

use crate::pool::frames::Frame;

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

    /// Whether the page holds this now. Whoever latched another page before asking knows that both
    /// were so at one moment: this page was not being changed then, and nobody changes the other.
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
