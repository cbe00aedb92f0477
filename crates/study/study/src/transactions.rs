//! From windows of transactions to the document of a run.
//!
//! Invariant: every figure comes from one replicate; of several levels the best one is shown, with
//! all of them. It measures nothing and names no database: what a target reports about itself is
//! handed in.

use std::collections::BTreeMap;

use iostrata_database::target::StallRule;
use iostrata_plan::{
    Better, CurvePlace, Layer, Metric, MetricKind, OpKind, Point, TransactionPacing,
    TransactionSpec,
};
use iostrata_run::{
    DatasetGrowth, DriverCost, LatencyTarget, Replicate, StallCause, StreamFigures,
    TransactionDocument, TransactionDurability, TransactionFigures, TransactionLevel,
    TransactionStall, TransactionTarget,
};
use iostrata_stats::{
    LatencyHistogram, LatencyUs, LowSpell, Stability, Verdicts, drift, knee, low_spells, stability,
};

/// Stalls that a document lists: the longest.
const STALLS_MAX: usize = 100;

/// What is known of a run of transactions besides its windows.
#[derive(Clone, Debug, Default)]
pub struct TransactionFacts {
    /// What it ran on.
    pub target: TransactionTarget,
    /// What a commit survives there.
    pub durability: TransactionDurability,
    /// What transactions see of others.
    pub isolation: String,
    /// How the workload differs from the specification that it follows.
    pub deviations: Vec<String>,
    /// How much the tables grew.
    pub dataset: Option<DatasetGrowth>,
    /// What the search for a rate came to, if there was one.
    pub latency_target: Option<LatencyTarget>,
}

/// The point of a load of transactions; points of a staircase differ in their threads, those of a
/// search in their rates.
pub fn transaction_point(spec: &TransactionSpec) -> Point {
    let TransactionSpec { workload, target, threads, .. } = spec;
    let plural = if *threads == 1 { "thread" } else { "threads" };
    let (at, due) = match rate_of(spec) {
        Some(rate) => (format!("_at_{rate:.0}"), format!(", {rate:.0} arrivals/s")),
        None => (String::new(), String::new()),
    };
    Point {
        id: format!("{workload}_{threads}{at}"),
        title: format!("{workload}, {threads} {plural}{due}, {target}"),
        layer: Layer::Transactions,
        streams: Vec::new(),
        metric: Metric {
            stream: 0,
            op: if workload == "tpcc" { OpKind::NewOrder } else { OpKind::Transaction },
            kind: MetricKind::TotalIops,
            unit: "transactions/s".to_owned(),
            better: Better::Higher,
        },
        curve: Some(CurvePlace {
            curve: workload.clone(),
            axis: "threads".to_owned(),
            x: f64::from(*threads),
        }),
        block: workload.clone(),
        levels: Vec::new(),
        transactions: Some(spec.clone()),
    }
}

/// Arrivals per second by the schedule.
fn rate_of(spec: &TransactionSpec) -> Option<f64> {
    match spec.pacing {
        TransactionPacing::Open { rate_per_s, .. } => Some(rate_per_s),
        TransactionPacing::Closed | TransactionPacing::Terminals { .. } => None,
    }
}

/// Completed transactions per second of a replicate; 0 where it has none.
pub fn transactions_per_s(replicate: &Replicate) -> f64 {
    TransactionReplicate::of(replicate).map_or(0.0, |driven| driven.tps())
}

/// A percentile of response time over everything that was due, in microseconds. Arrivals that
/// failed, were dropped or still waited at the end count as slower than any; `None` where the
/// percentile falls among these.
pub fn response_percentile_us(replicate: &Replicate, percentile: f64) -> Option<f64> {
    TransactionReplicate::of(replicate)?.response_percentile_us(percentile)
}

