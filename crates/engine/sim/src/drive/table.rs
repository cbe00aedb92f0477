//! A drive that behaves as a probe measured a device.
//!
//! Method: one server, in order of arrival, whose speed depends on how many requests are in flight:
//! with `n` of them the one in front takes `1 / rate(n)`. So a closed loop of depth `n` sees the
//! measured rate, and by Little's law the measured mean latency. Figures of a probe are taken as
//! far as the model needs them. The rungs are those of `iostrata probe`: random reads of 4 and
//! 16 KiB at rising depth, overwrites of 16 KiB by 1 thread, 8 threads and 32 in flight, commits of
//! 4 KiB by 1, 4 and 16 threads, and an empty flush. It does not model addresses: sequential
//! requests are as fast as random ones, and reads that hit a cache cost as much as others. What the
//! file system and the kernel cost the probe is inside its figures.

use std::collections::VecDeque;

use iostrata_plan::rung;
use iostrata_run::ProbeDocument;
use iostrata_stats::Random;

use super::{Agenda, Command, Device, DriveCompletion, DriveFacts, QueuedDevice, Request};
use crate::model::ModelError;

/// Commands that a measured device is given at a time, unless the disk's text sets another number.
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
pub type MeasuredDrive = QueuedDevice<MeasuredDevice>;

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

    fn end_front(&mut self, done: &mut VecDeque<DriveCompletion>) {
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
            done.push_back(DriveCompletion { id, at_ns });
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

    fn step(&mut self, now_ns: u64, done: &mut VecDeque<DriveCompletion>) {
        if let Some((at_ns, id)) = self.late.due(now_ns) {
            done.push_back(DriveCompletion { id, at_ns });
        } else {
            self.now_ns = now_ns;
            self.end_front(done);
        }
    }
}

const SMALL_BYTES: f64 = 4096.0;
const PAGE_BYTES: f64 = 16_384.0;
/// Depths of the read rungs.
const READ_DEPTHS: [u32; 11] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];
/// Rungs that write 16 KiB, with their depth.
const WRITES: [(u32, &str); 3] =
    [(1, rung::OVERWRITE_16K), (8, rung::WRITE_16K_FILES_8), (32, rung::SUSTAINED_16K)];
/// Rungs that write 4 KiB and flush, with their depth.
const COMMITS: [(u32, &str); 3] =
    [(1, rung::COMMIT_FDATASYNC), (4, rung::COMMIT_FDATASYNC_4), (16, rung::COMMIT_FDATASYNC_16)];
/// Bytes that a volatile cache of unknown size is taken to hold.
const VOLATILE_BYTES: u64 = 32 << 20;
/// 99th percentile over mean beyond which a log-normal is no likeness.
const TAIL_MAX: f64 = 5.0;

/// What a probe measured of a device.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredDisk {
    read_small: Curve,
    read_page: Option<Curve>,
    write_page: Curve,
    commit: Option<Curve>,
    empty_flush_ns: f64,
    volatile_bytes: u64,
    sigma: f64,
}

impl MeasuredDisk {
    /// The table from a probe's document.
    ///
    /// # Errors
    /// When the probe measured no 4 KiB reads or no 16 KiB writes.
    pub fn from_probe(probe: &ProbeDocument) -> Result<Self, ModelError> {
        let rung =
            |name: &str| probe.rungs.iter().find(|rung| rung.name == name).map(|rung| rung.value);
        let reads = |block: &str| {
            Curve::new(READ_DEPTHS.into_iter().filter_map(|depth| {
                rung(&format!("read_{block}_depth_{depth}")).map(|rate| (depth, rate))
            }))
        };
        let named = |rungs: [(u32, &str); 3]| {
            let rates = rungs.into_iter().filter_map(|(depth, name)| Some((depth, rung(name)?)));
            Curve::new(rates)
        };
        let missing = |what| ModelError::ProbeIncomplete {
            what,
            fix: "probe a directory that can be written, to the end",
        };
        let has_volatile_cache = probe
            .host
            .path
            .devices
            .iter()
            .any(|device| device.write_cache.as_deref() == Some("write back"));
        Ok(Self {
            read_small: reads("4k").ok_or_else(|| missing("random reads of 4 KiB"))?,
            read_page: reads("16k"),
            write_page: named(WRITES).ok_or_else(|| missing("overwrites of 16 KiB"))?,
            commit: named(COMMITS),
            empty_flush_ns: rung(rung::FLUSH_EMPTY).unwrap_or(0.0) * 1e3,
            volatile_bytes: if has_volatile_cache { VOLATILE_BYTES } else { 0 },
            sigma: sigma(probe),
        })
    }

