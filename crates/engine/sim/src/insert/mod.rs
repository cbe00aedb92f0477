//! An insert load into a table with random indexes, on a page cache, a block queue and a drive.
//!
//! Purpose: from a plan (a disk, a queue, and the table sizes at which to look) to its outcome:
//! every size, every replicate.

mod machine;
mod window;

use iostrata_plan::disk::{DiskModel, DiskSpec};
use iostrata_run::KernelThen;
use iostrata_run::host::DeviceWindow;
use iostrata_stats::{LatencyUs, Measured, Verdict, Verdicts, combine};
use thiserror::Error;

pub use machine::{DATA_BYTES_PER_ROW, READER_BYTES, READER_TABLE_BYTES, ROW_CPU_NS};

use crate::cache::{CachePlan, PageCache, Submission};
use crate::drive::raid::{RAID1_15K, Raid, RaidParameters};
use crate::drive::{Drive, DriveFacts};
use crate::model::{self, MeasuredDisk, ModelError};
use crate::queue::{BlockQueue, QueuePlan, REQUESTS_DEFAULT, Scheduler, requests_taken};
use machine::{Machine, Prefill, TableFiles};
use window::{Method, NR_REQUESTS_MIN, Replicate, WindowSample, window};

/// Bytes of index per row, over all four indexes: the post's 4.5 GB at 77 million rows.
pub const INDEX_BYTES_PER_ROW: f64 = 4.5e9 / 77e6;
/// Bytes of one disk of the post's kind. The post does not state it; 73 GB is the size in which
/// disks of 15,000 turns were sold with its server.
pub const DISK_BYTES: u64 = 73_000_001_536;
/// Queue sizes to compare: the post's default, what commenters requested, and the post's large one.
pub const POST_QUEUE_SIZES: [u32; 5] = [128, 1_024, 2_048, 10_000, 100_000];
/// Rows at which to look: those of the post's figures (13, 41 and 77 million) and sizes that cover
/// the growth between them.
pub const POST_ROWS_AT: [u64; 4] = [5_000_000, 13_000_000, 41_000_000, 77_000_000];

/// Rows of the smallest table to look at.
pub const ROWS_MIN: u64 = 1_000;

/// Bytes of the index of a table with so many rows.
pub fn index_bytes(rows: u64) -> u64 {
    (rows as f64 * INDEX_BYTES_PER_ROW).round() as u64
}

/// Rows of a table with an index of so many bytes.
pub fn rows_of(index_bytes: u64) -> u64 {
    (index_bytes as f64 / INDEX_BYTES_PER_ROW).round() as u64
}

/// What a disk of a plan is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InsertDevice {
    /// The post's: two disks of 15,000 turns in RAID 1, their own write caches on, nothing
    /// protected by a battery.
    PostPair {
        /// Commands that it takes at a time; 1 is a pair without command queueing.
        queue_depth: u32,
    },
    /// As in the disk's text.
    Spec,
}

impl InsertDevice {
    /// An array of two disks without a statement about a cache is the post's; anything else is as
    /// its text describes.
    pub fn of(disk: &DiskSpec) -> Self {
        let is_pair = disk.model == DiskModel::Raid10Hdd && disk.spindles == Some(2);
        match is_pair && disk.write_cache.is_none() {
            true => {
                Self::PostPair { queue_depth: disk.queue_depth.unwrap_or(RAID1_15K.queue_depth) }
            }
            false => Self::Spec,
        }
    }
}

/// One queue size on one disk under one kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InsertPlan {
    /// The disk by its text.
    pub disk: DiskSpec,
    /// What it is made of.
    pub device: InsertDevice,
    /// Its size in bytes, a multiple of 4,096.
    pub capacity_bytes: u64,
    /// The requested size of the queue.
    pub nr_requests: u32,
    /// Whose bounds hold.
    pub kernel: KernelThen,
    /// The scheduler.
    pub scheduler: Scheduler,
    /// In which order dirty pages are submitted.
    pub submission: Submission,
    /// Rows in the table at which to look, rising.
    pub rows_at: Vec<u64>,
    /// Independent windows at each of them, three at least for an interval worth the name.
    pub replicates: u32,
    /// Whether to measure a second time with a concurrent reader: 16 KiB at random places of
    /// another table, one at a time.
    pub has_reader: bool,
    /// Whether every request is worked through by queue and drive, where otherwise stretches that
    /// are alike are sampled: far slower, to check the samples by.
    pub is_exact: bool,
    /// The seed; the same replicate of the same point has the same seed in every plan.
    pub seed: u64,
}