/// The times in which a replicate was below half its mean rate, in their order. `cause` names each
/// from when to when it lasted, in seconds since its window opened.
pub fn transaction_stalls(
    replicate: &Replicate,
    cause: &dyn Fn(f64, f64) -> (StallCause, String),
) -> Vec<TransactionStall> {
    let Some(driven) = TransactionReplicate::of(replicate) else { return Vec::new() };
    let (series, warm_up_s) = (driven.stream.series.totals(), driven.counts.warm_up_s);
    let mut spells = low_spells(&series, driven.stream.series.width_s);
    spells.retain(|spell| StallRule::WINDOW.is_stall(spell, driven.tps()));
    spells.sort_by(|a, b| b.length_s.total_cmp(&a.length_s));
    spells.truncate(STALLS_MAX);
    spells.sort_by(|a, b| a.start_s.total_cmp(&b.start_s));
    let stall = |spell: &LowSpell| {
        let from_s = warm_up_s + spell.start_s;
        let (cause, evidence) = cause(from_s, from_s + spell.length_s);
        let min_tps = spell.share_min * driven.tps();
        let (t_s, length_s) = (spell.start_s, spell.length_s);
        TransactionStall { t_s, length_s, min_tps, cause, evidence }
    };
    spells.iter().map(stall).collect()
}

/// The document of a run: of each level of a staircase or a search one replicate, in its order.
/// `None` where none of them has figures of transactions.
pub fn transaction_document(
    replicates: &[Replicate],
    facts: &TransactionFacts,
) -> Option<TransactionDocument> {
    let all: Vec<TransactionReplicate<'_>> =
        replicates.iter().filter_map(TransactionReplicate::of).collect();
    let mut document = shown(&all, facts.latency_target.as_ref())?.document(facts);
    if all.len() > 1 || facts.latency_target.is_some() {
        let level = |driven: &TransactionReplicate<'_>| driven.level(facts.latency_target.as_ref());
        document.levels = all.iter().map(level).collect();
    }
    if facts.latency_target.is_none() {
        document.knee_threads = knee_of(&document.levels);
    }
    document.check();
    Some(document)
}

/// The replicate that is shown: the one with the most throughput; of a search the highest rate
/// that held its objective, or the lowest one that was tried.
fn shown<'d, 'a>(
    all: &'d [TransactionReplicate<'a>],
    target: Option<&LatencyTarget>,
) -> Option<&'d TransactionReplicate<'a>> {
    let best = || all.iter().max_by(|a, b| a.tps().total_cmp(&b.tps()));
    let Some(target) = target else { return best() };
    let rate = |driven: &&TransactionReplicate<'_>| rate_of(driven.spec).unwrap_or(f64::INFINITY);
    let held = all.iter().find(|driven| target.rate_per_s == rate_of(driven.spec));
    held.filter(|_| target.rate_per_s.is_some())
        .or_else(|| all.iter().min_by(|a, b| rate(a).total_cmp(&rate(b))))
}

/// The fewest threads that bring nearly all of the best throughput, where more were measured.
fn knee_of(levels: &[TransactionLevel]) -> Option<u32> {
    let points: Vec<(u32, f64)> = levels.iter().map(|level| (level.threads, level.tps)).collect();
    knee(&points).filter(|knee| knee.seen).map(|knee| points[knee.index].0)
}

/// A replicate that is one of transactions.
struct TransactionReplicate<'a> {
    replicate: &'a Replicate,
    spec: &'a TransactionSpec,
    stream: &'a StreamFigures,
    counts: &'a TransactionFigures,
}

impl<'a> TransactionReplicate<'a> {
    fn of(replicate: &'a Replicate) -> Option<Self> {
        let spec = replicate.point.transactions.as_ref()?;
        let stream = replicate.streams.first()?;
        let counts = stream.transactions.as_ref()?;
        Some(Self { replicate, spec, stream, counts })
    }

    fn tps(&self) -> f64 {
        self.stream.total.as_ref().map_or(0.0, |total| total.value)
    }

    fn completed(&self) -> u64 {
        self.stream.ops.iter().map(|(_, op)| op.ios).sum()
    }

