//! The queue itself: bios come in, become requests or parts of them, and go to the drive.

use iostrata_run::KernelThen;

use super::Direction;
use super::elevator::Elevator;
use super::kernel::{Scheduler, requests_taken};
use super::limit::{Limit, Submitter};
use super::slots::{NONE, Slot, Slots};
use super::waiting::Waiting;
use crate::drive::{Command, Done, Drive, DriveFacts, Request};
use crate::iostat::{DirectionCounters, QueueCounters};

/// Largest request that merging makes (`max_sectors_kb` of 512), in bytes.
const REQUEST_BYTES_MAX: u64 = 512 * 1024;

/// How the queue is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuePlan {
    /// Whose rules and bounds hold.
    pub kernel: KernelThen,
    /// The scheduler.
    pub scheduler: Scheduler,
    /// Requests that it is asked to hold.
    pub nr_requests: u32,
}

/// What a submitter asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bio {
    /// Which way.
    pub direction: Direction,
    /// First byte.
    pub at_bytes: u64,
    /// How many bytes, more than 0.
    pub bytes: u32,
}

/// What became of a bio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offered {
    /// It is part of a request that waited already.
    Merged,
    /// It is a request.
    Queued,
    /// There was no room; the submitter sleeps and must offer it again when it is woken.
    Sleeps,
}

/// A request that is done; it covers every bio that was merged into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completed {
    /// Which way.
    pub direction: Direction,
    /// First byte.
    pub at_bytes: u64,
    /// How many bytes.
    pub bytes: u32,
    /// When, in ns.
    pub at_ns: u64,
}

/// A block queue above a drive.
pub struct BlockQueue {
    drive: Box<dyn Drive>,
    facts: DriveFacts,
    kernel: KernelThen,
    limit: Limit,
    elevator: Elevator,
    slots: Slots,
    waiting: [Waiting; 2],
    in_drive: u32,
    sequence: u64,
    counters: QueueCounters,
    done: Vec<Done>,
}

impl BlockQueue {
    /// An idle queue at the moment 0.
    pub fn new(plan: QueuePlan, drive: Box<dyn Drive>) -> Self {
        let facts = drive.facts();
        let requests =
            requests_taken(plan.kernel, plan.scheduler, facts.queue_depth, plan.nr_requests);
        Self {
            drive,
            facts,
            kernel: plan.kernel,
            limit: Limit::new(plan.kernel, requests),
            elevator: Elevator::new(plan.scheduler),
            slots: Slots::default(),
            waiting: [Waiting::new(), Waiting::new()],
            in_drive: 0,
            sequence: 0,
            counters: QueueCounters::default(),
            done: Vec::new(),
        }
    }

    /// What holds for the drive.
    pub fn facts(&self) -> DriveFacts {
        self.facts
    }

    /// Requests that the kernel took of what was asked for.
    pub fn nr_requests(&self) -> u32 {
        self.limit.requests()
    }

    /// Requests of a direction in the queue and in the drive.
    pub fn held(&self, direction: Direction) -> u32 {
        self.limit.held(direction)
    }

    /// Most requests that may ever be held: per direction in 2009, of both together today.
    pub fn held_max(&self) -> u64 {
        self.limit.held_max()
    }

    /// Whether background writers should hold back (2009: from seven eighths of `nr_requests` until
    /// thirteen sixteenths; never today).
    pub fn is_congested(&self, direction: Direction) -> bool {
        self.limit.is_congested(direction)
    }

    /// The last moment at which something came or happened.
    pub fn now_ns(&self) -> u64 {
        self.counters.at_ns
    }

    /// The counters at `now_ns`.
    pub fn counters(&mut self, now_ns: u64) -> QueueCounters {
        self.count_until(now_ns);
        self.counters
    }

    /// Takes a bio at `now_ns`. Everything due before must have been let happen by
    /// [`BlockQueue::advance`].
    ///
    /// # Panics
    /// When time goes back, the bio is empty or beyond the drive, or the submitter sleeps.
    pub fn offer(&mut self, now_ns: u64, bio: Bio, who: Submitter) -> Offered {
        assert!(bio.bytes > 0, "a bio without bytes");
        self.count_until(now_ns);
        if self.merge(bio) {
            return Offered::Merged;
        }
        if !self.limit.take(now_ns, bio.direction, who) {
            self.limit.sleep(bio.direction, who);
            return Offered::Sleeps;
        }
        self.sequence += 1;
        let number = self.slots.add(Slot {
            direction: bio.direction,
            at_bytes: bio.at_bytes,
            bytes: bio.bytes,
            came_ns: now_ns,
            sequence: self.sequence,
            older: NONE,
            younger: NONE,
        });
        self.waiting[bio.direction as usize].add(&mut self.slots, number);
        self.dispatch(now_ns);
        Offered::Queued
    }

    /// The next submitter that wakes up because there is room; it must offer its bio again.
    pub fn wake(&mut self, now_ns: u64) -> Option<Submitter> {
        self.limit.wake(now_ns)
    }

    /// The next moment at which something happens.
    pub fn next_event_ns(&self) -> Option<u64> {
        self.drive.next_event_ns()
    }

