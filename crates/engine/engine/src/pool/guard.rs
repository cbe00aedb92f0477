//! What a caller holds: a pin, and on top of it a latch.
//!
//! Invariant: a guard owns its pin, so the page stays in its frame as long as the guard lives; the
//! latch goes before the pin. Guards may be moved and kept in collections.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};

use iostrata_innodb::{Lsn, PageNo};

use crate::pool::frames::{ExclusiveLatch, Frame, SharedLatch};
use crate::pool::pool::Pool;
use crate::pool::word::{PIN, Word};

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

    /// Which page it is.
    #[inline]
    pub fn page_no(&self) -> PageNo {
        self.page
    }

    /// Another number whenever the page's place in its tree changed or it came anew into the pool.
    /// Numbers do not repeat within 2^32 such changes of the whole pool.
    #[inline]
    pub fn page_version(&self) -> u32 {
        self.frame.page_version.load(Ordering::Acquire)
    }

    /// Another number after every exclusive hold. Comparable as long as the page stays pinned: who
    /// finds the number it saw under the latch finds the bytes it saw.
    #[inline]
    pub fn latch_version(&self) -> u64 {
        self.frame.version()
    }

    /// Waits for the latch, shared with other readers.
    #[inline]
    pub fn shared(self) -> Shared<'p> {
        Shared { latch: SharedLatch::new(self.frame), pin: self }
    }

    /// Waits for the latch, alone.
    #[inline]
    pub fn exclusive(self) -> Exclusive<'p> {
        Exclusive { latch: ExclusiveLatch::new(self.frame), pin: self }
    }

    /// The latch, shared, if that needs no waiting.
    #[inline]
    pub fn try_shared(self) -> Result<Shared<'p>, Self> {
        match SharedLatch::try_new(self.frame) {
            Some(latch) => Ok(Shared { latch, pin: self }),
            None => Err(self),
        }
    }

    /// The latch, alone, if that needs no waiting.
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
        // Released, so that who evicts the page sees what was done to it.
        let was = Word(self.entry.fetch_sub(PIN, Ordering::Release));
        debug_assert!(was.is_resident() && was.pins() > 0, "{was:?}");
    }
}

impl fmt::Debug for Pin<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Pin(page {}, frame {})", self.page.0, self.frame.index)
    }
}

/// A page to read.
pub struct Shared<'p> {
    // Before the pin, so that it goes first.
    latch: SharedLatch<'p>,
    pin: Pin<'p>,
}

impl<'p> Shared<'p> {
    /// Which page it is.
    #[inline]
    pub fn page_no(&self) -> PageNo {
        self.pin.page
    }

    /// See [`Pin::page_version`].
    #[inline]
    pub fn page_version(&self) -> u32 {
        self.pin.page_version()
    }

    /// See [`Pin::latch_version`]; it stays as long as this lives.
    #[inline]
    pub fn latch_version(&self) -> u64 {
        self.pin.latch_version()
    }

    /// Gives the latch back and keeps the pin.
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

/// A page to change.
pub struct Exclusive<'p> {
    // Before the pin, so that it goes first.
    latch: ExclusiveLatch<'p>,
    pin: Pin<'p>,
}

impl<'p> Exclusive<'p> {
    /// Which page it is.
    #[inline]
    pub fn page_no(&self) -> PageNo {
        self.pin.page
    }

    /// See [`Pin::page_version`].
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

    /// Gives the latch back and keeps the pin.
    #[inline]
    pub fn unlatch(self) -> Pin<'p> {
        let Self { latch, pin } = self;
        drop(latch);
        pin
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