    fn nopm(&self) -> Option<f64> {
        let new_orders = self.stream.ops[OpKind::NewOrder].as_ref()?;
        Some(new_orders.iops.value * 60.0)
    }

    fn stability(&self) -> Option<Stability> {
        stability(&self.stream.series.totals(), self.stream.series.width_s)
    }

    /// Service latency of all types together.
    fn latency(&self) -> LatencyUs {
        let mut all = LatencyHistogram::default();
        self.stream.ops.iter().for_each(|(_, op)| all.merge(&op.latencies.service));
        all.summary().unwrap_or_default()
    }

    fn verdicts(&self) -> Verdicts {
        let mut verdicts = self.replicate.verdicts.clone();
        verdicts.merge(&self.stream.verdicts);
        verdicts
    }

    /// Response latency of all types together.
    fn responses(&self) -> LatencyHistogram {
        let mut all = LatencyHistogram::default();
        let of = self.stream.ops.iter().filter_map(|(_, op)| op.latencies.response.as_ref());
        of.for_each(|response| all.merge(response));
        all
    }

    fn response_percentile_us(&self, percentile: f64) -> Option<f64> {
        let responses = self.responses();
        let failed: u64 = self.counts.errors.values().sum();
        let missed = failed + self.counts.dropped + self.counts.waiting;
        let done = responses.count() as f64;
        let rank = percentile / 100.0 * (done + missed as f64);
        if responses.is_empty() || rank > done {
            return None;
        }
        responses.percentile_us(100.0 * rank / done)
    }

    fn driver(&self) -> DriverCost {
        let completed = self.completed();
        let per_txn = |count: u64| (completed > 0).then(|| count as f64 / completed as f64);
        let cpu = &self.stream.cpu;
        DriverCost {
            cpu_s: cpu.user_s + cpu.sys_s,
            us_per_txn: cpu.ns_per_io.map(|ns| ns / 1e3),
            round_trips_per_txn: per_txn(self.counts.round_trips),
            statements_per_txn: per_txn(self.counts.statements),
        }
    }

    fn level(&self, target: Option<&LatencyTarget>) -> TransactionLevel {
        let total = self.stream.total.as_ref();
        let holds = |target: &LatencyTarget| {
            let found = self.response_percentile_us(target.percentile);
            found.is_some_and(|found_us| found_us <= target.target_us)
        };
        let rate_per_s = rate_of(self.spec);
        TransactionLevel {
            threads: self.spec.threads,
            rate_per_s,
            tps: self.tps(),
            tps_ci95: total.and_then(|total| total.ci95),
            tps_n: total.map_or(0, |total| total.n),
            nopm: self.nopm(),
            latency_us: self.latency(),
            response_us: self.responses().summary(),
            holds_target: target.filter(|_| rate_per_s.is_some()).map(holds),
            stability: self.stability(),
            errors: self.counts.errors.values().sum(),
            us_per_txn: self.driver().us_per_txn,
            verdicts: self.verdicts(),
        }
    }

