//! Which waiting request goes to the drive next.
//!
//! Source: Linux Documentation/block/deadline-iosched.txt: requests are sorted by address per
//! direction and sent in batches of one direction; deadlines are only looked at between batches;
//! reads go first, until writes were passed over `writes_starved` times. A batch goes on where the
//! last one of its direction ended, starts at the oldest request when that one's deadline has
//! passed, and at the lowest address when nothing lies above.
//! Invariant: it only chooses; it takes nothing out.

use super::Direction;
use super::kernel::Scheduler;
use super::slots::Slots;
use super::waiting::Waiting;

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
        // The end of the other direction's batch says nothing about where the head is.
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
