//! Which pages are dirty, and which are on their way to the drive.
//!
//! Invariant: a page on its way may have been dirtied again, but is not submitted a second time
//! before it has arrived. Every page made dirty was submitted or is dirty; every page submitted has
//! arrived or is on its way.

use super::{CachePlan, PAGE_BYTES};
use crate::queue::{Bio, BlockQueue, Direction, OfferOutcome, Submitter};

/// Pages so far, and now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageCounts {
    /// Clean pages that became dirty, so far.
    pub dirtied: u64,
    /// Dirty pages that were submitted, so far.
    pub submitted: u64,
    /// Pages that arrived, so far.
    pub written: u64,
    /// Dirty pages now.
    pub dirty: u32,
    /// Pages on their way to the drive now.
    pub under_write: u32,
}

/// The state of all pages.
#[derive(Clone, Debug)]
pub(super) struct Pages {
    base_bytes: u64,
    /// One past the last page.
    bound: u32,
    dirty: Bits,
    under_write: Bits,
    counts: PageCounts,
}

impl Pages {
    pub(super) fn new(plan: &CachePlan) -> Self {
        let bits = Bits::new(plan.pages);
        let counts = PageCounts::default();
        Self {
            base_bytes: plan.base_bytes,
            bound: plan.pages,
            dirty: bits.clone(),
            under_write: bits,
            counts,
        }
    }

    pub(super) fn counts(&self) -> PageCounts {
        self.counts
    }

    /// Dirty pages and those on their way.
    pub(super) fn unwritten(&self) -> u32 {
        self.counts.dirty + self.counts.under_write
    }

    pub(super) fn is_dirty(&self, page: u32) -> bool {
        self.dirty.has(page)
    }

    pub(super) fn is_under_write(&self, page: u32) -> bool {
        self.under_write.has(page)
    }

    pub(super) fn make_dirty(&mut self, page: u32) {
        if self.dirty.add(page) {
            self.counts.dirtied += 1;
            self.counts.dirty += 1;
        }
    }

    /// The first page from `from` on that can be submitted.
    pub(super) fn next_to_submit(&self, from: u32) -> Option<u32> {
        self.dirty.next_without(&self.under_write, from)
    }

    /// Offers a dirty page that is not on its way to the queue, and in the same bio up to `most`
    /// pages with those that follow it without a gap; how many, or 0 when the submitter sleeps.
    pub(super) fn submit(
        &mut self,
        now_ns: u64,
        page: u32,
        most: u32,
        queue: &mut BlockQueue,
        who: Submitter,
    ) -> u32 {
        let count = (0..most.min(self.bound - page))
            .take_while(|more| self.can_submit(page + more))
            .count() as u32;
        assert!(count > 0, "page {page} can't be submitted");
        let bytes = count * PAGE_BYTES as u32;
        let bio = Bio { direction: Direction::Write, at_bytes: self.at_bytes(page), bytes };
        if queue.offer(now_ns, bio, who) == OfferOutcome::Sleeps {
            return 0;
        }
        for one in page..page + count {
            self.dirty.take(one);
            self.under_write.add(one);
        }
        self.counts.dirty -= count;
        self.counts.under_write += count;
        self.counts.submitted += u64::from(count);
        count
    }

    fn can_submit(&self, page: u32) -> bool {
        self.dirty.has(page) && !self.under_write.has(page)
    }

    pub(super) fn arrived(&mut self, page: u32) {
        assert!(self.under_write.take(page), "a page arrived that was not on its way");
        self.counts.under_write -= 1;
        self.counts.written += 1;
    }

    /// Lets a dirty page that is not on its way be written without the queue.
    pub(super) fn write_unseen(&mut self, page: u32) {
        assert!(self.dirty.take(page) && !self.under_write.has(page), "it is not waiting");
        self.counts.dirty -= 1;
        self.counts.submitted += 1;
        self.counts.written += 1;
    }

    pub(super) fn at_bytes(&self, page: u32) -> u64 {
        self.base_bytes + u64::from(page) * PAGE_BYTES
    }

    pub(super) fn page_at(&self, at_bytes: u64) -> u32 {
        ((at_bytes - self.base_bytes) / PAGE_BYTES) as u32
    }
}

/// A set of numbers below a bound.
#[derive(Clone, Debug)]
pub(super) struct Bits(Vec<u64>);

impl Bits {
    pub(super) fn new(bound: u32) -> Self {
        Self(vec![0; (bound as usize).div_ceil(64)])
    }

    pub(super) fn has(&self, number: u32) -> bool {
        self.0[(number / 64) as usize] >> (number % 64) & 1 == 1
    }

    /// Adds a number; whether it was new.
    pub(super) fn add(&mut self, number: u32) -> bool {
        let (word, bit) = (&mut self.0[(number / 64) as usize], 1 << (number % 64));
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    /// Takes a number out; whether it was there.
    pub(super) fn take(&mut self, number: u32) -> bool {
        let (word, bit) = (&mut self.0[(number / 64) as usize], 1 << (number % 64));
        let was_there = *word & bit != 0;
        *word &= !bit;
        was_there
    }

    /// The lowest number from `from` on that is in this set and not in `other`, of the same bound.
    fn next_without(&self, other: &Self, from: u32) -> Option<u32> {
        let first = (from / 64) as usize;
        let mut word = (self.0.get(first)? & !other.0[first]) >> (from % 64) << (from % 64);
        let mut at = first;
        while word == 0 {
            at += 1;
            word = self.0.get(at)? & !other.0[at];
        }
        Some(at as u32 * 64 + word.trailing_zeros())
    }
}