    fn document(&self, facts: &TransactionFacts) -> TransactionDocument {
        let TransactionLevel { threads, tps, tps_ci95, tps_n, nopm, stability, verdicts, .. } =
            self.level(None);
        let completed = self.completed() as f64;
        let done = || self.stream.ops.iter().filter(|(_, op)| op.ios > 0);
        let response: BTreeMap<OpKind, LatencyUs> =
            done().filter_map(|(kind, op)| Some((kind, op.response_us?))).collect();
        let is_scheduled = self.spec.pacing.is_scheduled();
        TransactionDocument {
            workload: self.spec.workload.clone(),
            threads,
            tps,
            tps_ci95,
            tps_n,
            nopm,
            completed: self.stream.ops.iter().map(|(kind, op)| (kind, op.ios)).collect(),
            mix: done().map(|(kind, op)| (kind, op.ios as f64 / completed)).collect(),
            latency_us: done().map(|(kind, op)| (kind, op.latency_us)).collect(),
            response_us: is_scheduled.then_some(response),
            series: self.stream.series.per_second(),
            stability,
            drift: drift(&self.stream.series.totals(), self.stream.series.width_s),
            stalls: self.counts.stalls.clone(),
            sampler: self.counts.sampler,
            dataset: facts.dataset,
            insert: None,
            errors: self.counts.errors.clone(),
            retries: self.counts.retries,
            arrivals: is_scheduled.then_some(self.counts.arrivals),
            dropped: self.counts.dropped,
            waiting: self.counts.waiting,
            start_lateness_us_p99: self.stream.start_lateness_us_p99,
            driver: self.driver(),
            durability: facts.durability.clone(),
            isolation: facts.isolation.clone(),
            deviations: facts.deviations.clone(),
            levels: Vec::new(),
            knee_threads: None,
            latency_target: facts.latency_target,
            target: facts.target.clone(),
            duration_s: self.replicate.duration_s,
            warm_up_s: self.counts.warm_up_s,
            notes: self.stream.notes.clone(),
            run: None,
            unknown: Vec::new(),
            verdicts,
        }
    }
}

/// Documents of made-up windows.
#[cfg(test)]
mod tests {
    use std::time::Duration;

    use iostrata_plan::PerKind;
    use iostrata_run::{Cpu, OpFigures, Series};
    use iostrata_stats::{Latencies, Measured, Verdict};

    use super::*;

    fn op(ios: u64, duration_s: f64) -> OpFigures {
        let mut latencies = Latencies::new(true);
        (0..ios).for_each(|n| latencies.record(1_000_000 + n, 2_000_000 + n));
        let rate = ios as f64 / duration_s;
        let mean = Measured::new(1_000.0, [990.0, 1_010.0], 40, Verdicts::none());
        OpFigures {
            ios,
            bytes: 0,
            iops: Measured::new(rate, [rate * 0.99, rate * 1.01], 40, Verdicts::none()),
            latency_us: latencies.service.summary().unwrap(),
            latency_mean_us: mean.clone(),
            response_us: latencies.response.as_ref().and_then(LatencyHistogram::summary),
            response_mean_us: Some(mean.scaled(2.0)),
            latencies,
        }
    }

    /// Ten seconds of so many new orders and payments, in even tenths of a second.
    fn replicate(threads: u32, new_orders: u32, payments: u32) -> Replicate {
        let mut spec = TransactionSpec::new("tpcc", "engine:/data");
        (spec.threads, spec.runtime) = (threads, Some(Duration::from_secs(10)));
        let done = u64::from(new_orders + payments);
        let tps = done as f64 / 10.0;
        let each = |count: u32| vec![count / 100; 100];
        let ops: PerKind<OpFigures> = [
            (OpKind::NewOrder, op(u64::from(new_orders), 10.0)),
            (OpKind::Payment, op(u64::from(payments), 10.0)),
        ]
        .into_iter()
        .collect();
        let counts = TransactionFigures {
            errors: [("1213".to_owned(), 7)].into_iter().collect(),
            retries: 9,
            round_trips: 20 * done,
            statements: 30 * done,
            warm_up_s: 1.5,
            ..TransactionFigures::default()
        };
        let stream = StreamFigures {
            name: "tpcc".to_owned(),
            ops,
            total: Some(Measured::new(tps, [tps * 0.99, tps * 1.01], 90, Verdicts::none())),
            cpu: Cpu { user_s: 1.0, sys_s: 0.5, ns_per_io: Some(1.5e9 / done as f64) },
            series: Series {
                width_s: 0.1,
                counts: [(OpKind::NewOrder, each(new_orders)), (OpKind::Payment, each(payments))]
                    .into_iter()
                    .collect(),
                latency_mean_us: vec![1_000.0; 100],
            },
            transactions: Some(counts),
            ..StreamFigures::default()
        };
        Replicate {
            point: transaction_point(&spec),
            replicate: 0,
            started_s: 0.0,
            duration_s: 10.0,
            streams: vec![stream],
            evidence: None,
            verdicts: [Verdict::Steal].into_iter().collect(),
        }
    }

