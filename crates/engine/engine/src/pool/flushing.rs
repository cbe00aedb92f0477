//! Pages on their way to disk.
//!
//! Invariant: what is taken for writing is a copy made under the latch; until it is reported
//! written or not written its LSN counts in `oldest`, and the page is neither taken again nor
//! evicted.

use std::sync::atomic::Ordering;

use iostrata_innodb::{Lsn, PageNo};
use iostrata_io::disk::Aligned;

use crate::page::PageView;
use crate::pool::Pool;
use crate::pool::dirty::{DIRTY, FLYING};
use crate::pool::table::Word;

/// Picked between two takings of the lock.
const PICKS: usize = 64;

/// A copy of a page, to be written. Its parts may be taken apart and put together again.
#[must_use = "a page taken for writing must be reported by `flushed` or `not_flushed`"]
#[derive(Debug)]
pub struct Flushing {
    pub page: PageNo,
    /// The page's newest change: must be durable in the redo before the page is written.
    pub lsn: Lsn,
    /// The page as it was; its checksum is not sealed. Reported back, the buffer is used again.
    pub bytes: Aligned,
    pub flight: Flight,
}

/// What the pool must know again when the writing has ended.
#[must_use = "a page taken for writing must be reported by `flushed` or `not_flushed`"]
#[derive(Debug)]
pub struct Flight {
    frame: u32,
}

impl Pool {
    /// Takes up to `max` dirty pages for writing, the oldest first, out of all buckets of the redo
    /// that begin below `until`; so the pages of a whole bucket, though some may be younger than
    /// `until`. Skips pages that are latched exclusively or being written.
    pub fn collect_oldest(&self, max: usize, until: Lsn, out: &mut Vec<Flushing>) {
        let (mut picked, mut skipped) = (Vec::new(), Vec::new());
        let end = out.len().saturating_add(max);
        while out.len() < end {
            self.dirty.pick(&self.frames, PICKS.min(end - out.len()), until, &mut picked);
            if picked.is_empty() {
                break;
            }
            for index in picked.drain(..) {
                match self.take_copy(index) {
                    Some(copy) => out.push(copy),
                    None => skipped.push(index),
                }
            }
        }
        for index in skipped {
            self.dirty.unpick(self.frames.get(index));
        }
    }

    /// Takes one page for writing if it is dirty, here and not latched; whether it was.
    pub fn collect_page(&self, page: PageNo, out: &mut Vec<Flushing>) -> bool {
        let Some(entry) = self.table.existing(page) else { return false };
        let word = Word(entry.load(Ordering::Relaxed));
        if !word.is_resident() {
            return false;
        }
        let frame = self.frames.get(word.frame());
        if frame.held.load(Ordering::Relaxed) & (DIRTY | FLYING) != DIRTY {
            return false;
        }
        // The frame may hold another page by now: then that one is not wanted.
        let taken = self.take_copy(word.frame());
        let is_taken = taken.as_ref().is_some_and(|taken| taken.page == page);
        match taken {
            Some(taken) if !is_taken => self.not_flushed(vec![taken]),
            taken => out.extend(taken),
        }
        is_taken
    }

    /// Takes up to `max` dirty pages at the cold end for writing, so that they can be evicted
    /// afterwards. Only when there is none of these, pages that would have stayed.
    pub fn collect_cold(&self, max: usize, out: &mut Vec<Flushing>) {
        let mut cold = Vec::new();
        self.queues.cold(max.saturating_mul(4).saturating_add(256), &mut cold);
        let end = out.len().saturating_add(max);
        let mut warm = Vec::new();
        for index in cold {
            if out.len() >= end {
                return;
            }
            match self.uses_of_dirty(index) {
                None => {}
                Some(0) => out.extend(self.take_copy(index)),
                Some(_) => warm.push(index),
            }
        }
        let is_fruitless = out.len() + max == end;
        for index in warm {
            if !is_fruitless || out.len() >= end {
                return;
            }
            out.extend(self.take_copy(index));
        }
    }

    /// None when nobody would want to write it to get its frame.
    fn uses_of_dirty(&self, index: u32) -> Option<u32> {
        let frame = self.frames.get(index);
        if frame.held.load(Ordering::Relaxed) & DIRTY == 0 {
            return None;
        }
        let page = PageNo(frame.page.load(Ordering::Relaxed));
        let word = Word(self.table.existing(page)?.load(Ordering::Relaxed));
        (word.is_resident() && word.pins() == 0).then(|| word.uses())
    }

    /// Takes what is in this frame if it can be latched at once and is to be written.
    fn take_copy(&self, index: u32) -> Option<Flushing> {
        let frame = self.frames.get(index);
        let page = PageNo(frame.page.load(Ordering::Relaxed));
        let shared = self.pin_quietly(page, index)?.try_shared().ok()?;
        if !self.dirty.take(frame) {
            return None;
        }
        let mut bytes = self.buffers.take();
        bytes.copy_from_slice(&shared);
        drop(shared);
        let lsn = PageView::new(&bytes).lsn();
        Some(Flushing { page, lsn, bytes, flight: Flight { frame: index } })
    }

    /// These are written and durable: clean, unless changed meanwhile.
    pub fn flushed(&self, written: Vec<Flushing>) {
        for Flushing { bytes, flight, .. } in written {
            self.dirty.land(self.frames.get(flight.frame));
            self.buffers.give(bytes);
        }
    }

    /// These are not written: dirty again since the LSN they had.
    pub fn not_flushed(&self, unwritten: Vec<Flushing>) {
        for Flushing { bytes, flight, .. } in unwritten {
            self.dirty.turn_back(self.frames.get(flight.frame));
            self.buffers.give(bytes);
        }
    }
}
