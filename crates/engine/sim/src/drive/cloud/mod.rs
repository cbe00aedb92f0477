//! A cloud volume that lives on burst credits: Amazon EBS General Purpose SSD (gp2).
//!
//! Purpose: the cliff: fast while there are credits, its baseline when they are spent.
//! Method: two gates that every request passes in order of arrival, one for I/Os and one for bytes,
//! then the way to the store and back, which keeps nobody waiting. The first gate opens at most as
//! often as the burst rate allows and takes a credit for every I/O; credits come at the baseline
//! rate, so without a store of them the baseline is what is left.
//! Invariants: credits are never negative and never above the bucket; a done write is on several
//! machines, so a flush has nothing to do and a power cut takes nothing.
//! Neighbours on the same hardware, limits of the instance and the lazy loading of snapshots are
//! not modelled.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use super::flash::Agenda;
use super::{Command, Done, Drive, DriveFacts, Request};
use crate::random::Random;

const GIB: f64 = (1_u64 << 30) as f64;
const MIB: f64 = (1_u64 << 20) as f64;

/// What a volume promises. Rates per second.
#[derive(Clone, Debug, PartialEq)]
pub struct CloudParameters {
    /// Commands that it takes at a time.
    pub queue_depth: u32,
    /// Baseline of I/Os per GiB.
    pub iops_per_gib: f64,
    /// Least baseline.
    pub baseline_iops_min: f64,
    /// Largest baseline.
    pub baseline_iops_max: f64,
    /// Rate while there are credits.
    pub burst_iops: f64,
    /// I/Os that the bucket holds.
    pub credits_max: f64,
    /// Bytes that count as one I/O at most.
    pub io_bytes_max: u32,
    /// Smallest request that merges with the one before it when it follows it in place.
    pub merge_bytes_min: u32,
    /// Bytes per second of a volume of at most [`Self::small_bytes_max`].
    pub small_bytes_per_s: f64,
    /// Largest volume that counts as small.
    pub small_bytes_max: u64,
    /// Bytes per second of a larger one.
    pub bytes_per_s: f64,
    /// The way to the store and back for a read, in the mean.
    pub read_ns: f64,
    /// The same for a write.
    pub write_ns: f64,
    /// Standard deviation of the logarithm of both.
    pub sigma: f64,
    /// A flush.
    pub flush_ns: u64,
}

impl CloudParameters {
    /// gp2; `docs/disks.md` has the sources and the reasoning.
    pub fn gp2() -> Self {
        Self {
            queue_depth: 128,
            iops_per_gib: 3.0,
            baseline_iops_min: 100.0,
            baseline_iops_max: 16_000.0,
            burst_iops: 3_000.0,
            credits_max: 5.4e6,
            io_bytes_max: 256 << 10,
            merge_bytes_min: 32 << 10,
            small_bytes_per_s: 128.0 * MIB,
            small_bytes_max: 170 << 30,
            bytes_per_s: 250.0 * MIB,
            read_ns: 600_000.0,
            write_ns: 800_000.0,
            sigma: 0.2,
            flush_ns: 10_000,
        }
    }

    /// I/Os per second that a volume of this size may do for ever.
    pub fn baseline_iops(&self, capacity_bytes: u64) -> f64 {
        let of_size = self.iops_per_gib * capacity_bytes as f64 / GIB;
        of_size.clamp(self.baseline_iops_min, self.baseline_iops_max)
    }

    fn link_bytes_per_s(&self, capacity_bytes: u64) -> f64 {
        if capacity_bytes <= self.small_bytes_max {
            self.small_bytes_per_s
        } else {
            self.bytes_per_s
        }
    }
}

/// A volume.
pub struct Cloud {
    parameters: CloudParameters,
    facts: DriveFacts,
    baseline_iops: f64,
    link_bytes_per_s: f64,
    now_ns: u64,
    credits: f64,
    /// When the credits were counted.
    counted_ns: u64,
    ios_free_ns: u64,
    bytes_free_ns: u64,
    /// First byte after the last request, what it did, and bytes left of the I/O it counted as.
    run_end: (u64, Command, u32),
    waiting: VecDeque<Request>,
    in_flight: u32,
    agenda: Agenda<u64>,
    done: VecDeque<Done>,
    random: Random,
}

impl Cloud {
    /// A volume with a full bucket.
    ///
    /// # Panics
    /// With a queue of 0: not a volume.
    pub fn new(parameters: CloudParameters, capacity_bytes: u64, seed: u64) -> Self {
        assert!(parameters.queue_depth > 0, "a volume without a queue");
        Self {
            facts: DriveFacts {
                capacity_bytes,
                queue_depth: parameters.queue_depth,
                volatile_bytes: 0,
                is_rotational: false,
            },
            baseline_iops: parameters.baseline_iops(capacity_bytes),
            link_bytes_per_s: parameters.link_bytes_per_s(capacity_bytes),
            now_ns: 0,
            credits: parameters.credits_max,
            counted_ns: 0,
            ios_free_ns: 0,
            bytes_free_ns: 0,
            run_end: (u64::MAX, Command::Flush, 0),
            waiting: VecDeque::new(),
            in_flight: 0,
            agenda: Agenda::new(),
            done: VecDeque::new(),
            random: Random::new(seed),
            parameters,
        }
    }

