//! The points of a study from its event log.
//!
//! Invariant: a point's figure is taken over its replicates together; evidence is summed over them
//! before shares and means are taken.

use std::collections::BTreeMap;

use iostrata_plan::OpKind;
use iostrata_plan::study::{Cell, LevelAt, StudyPlan};
use iostrata_run::host::{CpuShares, DeviceDelta, EmulatedDisk, Iostat, Profile, QueueReadback};
use iostrata_run::{Event, OpFigures, PointProfile, Replicate, StudyOp, StudyPoint};
use iostrata_stats::{
    LatencyHistogram, LatencyUs, Measured, Percentile, Verdicts, combine, combine_weighted,
    pooled_percentiles, pooled_summary, until_precise,
};

use super::caution::cautions;
use super::{stolen, transactions};
use crate::figure::{combined, mean, metric_of, op_of, range_of_few};
use crate::observed::{self, PointLog};

/// Everything by point.
pub(crate) fn by_point(events: &[Event]) -> BTreeMap<&str, PointLog<'_>> {
    observed::by_point(events, stolen::leave_out)
}

/// The points of a plan that were measured at least once, in its order.
pub(crate) fn points(plan: &StudyPlan, seen: &BTreeMap<&str, PointLog<'_>>) -> Vec<StudyPoint> {
    let point = |cell: &Cell| point(cell, seen.get(cell.id.as_str())?);
    plan.cells.iter().filter_map(point).collect()
}

/// A cell's point; nothing without a replicate.
pub(crate) fn point(cell: &Cell, seen: &PointLog<'_>) -> Option<StudyPoint> {
    let replicates = &seen.replicates;
    let figure = until_precise(combined(replicates.iter().copied())?, replicates.len());
    let measured_s: f64 = replicates.iter().map(|one| one.duration_s).sum();
    let deltas = replicates.iter().filter_map(|one| one.evidence.as_ref()?.device_delta);
    let delta: Option<DeviceDelta> = deltas.reduce(|sum, one| sum.plus(&one));
    Some(StudyPoint {
        id: cell.id.clone(),
        title: cell.title.clone(),
        levels: cell.levels.clone(),
        value: figure.value,
        value_ci95: figure.ci95.map(not_negative),
        value_n: figure.n,
        value_range: range_of_few(replicates.iter().copied()),
        unit: replicates.first().map_or("IOPS", |one| &one.point.metric.unit).to_owned(),
        bytes_per_s: bytes(replicates) / measured_s.max(f64::MIN_POSITIVE),
        replicates: replicates.len() as u32,
        measured_s,
        ops: OpKind::ALL.iter().filter_map(|&kind| Some((kind, op(replicates, kind)?))).collect(),
        depth_mean: mean(replicates.iter().map(|one| depth(one))).unwrap_or(0.0),
        cpu_ns_per_io: mean(replicates.iter().filter_map(|one| one.streams.first()?.cpu.ns_per_io)),
        switches_per_io: mean(replicates.iter().filter_map(|one| switches_per_io(one))),
        cpu: cpu(replicates),
        device: delta.as_ref().map(Iostat::of),
        queue: queue(replicates),
        emulated: emulated(replicates),
        io_pressure_full_pct: mean(replicates.iter().filter_map(|one| io_pressure(one))),
        io_limit_used_pct: mean(replicates.iter().filter_map(|one| limit_used(one))),
        profile: profile(&seen.profiles),
        latency_by_layer: seen.traced.map(|traced| traced.latency.clone()),
        transactions: transactions::transactions(replicates, seen.left_out),
        verdicts: cautions(cell, replicates),
    })
}

/// What the queue was set to, each once; replicates do not differ unless the kernel did.
fn queue(replicates: &[&Replicate]) -> Vec<QueueReadback> {
    let mut all: Vec<QueueReadback> = Vec::new();
    let evidence = replicates.iter().filter_map(|one| one.evidence.as_ref());
    for taken in evidence.flat_map(|evidence| &evidence.queue) {
        if !all.contains(taken) {
            all.push(taken.clone());
        }
    }
    all
}

