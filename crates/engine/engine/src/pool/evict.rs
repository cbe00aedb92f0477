//! How a page leaves the pool.
//!
//! Invariant: a page leaves only without pins, clean and not being written; that is looked at again
//! after its entry was made busy, when nobody can change it any more. Nothing here waits or reads.

use std::sync::atomic::{AtomicU64, Ordering};

use iostrata_innodb::{Counter, PageNo};

use crate::pool::Pool;
use crate::pool::frames::Frame;
use crate::pool::queues::{Back, FrameQueue, Pinned};
use crate::pool::table::Word;

/// Frames decided about between two takings of the lock.
const DRAWN_MAX: usize = 32;
/// A page with the most uses goes at its fifth turn.
const TURNS_MAX: usize = 5;

enum Verdict {
    Gone,
    /// Or on its way in or out.
    Pinned,
    Stays(Back),
}

impl Pool {
    /// Evicts up to `max` clean pages at the cold end; their frames are free. Returns how many.
    /// Looks at a bounded number of frames, at most a few times at each.
    pub fn evict(&self, max: usize) -> usize {
        let few = max.saturating_mul(16).saturating_add(64);
        let mut looks = few.min(TURNS_MAX * self.frames.len());
        let (mut drawn, mut warm, mut cold) = (Vec::new(), Vec::new(), Vec::new());
        let mut freed: Vec<u32> = Vec::new();
        let (mut gone, mut held_back, mut pinned) = (0, 0, Pinned::default());
        while gone < max && looks > 0 {
            drawn.clear();
            let most = (max - gone).min(DRAWN_MAX).min(looks);
            self.queues.draw(most, held_back, pinned, &mut drawn);
            if drawn.is_empty() {
                break;
            }
            looks -= drawn.len();
            for (index, place) in drawn.drain(..) {
                match self.judge(index, place) {
                    Verdict::Gone => freed.push(index),
                    Verdict::Pinned => {
                        warm.push((index, Back::Warm(place)));
                        match place {
                            FrameQueue::Small => pinned.small += 1,
                            FrameQueue::Main => pinned.main += 1,
                            FrameQueue::Nowhere => {}
                        }
                    }
                    Verdict::Stays(back @ Back::Warm(_)) => warm.push((index, back)),
                    Verdict::Stays(back @ Back::Cold(from)) => {
                        held_back += usize::from(from == FrameQueue::Small);
                        cold.push((index, back));
                    }
                }
            }
            gone += freed.len();
            self.queues.give_free(&freed);
            freed.clear();
            self.queues.put_back(&mut warm);
        }
        self.queues.put_back(&mut cold);
        gone
    }

    /// Decides about a frame that this thread has drawn.
    fn judge(&self, index: u32, place: FrameQueue) -> Verdict {
        let frame = self.frames.get(index);
        let page = PageNo(frame.page.load(Ordering::Relaxed));
        let Some(entry) = self.table.existing(page) else {
            panic!("frame {index} holds page {} that has no entry", page.0);
        };
        let mut word = Word(entry.load(Ordering::Acquire));
        loop {
            if !word.is_resident() || word.pins() > 0 {
                return Verdict::Pinned;
            }
            debug_assert_eq!(word.frame(), index);
            let next = match (place, word.uses()) {
                (_, 0) if is_held(frame) => return Verdict::Stays(Back::Cold(place)),
                (_, 0) => Word::busy(),
                (FrameQueue::Main, _) => word.used_less(),
                (_, _) => word.unused(),
            };
            match entry.compare_exchange(word.0, next.0, Ordering::Acquire, Ordering::Acquire) {
                Ok(_) if next.is_busy() => return self.leave(frame, page, entry, word, place),
                Ok(_) => {
                    if place == FrameQueue::Small {
                        self.counts.add(Counter::BufferPoolPagesMadeYoung, 1);
                    }
                    return Verdict::Stays(Back::Warm(FrameQueue::Main));
                }
                Err(now) => word = Word(now),
            }
        }
    }

    /// Nobody can pin the page now. What was done to it while it could be pinned is seen.
    fn leave(
        &self,
        frame: &Frame,
        page: PageNo,
        entry: &AtomicU64,
        was: Word,
        place: FrameQueue,
    ) -> Verdict {
        if is_held(frame) {
            self.waiting.end(page, entry, was, Ok(()));
            return Verdict::Stays(Back::Cold(place));
        }
        if was.is_unread() {
            self.counts.add(Counter::BufferPoolReadAheadEvicted, 1);
        }
        self.counts.add(Counter::BufferPoolPagesEvicted, 1);
        self.read_copies.forget(frame.index);
        self.waiting.end(page, entry, Word::absent(self.queues.arrivals()), Ok(()));
        Verdict::Gone
    }
}

/// Dirty or being written.
fn is_held(frame: &Frame) -> bool {
    frame.held.load(Ordering::Acquire) != 0
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use iostrata_innodb::Lsn;

    use super::*;
    use crate::page::PageSize;
    use crate::pool::border::{Nothing, PoolSettings};

    #[test]
    fn a_page_changed_before_its_entry_was_busy_stays() {
        let settings = PoolSettings::new(PageSize::new(4096).unwrap(), 4);
        let pool = Pool::new(settings, Arc::default(), Arc::new(Nothing), Arc::new(Nothing));
        let page = PageNo(3);
        let index = pool.pin(page).unwrap().frame().index;
        let entry = pool.table.entry(page).unwrap();
        // Found clean at this moment; then somebody changes it and lets it go.
        let was = Word(entry.load(Ordering::Relaxed));
        pool.pin(page).unwrap().exclusive().mark_dirty(Lsn(5));
        entry.store(Word::busy().0, Ordering::Relaxed);
        let verdict = pool.leave(pool.frames.get(index), page, entry, was, FrameQueue::Small);
        assert!(matches!(verdict, Verdict::Stays(Back::Cold(FrameQueue::Small))));
        assert_eq!(Word(entry.load(Ordering::Relaxed)), was);
        assert_eq!(pool.try_pin(page).unwrap().frame().index, index);
    }

    #[test]
    fn writers_pin_a_page_only_in_the_frame_they_mean() {
        let settings = PoolSettings::new(PageSize::new(4096).unwrap(), 4);
        let pool = Pool::new(settings, Arc::default(), Arc::new(Nothing), Arc::new(Nothing));
        let index = pool.pin(PageNo(3)).unwrap().frame().index;
        assert!(pool.pin_quietly(PageNo(3), index).is_some());
        assert!(pool.pin_quietly(PageNo(3), index + 1).is_none());
        assert!(pool.pin_quietly(PageNo(4), index).is_none());
    }
}
