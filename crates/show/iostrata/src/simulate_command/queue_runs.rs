//! The runs of a simulated queue: outcomes of single replicates put together.
//!
//! Invariant: a replicate has the same seed in every run, so that runs can be compared in pairs.

use iostrata_plan::disk::DiskSpec;
use iostrata_run::{KernelThen, QueuePoint, QueueReader, QueueReplicate, QueueRun};
use iostrata_sim::insert::{InsertOutcome, InsertPoint, InsertReader};
use iostrata_stats::{Interval, LatencyUs, Measured, Verdict, Verdicts, combine};

/// One queue size on one device under one kernel, with every replicate that was simulated.
pub struct Simulated<'a> {
    pub device: &'a DiskSpec,
    pub kernel: KernelThen,
    pub nr_requests: u32,
    /// One outcome for each replicate, each with one window at each index size.
    pub outcomes: Vec<&'a InsertOutcome>,
}

/// Virtual time of all windows without the reader.
pub fn measured_s(outcomes: &[&InsertOutcome]) -> f64 {
    outcomes.iter().flat_map(|outcome| &outcome.points).map(|point| point.measured_s).sum()
}

/// The run; nothing when no replicate of it was simulated.
pub fn run(simulated: &Simulated<'_>, compared_rows: u64) -> Option<QueueRun> {
    let first = simulated.outcomes.first()?;
    let point = |place: usize| {
        let replicates: Option<Vec<&InsertPoint>> =
            simulated.outcomes.iter().map(|outcome| outcome.points.get(place)).collect();
        point(&replicates?, first.points.len() > 1)
    };
    let points: Vec<QueuePoint> = (0..first.points.len()).filter_map(point).collect();
    let compared = points.iter().find(|point| point.rows == compared_rows).or(points.last())?;
    let mut verdicts = Verdicts::none();
    points.iter().for_each(|point| verdicts.merge(&point.verdicts));
    Some(QueueRun {
        nr_requests: simulated.nr_requests.into(),
        nr_requests_taken: first.nr_requests_taken.into(),
        device: simulated.device.to_string(),
        kernel: simulated.kernel,
        index_bytes: compared.index_bytes,
        rows_per_hour: compared.rows_per_hour,
        rows_per_hour_ci95: compared.rows_per_hour_ci95,
        rows_per_hour_n: compared.rows_per_hour_n,
        iostat: compared.iostat,
        reader: compared.reader.clone(),
        measured_s: measured_s(&simulated.outcomes),
        points,
        verdicts,
    })
}

/// Replicates at one size. Without growth there was no smaller size before it, and the time to it
/// is not known.
fn point(replicates: &[&InsertPoint], has_growth: bool) -> Option<QueuePoint> {
    let first = replicates.first()?;
    let mut rows_per_hour = mean(replicates.iter().map(|one| one.rows_per_hour.value))?;
    replicates.iter().for_each(|one| rows_per_hour.verdicts.merge(&one.rows_per_hour.verdicts));
    if rows_per_hour.ci95.is_some_and(|[low, high]| high - low > 2.0 * rows_per_hour.value) {
        // Half the interval is more than the figure: the replicates ended in different courses.
        rows_per_hour.verdicts.add(Verdict::NotSteady);
    }
    let reached_h = mean(replicates.iter().map(|one| one.reached_h)).filter(|_| has_growth);
    let device = replicates.iter().map(|one| one.device).reduce(|sum, one| sum.plus(&one))?;
    let readers: Option<Vec<&InsertReader>> =
        replicates.iter().map(|one| one.reader.as_ref()).collect();
    Some(QueuePoint {
        rows: first.rows,
        index_bytes: first.index_bytes,
        rows_per_hour: rows_per_hour.value,
        rows_per_hour_ci95: rows_per_hour.ci95,
        rows_per_hour_n: rows_per_hour.n,
        reached_h: reached_h.as_ref().map(|hours| hours.value),
        reached_h_ci95: reached_h.as_ref().and_then(|hours| hours.ci95),
        reached_h_n: reached_h.as_ref().map_or(0, |hours| hours.n),
        iostat: device.iostat(),
        reader: readers.and_then(|readers| reader(&readers)),
        replicates: replicates.iter().map(|one| replicate(one, has_growth)).collect(),
        verdicts: rows_per_hour.verdicts,
    })
}

fn replicate(point: &InsertPoint, has_growth: bool) -> QueueReplicate {
    QueueReplicate {
        rows_per_hour: point.rows_per_hour.value,
        reached_h: has_growth.then_some(point.reached_h),
        iostat: point.device.iostat(),
        reader_us_p99: point.reader.as_ref().map(|reader| reader.latency_us.p99),
    }
}

/// A reader over its replicates: percentiles are means of the replicates' percentiles.
fn reader(replicates: &[&InsertReader]) -> Option<QueueReader> {
    let of = |field: fn(&LatencyUs) -> f64| {
        let sum: f64 = replicates.iter().map(|one| field(&one.latency_us)).sum();
        sum / replicates.len() as f64
    };
    let p99 = mean(replicates.iter().map(|one| one.latency_us.p99))?;
    let rows_per_hour = mean(replicates.iter().map(|one| one.rows_per_hour.value))?;
    let latency_us = LatencyUs {
        mean: of(|us| us.mean),
        p50: of(|us| us.p50),
        p95: of(|us| us.p95),
        p99: p99.value,
        p99_9: of(|us| us.p99_9),
        max: replicates.iter().map(|one| one.latency_us.max).fold(0.0, f64::max),
    };
    Some(QueueReader {
        latency_us,
        latency_us_p99_ci95: p99.ci95,
        latency_us_p99_n: p99.n,
        rows_per_hour: rows_per_hour.value,
        rows_per_hour_ci95: rows_per_hour.ci95,
        rows_per_hour_n: rows_per_hour.n,
        reads: replicates.iter().map(|one| one.reads).sum(),
    })
}

/// A mean over replicates with the interval between them.
struct Mean {
    value: f64,
    ci95: Option<Interval>,
    n: u64,
    verdicts: Verdicts,
}

fn mean(values: impl Iterator<Item = f64>) -> Option<Mean> {
    // Each replicate is one sample; the interval is that between them.
    let sample = |value| Measured { value, ci95: None, n: 1, verdicts: Verdicts::none() };
    let samples: Vec<Measured> = values.map(sample).collect();
    let mean = combine(&samples)?;
    Some(Mean { value: mean.value, ci95: mean.ci95, n: mean.n, verdicts: mean.verdicts })
}
