//! How many pages are dirty since when, for whoever looks on without the lock of the dirty set.
//!
//! Invariant: only who holds that lock changes it, and while nobody does it says what the set says,
//! in slots as wide as its buckets or a power of two times as wide. Whoever looks on meanwhile may
//! see a page in two slots or in none: that is good enough to decide what to write, and for nothing
//! else.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64, fence};

use iostrata_innodb::Lsn;

use crate::pool::frames::NEVER;

/// Slots, used in turns: sixteen times what the redo spans when the engine opens. Where it has
/// grown beyond them they become wider.
const SLOTS: u64 = 4096;

/// The least and the greatest bucket that has a page, by the LSN at which it begins.
pub type BucketEnds = Option<(u64, u64)>;

pub struct AgeCounts {
    /// Odd while the slots are laid out anew.
    layouts: AtomicU64,
    slot_bytes: AtomicU64,
    /// First slot in use, and the one behind the last.
    first: AtomicU64,
    end: AtomicU64,
    oldest: AtomicU64,
    counts: Box<[AtomicU32]>,
}

impl AgeCounts {
    pub fn new(slot_bytes: u64) -> Self {
        let [layouts, first, end] = [const { AtomicU64::new(0) }; 3];
        let (slot_bytes, oldest) = (AtomicU64::new(slot_bytes), AtomicU64::new(NEVER));
        let counts = (0..SLOTS).map(|_| AtomicU32::new(0)).collect();
        Self { layouts, slot_bytes, first, end, oldest, counts }
    }

    /// The holder's side: pages that are in `span` now have left here and have come there; `all`
    /// gives every bucket with its pages.
    pub fn moved<B: Iterator<Item = (u64, u32)>>(
        &self,
        left: impl Iterator<Item = u64>,
        came: impl Iterator<Item = u64>,
        span: BucketEnds,
        all: impl FnOnce() -> B,
    ) {
        let slot_bytes = self.slot_bytes.load(Relaxed);
        if let Some(wider_bytes) = wide_enough(slot_bytes, span) {
            return self.lay_out(wider_bytes, span, all());
        }
        left.for_each(|at| _ = self.slot(at / slot_bytes).fetch_sub(1, Relaxed));
        came.for_each(|at| _ = self.slot(at / slot_bytes).fetch_add(1, Relaxed));
        self.set_span(slot_bytes, span);
    }

    /// The holder's side: the least LSN, or one that is below it and in the same bucket.
    pub fn set_oldest(&self, oldest: Option<u64>) {
        self.oldest.store(oldest.unwrap_or(NEVER), Relaxed);
    }

    fn lay_out(&self, slot_bytes: u64, span: BucketEnds, all: impl Iterator<Item = (u64, u32)>) {
        self.layouts.fetch_add(1, Relaxed);
        fence(Release);
        self.slot_bytes.store(slot_bytes, Relaxed);
        self.counts.iter().for_each(|count| count.store(0, Relaxed));
        for (at, pages) in all {
            self.slot(at / slot_bytes).fetch_add(pages, Relaxed);
        }
        self.set_span(slot_bytes, span);
        self.layouts.fetch_add(1, Release);
    }

    fn set_span(&self, slot_bytes: u64, span: BucketEnds) {
        let (first, end) = span.map_or((0, 0), |(a, b)| (a / slot_bytes, b / slot_bytes + 1));
        self.first.store(first, Relaxed);
        self.end.store(end, Relaxed);
    }

    fn slot(&self, number: u64) -> &AtomicU32 {
        &self.counts[(number % SLOTS) as usize]
    }

    /// What [`AgeCounts::set_oldest`] said last.
    pub fn oldest(&self) -> Option<Lsn> {
        Some(self.oldest.load(Relaxed)).filter(|at| *at != NEVER).map(Lsn)
    }

    /// Pages by the LSN at which their slot begins, oldest first; empty slots are left out.
    pub fn read(&self) -> Vec<(Lsn, u32)> {
        loop {
            let layout = self.layouts.load(Acquire);
            let found = self.look();
            // What was read above is read before this.
            fence(Acquire);
            if layout.is_multiple_of(2) && self.layouts.load(Relaxed) == layout {
                return found;
            }
            std::thread::yield_now();
        }
    }

