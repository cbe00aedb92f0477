//! From windows of transactions to the document of a run.
//!
//! Invariant: every figure comes from one replicate; of several levels the best one is shown, and
//! all of them beside it. It measures nothing and knows no database: what a target says of itself
//! is handed in.

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
    LatencyHistogram, LatencyUs, LoadPoint, LowSpell, Stability, Verdicts, drift, knee, low_spells,
    stability,
};

/// Stalls that a document lists: the longest.
const STALLS_MAX: usize = 100;

/// What is known of a run of transactions beside its windows.
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
    Driven::of(replicate).map_or(0.0, |driven| driven.tps())
}

/// A percentile of response time over everything that was due, in microseconds. Arrivals that
/// failed, were dropped or still waited at the end count as slower than any; `None` where the
/// percentile falls among these.
pub fn response_percentile_us(replicate: &Replicate, percentile: f64) -> Option<f64> {
    Driven::of(replicate)?.response_percentile_us(percentile)
}

/// The times in which a replicate was below half its mean rate, in their order. `cause` names each
/// from when to when it lasted, in seconds since its window opened.
pub fn transaction_stalls(
    replicate: &Replicate,
    cause: &dyn Fn(f64, f64) -> (StallCause, String),
) -> Vec<TransactionStall> {
    let Some(driven) = Driven::of(replicate) else { return Vec::new() };
    let (series, warm_up_s) = (driven.stream.series.totals(), driven.counts.warm_up_s);
    let mut spells = low_spells(&series, driven.stream.series.width_s);
    spells.retain(|spell| spell.length_s >= StallRule::WINDOW.seconds_min(driven.tps()));
    spells.sort_by(|a, b| b.length_s.total_cmp(&a.length_s));
    spells.truncate(STALLS_MAX);
    spells.sort_by(|a, b| a.start_s.total_cmp(&b.start_s));
    let stall = |spell: &LowSpell| {
        let from_s = warm_up_s + spell.start_s;
        let (cause, evidence) = cause(from_s, from_s + spell.length_s);
        let min_tps = spell.min_over_mean_1s * driven.tps();
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
    let all: Vec<Driven<'_>> = replicates.iter().filter_map(Driven::of).collect();
    let mut document = shown(&all, facts.latency_target.as_ref())?.document(facts);
    if all.len() > 1 || facts.latency_target.is_some() {
        let level = |driven: &Driven<'_>| driven.level(facts.latency_target.as_ref());
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
fn shown<'d, 'a>(all: &'d [Driven<'a>], target: Option<&LatencyTarget>) -> Option<&'d Driven<'a>> {
    let best = || all.iter().max_by(|a, b| a.tps().total_cmp(&b.tps()));
    let Some(target) = target else { return best() };
    let rate = |driven: &&Driven<'_>| rate_of(driven.spec).unwrap_or(f64::INFINITY);
    let held = all.iter().find(|driven| target.rate_per_s == rate_of(driven.spec));
    held.filter(|_| target.rate_per_s.is_some())
        .or_else(|| all.iter().min_by(|a, b| rate(a).total_cmp(&rate(b))))
}

/// The fewest threads that bring nearly all of the best throughput, where more were measured.
fn knee_of(levels: &[TransactionLevel]) -> Option<u32> {
    let point = |level: &TransactionLevel| LoadPoint {
        concurrency: level.threads,
        iops: level.tps,
        latency_us_mean: level.latency_us.mean,
    };
    let points: Vec<LoadPoint> = levels.iter().map(point).collect();
    knee(&points).filter(|knee| knee.seen).map(|knee| knee.point.concurrency)
}

/// A replicate that is one of transactions.
struct Driven<'a> {
    replicate: &'a Replicate,
    spec: &'a TransactionSpec,
    stream: &'a StreamFigures,
    counts: &'a TransactionFigures,
}

impl<'a> Driven<'a> {
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

#[cfg(test)]
mod tests;
