//! What transactions of a point have in addition to their rate.
//!
//! Invariants: every figure is taken over windows, and its interval is between them; what the
//! database does not report is absent.

use std::collections::BTreeMap;

use iostrata_plan::OpKind;
use iostrata_plan::study::ThenMetric;
use iostrata_run::host::DeviceDelta;
use iostrata_run::{
    Replicate, StallCause, StreamFigures, StudyTransactions, TransactionFigures, TransactionStall,
};
use iostrata_stats::{LatencyHistogram, Measured, combine};

use super::busy::{WindowUsage, bound};
use super::stolen;
use crate::figure::metric_of;

/// Stalls that a point lists.
const STALLS_MAX: usize = 20;

/// The figures of a point's windows; nothing for requests.
pub(super) fn transactions(replicates: &[&Replicate], left_out: u32) -> Option<StudyTransactions> {
    let windows: Vec<Window<'_>> = replicates.iter().filter_map(|one| Window::of(one)).collect();
    let first = windows.first()?;
    let mut by_metric: BTreeMap<&'static str, (ThenMetric, Vec<Measured>)> = BTreeMap::new();
    for window in &windows {
        for (metric, figure) in window.figures() {
            by_metric.entry(metric.name()).or_insert((metric, Vec::new())).1.push(figure);
        }
    }
    let combined = by_metric.into_iter().filter_map(|(name, (metric, all))| {
        let mut figure = combine(&all)?;
        figure.ci95 = figure.ci95.map(|ends| ends.map(|end| end.min(most(metric))));
        Some((name.to_owned(), figure))
    });
    let mut stalls: Vec<TransactionStall> =
        windows.iter().flat_map(|window| window.counts.stalls.iter().cloned()).collect();
    let main_cause = main_cause(&stalls);
    stalls.sort_by(|a, b| b.length_s.total_cmp(&a.length_s));
    stalls.truncate(STALLS_MAX);
    Some(StudyTransactions {
        figures: combined.collect(),
        left_out,
        stalls,
        main_cause,
        series: first.stream.series.per_second(),
        bound: bound(&windows.iter().filter_map(Window::worked).collect::<Vec<_>>()),
    })
}

/// What a figure cannot exceed, so that its interval does not either.
fn most(metric: ThenMetric) -> f64 {
    match metric {
        ThenMetric::MinOverMean1s => 1.0,
        _ if metric.unit() == "percent" => 100.0,
        _ => f64::INFINITY,
    }
}

/// What was waited for in most of the time that was lost.
fn main_cause(stalls: &[TransactionStall]) -> Option<StallCause> {
    let mut lost: Vec<(StallCause, f64)> = Vec::new();
    for stall in stalls {
        match lost.iter_mut().find(|(cause, _)| *cause == stall.cause) {
            Some((_, lost_s)) => *lost_s += stall.length_s,
            None => lost.push((stall.cause, stall.length_s)),
        }
    }
    lost.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).map(|(cause, _)| cause)
}

/// A replicate that is one of transactions.
struct Window<'a> {
    replicate: &'a Replicate,
    stream: &'a StreamFigures,
    counts: &'a TransactionFigures,
}

impl<'a> Window<'a> {
    fn of(replicate: &'a Replicate) -> Option<Self> {
        let stream = replicate.streams.first()?;
        Some(Self { replicate, stream, counts: stream.transactions.as_ref()? })
    }