    fn look(&self) -> Vec<(Lsn, u32)> {
        let [slot_bytes, first, end] =
            [&self.slot_bytes, &self.first, &self.end].map(|cell| cell.load(Relaxed));
        let slots = (first..end).take(SLOTS as usize);
        let row = |slot| (Lsn(slot * slot_bytes), self.slot(slot).load(Relaxed));
        slots.map(row).filter(|(_, pages)| *pages > 0).collect()
    }
}

/// Bytes of slots in which the span has its place; nothing when that is so already.
fn wide_enough(slot_bytes: u64, span: BucketEnds) -> Option<u64> {
    let (first, last) = span?;
    let fits = |bytes: &u64| last / bytes - first / bytes < SLOTS;
    let widths = std::iter::successors(Some(slot_bytes), |bytes| bytes.checked_mul(2));
    widths.into_iter().find(fits).filter(|bytes| *bytes > slot_bytes)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// The set as it should be seen, by bucket of 16 bytes.
    #[derive(Default)]
    struct Buckets(BTreeMap<u64, u32>);

    impl Buckets {
        fn change(&mut self, seen: &AgeCounts, left: Option<u64>, came: Option<u64>) {
            for at in left.iter().map(|at| at / 16 * 16) {
                let pages = self.0.get_mut(&at).unwrap();
                *pages -= 1;
                self.0.retain(|_, pages| *pages > 0);
            }
            came.iter().for_each(|at| *self.0.entry(at / 16 * 16).or_default() += 1);
            let span = self.0.keys().next().copied().zip(self.0.keys().next_back().copied());
            let all = || self.0.iter().map(|(at, pages)| (*at, *pages));
            seen.moved(left.into_iter(), came.into_iter(), span, all);
        }
    }

    #[test]
    fn it_follows_the_set_through_more_slots_than_there_are() {
        let (seen, mut set) = (AgeCounts::new(16), Buckets::default());
        let step = 5 * 16;
        for turn in 0..3 * SLOTS {
            let at = turn * step + 3;
            let left = turn.checked_sub(100).map(|before| before * step + 3);
            set.change(&seen, left, Some(at));
        }
        let expected: Vec<_> = set.0.iter().map(|(at, pages)| (Lsn(*at), *pages)).collect();
        assert_eq!((seen.read(), seen.slot_bytes.load(Relaxed)), (expected, 16));
    }

    #[test]
    fn where_the_redo_has_grown_slots_become_wider_and_lose_no_page() {
        let (seen, mut set) = (AgeCounts::new(16), Buckets::default());
        for turn in 0..3 * SLOTS {
            set.change(&seen, None, Some(turn * 16));
        }
        let found = seen.read();
        assert_eq!(seen.slot_bytes.load(Relaxed), 64);
        assert_eq!(found.len() as u64, 3 * SLOTS / 4);
        assert!(found.iter().zip(0..).all(|(row, at)| *row == (Lsn(64 * at), 4)), "{found:?}");
        for turn in 0..3 * SLOTS {
            set.change(&seen, Some(turn * 16), None);
        }
        assert_eq!(seen.read(), []);
    }

    #[test]
    fn whoever_looks_on_while_slots_are_laid_out_sees_one_layout() {
        let seen = AgeCounts::new(16);
        let wide = SLOTS * 16;
        seen.moved([].into_iter(), [0].into_iter(), Some((0, 0)), || [].into_iter());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for doubling in 0..30 {
                    let last = wide << doubling;
                    let all = || [(0, 1), (last, 1)].into_iter();
                    seen.moved([].into_iter(), [].into_iter(), Some((0, last)), all);
                }
            });
            loop {
                let found = seen.read();
                let last = found.last().map_or(0, |(at, _)| at.0);
                assert!(found.len() <= 2 && found[0] == (Lsn(0), 1), "{found:?}");
                assert!(last == 0 || last.is_power_of_two(), "{found:?}");
                if last == wide << 29 {
                    break;
                }
            }
        });
    }
}
