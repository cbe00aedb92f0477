//! Where requests wait, and which of them goes to the drive next.
//!
//! Source: Linux Documentation/block/deadline-iosched.txt: requests are sorted by address per
//! direction and sent in batches of one direction; deadlines are only checked between batches;
//! reads go first, until writes were passed over `writes_starved` times. A batch goes on where the
//! last one of its direction ended, starts at the oldest request when that one's deadline has
//! passed, and at the lowest address when nothing lies above.
//! Invariants: the elevator only chooses; it takes nothing out. A slot's number names one request
//! from coming to completion. Of one direction the orders by address and by age hold the same
//! requests. A bucket of addresses holds the requests that begin in one MiB, sorted; a bit marks
//! which buckets hold any: a hundred thousand requests lie a few dozen to a bucket, where a tree
//! would be climbed for each. It merges nothing and has no limit.

use super::Direction;
use super::limit::Scheduler;

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

/// Bytes of a bucket, as a power of 2.
const BUCKET_BITS: u32 = 20;

/// Requests by address, and by number where the address is the same.
#[derive(Clone, Debug, Default)]
struct ByAddress {
    buckets: Vec<Vec<(u64, u32)>>,
    filled: Vec<u64>,
}

fn bucket_of(at_bytes: u64) -> usize {
    (at_bytes >> BUCKET_BITS) as usize
}

impl ByAddress {
    pub(super) fn insert(&mut self, at_bytes: u64, number: u32) {
        let bucket = bucket_of(at_bytes);
        if bucket >= self.buckets.len() {
            self.buckets.resize(bucket + 1, Vec::new());
            self.filled.resize(bucket / 64 + 1, 0);
        }
        let place = self.buckets[bucket].partition_point(|one| *one < (at_bytes, number));
        self.buckets[bucket].insert(place, (at_bytes, number));
        self.filled[bucket / 64] |= 1 << (bucket % 64);
    }

    /// Takes one out; whether it was there.
    pub(super) fn remove(&mut self, at_bytes: u64, number: u32) -> bool {
        let bucket = bucket_of(at_bytes);
        let Some(all) = self.buckets.get_mut(bucket) else { return false };
        let Ok(place) = all.binary_search(&(at_bytes, number)) else { return false };
        all.remove(place);
        if all.is_empty() {
            self.filled[bucket / 64] &= !(1 << (bucket % 64));
        }
        true
    }

    /// The lowest that is not below an address.
    pub(super) fn from(&self, at_bytes: u64) -> Option<u32> {
        let bucket = bucket_of(at_bytes);
        let all = self.buckets.get(bucket)?;
        let place = all.partition_point(|one| one.0 < at_bytes);
        let found = all.get(place).or_else(|| self.buckets[self.filled_from(bucket + 1)?].first());
        found.map(|one| one.1)
    }

    /// The highest below an address.
    pub(super) fn below(&self, at_bytes: u64) -> Option<u32> {
        let bucket = bucket_of(at_bytes);
        let here = self.buckets.get(bucket);
        let place = here.map_or(0, |all| all.partition_point(|one| one.0 < at_bytes));
        let found = match (place, here) {
            (1.., Some(all)) => all.get(place - 1),
            _ => self.buckets[self.filled_below(bucket)?].last(),
        };
        found.map(|one| one.1)
    }

    fn filled_from(&self, bucket: usize) -> Option<usize> {
        let first = bucket / 64;
        let mut word = self.filled.get(first)? >> (bucket % 64) << (bucket % 64);
        let mut at = first;
        while word == 0 {
            at += 1;
            word = *self.filled.get(at)?;
        }
        Some(at * 64 + word.trailing_zeros() as usize)
    }