    /// Most bytes that a power cut could take: 0 where the device reports write-through.
    pub fn volatile_bytes(&self) -> u64 {
        self.volatile_bytes
    }

    /// Requests in flight beyond which more of them change nothing.
    pub fn depth_max(&self) -> u32 {
        self.read_small.depth_max().max(self.write_page.depth_max())
    }

    /// Standard deviation of the logarithm of a request's time.
    fn sigma(&self) -> f64 {
        self.sigma
    }

    /// Time between two that are done, in ns, with so many in flight.
    fn each_ns(&self, command: Command, bytes: u32, depth: u32) -> f64 {
        match command {
            Command::Read => self.read_ns(f64::from(bytes), depth),
            Command::Write => self.write_ns(f64::from(bytes), depth),
            Command::WriteThrough => {
                self.write_ns(f64::from(bytes), depth) + self.flush_ns(true, depth)
            }
            Command::Flush => self.flush_ns(true, depth),
        }
    }

    /// Time of a flush; `has_work`: whether something was written since the last one.
    ///
    /// With work it is what a commit of 4 KiB takes beyond its write.
    fn flush_ns(&self, has_work: bool, depth: u32) -> f64 {
        match &self.commit {
            Some(commit) if has_work => {
                let beyond_ns = commit.each_ns(depth) - self.write_ns(SMALL_BYTES, depth);
                beyond_ns.max(self.empty_flush_ns / f64::from(depth.max(1)))
            }
            _ => self.empty_flush_ns,
        }
    }

    fn read_ns(&self, bytes: f64, depth: u32) -> f64 {
        let small_ns = self.read_small.each_ns(depth);
        small_ns + self.byte_ns(depth) * (bytes - SMALL_BYTES).max(0.0)
    }

    /// Writes were measured with 16 KiB only; a byte costs what it costs when it is read, and less
    /// bytes never cost less than their part.
    fn write_ns(&self, bytes: f64, depth: u32) -> f64 {
        let page_ns = self.write_page.each_ns(depth);
        let beyond = bytes.max(SMALL_BYTES) - PAGE_BYTES;
        let part_ns = page_ns * bytes.clamp(SMALL_BYTES, PAGE_BYTES) / PAGE_BYTES;
        (page_ns + self.byte_ns(depth) * beyond).max(part_ns)
    }

    /// What a byte more costs, from reads of 4 and of 16 KiB.
    fn byte_ns(&self, depth: u32) -> f64 {
        let Some(page) = &self.read_page else { return 0.0 };
        let beyond_ns = page.each_ns(depth) - self.read_small.each_ns(depth);
        beyond_ns.max(0.0) / (PAGE_BYTES - SMALL_BYTES)
    }
}

/// The spread whose log-normal has the measured ratio of the 99th percentile to the mean, for
/// single reads: `ln r = 2.326 s - s^2 / 2`.
fn sigma(probe: &ProbeDocument) -> f64 {
    let point = probe
        .curves
        .iter()
        .filter(|curve| curve.name == "read_4k")
        .find_map(|curve| curve.points.iter().find(|point| point.x == 1.0));
    let tail = point.and_then(|point| Some(point.latency_p99_us? / point.latency_mean_us?));
    let Some(tail) = tail.filter(|tail| tail.is_finite()) else { return 0.0 };
    const Z99: f64 = 2.326;
    Z99 - (Z99 * Z99 - 2.0 * tail.clamp(1.0, TAIL_MAX).ln()).sqrt()
}

