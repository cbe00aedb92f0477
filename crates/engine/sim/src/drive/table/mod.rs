//! A drive that behaves as a probe measured a device.
//!
//! Method: one server, in order of arrival, whose speed depends on how many requests are in flight:
//! with `n` of them the one in front takes `1 / rate(n)`. So a closed loop of depth `n` sees the
//! measured rate, and by Little's law the measured mean latency.
//! It knows no places: sequential requests are as fast as random ones, and it does not tell reads
//! that hit a cache. What the file system and the kernel cost the probe is inside its figures.

mod measured;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

pub use measured::MeasuredDisk;

use super::{Agenda, Command, Device, Done, DriveFacts, Queued, Request};
use iostrata_stats::Random;

/// Commands that a measured device is given at a time, unless the disk says otherwise.
const QUEUE_DEPTH: u32 = 1024;

/// The request in front.
#[derive(Clone, Copy, Debug)]
struct Front {
    /// Share of its work that is left, with the luck of this request in it.
    left: f64,
    /// What all of its work would take at the present depth, in ns.
    whole_ns: f64,
    /// When `left` was right.
    since_ns: u64,
}

/// A measured device in virtual time.
pub type MeasuredDrive = Queued<MeasuredDevice>;

/// A measured device behind its queue.
pub struct MeasuredDevice {
    measured: MeasuredDisk,
    facts: DriveFacts,
    flush_ns_min: u64,
    now_ns: u64,
    /// The requests that it holds, each with the moment at which it came.
    held: VecDeque<(u64, Request)>,
    front: Option<Front>,
    has_work: bool,
    /// Flushes that are over but not for long enough.
    late: Agenda<u64>,
    random: Random,
}

impl MeasuredDrive {
    /// The device that was measured, with a capacity of its own.
    pub fn new(measured: MeasuredDisk, capacity_bytes: u64, seed: u64) -> Self {
        Self::over(MeasuredDevice {
            facts: DriveFacts {
                capacity_bytes,
                queue_depth: QUEUE_DEPTH,
                volatile_bytes: measured.volatile_bytes(),
                is_rotational: false,
            },
            measured,
            flush_ns_min: 0,
            now_ns: 0,
            held: VecDeque::new(),
            front: None,
            has_work: false,
            late: Agenda::new(),
            random: Random::new(seed),
        })
    }

    /// The same with so many commands at a time.
    ///
    /// # Panics
    /// With 0: not a drive.
    #[must_use]
    pub fn with_queue_depth(self, queue_depth: u32) -> Self {
        self.altered(|mut device| {
            device.facts.queue_depth = queue_depth;
            device
        })
    }

    /// The same with flushes that take at least so long.
    #[must_use]
    pub fn with_flush_ns_min(self, flush_ns_min: u64) -> Self {
        self.altered(|device| MeasuredDevice { flush_ns_min, ..device })
    }
}

impl MeasuredDevice {
    fn depth(&self) -> u32 {
        self.held.len() as u32
    }

    fn whole_ns(&self, request: &Request) -> f64 {
        match request.command {
            Command::Flush => self.measured.flush_ns(self.has_work, self.depth()),
            command => self.measured.each_ns(command, request.bytes, self.depth()),
        }
    }

    /// Lets the front go on at the speed of the depth that there is now.
    fn settle(&mut self) {
        let Some((_, request)) = self.held.front().copied() else { return };
        let whole_ns = self.whole_ns(&request);
        let left = match self.front {
            Some(front) => front.left - self.passed(&front),
            None => self.random.log_normal(self.measured.sigma()),
        };
        self.front = Some(Front { left: left.max(0.0), whole_ns, since_ns: self.now_ns });
    }

    /// Share of the front's work that was done since its last account.
    fn passed(&self, front: &Front) -> f64 {
        if front.whole_ns <= 0.0 {
            return front.left;
        }
        (self.now_ns - front.since_ns) as f64 / front.whole_ns
    }

    fn front_done_ns(&self) -> Option<u64> {
        let front = self.front?;
        Some(front.since_ns + (front.left * front.whole_ns).round() as u64)
    }

    fn end_front(&mut self, done: &mut VecDeque<Done>) {
        let Some((came_ns, request)) = self.held.pop_front() else { return };
        self.front = None;
        match request.command {
            Command::Write => self.has_work = true,
            Command::Flush => self.has_work = false,
            Command::Read | Command::WriteThrough => {}
        }
        let (id, at_ns) = (request.id, self.now_ns);
        let least_ns = came_ns + self.flush_ns_min;
        if request.command == Command::Flush && least_ns > at_ns {
            self.late.note(least_ns, id);
        } else {
            done.push_back(Done { id, at_ns });
        }
        self.settle();
    }
}

impl Device for MeasuredDevice {
    fn facts(&self) -> DriveFacts {
        self.facts
    }

    fn admit(&mut self, now_ns: u64, request: Request, came_ns: u64) {
        self.now_ns = now_ns;
        self.held.push_back((came_ns, request));
        self.settle();
    }

    fn next_event_ns(&self) -> Option<u64> {
        [self.front_done_ns(), self.late.next_ns()].into_iter().flatten().min()
    }

    fn step(&mut self, now_ns: u64, done: &mut VecDeque<Done>) {
        if let Some((at_ns, id)) = self.late.due(now_ns) {
            done.push_back(Done { id, at_ns });
        } else {
            self.now_ns = now_ns;
            self.end_front(done);
        }
    }
}