    fn filled_below(&self, bucket: usize) -> Option<usize> {
        let bucket = bucket.min(self.filled.len() * 64);
        let rest = bucket % 64;
        let part = if rest == 0 { 0 } else { self.filled[bucket / 64] & ((1 << rest) - 1) };
        if part != 0 {
            return Some(bucket / 64 * 64 + part.ilog2() as usize);
        }
        let at = self.filled[..bucket / 64].iter().rposition(|&word| word != 0)?;
        Some(at * 64 + self.filled[at].ilog2() as usize)
    }
}

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
    fn lowest(&self) -> Option<u32> {
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

/// Requests of a batch (`fifo_batch`).
pub const REQUESTS_PER_BATCH: u32 = 16;
/// How long a read may wait before a batch starts at it, in ns (`read_expire`, 500 ms).
pub const READ_EXPIRE_NS: u64 = 500_000_000;
/// How long a write may wait, in ns (`write_expire`, 5 s).
pub const WRITE_EXPIRE_NS: u64 = 5_000_000_000;
/// Batches of reads while writes wait (`writes_starved`).
pub const WRITES_STARVED_MAX: u32 = 2;

fn expire_ns(direction: Direction) -> u64 {
    match direction {
        Direction::Read => READ_EXPIRE_NS,
        Direction::Write => WRITE_EXPIRE_NS,
    }
}

/// The state of the choice.
#[derive(Clone, Debug)]
pub(super) struct Elevator {
    scheduler: Scheduler,
    /// Direction of the running batch.
    direction: Direction,
    /// Where the last request of each direction ended.
    reached_bytes: [u64; 2],
    /// Requests sent of the running batch.
    sent: u32,
    /// Times that waiting writes were passed over.
    starved: u32,
}

impl Elevator {
    pub(super) fn new(scheduler: Scheduler) -> Self {
        let (direction, sent) = (Direction::Read, REQUESTS_PER_BATCH);
        Self { scheduler, direction, reached_bytes: [0; 2], sent, starved: 0 }
    }

    /// The request to send next; `None` when none waits.
    pub(super) fn choose(
        &mut self,
        now_ns: u64,
        slots: &Slots,
        waiting: &[Waiting; 2],
    ) -> Option<u32> {
        let chosen = match self.scheduler {
            Scheduler::None => oldest_of_all(slots, waiting),
            Scheduler::Deadline => self.by_deadline(now_ns, slots, waiting),
        }?;
        let slot = slots.get(chosen);
        self.reached_bytes[slot.direction as usize] = slot.end_bytes();
        Some(chosen)
    }

    fn by_deadline(&mut self, now_ns: u64, slots: &Slots, waiting: &[Waiting; 2]) -> Option<u32> {
        if self.sent < REQUESTS_PER_BATCH
            && let Some(next) = self.above(self.direction, waiting)
        {
            self.sent += 1;
            return Some(next);
        }
        let direction = self.next_direction(waiting)?;
        let queue = &waiting[direction as usize];
        let oldest = queue.oldest()?;
        let is_expired = slots.get(oldest).came_ns + expire_ns(direction) <= now_ns;
        // The end of the other direction's batch does not give where the head is.
        let goes_on =
            if direction == self.direction { self.above(direction, waiting) } else { None };
        (self.direction, self.sent) = (direction, 1);
        if is_expired { Some(oldest) } else { goes_on.or_else(|| queue.lowest()) }
    }

    fn above(&self, direction: Direction, waiting: &[Waiting; 2]) -> Option<u32> {
        waiting[direction as usize].from(self.reached_bytes[direction as usize])
    }

    fn next_direction(&mut self, waiting: &[Waiting; 2]) -> Option<Direction> {
        let waits = |direction: Direction| !waiting[direction as usize].is_empty();
        if waits(Direction::Read) {
            if !waits(Direction::Write) {
                return Some(Direction::Read);
            }
            self.starved += 1;
            if self.starved <= WRITES_STARVED_MAX {
                return Some(Direction::Read);
            }
        }
        if !waits(Direction::Write) {
            return None;
        }
        self.starved = 0;
        Some(Direction::Write)
    }
}

fn oldest_of_all(slots: &Slots, waiting: &[Waiting; 2]) -> Option<u32> {
    let oldest = waiting.iter().filter_map(Waiting::oldest);
    oldest.min_by_key(|&number| slots.get(number).sequence)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use iostrata_stats::Random;

    use super::*;

    #[test]
    fn it_is_an_ordered_set() {
        let (mut random, mut found, mut wanted) =
            (Random::new(4), ByAddress::default(), BTreeSet::new());
        for number in 0..20_000 {
            let at_bytes = random.below(1 << 32);
            if number % 3 < 2 {
                found.insert(at_bytes, number);
                wanted.insert((at_bytes, number));
            } else if let Some(&(at_bytes, number)) = wanted.range((at_bytes, 0)..).next() {
                assert!(found.remove(at_bytes, number) && !found.remove(at_bytes, number));
                wanted.remove(&(at_bytes, number));
            }
            let at_bytes = random.below(1 << 33);
            let above = wanted.range((at_bytes, 0)..).next().map(|one| one.1);
            let below = wanted.range(..(at_bytes, 0)).next_back().map(|one| one.1);
            assert_eq!((found.from(at_bytes), found.below(at_bytes)), (above, below));
        }
    }
}