/// Points by rising depth; at least one.
#[derive(Clone, Debug, PartialEq)]
struct Curve(Vec<(f64, f64)>);

impl Curve {
    /// From depths and rates per second; rates that are not above 0 are left out. `None` without
    /// any.
    fn new(points: impl IntoIterator<Item = (u32, f64)>) -> Option<Self> {
        let mut points: Vec<(f64, f64)> = points
            .into_iter()
            .filter(|(depth, rate)| *depth > 0 && rate.is_finite() && *rate > 0.0)
            .map(|(depth, rate)| (f64::from(depth), rate))
            .collect();
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        (!points.is_empty()).then_some(Self(points))
    }

    /// Time between two that are done, in ns, with so many in flight: the measured one at measured
    /// depths. Between two depths the rate follows the logarithm of the depth; below the first it
    /// falls with the depth, beyond the last it stays.
    fn each_ns(&self, depth: u32) -> f64 {
        1e9 / self.rate(f64::from(depth.max(1)))
    }

    /// Deepest point.
    fn depth_max(&self) -> u32 {
        self.0.last().map_or(1, |(depth, _)| *depth as u32)
    }

    fn rate(&self, depth: f64) -> f64 {
        let above = self.0.partition_point(|(known, _)| *known < depth);
        match (above.checked_sub(1).map(|below| self.0[below]), self.0.get(above)) {
            (Some((low, low_rate)), Some((high, high_rate))) => {
                let share = (depth / low).ln() / (high / low).ln();
                low_rate + share * (high_rate - low_rate)
            }
            (None, Some((first, rate))) => rate * depth / first,
            (Some((_, rate)), None) => rate,
            (None, None) => 1.0,
        }
    }
}

#[cfg(test)]
mod curve_tests {
    use super::*;

    #[test]
    fn it_passes_through_its_points() {
        let curve = Curve::new([(8, 40_000.0), (2, 20_000.0), (4, 0.0)]).unwrap();
        assert_eq!(curve.each_ns(2), 50_000.0);
        assert_eq!(curve.each_ns(8), 25_000.0);
        assert_eq!(curve.each_ns(1), 100_000.0, "half the depth, half the rate");
        assert_eq!(curve.each_ns(64), 25_000.0);
        assert!((curve.each_ns(4) - 1e9 / 30_000.0).abs() < 1e-6, "half way in logarithms");
        assert_eq!(curve.depth_max(), 8);
        assert_eq!(Curve::new([(1, f64::NAN), (0, 5.0)]), None);
    }
}

#[cfg(test)]
mod tests {
    use iostrata_plan::{Better, Layer};
    use iostrata_run::host::DeviceFacts;
    use iostrata_run::{Curve, CurvePoint, Rung};
    use iostrata_stats::Verdicts;

    use super::*;
    use crate::bench::{BenchOutcome, BenchWindow, Load, run};
    use crate::drive::Drive;

    /// Rungs of a device that was never there.
    const RUNGS: [(&str, f64); 20] = [
        ("read_4k_depth_1", 9_800.0),
        ("read_4k_depth_2", 18_900.0),
        ("read_4k_depth_4", 36_200.0),
        ("read_4k_depth_8", 61_400.0),
        ("read_4k_depth_16", 84_300.0),
        ("read_4k_depth_32", 94_900.0),
        ("read_4k_depth_64", 96_100.0),
        ("read_16k_depth_1", 7_200.0),
        ("read_16k_depth_4", 21_400.0),
        ("read_16k_depth_8", 27_000.0),
        ("read_16k_depth_16", 31_900.0),
        ("read_16k_depth_64", 33_000.0),
        ("overwrite_16k", 11_000.0),
        ("write_16k_files_8", 16_200.0),
        ("sustained_16k", 15_800.0),
        ("commit_fdatasync", 1_230.0),
        ("commit_fdatasync_4", 3_900.0),
        ("commit_fdatasync_16", 7_100.0),
        ("flush_empty", 310.0),
        ("clock_read", 20.0),
    ];

