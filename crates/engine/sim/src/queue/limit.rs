//! What a kernel makes of a requested queue size: how many requests it takes, who may put one in,
//! and who sleeps until there is room.
//!
//! Invariant: the kernel of 2009 holds at most one and a half times `nr_requests` per direction,
//! today's at most `nr_requests` in all.
//! Sources: Linux 2.6.18 block/ll_rw_blk.c (`queue_requests_store`: at least 4, no upper bound, one
//! limit for reads and one for writes; `get_request`, `get_request_wait`, `__freed_request`,
//! `ioc_batching`, `blk_queue_congestion_threshold`); Documentation/block/queue-sysfs; Linux 5 and
//! 6 block/blk-mq.c (`blk_mq_update_nr_requests`: without a scheduler no more than the device's
//! tags, with one no more than `MAX_SCHED_RQ`). Today's kernel has one set of tags for both
//! directions, first come, first served; the restriction of asynchronous requests to a part of them
//! (`async_depth`) is left out.

use std::collections::VecDeque;

use iostrata_run::KernelThen;

use super::Direction;

/// The order in which waiting requests go to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scheduler {
    /// As they came; `noop` in 2009. Neighbours are still merged.
    None,
    /// By address, with a bound on how long one may wait; `mq-deadline` today.
    Deadline,
}

/// Fewest requests that any kernel takes (`BLKDEV_MIN_RQ`).
pub const REQUESTS_MIN: u32 = 4;
/// Requests of a queue by default (`BLKDEV_MAX_RQ`).
pub const REQUESTS_DEFAULT: u32 = 128;
/// Most requests of a scheduler today: 16 times the default (`MAX_SCHED_RQ`); read back as 2,048 on
/// a virtio disk when 100,000 were set.
pub const SCHEDULED_REQUESTS_MAX: u32 = 2048;

/// What the kernel takes when `asked` requests are set, on a device with so many `tags`.
pub fn requests_taken(kernel: KernelThen, scheduler: Scheduler, tags: u32, asked: u32) -> u32 {
    let most = match (kernel, scheduler) {
        (KernelThen::Y2009, _) => u32::MAX,
        (KernelThen::Today, Scheduler::None) => tags.max(REQUESTS_MIN),
        (KernelThen::Today, Scheduler::Deadline) => SCHEDULED_REQUESTS_MAX,
    };
    asked.clamp(REQUESTS_MIN, most)
}

/// Requests that a woken submitter may put in beyond the limit (`BLK_BATCH_REQ`).
pub const BATCH_REQUESTS: u32 = 32;
/// How long it may do so (`BLK_BATCH_TIME`, a fiftieth of a second), in ns.
pub const BATCH_NS: u64 = 20_000_000;
/// Most submitters of a queue.
const SUBMITTERS_MAX: usize = 8;

/// A submitter: a thread of the kernel or of a program, numbered from 0 to 7.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Submitter(pub u8);

#[derive(Clone, Copy, Debug, Default)]
struct Batch {
    left: u32,
    since_ns: u64,
}

impl Batch {
    fn is_running(&self, now_ns: u64) -> bool {
        self.left == BATCH_REQUESTS || (self.left > 0 && now_ns < self.since_ns + BATCH_NS)
    }

    fn start(&mut self, now_ns: u64) {
        if !self.is_running(now_ns) {
            *self = Self { left: BATCH_REQUESTS, since_ns: now_ns };
        }
    }
}

#[derive(Clone, Debug, Default)]
struct Side {
    held: u32,
    is_full: bool,
    is_congested: bool,
    sleeping: VecDeque<Submitter>,
}

/// The bound on requests and the waiters for it.
#[derive(Clone, Debug)]
pub(super) struct Limit {
    kernel: KernelThen,
    requests: u32,
    sides: [Side; 2],
    batches: [Batch; SUBMITTERS_MAX],
}

impl Limit {
    pub(super) fn new(kernel: KernelThen, requests: u32) -> Self {
        let sides = [Side::default(), Side::default()];
        Self { kernel, requests, sides, batches: [Batch::default(); SUBMITTERS_MAX] }
    }

    pub(super) fn requests(&self) -> u32 {
        self.requests
    }

    pub(super) fn held(&self, direction: Direction) -> u32 {
        self.sides[direction as usize].held
    }