    fn facts() -> TransactionFacts {
        TransactionFacts {
            isolation: "repeatable read".to_owned(),
            deviations: vec!["no terminals".to_owned()],
            ..TransactionFacts::default()
        }
    }

    #[test]
    fn a_window_becomes_the_document_of_the_contract() {
        let document = transaction_document(&[replicate(8, 4_500, 5_500)], &facts()).unwrap();
        assert_eq!((document.tps, document.tps_n, document.threads), (1_000.0, 90, 8));
        assert_eq!(document.tps_ci95, Some([990.0, 1_010.0]));
        assert!((document.nopm.unwrap() - 27_000.0).abs() < 1e-9);
        assert!((document.mix[&OpKind::NewOrder] - 0.45).abs() < 1e-12);
        assert_eq!(document.completed[&OpKind::Payment], 5_500);
        assert_eq!(document.response_us, None, "a closed loop has no schedule");
        assert_eq!(document.series.t_s.len(), 10);
        assert!((document.series.t_s[9] - 10.0).abs() < 1e-9);
        assert!(document.series.tps.iter().all(|tps| (tps - 1_000.0).abs() < 1e-9));
        assert!((document.stability.unwrap().min_over_mean_1s - 1.0).abs() < 1e-9);
        assert_eq!((document.errors["1213"], document.retries), (7, 9));
        let driver = document.driver;
        assert_eq!(
            (driver.round_trips_per_txn, driver.statements_per_txn),
            (Some(20.0), Some(30.0))
        );
        assert!((driver.us_per_txn.unwrap() - 150.0).abs() < 1e-9 && driver.cpu_s == 1.5);
        assert!(document.levels.is_empty() && document.verdicts.has(Verdict::Steal));
        assert_eq!(document.warm_up_s, 1.5);
    }

    #[test]
    fn of_a_staircase_the_best_level_is_shown_and_its_knee() {
        let levels = [
            replicate(1, 1_000, 1_000),
            replicate(4, 4_000, 4_000),
            replicate(16, 4_100, 4_100),
            replicate(64, 3_000, 3_000),
        ];
        let document = transaction_document(&levels, &facts()).unwrap();
        assert_eq!((document.threads, document.tps), (16, 820.0));
        let threads: Vec<u32> = document.levels.iter().map(|level| level.threads).collect();
        assert_eq!((threads.as_slice(), document.knee_threads), (&[1, 4, 16, 64][..], Some(4)));
        assert!((document.levels[0].latency_us.p50 / 1_000.0 - 1.0).abs() < 0.01);
        let rising = transaction_document(&levels[..2], &facts()).unwrap();
        assert_eq!((rising.threads, rising.knee_threads), (4, None), "it was not seen to flatten");
    }

    #[test]
    fn a_window_in_which_nothing_completed_has_no_rate() {
        let mut nothing = replicate(1, 100, 100);
        nothing.streams[0].total = None;
        nothing.streams[0].ops = PerKind::default();
        nothing.streams[0].series = Series::default();
        let document = transaction_document(&[nothing], &facts()).unwrap();
        assert_eq!(document.unknown.len(), 1, "{:?}", document.unknown);
        assert_eq!((document.nopm, document.stability), (None, None));
        assert_eq!(document.driver.round_trips_per_txn, None);
        assert!(transaction_document(&[], &facts()).is_none());
    }

    #[test]
    fn the_last_third_is_set_against_the_first() {
        let mut slowing = replicate(8, 4_500, 5_500);
        let series = &mut slowing.streams[0].series;
        series.counts =
            [(OpKind::NewOrder, (0..100).map(|at| 120 - at / 2).collect())].into_iter().collect();
        let drift = transaction_document(&[slowing], &facts()).unwrap().drift.unwrap();
        assert!(drift.first_tps > 1_100.0 && drift.last_tps < 800.0, "{drift:?}");
        assert!(drift.is_significant() && (-35.0..-25.0).contains(&drift.change_pct), "{drift:?}");
    }