    /// What a probe printed, with those rungs.
    fn sample() -> ProbeDocument {
        let text = include_str!("../../../../base/run/tests/fixtures/v1/result.json");
        let mut probe: ProbeDocument = serde_json::from_str(text).unwrap();
        let write_cache = Some("write back".to_owned());
        probe.host.path.devices = vec![DeviceFacts { write_cache, ..DeviceFacts::named("sdx") }];
        probe.rungs = RUNGS
            .map(|(name, value)| Rung {
                name: name.to_owned(),
                title: String::new(),
                layer: Layer::Device,
                value,
                value_ci95: None,
                value_n: 1,
                value_range: None,
                unit: "1/s".to_owned(),
                better: Better::Higher,
                latency_us: None,
                device_latency_us: None,
                bound: None,
                verdicts: Verdicts::default(),
            })
            .to_vec();
        probe.curves = vec![Curve {
            name: "read_4k".to_owned(),
            title: String::new(),
            axis: "requests in flight".to_owned(),
            unit: "reads/s".to_owned(),
            text: String::new(),
            points: vec![CurvePoint {
                rung: "read_4k_depth_1".to_owned(),
                x: 1.0,
                value: 9_800.0,
                value_ci95: None,
                value_n: 1,
                latency_mean_us: Some(102.0),
                latency_p99_us: Some(218.0),
            }],
            knee_x: None,
        }];
        probe
    }

    fn value(probe: &ProbeDocument, name: &str) -> f64 {
        probe.rungs.iter().find(|rung| rung.name == name).unwrap().value
    }

    fn bench(table: MeasuredDrive, load: &Load) -> BenchOutcome {
        let mut table = table;
        run(&mut table, load, BenchWindow::seconds(0.1, 4.0), 1).unwrap()
    }

    fn table(probe: &ProbeDocument) -> MeasuredDrive {
        MeasuredDrive::new(MeasuredDisk::from_probe(probe).unwrap(), 1 << 30, 1)
    }

    /// Every measured depth gives the measured rate within 5 %.
    fn agrees(probe: &ProbeDocument) {
        let mut checked = 0;
        let mut check = |name: &str, load: Load| {
            let Some(rung) = probe.rungs.iter().find(|rung| rung.name == name) else { return };
            let found = bench(table(probe), &load).iops.value;
            assert!((found / rung.value - 1.0).abs() < 0.05, "{name}: {found} for {}", rung.value);
            checked += 1;
        };
        for depth in [1, 2, 4, 8, 16, 32, 64, 128] {
            check(&format!("read_4k_depth_{depth}"), Load::random_read(depth));
            let page = Load { block_bytes: 16_384, ..Load::random_read(depth) };
            check(&format!("read_16k_depth_{depth}"), page);
        }
        for (depth, name) in [(1, "overwrite_16k"), (8, "write_16k_files_8"), (32, "sustained_16k")]
        {
            check(name, Load { block_bytes: 16_384, ..Load::random_write(depth) });
        }
        for (depth, name) in
            [(1, "commit_fdatasync"), (4, "commit_fdatasync_4"), (16, "commit_fdatasync_16")]
        {
            check(name, Load { flush_every: Some(1), ..Load::random_write(depth) });
        }
        assert!(checked >= 10, "{checked} rungs were found");
    }

    #[test]
    fn measured_depths_give_the_measured_rates() {
        agrees(&sample());
    }

    #[test]
    fn a_real_probe_is_reproduced() {
        let Some(file) = std::env::var_os("IOSTRATA_PROBE") else {
            eprintln!("skipped: IOSTRATA_PROBE does not name what `iostrata probe --json` printed");
            return;
        };
        agrees(&serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap());
    }