    /// Most requests of a direction at any time; of both together for today's kernel.
    pub(super) fn held_max(&self) -> u64 {
        match self.kernel {
            KernelThen::Y2009 => 3 * u64::from(self.requests) / 2,
            KernelThen::Today => u64::from(self.requests),
        }
    }

    /// Whether background writers of 2009 should hold back. Today's kernel has no such signal.
    pub(super) fn is_congested(&self, direction: Direction) -> bool {
        self.sides[direction as usize].is_congested
    }

    /// Counts a request in, when there is room for this submitter.
    pub(super) fn take(&mut self, now_ns: u64, direction: Direction, who: Submitter) -> bool {
        match self.kernel {
            KernelThen::Y2009 => self.take_2009(now_ns, direction, who),
            KernelThen::Today => {
                let is_room = self.sides.iter().map(|side| side.held).sum::<u32>() < self.requests;
                self.sides[direction as usize].held += u32::from(is_room);
                is_room
            }
        }
    }

    fn take_2009(&mut self, now_ns: u64, direction: Direction, who: Submitter) -> bool {
        let held_max = self.held_max();
        let congested_at = self.requests - self.requests / 8 + 1;
        let side = &mut self.sides[direction as usize];
        let batch = &mut self.batches[usize::from(who.0)];
        if side.held + 1 >= congested_at.min(self.requests) {
            if side.held + 1 >= self.requests {
                if !side.is_full {
                    // The task that fills the queue may finish a batch; others are blocked.
                    batch.start(now_ns);
                    side.is_full = true;
                } else if !batch.is_running(now_ns) {
                    return false;
                }
            }
            side.is_congested = true;
        }
        if u64::from(side.held) >= held_max {
            return false;
        }
        side.held += 1;
        if batch.is_running(now_ns) {
            batch.left -= 1;
        }
        true
    }

    /// Puts a submitter that found no room to sleep.
    pub(super) fn sleep(&mut self, direction: Direction, who: Submitter) {
        let sleeping = &mut self.sides[direction as usize].sleeping;
        assert!(!sleeping.contains(&who), "a submitter that sleeps can't submit");
        sleeping.push_back(who);
    }

    /// Counts a request out.
    pub(super) fn free(&mut self, direction: Direction) {
        let side = &mut self.sides[direction as usize];
        side.held -= 1;
        let off = self.requests - self.requests / 8 - self.requests / 16;
        if side.held < off.saturating_sub(1).max(1) {
            side.is_congested = false;
        }
        if side.held < self.requests {
            side.is_full = false;
        }
    }

    /// The next submitter that wakes, since there is room for it.
    pub(super) fn wake(&mut self, now_ns: u64) -> Option<Submitter> {
        let all = self.sides.iter().map(|side| side.held).sum::<u32>();
        for direction in Direction::ALL {
            let side = &mut self.sides[direction as usize];
            let held = match self.kernel {
                KernelThen::Y2009 => side.held,
                KernelThen::Today => all,
            };
            if held < self.requests
                && let Some(who) = side.sleeping.pop_front()
            {
                if self.kernel == KernelThen::Y2009 {
                    self.batches[usize::from(who.0)].start(now_ns);
                }
                return Some(who);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_todays_kernel_has_an_upper_bound() {
        let taken = |kernel, scheduler, asked| requests_taken(kernel, scheduler, 64, asked);
        assert_eq!(taken(KernelThen::Y2009, Scheduler::Deadline, 100_000), 100_000);
        assert_eq!(taken(KernelThen::Y2009, Scheduler::None, 100_000), 100_000);
        assert_eq!(taken(KernelThen::Today, Scheduler::Deadline, 100_000), 2_048);
        assert_eq!(taken(KernelThen::Today, Scheduler::Deadline, 1_024), 1_024);
        assert_eq!(taken(KernelThen::Today, Scheduler::None, 100_000), 64);
        assert_eq!(taken(KernelThen::Today, Scheduler::None, 32), 32);
        assert_eq!(requests_taken(KernelThen::Today, Scheduler::None, 1, 128), REQUESTS_MIN);
        assert_eq!(taken(KernelThen::Y2009, Scheduler::None, 1), REQUESTS_MIN);
    }
}