impl InsertPlan {
    /// The post's load on a disk under a kernel, with the deadline scheduler and the kernel's own
    /// order of submission.
    pub fn post(disk: DiskSpec, nr_requests: u32, kernel: KernelThen) -> Self {
        let pairs = match disk.model {
            DiskModel::Raid10Hdd => u64::from(disk.spindles.unwrap_or(2) / 2).max(1),
            _ => 1,
        };
        Self {
            device: InsertDevice::of(&disk),
            disk,
            capacity_bytes: pairs * DISK_BYTES / 4096 * 4096,
            nr_requests,
            kernel,
            scheduler: Scheduler::Deadline,
            submission: Submission::of(kernel),
            rows_at: POST_ROWS_AT.to_vec(),
            replicates: 3,
            has_reader: false,
            is_exact: false,
            seed: 1,
        }
    }

    /// Whether the queue has its default size.
    pub fn is_default_queue(&self) -> bool {
        self.nr_requests == REQUESTS_DEFAULT
    }
}

/// Why a plan can't be simulated.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InsertError {
    /// The disk can't be modelled.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The tables do not fit.
    #[error(
        "a table of {rows} rows and the table of the reader take {needed_bytes} bytes, and the \
         disk {disk} has {capacity_bytes}: take fewer rows or a larger disk"
    )]
    TooLarge {
        /// Rows of the largest table.
        rows: u64,
        /// Bytes that its files take.
        needed_bytes: u64,
        /// The disk.
        disk: String,
        /// Its size.
        capacity_bytes: u64,
    },
    /// Nothing to look at, or not in rising order.
    #[error("the row counts to look at must rise from at least {least}, found {found:?}")]
    Rows {
        /// The smallest table.
        least: u64,
        /// What the plan has.
        found: Vec<u64>,
    },
    /// No window.
    #[error("a point needs at least one replicate")]
    NoReplicates,
}

/// A reader concurrent with the inserts.
#[derive(Clone, Debug, PartialEq)]
pub struct InsertReader {
    /// Latency of its reads over all replicates.
    pub latency_us: LatencyUs,
    /// The mean of the replicates' means, in us.
    pub latency_us_mean: Measured,
    /// The mean of the replicates' 99th percentiles, in us.
    pub latency_us_p99: Measured,
    /// The 99th percentile of each replicate, in us.
    pub replicates_p99_us: Vec<f64>,
    /// Reads in all.
    pub reads: u64,
    /// Rows inserted per hour while it reads.
    pub rows_per_hour: Measured,
    /// The device while it reads, over all replicates.
    pub device: DeviceWindow,
}

/// The load at one size of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct InsertPoint {
    /// Rows in the table.
    pub rows: u64,
    /// Bytes of its index.
    pub index_bytes: u64,
    /// Rows inserted per hour at this size, in the long run: pages written per hour over pages
    /// dirtied per row. `not_steady` when the two differed twofold within a window, `cpu_limited`
    /// when the drive had time left.
    pub rows_per_hour: Measured,
    /// The same of each replicate.
    pub replicates: Vec<f64>,
    /// The device over all replicates.
    pub device: DeviceWindow,
    /// Clean pages that a row dirties; as many are written per row in the long run.
    pub pages_per_row: f64,
    /// Virtual hours from the empty table to this size.
    pub reached_h: f64,
    /// Virtual seconds measured, over all replicates.
    pub measured_s: f64,
    /// The concurrent reader, if the plan has one.
    pub reader: Option<InsertReader>,
}

/// What came of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct InsertOutcome {
    /// The plan.
    pub plan: InsertPlan,
    /// What holds for the drive behind it.
    pub facts: DriveFacts,
    /// The size that the kernel takes, of the plan's.
    pub nr_requests_taken: u32,
    /// The load at each size, rising.
    pub points: Vec<InsertPoint>,
}

/// The post's file system cache, in bytes.
pub const MEMORY_BYTES: u64 = 5 << 30;
const NS_PER_US: f64 = 1e3;
const S_PER_HOUR: f64 = 3600.0;

/// Simulates a plan; `measured` is what a probe printed, for a disk that was measured.
///
/// # Errors
/// When the disk can't be modelled, the tables do not fit, or the plan measures nothing.
pub fn run(
    plan: &InsertPlan,
    measured: Option<&MeasuredDisk>,
) -> Result<InsertOutcome, InsertError> {
    run_on(plan, &|seed| match plan.device {
        InsertDevice::Spec => model::drive(&plan.disk, plan.capacity_bytes, measured, seed),
        InsertDevice::PostPair { queue_depth } => {
            let pair = RaidParameters { queue_depth, ..RAID1_15K };
            Ok(Box::new(Raid::new(pair, plan.capacity_bytes, seed)))
        }
    })
}

