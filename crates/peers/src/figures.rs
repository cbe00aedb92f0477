//! From courses to figures with intervals, and from pairs of rounds to ratios.
//!
//! Invariant: a ratio rests on pairs from the same round; its interval comes from their spread and
//! is never narrower than the figures' own intervals allow.

use iostrata_stats::units::count;
use iostrata_stats::{
    Comparison, LatencyHistogram, LatencyUs, Measured, combine, estimate, paired_measured,
};
use serde::Serialize;

use crate::drive::{Course, SLICE};
use crate::engines::Engine;
use crate::notes;
use crate::plan::{Case, Plan, Workload};
use crate::space::Space;

/// Slices in a second.
const SLICES_PER_SECOND: usize = (1_000 / SLICE.as_millis()) as usize;
/// Fewest whole seconds of which the worst says something.
const SECONDS_MIN: usize = 3;

/// One window of one engine.
#[derive(Clone)]
pub struct Sample {
    /// Operations per second; of reads and scans per thread.
    pub rate: Measured,
    /// Slowest second over the mean one; absent in short windows.
    pub worst_second: Option<f64>,
    /// Latency of commits; absent where nothing is committed.
    pub latency: Option<LatencyHistogram>,
    /// Processor time per operation, in microseconds, all threads of the engine included.
    pub cpu_us: f64,
    /// Bytes by which the page cache became dirty or that were sent directly, per operation.
    pub written_bytes: Option<f64>,
    /// Bytes that the device wrote per operation.
    pub device_bytes: Option<f64>,
    /// Space of the files at the end.
    pub end_bytes: u64,
    /// Space over time, where it is watched.
    pub space: Option<Space>,
}

impl Sample {
    /// The figures of a course. A course without a single operation has a rate of 0.
    pub fn of(course: &Course, workload: Workload, end_bytes: u64) -> Self {
        let is_writing = workload.is_writing();
        let sharers = if is_writing { 1.0 } else { course.threads as f64 };
        let slices: Vec<f64> = course
            .slices
            .iter()
            .map(|&count| count as f64 / SLICE.as_secs_f64() / sharers)
            .collect();
        let none = || Measured::without_interval(0.0, 0, Default::default());
        let operations = course.operations().max(1) as f64;
        let each = |bytes: Option<u64>| bytes.map(|bytes| bytes as f64 / operations);
        Self {
            rate: estimate(&slices).unwrap_or_else(none),
            worst_second: worst_second(&slices),
            latency: is_writing.then(|| course.latency.clone()),
            cpu_us: course.passed.cpu.as_secs_f64() * 1e6 / operations,
            written_bytes: each(course.passed.written_bytes),
            device_bytes: each(course.passed.device_bytes),
            end_bytes,
            space: None,
        }
    }

    /// One line of progress.
    pub fn line(&self, workload: Workload, case: Case, engine: Engine) -> String {
        let (rate, operation) = (count(self.rate.value), workload.operation());
        let Case { threads, batch } = case;
        format!(
            "{workload:<8} {engine:<11} threads {threads:>2} batch {batch:>3}: {rate:>6} {operation}s/s"
        )
    }
}

/// The slowest whole second over the mean of all.
fn worst_second(slices: &[f64]) -> Option<f64> {
    let sums: Vec<f64> =
        slices.chunks_exact(SLICES_PER_SECOND).map(|second| second.iter().sum()).collect();
    let mean = sums.iter().sum::<f64>() / sums.len() as f64;
    let least = sums.iter().copied().fold(f64::INFINITY, f64::min);
    (sums.len() >= SECONDS_MIN && mean > 0.0).then(|| least / mean)
}