    fn worked(&self) -> Option<WindowUsage<'a>> {
        let used = self.counts.used.unwrap_or_default();
        Some(WindowUsage { tps: metric_of(self.replicate)?.value, used, replicate: self.replicate })
    }

    fn figures(&self) -> Vec<(ThenMetric, Measured)> {
        let mut all: Vec<(ThenMetric, Measured)> =
            metric_of(self.replicate).map(|rate| (ThenMetric::Tps, rate)).into_iter().collect();
        let mut add = |metric, value: Option<f64>| {
            let value = value.filter(|value| value.is_finite());
            let figure =
                |value| Measured::without_interval(value, 1, self.replicate.verdicts.clone());
            all.extend(value.map(|value| (metric, figure(value))));
        };
        let duration_s = self.replicate.duration_s.max(f64::MIN_POSITIVE);
        let stalled_s: f64 = self.counts.stalls.iter().map(|stall| stall.length_s).sum();
        let new_orders = self.stream.ops[OpKind::NewOrder].as_ref();
        add(ThenMetric::NewOrdersPerMin, new_orders.map(|one| 60.0 * one.iops.value));
        add(ThenMetric::MinOverMean1s, stolen::worst_second(self.replicate));
        add(ThenMetric::LatencyP999Us, self.latencies().percentile_us(99.9));
        // The sum of none is -0.
        add(ThenMetric::StalledPct, Some(100.0 * (stalled_s / duration_s).min(1.0) + 0.0));
        let stalls = self.counts.stalls.len() as f64;
        add(ThenMetric::StallsPerMin, Some(60.0 * stalls / duration_s));
        for (metric, used) in self.used_in_all() {
            add(metric, used.zip(self.done()).map(|(used, done)| used / done));
        }
        if let Some(course) = &self.counts.course {
            let per_min = course.furious_flushes.map(|count| 60.0 * count as f64 / duration_s);
            add(ThenMetric::FuriousFlushesPerMin, per_min);
            add(ThenMetric::FlushedForRedoPct, course.flushed_for_redo_pct);
            add(ThenMetric::RedoBytesPerS, course.redo_bytes_per_s);
            add(ThenMetric::PagesDirtiedPerS, course.pages_dirtied_per_s);
            add(ThenMetric::CheckpointAgePct, course.checkpoint_age_pct_mean);
            add(ThenMetric::CheckpointAgeMaxPct, course.checkpoint_age_pct_max);
            let history = course.history_list_length_max.map(|length| length as f64);
            add(ThenMetric::HistoryLength, history);
        }
        let seen = self.replicate.evidence.as_ref();
        if let Some(redo) = seen.and_then(|seen| seen.redo_device.as_ref()) {
            add(ThenMetric::RedoDeviceWritesPerS, Some(redo.iostat.writes_per_s));
            add(ThenMetric::RedoDeviceKibPerS, Some(redo.iostat.write_kib_per_s));
            add(ThenMetric::RedoDeviceFlushesPerS, redo.iostat.flushes_per_s);
        }
        if let Some(second) = &self.counts.second {
            let pages = second.used.page_writes;
            let own = self.counts.used.and_then(|used| used.page_writes);
            let share = || Some(100.0 * pages? / (pages? + own?).max(f64::MIN_POSITIVE));
            add(ThenMetric::SecondTps, Some(second.tps));
            add(ThenMetric::SecondPagesPerS, pages.map(|pages| pages / duration_s));
            add(ThenMetric::SecondPagesPct, share());
        }
        if let Some(readers) = &self.counts.readers {
            add(ThenMetric::ReaderIops, Some(readers.reads_per_s));
            add(ThenMetric::ReaderLatencyMeanUs, Some(readers.latency_mean_us));
            add(ThenMetric::ReaderLatencyP99Us, Some(readers.latency_p99_us));
        }
        all
    }

    /// Service latency of all types together.
    fn latencies(&self) -> LatencyHistogram {
        let mut all = LatencyHistogram::default();
        self.stream.ops.iter().for_each(|(_, op)| all.merge(&op.latencies.service));
        all
    }

    /// Transactions; none where none was completed.
    fn done(&self) -> Option<f64> {
        let moved = self.stream.ops.iter().filter(|(kind, _)| *kind != OpKind::Sync);
        let done: u64 = moved.map(|(_, op)| op.ios).sum();
        (done > 0).then_some(done as f64)
    }

    /// What the database counted in the window, and what its volume's devices did.
    fn used_in_all(&self) -> [(ThenMetric, Option<f64>); 9] {
        let used = self.counts.used.unwrap_or_default();
        let logs = used.redo_syncs.map(|redo| redo + used.binlog_syncs.unwrap_or(0.0));
        let evidence = self.replicate.evidence.as_ref();
        let delta = evidence.and_then(|evidence| evidence.device_delta);
        let device = |of: fn(&DeviceDelta) -> u64| delta.as_ref().map(|delta| of(delta) as f64);
        let flushes = delta.and_then(|delta| delta.counters.flushes).map(|count| count as f64);
        [
            (ThenMetric::PagesPerTransaction, used.page_writes),
            (ThenMetric::SyncsPerTransaction, logs),
            (ThenMetric::RedoBytesPerTransaction, used.redo_bytes),
            (ThenMetric::DoublewritePagesPerTransaction, used.doublewrite_pages),
            (ThenMetric::CpuUsPerTransaction, used.cpu_us),
            (ThenMetric::FlushesPerTransaction, flushes),
            (ThenMetric::DeviceWritesPerTransaction, device(|delta| delta.counters.writes)),
            (ThenMetric::DeviceWriteBytesPerTransaction, device(DeviceDelta::written_bytes)),
            (ThenMetric::DeviceReadsPerTransaction, device(|delta| delta.counters.reads)),
        ]
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use iostrata_plan::{Better, Layer, Metric, MetricKind, PerKind, Point, TransactionSpec};
    use iostrata_run::host::{CpuShares, DeviceCounters, Evidence, LimitedRate, ThrottleEvidence};
    use iostrata_run::{
        OpFigures, ReaderFigures, Resource, ResourceUse, SecondDatabase, Series, TargetCourse,
    };

    /// Ten slices of 0.2 s with these counts each, of a database that wrote 30 pages.
    pub fn replicate(counts: [u32; 10]) -> Replicate {
        let total: u32 = counts.iter().sum();
        let all: PerKind<Vec<u32>> = [(OpKind::Transaction, counts.to_vec())].into_iter().collect();
        let stall =
            TransactionStall { length_s: 0.5, cause: StallCause::RedoFull, ..<_>::default() };
        let course = TargetCourse { furious_flushes: Some(3), ..TargetCourse::default() };
        let used = ResourceUse {
            page_writes: Some(30.0),
            redo_syncs: Some(50.0),
            ..ResourceUse::default()
        };
        let rate = || Measured::without_interval(f64::from(total) / 2.0, 1, <_>::default());
        let op = OpFigures {
            ios: u64::from(total),
            bytes: 0,
            iops: rate(),
            latency_mean_us: rate(),
            latency_us: <_>::default(),
            response_mean_us: None,
            response_us: None,
            latencies: <_>::default(),
        };
        let stream = StreamFigures {
            ops: [(OpKind::Transaction, op)].into_iter().collect(),
            total: Some(rate()),
            transactions: Some(TransactionFigures {
                stalls: vec![stall],
                used: Some(used),
                course: Some(course),
                ..TransactionFigures::default()
            }),
            series: Series { width_s: 0.2, counts: all, latency_mean_us: Vec::new() },
            ..StreamFigures::default()
        };
        Replicate {
            point: Point {
                id: "steady".to_owned(),
                title: String::new(),
                layer: Layer::Transactions,
                streams: Vec::new(),
                metric: Metric {
                    stream: 0,
                    op: OpKind::Transaction,
                    kind: MetricKind::TotalIops,
                    unit: "transactions/s".to_owned(),
                    better: Better::Higher,
                },
                curve: None,
                block: String::new(),
                levels: Vec::new(),
                transactions: Some(TransactionSpec::new("updates", "engine")),
            },
            replicate: 0,
            started_s: 0.0,
            duration_s: 2.0,
            streams: vec![stream],
            evidence: None,
            verdicts: <_>::default(),
        }
    }

    #[test]
    fn evenness_and_what_was_asked_stand_beside_the_rate() {
        let (even, uneven) = (replicate([10; 10]), replicate([20, 20, 20, 20, 20, 0, 0, 0, 0, 0]));
        let found = transactions(&[&even, &uneven], 1).unwrap();
        let value = |name: &str| found.figures.get(name).map(|figure| figure.value);
        assert_eq!(value("tps"), Some(50.0));
        assert_eq!(value("min_over_mean_1s"), Some(0.5), "of 1 and 0");
        assert_eq!(value("stalled_pct"), Some(25.0));
        assert_eq!(value("stalls_per_min"), Some(30.0), "one in two seconds");
        assert_eq!(value("furious_flushes_per_min"), Some(90.0));
        assert_eq!(value("syncs_per_transaction"), Some(0.5), "50 for each 100");
        assert_eq!(found.bound, None, "nothing was seen of the machine");
        assert_eq!(value("new_orders_per_min"), None, "there are none in this load");
        let mut tpcc = even.clone();
        let op = even.streams[0].ops[OpKind::Transaction].clone().unwrap();
        tpcc.streams[0].ops = [(OpKind::NewOrder, op)].into_iter().collect();
        let of_tpcc = transactions(&[&tpcc], 0).unwrap().figures;
        assert_eq!(of_tpcc["new_orders_per_min"].value, 3000.0, "60 times 50 in a second");
        assert_eq!(value("history_length"), None, "what is not told is absent");
        assert_eq!((found.left_out, found.stalls.len()), (1, 2));
        assert_eq!(found.series.tps, [50.0, 50.0], "of the first window");
        let mut requests = even;
        requests.streams[0].transactions = None;
        assert_eq!(transactions(&[&requests], 0), None);
    }

    #[test]
    fn no_interval_reaches_beyond_what_its_figure_can_be() {
        let (even, uneven) = (replicate([10; 10]), replicate([10, 10, 10, 10, 10, 8, 8, 8, 8, 8]));
        let found = transactions(&[&even, &uneven], 0).unwrap();
        let [low, high] = found.figures["min_over_mean_1s"].ci95.unwrap();
        assert!(low < 0.9 && high == 1.0, "{low} to {high}");
    }

    #[test]
    fn a_cause_is_that_of_all_stalls_and_not_of_the_longest() {
        let mut one = replicate([10; 10]);
        let stall = |cause, length_s| TransactionStall { length_s, cause, ..<_>::default() };
        let long = std::iter::repeat_n(stall(StallCause::Device, 0.6), STALLS_MAX);
        let short = std::iter::repeat_n(stall(StallCause::RedoFull, 0.5), 40);
        one.streams[0].transactions.as_mut().unwrap().stalls = long.chain(short).collect();
        let found = transactions(&[&one], 0).unwrap();
        assert_eq!(found.stalls.len(), STALLS_MAX);
        assert_eq!(found.main_cause, Some(StallCause::RedoFull), "20 s of 32");
    }

    #[test]
    fn what_was_at_work_for_most_of_the_time_binds() {
        let mut one = replicate([10; 10]);
        let mut evidence = Evidence { seconds: 2.0, ..Evidence::default() };
        let counters = DeviceCounters {
            writes: 300,
            flushes: Some(200),
            flush_ms: Some(1600),
            ..DeviceCounters::default()
        };
        evidence.device_delta = Some(DeviceDelta { seconds: 2.0, counters });
        evidence.cpu = Some(CpuShares { user_pct: 40.0, idle_pct: 60.0, ..CpuShares::default() });
        one.evidence = Some(evidence);
        let found = transactions(&[&one], 0).unwrap();
        let value = |name: &str| found.figures.get(name).map(|figure| figure.value);
        assert_eq!(value("flushes_per_transaction"), Some(2.0));
        assert_eq!(value("device_writes_per_transaction"), Some(3.0));
        let bound = found.bound.unwrap();
        assert_eq!((bound.resource, bound.reached_pct), (Resource::Syncs, 80.0));
        assert_eq!(bound.value, 62.5, "50 in four fifths of the time");
        let per_txn: Vec<Option<f64>> = bound.resources.iter().map(|one| one.per_txn).collect();
        assert_eq!(per_txn, [Some(0.5), None, Some(0.3), None, None]);
        one.evidence.as_mut().unwrap().cpu.as_mut().unwrap().user_pct = 95.0;
        let found = transactions(&[&one], 0).unwrap().bound.unwrap();
        assert_eq!((found.resource, found.reached_pct), (Resource::Cpu, 95.0));
    }

    #[test]
    fn a_limit_binds_what_was_done_of_what_it_limits() {
        let mut one = replicate([10; 10]);
        let used = one.streams[0].transactions.as_mut().unwrap().used.as_mut().unwrap();
        (used.page_reads, used.redo_bytes) = (Some(400.0), Some(6e5));
        used.doublewrite_pages = Some(30.0);
        let bound_by = |rate, writes, sectors_written| {
            let mut limited = one.clone();
            let counters = DeviceCounters { writes, sectors_written, ..DeviceCounters::default() };
            let throttle = ThrottleEvidence {
                io_limit_used_pct: Some(90.0),
                io_limit_rate: Some(rate),
                ..ThrottleEvidence::default()
            };
            limited.evidence = Some(Evidence {
                device_delta: Some(DeviceDelta { seconds: 2.0, counters }),
                throttle: Some(throttle),
                ..Evidence::default()
            });
            let found = transactions(&[&limited], 0).unwrap().bound.unwrap();
            assert_eq!((found.reached_pct, found.value), (90.0, 50.0 / 0.9));
            found.resource
        };
        assert_eq!(bound_by(LimitedRate::Reads, 50, 2000), Resource::PageReads);
        assert_eq!(bound_by(LimitedRate::Writes, 50, 2000), Resource::PageWrites, "30 of 50");
        assert_eq!(bound_by(LimitedRate::Writes, 90, 2000), Resource::LogWrites, "30 of 90");
        assert_eq!(bound_by(LimitedRate::WriteBytes, 50, 2000), Resource::LogWrites);
        assert_eq!(bound_by(LimitedRate::WriteBytes, 50, 3000), Resource::PageWrites);
    }

    #[test]
    fn a_second_database_and_readers_have_figures_of_their_own() {
        let mut beside = replicate([10; 10]);
        let used = ResourceUse { page_writes: Some(90.0), ..ResourceUse::default() };
        let counts = beside.streams[0].transactions.as_mut().unwrap();
        counts.second = Some(SecondDatabase { tps: 7.0, used });
        counts.readers = Some(ReaderFigures {
            reads_per_s: 80.0,
            latency_mean_us: 12_500.0,
            latency_p99_us: 40_000.0,
        });
        let found = transactions(&[&beside], 0).unwrap();
        let value = |name: &str| found.figures.get(name).map(|figure| figure.value);
        assert_eq!(value("second_tps"), Some(7.0));
        assert_eq!(value("second_pages_per_s"), Some(45.0));
        assert_eq!(value("second_pages_pct"), Some(75.0), "90 of 120");
        assert_eq!(value("tps"), Some(50.0), "the point's own");
        let names = ["reader_iops", "reader_latency_mean_us", "reader_latency_p99_us"];
        assert_eq!(names.map(value), [Some(80.0), Some(12_500.0), Some(40_000.0)]);
    }
}
