//! The waiting requests of one direction, by address and by age.
//!
//! Invariant: both orders hold the same requests. It merges nothing by itself and knows no limit.

use super::by_address::ByAddress;
use super::slots::{NONE, Slots};

/// Waiting requests of one direction.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    by_address: ByAddress,
    oldest: u32,
    youngest: u32,
}

impl Waiting {
    pub(super) fn new() -> Self {
        Self { by_address: ByAddress::default(), oldest: NONE, youngest: NONE }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.oldest == NONE
    }

    /// The request that came first.
    pub(super) fn oldest(&self) -> Option<u32> {
        (self.oldest != NONE).then_some(self.oldest)
    }

    /// The request with the lowest address.
    pub(super) fn lowest(&self) -> Option<u32> {
        self.by_address.from(0)
    }

    /// The request with the lowest address that is not below `at_bytes`.
    pub(super) fn from(&self, at_bytes: u64) -> Option<u32> {
        self.by_address.from(at_bytes)
    }

    /// The request with the highest address below `at_bytes`.
    pub(super) fn below(&self, at_bytes: u64) -> Option<u32> {
        self.by_address.below(at_bytes)
    }

    /// Adds the youngest.
    pub(super) fn add(&mut self, slots: &mut Slots, number: u32) {
        let slot = slots.get_mut(number);
        (slot.older, slot.younger) = (self.youngest, NONE);
        self.by_address.insert(slot.at_bytes, number);
        match self.youngest {
            NONE => self.oldest = number,
            before => slots.get_mut(before).younger = number,
        }
        self.youngest = number;
    }

    /// Takes a request out of both orders.
    pub(super) fn take(&mut self, slots: &mut Slots, number: u32) {
        let slot = *slots.get(number);
        let was_there = self.by_address.remove(slot.at_bytes, number);
        assert!(was_there, "a request that does not wait was taken");
        match slot.older {
            NONE => self.oldest = slot.younger,
            older => slots.get_mut(older).younger = slot.younger,
        }
        match slot.younger {
            NONE => self.youngest = slot.older,
            younger => slots.get_mut(younger).older = slot.older,
        }
    }

    /// Moves a request to a lower address without a change of its age.
    pub(super) fn lower(&mut self, slots: &mut Slots, number: u32, at_bytes: u64) {
        let slot = slots.get_mut(number);
        self.by_address.remove(slot.at_bytes, number);
        slot.at_bytes = at_bytes;
        self.by_address.insert(at_bytes, number);
    }

    /// Puts `number`, which waits, into the place by age of `gone`, which waits too and is older,
    /// and takes `gone` out.
    pub(super) fn replace_older(&mut self, slots: &mut Slots, gone: u32, number: u32) {
        let at_bytes = slots.get(number).at_bytes;
        self.take(slots, number);
        let old = *slots.get(gone);
        self.by_address.remove(old.at_bytes, gone);
        self.by_address.insert(at_bytes, number);
        let slot = slots.get_mut(number);
        // Taking `number` may have changed the neighbours of `gone`, so they were read after it.
        (slot.older, slot.younger) = (old.older, old.younger);
        slot.sequence = old.sequence;
        match old.older {
            NONE => self.oldest = number,
            older => slots.get_mut(older).younger = number,
        }
        match old.younger {
            NONE => self.youngest = number,
            younger => slots.get_mut(younger).older = number,
        }
    }
}
