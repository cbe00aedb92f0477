//! Who may put a request into the queue, and who sleeps until there is room.
//!
//! Invariant: the kernel of 2009 holds at most one and a half times `nr_requests` per direction,
//! today's at most `nr_requests` in all.
//! Source: Linux 2.6.18 block/ll_rw_blk.c (`get_request`, `get_request_wait`, `__freed_request`,
//! `ioc_batching`, `blk_queue_congestion_threshold`); Documentation/block/queue-sysfs. Today's
//! kernel: one set of tags for both directions, first come, first served; the restriction of
//! asynchronous requests to a part of them (`async_depth`) is left out.

use std::collections::VecDeque;

use iostrata_run::KernelThen;

use super::Direction;

/// Requests that one who was woken may put in beyond the limit (`BLK_BATCH_REQ`).
pub const BATCH_REQUESTS: u32 = 32;
/// How long it may do so (`BLK_BATCH_TIME`, a fiftieth of a second), in ns.
pub const BATCH_NS: u64 = 20_000_000;
/// Most submitters of a queue.
const SUBMITTERS_MAX: usize = 8;

/// Someone who submits: a thread of the kernel or of a program, numbered from 0 to 7.
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

/// The bound on requests and those who wait for it.
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
                    // Whoever fills the queue may finish a batch; others are blocked.
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