/// All cases of one workload.
#[derive(Clone, Debug, Serialize)]
pub struct Table {
    /// Which.
    pub workload: Workload,
    /// The emulated disk below; absent on a real one.
    pub disk: Option<String>,
    /// Rows loaded before.
    pub rows: u64,
    /// Bytes of each value; keys have 8.
    pub value_bytes: usize,
    /// Memory of each engine, in bytes.
    pub cache_bytes: u64,
    /// Seconds of each window.
    pub seconds: f64,
    /// Engines and their versions.
    pub versions: Vec<(Engine, String)>,
    /// What could not be made equal.
    pub notes: Vec<&'static str>,
    /// One table per case.
    pub cases: Vec<CaseTable>,
}

impl Table {
    /// Puts it together.
    pub fn new(plan: &Plan, versions: Vec<(Engine, String)>, cases: Vec<CaseTable>) -> Self {
        let engines: Vec<Engine> = versions.iter().map(|(engine, _)| *engine).collect();
        Self {
            workload: plan.workload,
            disk: None,
            rows: plan.set.count,
            value_bytes: plan.set.value_bytes,
            cache_bytes: plan.cache_bytes,
            seconds: plan.window.length.as_secs_f64(),
            notes: notes::of(plan, &engines),
            versions,
            cases,
        }
    }
}

/// All engines in one case.
#[derive(Clone, Debug, Serialize)]
pub struct CaseTable {
    /// Threads and batch.
    pub case: Case,
    /// One line each, in the order asked for.
    pub lines: Vec<Line>,
    /// The fastest peer as it comes, by its mean rate.
    pub best_peer: Option<Engine>,
    /// The fastest peer with this program's grouping lent to it.
    pub best_lent: Option<Engine>,
}

/// One engine in one case, all rounds together.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// Which.
    pub engine: Engine,
    /// Operations per second; of reads and scans per thread.
    pub rate: Measured,
    /// The slowest second of all rounds over the mean of its round.
    pub worst_second: Option<f64>,
    /// Latency of commits, all rounds.
    pub latency_us: Option<LatencyUs>,
    /// Processor time per operation, in microseconds, mean of the rounds.
    pub cpu_us: f64,
    /// Bytes by which the page cache became dirty or that were sent directly, per operation, as the
    /// kernel counts them (often too high: see `counters`), mean of the rounds.
    pub written_bytes: Option<f64>,
    /// Bytes that the device wrote per operation, mean of the rounds.
    pub device_bytes: Option<f64>,
    /// Space of the files at the end of the last round.
    pub end_bytes: u64,
    /// Space over time, last round.
    pub space: Option<Space>,
    /// Our rate over this one's; absent for ours.
    pub ours_over_it: Option<Comparison>,
}

impl CaseTable {
    /// Puts all rounds of all engines together.
    pub fn new(case: Case, samples: &[(Engine, Vec<Sample>)]) -> Self {
        let ours = samples.iter().find(|(engine, _)| *engine == Engine::Iostrata);
        let ours = ours.map(|(_, samples)| samples.as_slice());
        let lines: Vec<Line> = samples
            .iter()
            .filter(|(_, samples)| !samples.is_empty())
            .map(|(engine, samples)| Line::new(*engine, samples, ours))
            .collect();
        let best = |is_lent: bool| {
            let peers = lines.iter().filter(|line| {
                line.engine != Engine::Iostrata && line.engine.is_lent_grouping() == is_lent
            });
            peers.max_by(|a, b| a.rate.value.total_cmp(&b.rate.value)).map(|line| line.engine)
        };
        Self { case, best_peer: best(false), best_lent: best(true), lines }
    }
}

impl Line {
    fn new(engine: Engine, samples: &[Sample], ours: Option<&[Sample]>) -> Self {
        let rates = |samples: &[Sample]| -> Vec<Measured> {
            samples.iter().map(|sample| sample.rate.clone()).collect()
        };
        let own = rates(samples);
        let none = || Measured::without_interval(0.0, 0, Default::default());
        let ours = ours.filter(|_| engine != Engine::Iostrata);
        let last = samples.last();
        let worst = samples.iter().filter_map(|sample| sample.worst_second);
        Self {
            engine,
            rate: combine(&own).unwrap_or_else(none),
            worst_second: worst.reduce(f64::min),
            latency_us: latency(samples),
            cpu_us: mean(samples.iter().map(|sample| sample.cpu_us)).unwrap_or(0.0),
            written_bytes: mean(samples.iter().filter_map(|sample| sample.written_bytes)),
            device_bytes: mean(samples.iter().filter_map(|sample| sample.device_bytes)),
            end_bytes: last.map_or(0, |sample| sample.end_bytes),
            space: last.and_then(|sample| sample.space),
            ours_over_it: ours.and_then(|ours| paired_measured(&own, &rates(ours)).ok()),
        }
    }
}

