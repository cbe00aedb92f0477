//! Where requests are kept while they wait and while the drive has them.
//!
//! Invariant: a slot's number names one request from coming to completion.

use super::Direction;

/// No slot.
pub(super) const NONE: u32 = u32::MAX;

/// A request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub(super) direction: Direction,
    pub(super) at_bytes: u64,
    pub(super) bytes: u32,
    /// When its oldest part came.
    pub(super) came_ns: u64,
    /// Its place in the order of coming, over both directions.
    pub(super) sequence: u64,
    /// Neighbours in the order of coming, while it waits.
    pub(super) older: u32,
    pub(super) younger: u32,
}

impl Slot {
    pub(super) fn end_bytes(&self) -> u64 {
        self.at_bytes + u64::from(self.bytes)
    }
}

/// All requests of a queue.
#[derive(Clone, Debug, Default)]
pub(super) struct Slots {
    all: Vec<Slot>,
    free: Vec<u32>,
}

impl Slots {
    pub(super) fn add(&mut self, slot: Slot) -> u32 {
        if let Some(number) = self.free.pop() {
            self.all[number as usize] = slot;
            return number;
        }
        self.all.push(slot);
        (self.all.len() - 1) as u32
    }

    pub(super) fn remove(&mut self, number: u32) -> Slot {
        self.free.push(number);
        self.all[number as usize]
    }

    pub(super) fn get(&self, number: u32) -> &Slot {
        &self.all[number as usize]
    }

    pub(super) fn get_mut(&mut self, number: u32) -> &mut Slot {
        &mut self.all[number as usize]
    }
}
