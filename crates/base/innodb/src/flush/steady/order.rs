//! The last order of pages: how far it is, and what it cost.

use crate::flush::{Finished, FlushSample};

/// Pages that were ordered last.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ListOrder {
    pages: u32,
    /// What was written since then, and how long that took.
    written: u32,
    took_us: u64,
    is_open: bool,
    /// It wrote nothing, and nobody was told.
    is_fruitless: bool,
}

impl ListOrder {
    /// So many pages are ordered.
    pub fn begin(&mut self, pages: u32) {
        let is_added = self.is_open;
        *self = Self {
            pages: if is_added { self.pages.saturating_add(pages) } else { pages },
            is_open: true,
            is_fruitless: false,
            ..if is_added { *self } else { Self::default() }
        };
    }

    /// Takes what was done since the last look. Once everything is, or nothing more was there to
    /// do: pages and time of it.
    pub fn observe(&mut self, now: &FlushSample<'_>, last: Finished) -> Option<(u32, u64)> {
        if !self.is_open {
            return None;
        }
        self.written = self.written.saturating_add(last.flushed);
        self.took_us = self.took_us.saturating_add(last.took_us);
        if now.lanes.list_pages > 0 && self.written < self.pages {
            return None;
        }
        let done = (self.written, self.took_us);
        *self = Self { is_fruitless: self.written == 0, ..Self::default() };
        Some(done)
    }

    /// Whether an order came to its end that wrote nothing; once.
    pub fn takes_fruitless(&mut self) -> bool {
        std::mem::take(&mut self.is_fruitless)
    }

    /// Whether more may be ordered: the disk always has the next pages at hand, and little stands
    /// before what the next look finds more urgent.
    pub fn has_room(&self, now: &FlushSample<'_>) -> bool {
        !self.is_open || now.lanes.list_pages <= self.pages / 2
    }
}