    /// The same volume with so many credits at the beginning, at most the full bucket.
    pub fn with_credits(self, credits: f64) -> Self {
        let credits = credits.clamp(0.0, self.parameters.credits_max);
        Self { credits, ..self }
    }

    /// I/Os that it may still do above its baseline, as of the last request.
    pub fn credits(&self) -> f64 {
        self.credits
    }

    fn admit(&mut self, request: Request) {
        self.in_flight += 1;
        if request.command == Command::Flush {
            self.agenda.note(self.now_ns + self.parameters.flush_ns, request.id);
            return;
        }
        let ios = self.ios_of(&request);
        let passed_ns = self.pass_ios(ios).max(self.pass_bytes(request.bytes));
        let way_ns = match request.command {
            Command::Read => self.parameters.read_ns,
            Command::Write | Command::WriteThrough | Command::Flush => self.parameters.write_ns,
        };
        let way_ns = way_ns * self.random.log_normal(self.parameters.sigma);
        self.agenda.note(passed_ns + way_ns as u64, request.id);
    }

    /// I/Os that a request counts as: 0 when it fits into the one that it continues.
    fn ios_of(&mut self, request: &Request) -> u32 {
        let most = self.parameters.io_bytes_max;
        let (end, command, room) = self.run_end;
        let continues = request.at_bytes == end
            && request.command == command
            && request.bytes >= self.parameters.merge_bytes_min;
        let room = if continues { room } else { 0 };
        let ios = request.bytes.max(1).saturating_sub(room).div_ceil(most);
        let room = room + ios * most - request.bytes.max(1);
        self.run_end = (request.at_bytes + u64::from(request.bytes), request.command, room);
        ios
    }

    /// When so many I/Os have passed their gate: not faster than the burst rate, and each pays a
    /// credit, which comes back at the baseline rate.
    fn pass_ios(&mut self, ios: u32) -> u64 {
        let ios = f64::from(ios);
        let mut turn_ns = self.ios_free_ns.max(self.now_ns);
        self.earn_until(turn_ns);
        if self.credits < ios {
            let wait_s = (ios - self.credits) / self.baseline_iops;
            turn_ns += (wait_s * 1e9).ceil() as u64;
            self.earn_until(turn_ns);
        }
        self.credits = (self.credits - ios).max(0.0);
        let rate = self.parameters.burst_iops.max(self.baseline_iops);
        self.ios_free_ns = turn_ns + (ios * 1e9 / rate) as u64;
        turn_ns
    }

    fn earn_until(&mut self, at_ns: u64) {
        let earned = (at_ns - self.counted_ns) as f64 * 1e-9 * self.baseline_iops;
        self.credits = (self.credits + earned).min(self.parameters.credits_max);
        self.counted_ns = at_ns;
    }

    /// When so many bytes have passed theirs: the last of them.
    fn pass_bytes(&mut self, bytes: u32) -> u64 {
        let takes_ns = (f64::from(bytes) * 1e9 / self.link_bytes_per_s) as u64;
        self.bytes_free_ns = self.bytes_free_ns.max(self.now_ns) + takes_ns;
        self.bytes_free_ns
    }

    fn run_until(&mut self, now_ns: u64) {
        assert!(now_ns >= self.now_ns, "time goes back from {} to {now_ns} ns", self.now_ns);
        while let Some((at_ns, id)) = self.agenda.due(now_ns) {
            self.now_ns = at_ns;
            self.in_flight -= 1;
            self.done.push_back(Done { id, at_ns });
            if let Some(request) = self.waiting.pop_front() {
                self.admit(request);
            }
        }
        self.now_ns = now_ns;
    }
}

impl Drive for Cloud {
    fn facts(&self) -> DriveFacts {
        self.facts
    }

    fn submit(&mut self, now_ns: u64, request: Request) {
        let end = request.at_bytes + u64::from(request.bytes);
        let capacity = self.facts.capacity_bytes;
        assert!(end <= capacity, "a request to byte {end} of a drive of {capacity} bytes");
        self.run_until(now_ns);
        if self.in_flight < self.parameters.queue_depth {
            self.admit(request);
        } else {
            self.waiting.push_back(request);
        }
    }

    fn next_event_ns(&self) -> Option<u64> {
        let done_ns = self.done.front().map(|done| done.at_ns);
        done_ns.or_else(|| self.agenda.next_ns())
    }

    fn advance(&mut self, now_ns: u64, done: &mut Vec<Done>) {
        self.run_until(now_ns);
        done.extend(self.done.drain(..));
    }
}
