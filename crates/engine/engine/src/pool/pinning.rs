//! Pinning pages that are there.

use std::sync::atomic::{AtomicU64, Ordering};

use iostrata_innodb::PageNo;

use crate::error::EngineError;
use crate::pool::frames::Frame;
use crate::pool::guard::Pin;
use crate::pool::pool::Pool;
use crate::pool::word::Word;

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

    /// Pins a page that is resident. May be called under latches. A page that is just being looked
    /// at by the replacement may seem absent.
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
}