fn emulated(replicates: &[&Replicate]) -> Option<EmulatedDisk> {
    let each = replicates.iter().filter_map(|one| one.evidence.as_ref()?.emulated.clone());
    each.reduce(|sum, one| sum.plus(&one))
}

/// The replicates of a point by their round, as figures.
pub(crate) fn figures(seen: &PointLog<'_>) -> Vec<(u32, Measured)> {
    seen.rounds().filter_map(|(round, one)| Some((round, metric_of(one)?))).collect()
}

/// Levels without a factor's.
pub(crate) fn without(levels: &[LevelAt], factor: &str) -> Vec<LevelAt> {
    levels.iter().filter(|at| at.factor != factor).cloned().collect()
}

/// Groups with the same levels apart from a factor's, in the order of the first of each.
pub(crate) fn groups<'a, T>(
    factor: &str,
    all: impl Iterator<Item = (&'a [LevelAt], T)>,
) -> Vec<(Vec<LevelAt>, Vec<T>)> {
    let mut groups: Vec<(Vec<LevelAt>, Vec<T>)> = Vec::new();
    for (levels, one) in all {
        let others = without(levels, factor);
        match groups.iter_mut().find(|(levels, _)| *levels == others) {
            Some((_, members)) => members.push(one),
            None => groups.push((others, vec![one])),
        }
    }
    groups
}

fn ops<'a>(replicates: &[&'a Replicate], kind: OpKind) -> Vec<&'a OpFigures> {
    let of = |one: &&'a Replicate| op_of(one.streams.first()?, kind);
    replicates.iter().filter_map(of).collect()
}

fn op(replicates: &[&Replicate], kind: OpKind) -> Option<StudyOp> {
    let ops = ops(replicates, kind);
    let iops = combine(&ops.iter().map(|op| op.iops.clone()).collect::<Vec<_>>())?;
    let means: Vec<(f64, Measured)> =
        ops.iter().map(|op| (op.iops.value, op.latency_mean_us.clone())).collect();
    let service = |op: &&OpFigures| (op.iops.value, op.latency_us);
    let (latency_us, latency_percentiles) =
        latency(&ops, ops.iter().map(service).collect(), OpFigures::service);
    let of_response = |op: &&OpFigures| Some((op.iops.value, op.response_us?));
    let responses: Vec<(f64, LatencyUs)> = ops.iter().filter_map(of_response).collect();
    let response = (!responses.is_empty()).then(|| latency(&ops, responses, OpFigures::response));
    let (response_us, response_percentiles) = response.unzip();
    Some(StudyOp {
        iops: iops.value,
        iops_ci95: iops.ci95.map(not_negative),
        iops_n: iops.n,
        latency_us,
        latency_us_mean_ci95: combine_weighted(&means).and_then(|mean| mean.ci95),
        latency_percentiles,
        response_us,
        response_percentiles: response_percentiles.unwrap_or_default(),
    })
}

/// The distribution of the requests of all replicates together, with the intervals of its
/// percentiles. The mean is weighted by requests per second, as the rate is taken over replicates
/// of equal weight. Where histograms are missing, in runs of older versions, means of the
/// percentiles stand in their place, without intervals.
fn latency(
    ops: &[&OpFigures],
    summaries: Vec<(f64, LatencyUs)>,
    of: fn(&OpFigures) -> (&LatencyHistogram, &Measured),
) -> (LatencyUs, Vec<Percentile>) {
    let weighted = weighted_means(&summaries);
    let parts: Vec<(&LatencyHistogram, &Measured)> = ops.iter().map(|op| of(op)).collect();
    let is_whole = parts.iter().zip(ops).all(|((one, _), op)| one.count() == op.ios);
    match pooled_summary(parts.iter().map(|(one, _)| *one)).filter(|_| is_whole) {
        Some(all) => {
            let percentiles = pooled_percentiles(&parts, &PERCENTS);
            (LatencyUs { mean: weighted.mean, ..all }, percentiles)
        }
        None => (weighted, Vec::new()),
    }
}

/// The percentiles of a latency in microseconds.
const PERCENTS: [f64; 4] = [50.0, 95.0, 99.0, 99.9];