/// Makes a drive for a replicate, from its seed.
type MakeDrive<'a> = &'a dyn Fn(u64) -> Result<Box<dyn Drive>, ModelError>;

/// Simulates a plan on a drive of one's own.
fn run_on(plan: &InsertPlan, make: MakeDrive<'_>) -> Result<InsertOutcome, InsertError> {
    check(plan)?;
    let queue = BlockQueue::new(queue_plan(plan), make(plan.seed)?);
    let (facts, nr_requests_taken) = (queue.facts(), queue.nr_requests());
    let mut points: Vec<InsertPoint> = Vec::new();
    for &rows in &plan.rows_at {
        let mut point = point(plan, make, rows)?;
        point.reached_h = reached_h(&points, &point);
        // On flash a commit may end before the rows of its time fill another, or not: the load
        // stays in the course that it got into, and one start alone means little.
        if !facts.is_rotational
            && plan.submission == Submission::Unsorted
            && nr_requests_taken < NR_REQUESTS_MIN
        {
            point.rows_per_hour.verdicts.add(Verdict::NotSteady);
        }
        points.push(point);
    }
    Ok(InsertOutcome { plan: plan.clone(), facts, nr_requests_taken, points })
}

fn check(plan: &InsertPlan) -> Result<(), InsertError> {
    let is_rising = plan.rows_at.windows(2).all(|pair| pair[0] < pair[1]);
    let least = ROWS_MIN;
    if !is_rising || plan.rows_at.first().is_none_or(|&first| first < least) {
        return Err(InsertError::Rows { least, found: plan.rows_at.clone() });
    }
    if plan.replicates == 0 {
        return Err(InsertError::NoReplicates);
    }
    let rows = plan.rows_at.last().copied().unwrap_or(least);
    let needed_bytes = TableFiles::new(rows).bytes();
    if needed_bytes > plan.capacity_bytes {
        return Err(InsertError::TooLarge {
            rows,
            needed_bytes,
            disk: plan.disk.to_string(),
            capacity_bytes: plan.capacity_bytes,
        });
    }
    Ok(())
}

fn queue_plan(plan: &InsertPlan) -> QueuePlan {
    let InsertPlan { kernel, scheduler, nr_requests, .. } = *plan;
    QueuePlan { kernel, scheduler, nr_requests }
}

fn point(plan: &InsertPlan, make: MakeDrive<'_>, rows: u64) -> Result<InsertPoint, InsertError> {
    let windows = windows(plan, make, rows, false)?;
    let reader = match plan.has_reader {
        true => reader(&self::windows(plan, make, rows, true)?),
        false => None,
    };
    let replicates: Vec<f64> = windows.iter().map(Replicate::rows_per_hour).collect();
    let mut rows_per_hour = over_replicates(&replicates);
    if windows.iter().any(Replicate::is_cpu_limited) {
        rows_per_hour.verdicts.add(Verdict::CpuLimited);
    } else if !windows.iter().all(Replicate::is_steady) {
        rows_per_hour.verdicts.add(Verdict::NotSteady);
    }
    let pages: f64 = windows.iter().map(Replicate::pages_per_row).sum();
    Ok(InsertPoint {
        rows,
        index_bytes: index_bytes(rows),
        rows_per_hour,
        device: device(&windows),
        pages_per_row: pages / windows.len() as f64,
        reached_h: 0.0,
        measured_s: windows.iter().map(Replicate::span_s).sum(),
        replicates,
        reader,
    })
}

fn windows(
    plan: &InsertPlan,
    make: MakeDrive<'_>,
    rows: u64,
    has_reader: bool,
) -> Result<Vec<Replicate>, InsertError> {
    (0..u64::from(plan.replicates))
        .map(|replicate| {
            // The same place has the same seed in every plan, so that plans are compared in pairs.
            let seed = plan.seed ^ (replicate << 40) ^ rows;
            let mut drive = make(seed)?;
            let is_sampled = is_sampled(plan, drive.facts().queue_depth) && !has_reader;
            if is_sampled {
                drive = Box::new(WindowSample::new(drive));
            }
            let queue = BlockQueue::new(queue_plan(plan), drive);
            let nr_requests = queue.nr_requests();
            let layout = TableFiles::new(rows);
            let mut cache_plan = CachePlan::of(plan.kernel, MEMORY_BYTES, layout.pages(), 0);
            cache_plan.submission = plan.submission;
            let prefill = Prefill::of(&cache_plan, &layout, nr_requests);
            let cache = PageCache::new(cache_plan);
            let mut machine = Machine::new(queue, cache, layout, has_reader, seed);
            machine.prefill(prefill);
            let is_exact = plan.is_exact;
            let method = Method { nr_requests, is_sampled, has_reader, is_exact, prefill };
            Ok(window(&mut machine, method))
        })
        .collect()
}