    /// Lets everything up to and including `now_ns` happen; appends what was completed, earliest
    /// first.
    pub fn advance(&mut self, now_ns: u64, completed: &mut Vec<Completed>) {
        while let Some(at_ns) = self.drive.next_event_ns().filter(|&at_ns| at_ns <= now_ns) {
            // A submission may have made something due that lies before the last one counted.
            let at_ns = at_ns.max(self.counters.at_ns);
            let mut done = std::mem::take(&mut self.done);
            self.drive.advance(at_ns, &mut done);
            self.count_until(at_ns);
            for one in done.drain(..) {
                completed.push(self.complete(at_ns, one));
            }
            self.done = done;
            self.dispatch(at_ns);
        }
    }

    fn complete(&mut self, now_ns: u64, done: Done) -> Completed {
        let slot = self.slots.remove(done.id as u32);
        self.in_drive -= 1;
        self.limit.free(slot.direction);
        let counters = self.direction_counters(slot.direction);
        counters.ios += 1;
        counters.bytes += u64::from(slot.bytes);
        counters.wait_ns += now_ns - slot.came_ns;
        let Slot { direction, at_bytes, bytes, .. } = slot;
        Completed { direction, at_bytes, bytes, at_ns: now_ns }
    }

    fn dispatch(&mut self, now_ns: u64) {
        while self.in_drive < self.facts.queue_depth {
            let Some(number) = self.elevator.choose(now_ns, &self.slots, &self.waiting) else {
                return;
            };
            let slot = *self.slots.get(number);
            self.waiting[slot.direction as usize].take(&mut self.slots, number);
            self.in_drive += 1;
            let command = match slot.direction {
                Direction::Read => Command::Read,
                Direction::Write => Command::Write,
            };
            let Slot { at_bytes, bytes, .. } = slot;
            self.drive.submit(now_ns, Request { id: u64::from(number), command, at_bytes, bytes });
        }
    }

    /// Makes the bio part of a waiting neighbour, and that one part of the next if they now touch.
    fn merge(&mut self, bio: Bio) -> bool {
        let side = bio.direction as usize;
        let end_bytes = bio.at_bytes + u64::from(bio.bytes);
        let fits = |slot: &Slot| u64::from(slot.bytes + bio.bytes) <= REQUEST_BYTES_MAX;
        let slots = &self.slots;
        let before = self.waiting[side].below(bio.at_bytes).filter(|&number| {
            slots.get(number).end_bytes() == bio.at_bytes && fits(slots.get(number))
        });
        if let Some(number) = before {
            self.slots.get_mut(number).bytes += bio.bytes;
            if let Some(next) = self.waiting[side].from(end_bytes) {
                self.join(number, next);
            }
        } else {
            let after = self.waiting[side].from(end_bytes).filter(|&number| {
                slots.get(number).at_bytes == end_bytes && fits(slots.get(number))
            });
            let Some(number) = after else { return false };
            self.slots.get_mut(number).bytes += bio.bytes;
            self.waiting[side].lower(&mut self.slots, number, bio.at_bytes);
            if let Some(previous) = self.waiting[side].below(bio.at_bytes) {
                self.join(previous, number);
            }
        }
        self.direction_counters(bio.direction).merges += 1;
        true
    }

    /// Makes two waiting requests one, when the second starts where the first ends; it has the age
    /// of the older.
    fn join(&mut self, first: u32, second: u32) {
        let (low, high) = (*self.slots.get(first), *self.slots.get(second));
        let is_large = u64::from(low.bytes) + u64::from(high.bytes) > REQUEST_BYTES_MAX;
        if low.end_bytes() != high.at_bytes || is_large {
            return;
        }
        let waiting = &mut self.waiting[low.direction as usize];
        if high.sequence < low.sequence {
            waiting.replace_older(&mut self.slots, second, first);
        } else {
            waiting.take(&mut self.slots, second);
        }
        let slot = self.slots.get_mut(first);
        slot.bytes += high.bytes;
        slot.came_ns = low.came_ns.min(high.came_ns);
        self.slots.remove(second);
        self.limit.free(low.direction);
        // The kernel of 2009 did not count the joining of two requests as a merge.
        if self.kernel == KernelThen::Today {
            self.direction_counters(low.direction).merges += 1;
        }
    }

    fn direction_counters(&mut self, direction: Direction) -> &mut DirectionCounters {
        match direction {
            Direction::Read => &mut self.counters.read,
            Direction::Write => &mut self.counters.write,
        }
    }

    fn count_until(&mut self, now_ns: u64) {
        let since_ns = self.counters.at_ns;
        assert!(since_ns <= now_ns, "time went back from {since_ns} to {now_ns} ns");
        let held: u64 =
            Direction::ALL.map(|direction| u64::from(self.held(direction))).iter().sum();
        if held > 0 {
            self.counters.busy_ns += now_ns - since_ns;
            self.counters.depth_ns += u128::from(held) * u128::from(now_ns - since_ns);
        }
        self.counters.at_ns = now_ns;
    }
}