fn latency(samples: &[Sample]) -> Option<LatencyUs> {
    let mut all = LatencyHistogram::new();
    samples.iter().filter_map(|sample| sample.latency.as_ref()).for_each(|one| all.merge(one));
    all.summary()
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::counters::Reading;
    use std::time::Duration;

    fn course(per_slice: u64, threads: usize) -> Course {
        let mut latency = LatencyHistogram::new();
        latency.record_ns(2_000_000);
        let slices: Vec<u64> = (0..80).map(|at| per_slice + at % 2).collect();
        let passed = Reading {
            cpu: Duration::from_secs(1),
            written_bytes: Some(slices.iter().sum::<u64>() * 4096),
            device_bytes: None,
        };
        Course { slices, latency, passed, ticks: vec![1; threads], threads }
    }

    /// Samples of so many operations per slice of 50 ms.
    pub(crate) fn samples(per_slice: [u64; 3], workload: Workload) -> Vec<Sample> {
        let of = |count| Sample::of(&course(count, 4), workload, 7 << 20);
        per_slice.map(of).to_vec()
    }

    #[test]
    fn figures_are_those_of_the_course() {
        let sample = Sample::of(&course(100, 4), Workload::Commits, 9);
        assert!((sample.rate.value - 2_010.0).abs() < 1e-9, "{:?}", sample.rate);
        assert!((sample.worst_second.unwrap() - 1.0).abs() < 1e-12);
        assert!((sample.cpu_us - 1e6 / 8_040.0).abs() < 1e-9);
        assert_eq!((sample.written_bytes, sample.device_bytes), (Some(4096.0), None));
        let reads = Sample::of(&course(100, 4), Workload::Reads, 9);
        assert!((reads.rate.value - 502.5).abs() < 1e-9, "per thread");
        assert!(reads.latency.is_none());
    }

    #[test]
    fn the_worst_second_is_that_of_whole_seconds() {
        let mut slices = vec![10.0; 65];
        slices[20..40].fill(5.0);
        slices[60..].fill(0.0);
        let mean = (200.0 + 100.0 + 200.0) / 3.0;
        assert!((worst_second(&slices).unwrap() - 100.0 / mean).abs() < 1e-12);
        assert_eq!(worst_second(&slices[..59]), None);
        assert_eq!(worst_second(&[0.0; 60]), None);
    }

    #[test]
    fn ratios_are_ours_over_theirs() {
        let work = Workload::Commits;
        let all = [
            (Engine::Iostrata, samples([200, 202, 199], work)),
            (Engine::Redb, samples([100, 101, 100], work)),
            (Engine::Fjall, samples([150, 151, 149], work)),
            (Engine::RedbGroup, samples([300, 301, 299], work)),
            (Engine::FjallGroup, samples([250, 251, 249], work)),
        ];
        let table = CaseTable::new(Case { threads: 4, batch: 1 }, &all);
        assert_eq!(table.best_peer, Some(Engine::Fjall));
        assert_eq!(table.best_lent, Some(Engine::RedbGroup));
        assert!(table.lines[0].ours_over_it.is_none());
        let ratio = table.lines[1].ours_over_it.as_ref().unwrap();
        assert!((ratio.ratio.value - 2.0).abs() < 0.02 && ratio.ratio.n == 3, "{ratio:?}");
        let latency = table.lines[2].latency_us.unwrap();
        assert!((latency.max - 2_000.0).abs() < 1e-9, "{latency:?}");
    }
}
