//! A drive that behaves as a probe measured a device.
//!
//! Method: one server, in order of arrival, whose speed depends on how many requests are in flight:
//! with `n` of them the one in front takes `1 / rate(n)`. So a closed loop of depth `n` sees the
//! measured rate, and by Little's law the measured mean latency.
//! It knows no places: sequential requests are as fast as random ones, and it does not tell reads
//! that hit a cache. What the file system and the kernel cost the probe is inside its figures.

mod curve;
mod measured;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

pub use measured::MeasuredDisk;

use super::{Command, Done, Drive, DriveFacts, Request};
use crate::random::Random;

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
pub struct Table {
    measured: MeasuredDisk,
    facts: DriveFacts,
    flush_ns_min: u64,
    now_ns: u64,
    waiting: VecDeque<(u64, Request)>,
    in_flight: VecDeque<(u64, Request)>,
    front: Option<Front>,
    has_work: bool,
    /// Flushes that are over but not for long enough.
    late: Vec<Done>,
    done: VecDeque<Done>,
    random: Random,
}

impl Table {
    /// The device that was measured, with a capacity of its own.
    pub fn new(measured: MeasuredDisk, capacity_bytes: u64, seed: u64) -> Self {
        Self {
            facts: DriveFacts {
                capacity_bytes,
                queue_depth: QUEUE_DEPTH,
                volatile_bytes: measured.volatile_bytes(),
                is_rotational: false,
            },
            measured,
            flush_ns_min: 0,
            now_ns: 0,
            waiting: VecDeque::new(),
            in_flight: VecDeque::new(),
            front: None,
            has_work: false,
            late: Vec::new(),
            done: VecDeque::new(),
            random: Random::new(seed),
        }
    }

    /// The same with so many commands at a time.
    ///
    /// # Panics
    /// With 0: not a drive.
    pub fn with_queue_depth(mut self, queue_depth: u32) -> Self {
        assert!(queue_depth > 0, "a drive without a queue");
        self.facts.queue_depth = queue_depth;
        self
    }

    /// The same with flushes that take at least so long.
    pub fn with_flush_ns_min(self, flush_ns_min: u64) -> Self {
        Self { flush_ns_min, ..self }
    }

    fn depth(&self) -> u32 {
        self.in_flight.len() as u32
    }

    fn whole_ns(&self, request: &Request) -> f64 {
        match request.command {
            Command::Flush => self.measured.flush_ns(self.has_work, self.depth()),
            command => self.measured.each_ns(command, request.bytes, self.depth()),
        }
    }

    /// Takes in what fits into the queue, and lets the front go on at the speed of the new depth.
    fn settle(&mut self) {
        while self.depth() < self.facts.queue_depth
            && let Some(waiting) = self.waiting.pop_front()
        {
            self.in_flight.push_back(waiting);
        }
        let Some((_, request)) = self.in_flight.front().copied() else { return };
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

    fn end_front(&mut self) {
        let Some((came_ns, request)) = self.in_flight.pop_front() else { return };
        self.front = None;
        match request.command {
            Command::Write => self.has_work = true,
            Command::Flush => self.has_work = false,
            Command::Read | Command::WriteThrough => {}
        }
        let at_ns = self.now_ns;
        let least_ns = came_ns + self.flush_ns_min;
        if request.command == Command::Flush && least_ns > at_ns {
            self.late.push(Done { id: request.id, at_ns: least_ns });
        } else {
            self.done.push_back(Done { id: request.id, at_ns });
        }
        self.settle();
    }

    /// The late flush that is over first.
    fn next_late(&self) -> Option<usize> {
        (0..self.late.len()).min_by_key(|index| self.late[*index].at_ns)
    }

    fn run_until(&mut self, now_ns: u64) {
        assert!(now_ns >= self.now_ns, "time goes back from {} to {now_ns} ns", self.now_ns);
        loop {
            let front_ns = self.front_done_ns().filter(|at_ns| *at_ns <= now_ns);
            let late = self.next_late().filter(|index| self.late[*index].at_ns <= now_ns);
            match (front_ns, late) {
                (front_ns, Some(index))
                    if front_ns.is_none_or(|at_ns| self.late[index].at_ns <= at_ns) =>
                {
                    let late = self.late.swap_remove(index);
                    self.done.push_back(late);
                }
                (Some(at_ns), _) => {
                    self.now_ns = at_ns.max(self.now_ns);
                    self.end_front();
                }
                (None, _) => break,
            }
        }
        self.now_ns = now_ns;
    }
}

impl Drive for Table {
    fn facts(&self) -> DriveFacts {
        self.facts
    }

    fn submit(&mut self, now_ns: u64, request: Request) {
        let end = request.at_bytes + u64::from(request.bytes);
        let capacity = self.facts.capacity_bytes;
        assert!(end <= capacity, "a request to byte {end} of a drive of {capacity} bytes");
        self.run_until(now_ns);
        self.waiting.push_back((now_ns, request));
        self.settle();
    }

    fn next_event_ns(&self) -> Option<u64> {
        if let Some(done) = self.done.front() {
            return Some(done.at_ns);
        }
        let late_ns = self.next_late().map(|index| self.late[index].at_ns);
        [self.front_done_ns(), late_ns].into_iter().flatten().min()
    }

    fn advance(&mut self, now_ns: u64, done: &mut Vec<Done>) {
        self.run_until(now_ns);
        done.extend(self.done.drain(..));
    }
}