/// Means weighted by requests per second; the largest of the maxima.
fn weighted_means(replicates: &[(f64, LatencyUs)]) -> LatencyUs {
    let all: f64 = replicates.iter().map(|(rate, _)| rate).sum();
    let weighted = |of: fn(&LatencyUs) -> f64| {
        let sum: f64 = replicates.iter().map(|(rate, one)| rate * of(one)).sum();
        if all > 0.0 { sum / all } else { 0.0 }
    };
    LatencyUs {
        mean: weighted(|one| one.mean),
        p50: weighted(|one| one.p50),
        p95: weighted(|one| one.p95),
        p99: weighted(|one| one.p99),
        p99_9: weighted(|one| one.p99_9),
        max: replicates.iter().map(|(_, one)| one.max).fold(0.0, f64::max),
    }
}

fn bytes(replicates: &[&Replicate]) -> f64 {
    let streams = replicates.iter().filter_map(|one| one.streams.first());
    streams.flat_map(|stream| stream.ops.iter()).map(|(_, op)| op.bytes as f64).sum()
}

fn depth(replicate: &Replicate) -> f64 {
    replicate.streams.iter().map(|stream| stream.depth_mean).sum()
}

fn requests(replicate: &Replicate) -> u64 {
    let ops = replicate.streams.first().into_iter().flat_map(|stream| stream.ops.iter());
    ops.filter(|(kind, _)| *kind != OpKind::Sync).map(|(_, op)| op.ios).sum()
}

fn switches_per_io(replicate: &Replicate) -> Option<f64> {
    let switches = replicate.evidence.as_ref()?.switches?;
    let requests = requests(replicate);
    let all = (switches.voluntary + switches.involuntary) as f64;
    (requests > 0).then(|| all / requests as f64)
}

fn io_pressure(replicate: &Replicate) -> Option<f64> {
    replicate.evidence.as_ref()?.pressure.as_ref()?.io.as_ref()?.full_pct
}

fn limit_used(replicate: &Replicate) -> Option<f64> {
    replicate.evidence.as_ref()?.throttle.as_ref()?.io_limit_used_pct
}

fn cpu(replicates: &[&Replicate]) -> Option<CpuShares> {
    let shares: Vec<CpuShares> =
        replicates.iter().filter_map(|one| one.evidence.as_ref()?.cpu).collect();
    let mean = |of: fn(&CpuShares) -> f64| mean(shares.iter().map(of));
    Some(CpuShares {
        user_pct: mean(|one| one.user_pct)?,
        nice_pct: mean(|one| one.nice_pct)?,
        system_pct: mean(|one| one.system_pct)?,
        idle_pct: mean(|one| one.idle_pct)?,
        iowait_pct: mean(|one| one.iowait_pct)?,
        irq_pct: mean(|one| one.irq_pct)?,
        softirq_pct: mean(|one| one.softirq_pct)?,
        steal_pct: mean(|one| one.steal_pct)?,
    })
}

/// The on-CPU profile of the measured windows, with the waits of the traced pass.
fn profile(profiles: &[&PointProfile]) -> Option<Profile> {
    let (measured, traced): (Vec<&PointProfile>, Vec<&PointProfile>) =
        profiles.iter().partition(|one| one.replicate.is_some());
    let waits = traced.last().and_then(|one| one.profile.off_cpu.clone());
    let mut merged = Profile::merge(measured.iter().map(|one| &one.profile))
        .or_else(|| traced.last().map(|one| one.profile.clone()))?;
    merged.off_cpu = waits;
    Some(merged)
}

/// What is counted is never negative, so neither is its interval.
fn not_negative([low, high]: [f64; 2]) -> [f64; 2] {
    [low.max(0.0), high]
}

/// What at least half of the points carry, of what speaks against a whole run.
pub(crate) fn run_verdicts(points: &[StudyPoint]) -> Verdicts {
    let mut all = Verdicts::none();
    for point in points {
        for verdict in point.verdicts.iter() {
            let carrying = points.iter().filter(|one| one.verdicts.has(verdict)).count();
            if carrying * 2 >= points.len() {
                all.add(verdict);
            }
        }
    }
    all
}