    #[test]
    fn between_measured_depths_and_sizes_it_lies_between() {
        let probe = sample();
        let at = |load: &Load| bench(table(&probe), load).iops.value;
        let (four, six, eight) =
            (at(&Load::random_read(4)), at(&Load::random_read(6)), at(&Load::random_read(8)));
        assert!(four < six && six < eight, "{four} {six} {eight}");
        let sized = |bytes| at(&Load { block_bytes: bytes, ..Load::random_read(4) });
        assert!(sized(16_384) < sized(8_192) && sized(8_192) < sized(4_096));
        assert!(sized(65_536) < sized(16_384), "larger ones go on at the same price per byte");
        assert_eq!(sized(512), sized(4_096));
    }

    #[test]
    fn single_reads_have_the_measured_tail() {
        let probe = sample();
        let points = &probe.curves.iter().find(|curve| curve.name == "read_4k").unwrap().points;
        let want = points[0].latency_p99_us.unwrap() / points[0].latency_mean_us.unwrap();
        let found = bench(table(&probe), &Load::random_read(1)).read.unwrap().latency_us;
        assert!((found.p99 / found.mean / want - 1.0).abs() < 0.1, "{found:?} for {want}");
    }

    #[test]
    fn an_empty_flush_costs_what_was_measured_and_at_least_what_is_asked() {
        let probe = sample();
        let flush = Load { flush_every: Some(0), ..Load::random_write(1) };
        let found = bench(table(&probe), &flush).flush.unwrap().latency_us;
        let want = value(&probe, "flush_empty");
        assert!((found.mean / want - 1.0).abs() < 0.05, "{found:?} for {want}");
        let slow = table(&probe).with_flush_ns_min(10_000_000);
        let found = bench(slow, &flush).flush.unwrap().latency_us;
        assert_eq!((found.max, found.mean), (10_000.0, 10_000.0));
    }

    #[test]
    fn work_that_was_done_stays_done_when_another_comes() {
        let mut probe = sample();
        // Without a spread the first is done after 1 / 9,800 s when it stays alone.
        probe.curves.clear();
        let mut table = table(&probe);
        let read = |id| Request { id, command: Command::Read, at_bytes: 0, bytes: 4096 };
        table.submit(0, read(1));
        let alone_ns = table.next_event_ns().unwrap();
        assert_eq!(alone_ns, 102_041);
        table.submit(alone_ns / 2, read(2));
        // Half is done; the other half goes at the speed of two: 1 / 18,900 s for a whole.
        let both_ns = table.next_event_ns().unwrap();
        let want_ns = alone_ns as f64 / 2.0 + 1e9 / 18_900.0 / 2.0;
        assert!((both_ns as f64 - want_ns).abs() < 2.0, "{both_ns} for {want_ns}");
    }

    #[test]
    fn a_shorter_queue_is_a_lower_rate() {
        let probe = sample();
        let found = bench(table(&probe).with_queue_depth(1), &Load::random_read(32)).iops.value;
        let want = value(&probe, "read_4k_depth_1");
        assert!((found / want - 1.0).abs() < 0.05, "{found} for {want}");
    }

    #[test]
    fn a_write_back_device_is_volatile() {
        let mut probe = sample();
        assert!(table(&probe).facts().volatile_bytes > 0);
        for device in &mut probe.host.path.devices {
            device.write_cache = Some("write through".to_owned());
        }
        assert_eq!(table(&probe).facts().volatile_bytes, 0);
    }

    #[test]
    fn a_probe_without_writes_is_not_enough() {
        let mut probe = sample();
        probe.rungs.retain(|rung| !rung.name.contains("write") && rung.name != "sustained_16k");
        let error = MeasuredDisk::from_probe(&probe).unwrap_err();
        assert!(matches!(error, ModelError::ProbeIncomplete { what: "overwrites of 16 KiB", .. }));
        probe.rungs.clear();
        let error = MeasuredDisk::from_probe(&probe).unwrap_err();
        assert!(error.to_string().contains("random reads of 4 KiB"), "{error}");
    }
}
