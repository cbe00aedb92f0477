//! A cloud volume that lives on burst credits: Amazon EBS General Purpose SSD (gp2).
//!
//! Purpose: the cliff: fast while there are credits, its baseline when they are spent.
//! Method: two gates that every request passes in order of arrival, one for I/Os and one for bytes,
//! then the way to the store and back, which delays no other request. The first gate opens at most
//! as often as the burst rate allows and takes a credit for every I/O; credits come at the baseline
//! rate, so without a store of them the baseline is what is left.
//! Invariants: credits are never negative and never above the bucket; a done write is on several
//! machines, so a flush has nothing to do and a power cut takes nothing.
//! Neighbours on the same hardware, limits of the instance and the lazy loading of snapshots are
//! not modelled.

use std::collections::VecDeque;

use iostrata_stats::Random;

use super::{Agenda, Command, Device, DriveCompletion, DriveFacts, QueuedDevice, Request};

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

/// A volume with its queue.
pub type Cloud = QueuedDevice<Volume>;

/// A volume.
pub struct Volume {
    parameters: CloudParameters,
    facts: DriveFacts,
    baseline_iops: f64,
    link_bytes_per_s: f64,
    credits: f64,
    /// When the credits were counted.
    counted_ns: u64,
    ios_free_ns: u64,
    bytes_free_ns: u64,
    /// First byte after the last request, what it did, and bytes left of the I/O it counted as.
    run_end: (u64, Command, u32),
    agenda: Agenda<u64>,
    random: Random,
}

impl Cloud {
    /// A volume with a full bucket.
    ///
    /// # Panics
    /// With a queue or a capacity of 0: not a volume.
    pub fn new(parameters: CloudParameters, capacity_bytes: u64, seed: u64) -> Self {
        Self::over(Volume {
            facts: DriveFacts {
                capacity_bytes,
                queue_depth: parameters.queue_depth,
                volatile_bytes: 0,
                is_rotational: false,
            },
            baseline_iops: parameters.baseline_iops(capacity_bytes),
            link_bytes_per_s: parameters.link_bytes_per_s(capacity_bytes),
            credits: parameters.credits_max,
            counted_ns: 0,
            ios_free_ns: 0,
            bytes_free_ns: 0,
            run_end: (u64::MAX, Command::Flush, 0),
            agenda: Agenda::new(),
            random: Random::new(seed),
            parameters,
        })
    }

    /// The same volume with so many credits at the beginning, at most the full bucket.
    #[must_use]
    pub fn with_credits(self, credits: f64) -> Self {
        self.altered(|volume| {
            let credits = credits.clamp(0.0, volume.parameters.credits_max);
            Volume { credits, ..volume }
        })
    }

    /// I/Os that it may still do above its baseline, as of the last request.
    pub fn credits(&self) -> f64 {
        self.device().credits
    }
}

impl Volume {
    /// I/Os that a request counts as: 0 when it fits into the I/O that it continues.
    fn ios_of(&mut self, request: &Request) -> u32 {
        let most = self.parameters.io_bytes_max;
        let (end, command, room) = self.run_end;
        let continues = request.at_bytes == end
            && request.command == command
            && request.bytes >= self.parameters.merge_bytes_min;
        let room = if continues { room } else { 0 };
        let ios = request.bytes.max(1).saturating_sub(room).div_ceil(most);
        let room = room + ios * most - request.bytes.max(1);
        self.run_end = (request.end(), request.command, room);
        ios
    }

    /// When so many I/Os have passed their gate: not faster than the burst rate, and each pays a
    /// credit, which comes back at the baseline rate.
    fn pass_ios(&mut self, now_ns: u64, ios: u32) -> u64 {
        let ios = f64::from(ios);
        let mut turn_ns = self.ios_free_ns.max(now_ns);
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
    fn pass_bytes(&mut self, now_ns: u64, bytes: u32) -> u64 {
        let takes_ns = (f64::from(bytes) * 1e9 / self.link_bytes_per_s) as u64;
        self.bytes_free_ns = self.bytes_free_ns.max(now_ns) + takes_ns;
        self.bytes_free_ns
    }
}

impl Device for Volume {
    fn facts(&self) -> DriveFacts {
        self.facts
    }

    fn admit(&mut self, now_ns: u64, request: Request, _: u64) {
        if request.command == Command::Flush {
            return self.agenda.note(now_ns + self.parameters.flush_ns, request.id);
        }
        let ios = self.ios_of(&request);
        let passed_ns = self.pass_ios(now_ns, ios).max(self.pass_bytes(now_ns, request.bytes));
        let way_ns = match request.command {
            Command::Read => self.parameters.read_ns,
            Command::Write | Command::WriteThrough | Command::Flush => self.parameters.write_ns,
        };
        let way_ns = way_ns * self.random.log_normal(self.parameters.sigma);
        self.agenda.note(passed_ns + way_ns as u64, request.id);
    }

    fn next_event_ns(&self) -> Option<u64> {
        self.agenda.next_ns()
    }