/// Whether the drive is worked through in samples: under queues so large that thousands of requests
/// in a row are alike, where a journal's commits must be followed from one to the next.
fn is_sampled(plan: &InsertPlan, tags: u32) -> bool {
    let taken = requests_taken(plan.kernel, plan.scheduler, tags, plan.nr_requests);
    !plan.is_exact && taken >= NR_REQUESTS_MIN && plan.submission == Submission::Unsorted
}

fn device(windows: &[Replicate]) -> DeviceWindow {
    let each = windows.iter().map(|one| one.until.counters.since(&one.since.counters));
    each.fold(DeviceWindow::default(), |sum, one| sum.plus(&one))
}

fn over_replicates(values: &[f64]) -> Measured {
    let each: Vec<Measured> =
        values.iter().map(|&value| Measured::new(value, [value; 2], 1, Verdicts::none())).collect();
    match each.len() {
        0 | 1 => Measured::without_interval(
            values.first().copied().unwrap_or(0.0),
            values.len() as u64,
            Verdicts::none(),
        ),
        _ => combine(&each).unwrap_or_else(|| Measured::without_interval(0.0, 0, Verdicts::none())),
    }
}

/// Virtual hours to a point: the time per row, straight between the points, and from the time of
/// the CPU alone at the empty table.
fn reached_h(before: &[InsertPoint], point: &InsertPoint) -> f64 {
    let hours_per_row = |one: &InsertPoint| 1.0 / one.rows_per_hour.value.max(1.0);
    let (rows, slowest, hours) = match before.last() {
        Some(last) => (last.rows, hours_per_row(last), last.reached_h),
        None => (0, ROW_CPU_NS as f64 / 1e9 / S_PER_HOUR, 0.0),
    };
    hours + (point.rows - rows) as f64 * (slowest + hours_per_row(point)) / 2.0
}

fn reader(windows: &[Replicate]) -> Option<InsertReader> {
    let mut all: Vec<u64> = windows.iter().flat_map(|one| one.latencies_ns.clone()).collect();
    all.sort_unstable();
    let each: Vec<LatencyUs> = windows
        .iter()
        .filter_map(|one| {
            let mut sorted = one.latencies_ns.clone();
            sorted.sort_unstable();
            latency_us(&sorted)
        })
        .collect();
    let replicates_p99_us: Vec<f64> = each.iter().map(|one| one.p99).collect();
    let means: Vec<f64> = each.iter().map(|one| one.mean).collect();
    let rates: Vec<f64> = windows.iter().map(Replicate::rows_per_hour).collect();
    Some(InsertReader {
        latency_us: latency_us(&all)?,
        latency_us_mean: over_replicates(&means),
        latency_us_p99: over_replicates(&replicates_p99_us),
        replicates_p99_us,
        reads: all.len() as u64,
        rows_per_hour: over_replicates(&rates),
        device: device(windows),
    })
}

/// The distribution of latencies in ns, sorted; `None` without any.
fn latency_us(sorted: &[u64]) -> Option<LatencyUs> {
    let max = *sorted.last()?;
    let at = |share: f64| {
        let rank = (share * sorted.len() as f64).ceil() as usize;
        sorted[rank.clamp(1, sorted.len()) - 1] as f64 / NS_PER_US
    };
    let mean = sorted.iter().map(|&ns| ns as f64).sum::<f64>() / sorted.len() as f64 / NS_PER_US;
    Some(LatencyUs {
        mean,
        p50: at(0.5),
        p95: at(0.95),
        p99: at(0.99),
        p99_9: at(0.999),
        max: max as f64 / NS_PER_US,
    })
}

/// What must come out whatever the parameters are, on a drive with an arm and on one without.
#[cfg(test)]
mod tests {
    use iostrata_run::KernelThen::{Today, Y2009};

    use super::*;
    use crate::queue::standin::Arm;