    #[test]
    fn stalls_are_told_on_the_clock_of_the_samples_and_of_the_window() {
        let mut stalled = replicate(8, 4_500, 5_500);
        let hole = |at: usize| if (40..55).contains(&at) { 0 } else { 100 };
        let series = &mut stalled.streams[0].series;
        series.counts = [(OpKind::NewOrder, (0..100).map(hole).collect())].into_iter().collect();
        let asked = std::cell::RefCell::new(Vec::new());
        let stalls = transaction_stalls(&stalled, &|from_s, to_s| {
            asked.borrow_mut().push((from_s, to_s));
            (StallCause::Device, "seen".to_owned())
        });
        let [stall] = &stalls[..] else { panic!("{stalls:?}") };
        assert!((stall.t_s - 4.0).abs() < 0.21 && (stall.length_s - 1.5).abs() < 0.21, "{stall:?}");
        assert_eq!((stall.min_tps, stall.cause), (0.0, StallCause::Device));
        let (from_s, to_s) = asked.borrow()[0];
        assert!((from_s - stall.t_s - 1.5).abs() < 1e-9, "the warm-up took 1.5 s");
        assert!((to_s - from_s - stall.length_s).abs() < 1e-9);
    }

    #[test]
    fn seconds_between_rare_transactions_are_no_stalls() {
        let mut rare = replicate(1, 3, 3);
        let every_other_second = (0..100).map(|at| u32::from(at % 20 == 0)).collect();
        rare.streams[0].series.counts =
            [(OpKind::NewOrder, every_other_second)].into_iter().collect();
        assert_eq!(transaction_stalls(&rare, &|_, _| (StallCause::Device, String::new())), []);
    }

    #[test]
    fn who_is_not_served_counts_as_slower_than_any() {
        let mut rated = replicate(8, 500, 500);
        assert!((response_percentile_us(&rated, 99.0).unwrap() / 2_000.0 - 1.0).abs() < 0.01);
        let counts = rated.streams[0].transactions.as_mut().unwrap();
        (counts.errors, counts.waiting) = (BTreeMap::new(), 11);
        assert_eq!(response_percentile_us(&rated, 99.0), None, "11 of 1011 are more than 1 %");
        assert!(response_percentile_us(&rated, 95.0).is_some());
    }

    #[test]
    fn a_search_shows_the_highest_rate_that_held() {
        let open = |rate_per_s, done| {
            let mut level = replicate(8, done, done);
            let spec = level.point.transactions.as_mut().unwrap();
            spec.pacing = TransactionPacing::Open {
                rate_per_s,
                process: iostrata_plan::RateProcess::Poisson,
                queue_max: 10,
                overload: iostrata_plan::Overload::Queue,
            };
            level.streams[0].transactions.as_mut().unwrap().errors = BTreeMap::new();
            level
        };
        let mut late = open(190.0, 900);
        late.streams[0].transactions.as_mut().unwrap().waiting = 100;
        let levels = [replicate(8, 1_000, 1_000), late, open(100.0, 500)];
        let target = LatencyTarget {
            percentile: 99.0,
            target_us: 3_000.0,
            rate_per_s: Some(100.0),
            ..LatencyTarget::default()
        };
        let facts = TransactionFacts { latency_target: Some(target), ..facts() };
        let document = transaction_document(&levels, &facts).unwrap();
        assert_eq!((document.tps, document.knee_threads), (100.0, None));
        let held: Vec<Option<bool>> =
            document.levels.iter().map(|level| level.holds_target).collect();
        assert_eq!(held, [None, Some(false), Some(true)]);
        assert_eq!(document.levels[2].rate_per_s, Some(100.0));
        let none = LatencyTarget { rate_per_s: None, ..target };
        let facts = TransactionFacts { latency_target: Some(none), ..facts };
        assert_eq!(transaction_document(&levels, &facts).unwrap().tps, 100.0, "the lowest tried");
    }
}
