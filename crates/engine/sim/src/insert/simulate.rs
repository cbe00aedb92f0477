//! From a plan to its outcome: every size, every replicate.

use iostrata_run::host::DeviceWindow;
use iostrata_stats::{LatencyUs, Measured, Verdict, Verdicts, combine};

use super::layout::TableFiles;
use super::machine::{Machine, ROW_CPU_NS};
use super::plan::{InsertDevice, InsertPlan, index_bytes};
use super::plan::{InsertError, InsertOutcome, InsertPoint, InsertReader};
use super::prefill::Prefill;
use super::sampled::{NR_REQUESTS_MIN, Sampled};
use super::window::{Method, Replicate, window};
use crate::cache::{CachePlan, PageCache, Submission};
use crate::drive::Drive;
use crate::drive::raid::{RAID1_15K, Raid, RaidParameters};
use crate::model::{self, MeasuredDisk, ModelError};
use crate::queue::{BlockQueue, QueuePlan, requests_taken};

/// The post's file system cache, in bytes.
pub const MEMORY_BYTES: u64 = 5 << 30;
const NS_PER_US: f64 = 1e3;
const S_PER_HOUR: f64 = 3600.0;

/// Simulates a plan; `measured` is what a probe printed, for a disk that was measured.
///
/// # Errors
/// When the disk can't be modelled, the tables do not fit, or the plan looks at nothing.
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
pub(super) type MakeDrive<'a> = &'a dyn Fn(u64) -> Result<Box<dyn Drive>, ModelError>;

/// Simulates a plan on a drive of one's own.
pub(super) fn run_on(plan: &InsertPlan, make: MakeDrive<'_>) -> Result<InsertOutcome, InsertError> {
    check(plan)?;
    let queue = BlockQueue::new(queue_plan(plan), make(plan.seed)?);
    let (facts, nr_requests_taken) = (queue.facts(), queue.nr_requests());
    let mut points: Vec<InsertPoint> = Vec::new();
    for &rows in &plan.rows_at {
        let mut point = point(plan, make, rows)?;
        point.reached_h = reached_h(&points, &point);
        // On flash a commit may end before the rows of its time fill another, or not: the load
        // stays in the course that it got into, and what one start gives says little.
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
    let least = super::plan::ROWS_MIN;
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
                drive = Box::new(Sampled::new(drive));
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

/// Virtual hours to a point: the time per row, straight between the points, and from that of the
/// CPU alone at the empty table.
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