    #[test]
    fn index_and_rows_belong_together() {
        assert_eq!(index_bytes(77_000_000), 4_500_000_000);
        assert_eq!(rows_of(4_500_000_000), 77_000_000);
        assert!((58.0..59.0).contains(&INDEX_BYTES_PER_ROW));
        assert!(POST_ROWS_AT.is_sorted() && POST_QUEUE_SIZES.is_sorted());
    }

    #[test]
    fn two_mirrored_disks_are_the_posts_unless_a_cache_is_said() {
        let of = |text: &str| InsertDevice::of(&text.parse().unwrap());
        let pair = |queue_depth| InsertDevice::PostPair { queue_depth };
        assert_eq!(of("raid10-hdd,spindles=2"), pair(256));
        assert_eq!(of("raid10-hdd,spindles=2,queue=1"), pair(1));
        for other in ["raid10-hdd,spindles=2,cache=off", "raid10-hdd,spindles=34", "hdd-15k"] {
            assert_eq!(of(other), InsertDevice::Spec, "{other}");
        }
    }

    #[test]
    fn an_array_is_as_large_as_its_pairs() {
        let disk = |text: &str| text.parse::<DiskSpec>().unwrap();
        let bytes = |text| InsertPlan::post(disk(text), 128, KernelThen::Y2009).capacity_bytes;
        assert_eq!(bytes("raid10-hdd,spindles=34") / bytes("raid10-hdd,spindles=2"), 17);
        assert_eq!(bytes("hdd-15k"), bytes("ssd-sata"));
        assert!(bytes("hdd-15k").is_multiple_of(4096));
    }

    /// 0.1 ms and 300 ms per GiB of way, or 1.4 ms wherever.
    fn drive(has_arm: bool) -> Box<Arm> {
        if has_arm { Arm::new(8, 100_000, 300_000_000).0 } else { Arm::new(8, 1_400_000, 0).0 }
    }

    fn plan(kernel: KernelThen, nr_requests: u32) -> InsertPlan {
        let mut plan = InsertPlan::post("hdd-15k".parse().unwrap(), nr_requests, kernel);
        plan.rows_at = vec![8_000_000];
        plan.replicates = 1;
        plan
    }

    fn outcome(plan: &InsertPlan, has_arm: bool) -> InsertOutcome {
        run_on(plan, &|_| Ok(drive(has_arm))).unwrap()
    }

    fn rows_per_hour(kernel: KernelThen, nr_requests: u32, has_arm: bool) -> f64 {
        outcome(&plan(kernel, nr_requests), has_arm).points[0].rows_per_hour.value
    }

    #[test]
    fn cpu_time_of_a_row_follows_from_the_post() {
        // 0.0738 x 8 cores x 5,400 s over 41 million rows.
        assert_eq!(ROW_CPU_NS, 77_760);
    }

    #[test]
    fn a_larger_queue_helps_an_arm_in_2009() {
        let rates =
            [128, 2_048, 100_000].map(|nr_requests| rows_per_hour(Y2009, nr_requests, true));
        assert!(rates[0] < rates[1] && 2.0 * rates[1] < rates[2], "{rates:?}");
    }

    #[test]
    fn todays_kernel_bounds_the_queue_and_hardly_feels_it() {
        let [small, large] =
            [128, 100_000].map(|nr_requests| outcome(&plan(Today, nr_requests), true));
        assert_eq!(large.nr_requests_taken, crate::queue::SCHEDULED_REQUESTS_MAX);
        let rates = [small, large].map(|one| one.points[0].rows_per_hour.value);
        assert!(rates[1] / rates[0] < 1.3, "{rates:?}");
    }

    #[test]
    fn a_reader_waits_behind_a_larger_queue_but_reads_go_first() {
        let reader = |nr_requests| {
            let plan = InsertPlan { has_reader: true, ..plan(Y2009, nr_requests) };
            outcome(&plan, true).points[0].reader.clone().unwrap()
        };
        let (small, large) = (reader(128), reader(100_000));
        let write_await_ms = large.device.iostat().write_await_ms.unwrap();
        assert!(large.reads > 50 && small.reads > 50);
        assert!(large.latency_us.p99 / 1e3 < write_await_ms / 4.0, "reads do not wait like writes");
        let order = [large.latency_us.p50, large.latency_us.p95, large.latency_us.p99];
        assert!(order.is_sorted() && large.latency_us.p99 <= large.latency_us.max);
    }