    fn step(&mut self, now_ns: u64, done: &mut VecDeque<DriveCompletion>) {
        done.extend(self.agenda.due(now_ns).map(|(at_ns, id)| DriveCompletion { id, at_ns }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::{BenchOutcome, BenchWindow, Load, run};
    use crate::drive::Drive;

    const VOLUME: u64 = 100 << 30;

    fn volume(capacity_bytes: u64, credits: f64) -> Cloud {
        Cloud::new(CloudParameters::gp2(), capacity_bytes, 1).with_credits(credits)
    }

    fn bench(mut volume: Cloud, load: &Load, window: BenchWindow) -> BenchOutcome {
        run(&mut volume, load, window, 1).unwrap()
    }

    fn near(found: f64, want: f64) {
        assert!((found / want - 1.0).abs() < 0.02, "{found} for {want}");
    }

    #[test]
    fn a_full_bucket_bursts_and_an_empty_one_has_the_baseline() {
        let window = BenchWindow::seconds(1.0, 20.0);
        for load in [Load::random_read(32), Load::random_write(32)] {
            near(bench(volume(VOLUME, 5.4e6), &load, window).iops.value, 3_000.0);
            near(bench(volume(VOLUME, 0.0), &load, window).iops.value, 300.0);
        }
        // The floor of small volumes, and one so large that it never bursts.
        near(bench(volume(8 << 30, 0.0), &Load::random_read(32), window).iops.value, 100.0);
        near(bench(volume(2 << 40, 0.0), &Load::random_read(32), window).iops.value, 6_144.0);
    }

    #[test]
    fn the_bucket_runs_dry_when_the_formula_says() {
        // Credits over what is taken beyond the baseline: 54,000 / (3,000 - 300) = 20 s.
        let rate = |from_s, span_s| {
            let window = BenchWindow::seconds(from_s, span_s);
            bench(volume(VOLUME, 54_000.0), &Load::random_read(32), window).iops.value
        };
        near(rate(1.0, 18.0), 3_000.0);
        near(rate(21.0, 10.0), 300.0);
    }

    #[test]
    fn half_an_hour_of_burst_is_in_a_full_bucket() {
        let parameters = CloudParameters::gp2();
        let minutes = parameters.credits_max / parameters.burst_iops / 60.0;
        assert_eq!(minutes, 30.0);
    }

    #[test]
    fn idle_time_fills_the_bucket_again() {
        let mut volume = volume(VOLUME, 0.0);
        let read = |id, at_ns, volume: &mut Cloud| {
            let request = Request { id, command: Command::Read, at_bytes: 0, bytes: 4096 };
            volume.submit(at_ns, request);
        };
        read(1, 0, &mut volume);
        read(2, 10_000_000_000, &mut volume);
        assert!((2_990.0..3_001.0).contains(&volume.credits()), "{}", volume.credits());
    }

    #[test]
    fn latency_is_the_way_to_the_store() {
        let window = BenchWindow::seconds(0.1, 20.0);
        let read = bench(volume(VOLUME, 5.4e6), &Load::random_read(1), window).read.unwrap();
        near(read.latency_us.mean, 600.0 + 4096.0 / 128.0 / 1.048_576);
        let write = bench(volume(VOLUME, 5.4e6), &Load::random_write(1), window).write.unwrap();
        near(write.latency_us.mean, 800.0 + 4096.0 / 128.0 / 1.048_576);
        assert!(read.latency_us.p99 > 1.3 * read.latency_us.p50, "{read:?}");
    }

    #[test]
    fn large_requests_meet_the_bandwidth() {
        let window = BenchWindow::seconds(1.0, 10.0);
        let large = Load { block_bytes: 1 << 20, ..Load::random_read(32) };
        let mib = f64::from(1 << 20);
        near(bench(volume(VOLUME, 5.4e6), &large, window).bytes_per_s, 128.0 * mib);
        near(bench(volume(500 << 30, 5.4e6), &large, window).bytes_per_s, 250.0 * mib);
        // Each counts as four I/Os: 300 a second are 75 MiB/s.
        near(bench(volume(VOLUME, 0.0), &large, window).bytes_per_s, 75.0 * mib);
    }

    #[test]
    fn neighbours_in_a_row_count_as_one_up_to_256_kib() {
        let window = BenchWindow::seconds(1.0, 10.0);
        let rate = |bytes| {
            let load = Load::sequential_read(bytes, 1);
            bench(volume(VOLUME, 0.0), &load, window).iops.value
        };
        near(rate(4_096), 300.0);
        assert!(rate(32_768) > 1_000.0, "eight of them are one: {}", rate(32_768));
    }

    #[test]
    fn nothing_is_volatile_and_a_flush_costs_nothing_much() {
        let load = Load { flush_every: Some(1), ..Load::random_write(1) };
        let found = bench(volume(VOLUME, 5.4e6), &load, BenchWindow::seconds(0.1, 2.0));
        assert_eq!(found.flush.unwrap().latency_us.mean, 10.0);
        assert_eq!(volume(VOLUME, 0.0).facts().volatile_bytes, 0);
    }
}