    #[test]
    fn equal_plans_have_equal_outcomes_and_seeds_differ() {
        let plan = plan(Y2009, 1_024);
        let first = outcome(&plan, true);
        assert_eq!(first, outcome(&plan, true));
        let other = InsertPlan { seed: 2, ..plan.clone() };
        assert_ne!(first.points, outcome(&other, true).points);
    }

    #[test]
    fn what_was_skipped_counts_like_what_was_seen() {
        // With a queue of 128, nearly all of every commit is skipped; the columns are whole.
        let point = &outcome(&plan(Y2009, 128), false).points[0];
        let columns = point.device.iostat();
        assert!((columns.service_ms().unwrap() / 1.4 - 1.0).abs() < 0.02, "{columns:?}");
        assert!((columns.queue_size - 143.0).abs() < 6.0, "128 and half a batch: {columns:?}");
        let by_law = columns.writes_per_s * columns.await_ms().unwrap() / 1e3;
        assert!((columns.queue_size / by_law - 1.0).abs() < 0.05, "{columns:?}");
        let pages_per_s = columns.write_kib_per_s / 4.0;
        let by_rows = point.rows_per_hour.value / 3600.0 * point.pages_per_row;
        assert!((pages_per_s / by_rows - 1.0).abs() < 0.02, "{pages_per_s} {by_rows}");
    }

    /// Rates with and without shortcuts, on a drive of the catalogue.
    fn short_and_exact(disk: &str, nr_requests: u32, rows: u64) -> [iostrata_stats::Measured; 2] {
        [false, true].map(|is_exact| {
            let mut plan = InsertPlan::post(disk.parse().unwrap(), nr_requests, Y2009);
            (plan.rows_at, plan.replicates, plan.is_exact) = (vec![rows], 3, is_exact);
            run(&plan, None).unwrap().points[0].rows_per_hour.clone()
        })
    }

    /// Shortcuts change no rate: with this queue at these rows, and in the long form at some more.
    fn assert_alike(usual: (u32, u64), long: &[(u32, u64)]) {
        let is_soak = std::env::var_os("IOSTRATA_SOAK").is_some();
        for &(nr_requests, rows) in std::iter::once(&usual).chain(long.iter().filter(|_| is_soak)) {
            let [short, exact] = short_and_exact("hdd-15k", nr_requests, rows);
            let half = |one: &iostrata_stats::Measured| {
                one.ci95.map_or(0.0, |[low, high]| high - low) / 2.0
            };
            let apart = (short.value - exact.value).abs();
            let near = apart < half(&short).hypot(half(&exact)) || apart < 0.05 * exact.value;
            assert!(near, "{nr_requests}: {short:?} {exact:?}");
            assert!(apart < 0.35 * exact.value, "{nr_requests}: {short:?} {exact:?}");
        }
    }

    #[test]
    fn a_backlog_that_is_skipped_changes_no_rate() {
        assert_alike((128, 8_000_000), &[(10_000, 13_000_000), (128, 41_000_000)]);
    }

    #[test]
    fn a_drive_that_is_sampled_changes_no_rate() {
        assert_alike((100_000, 13_000_000), &[(100_000, 41_000_000)]);
    }

    #[test]
    fn hours_add_up_over_the_growth() {
        let plan = InsertPlan { rows_at: vec![2_000_000, 13_000_000], ..plan(Y2009, 128) };
        let points = outcome(&plan, false).points;
        let cpu_h = 2e6 * ROW_CPU_NS as f64 / 3.6e12;
        let rate = points[0].rows_per_hour.value;
        assert!((points[0].reached_h - (cpu_h + 2e6 / rate) / 2.0).abs() < 1e-9);
        let step = 11e6 * (1.0 / rate + 1.0 / points[1].rows_per_hour.value) / 2.0;
        assert!((points[1].reached_h - points[0].reached_h - step).abs() < 1e-9);
    }

    #[test]
    fn plans_that_make_no_sense_are_refused() {
        let said = |change: fn(&mut InsertPlan)| {
            let mut plan = plan(Y2009, 128);
            change(&mut plan);
            run(&plan, None).unwrap_err().to_string()
        };
        assert!(said(|plan| plan.rows_at.clear()).contains("must rise"));
        assert!(said(|plan| plan.rows_at = vec![5_000, 4_000]).contains("must rise"));
        assert!(said(|plan| plan.rows_at = vec![10]).contains("at least 1000"));
        assert!(said(|plan| plan.replicates = 0).contains("one replicate"));
        assert!(said(|plan| plan.capacity_bytes = 1 << 30).contains("take fewer rows"));
    }
}
