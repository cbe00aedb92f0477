//! What a longer request queue does: throughput and the device's own figures.
//!
//! Invariant: two points are compared that differ in the length of the queue alone: the longest
//! that the kernel took with the kernel's own default, or with the shortest where that was not
//! measured, so that nothing is chosen after seeing the figures; replicates are paired, and all
//! comparisons of a study are one family.

use std::collections::BTreeMap;

use iostrata_plan::study::{FactorLevels, LevelAt, StudyPlan};
use iostrata_run::host::Iostat;
use iostrata_run::{DeviceChange, DeviceMetric, QueueChange, Replicate, StudyPoint};
use iostrata_stats::{Comparison, Conclusion, Measured, holm_of_known, paired, paired_by_number};

use super::axis::place;
use super::effect::allowed;
use super::points::{figures, groups};
use crate::figure::mean;
use crate::observed::PointLog;

/// The factor and queue attribute that is examined.
pub(crate) const NR_REQUESTS: &str = "nr_requests";

/// The length that block devices have unless another is set (`BLKDEV_DEFAULT_RQ` of Linux).
/// A shorter queue also holds fewer requests than many devices take at a time.
const DEFAULT_LENGTH: u64 = 128;

const METRICS: [DeviceMetric; 5] = [
    DeviceMetric::RequestsPerS,
    DeviceMetric::RequestKib,
    DeviceMetric::MergedPerS,
    DeviceMetric::QueueSize,
    DeviceMetric::AwaitMs,
];

/// A figure of the device over reads and writes together.
pub(crate) fn device_figure(metric: DeviceMetric, iostat: &Iostat) -> Option<f64> {
    match metric {
        DeviceMetric::RequestsPerS => Some(iostat.reads_per_s + iostat.writes_per_s),
        DeviceMetric::RequestKib => iostat.request_kib(),
        DeviceMetric::MergedPerS => Some(iostat.reads_merged_per_s + iostat.writes_merged_per_s),
        DeviceMetric::QueueSize => Some(iostat.queue_size),
        DeviceMetric::AwaitMs => iostat.await_ms(),
    }
}

/// One comparison for every group of points that differ in the length of the queue alone.
pub(crate) fn queue_changes(
    plan: &StudyPlan,
    seen: &BTreeMap<&str, PointLog<'_>>,
    points: &[StudyPoint],
) -> Vec<QueueChange> {
    let is_varied = |factor: &&FactorLevels| factor.factor == NR_REQUESTS;
    if plan.factors.iter().find(is_varied).is_none_or(|factor| factor.levels.len() < 2) {
        return Vec::new();
    }
    let taken = points.iter().filter_map(|point| Some((&*point.levels, (took(point)?, point))));
    let ends = groups(NR_REQUESTS, taken).into_iter().filter_map(|(levels, members)| {
        // Of points for which the kernel took the same, the first.
        let default = members.iter().find(|(took, _)| *took == DEFAULT_LENGTH);
        let shortest = *default.or(members.iter().min_by_key(|(took, _)| *took))?;
        let longest = *members.iter().rev().max_by_key(|(took, _)| *took)?;
        (shortest.0 < longest.0).then_some(Ends { levels, shortest, longest })
    });
    let compared: Vec<(Ends<'_>, Comparison)> =
        ends.filter_map(|ends| compared(&ends, seen).map(|found| (ends, found))).collect();
    let adjusted = holm_of_known(compared.iter().map(|(_, found)| found.p));
    let change =
        |((ends, found), p): (&(Ends<'_>, Comparison), Option<f64>)| change(ends, found, p, seen);
    compared.iter().zip(adjusted).map(change).collect()
}

/// A point with the length of its queue that the kernel took.
type PointAtLength<'a> = (u64, &'a StudyPoint);

/// Two points that differ in the length of the queue alone, with the lengths that were taken.
struct Ends<'a> {
    levels: Vec<LevelAt>,
    shortest: PointAtLength<'a>,
    longest: PointAtLength<'a>,
}

/// The length that the kernel took at a point; the shortest, should its devices differ.
fn took(point: &StudyPoint) -> Option<u64> {
    let lengths = point.queue.iter().filter(|taken| taken.attribute == NR_REQUESTS);
    lengths.filter_map(|taken| taken.took.parse().ok()).min()
}

/// Throughput with the longest queue over that with the shortest, not adjusted for others.
fn compared(ends: &Ends<'_>, seen: &BTreeMap<&str, PointLog<'_>>) -> Option<Comparison> {
    let of = |point: &StudyPoint| -> Option<BTreeMap<u32, Measured>> {
        let figures = figures(seen.get(point.id.as_str())?).into_iter();
        Some(figures.filter(|(_, figure)| figure.value > 0.0).collect())
    };
    paired_by_number(&of(ends.shortest.1)?, &of(ends.longest.1)?).ok()
}

fn change(
    ends: &Ends<'_>,
    Comparison { ratio, .. }: &Comparison,
    p: Option<f64>,
    seen: &BTreeMap<&str, PointLog<'_>>,
) -> QueueChange {
    let conclusion = Conclusion::of(p, ratio.value);
    let device: Vec<DeviceChange> =
        METRICS.into_iter().filter_map(|metric| device_change(metric, ends, seen)).collect();
    QueueChange {
        text: sentence(ends, ratio, conclusion),
        levels: ends.levels.clone(),
        points: [ends.shortest.1.id.clone(), ends.longest.1.id.clone()],
        took: [ends.shortest.0, ends.longest.0],
        ratio: ratio.value,
        ratio_ci95: ratio.ci95,
        ratio_n: ratio.n,
        conclusion,
        device,
        verdicts: ratio.verdicts.clone(),
    }
}

fn sentence(ends: &Ends<'_>, ratio: &Measured, conclusion: Conclusion) -> String {
    let (place, short, long) = (place(&ends.levels), ends.shortest.0, ends.longest.0);
    let interval =
        ratio.ci95.map_or_else(String::new, |[low, high]| format!(" (95 % {low:.2} to {high:.2})"));
    match conclusion {
        Conclusion::Higher | Conclusion::Lower => format!(
            "{place}: {:.2} times the requests per second with {long} requests in the queue as \
             with {short}{interval}",
            ratio.value
        ),
        Conclusion::NoMeasurableDifference => {
            let most = allowed(ratio);
            format!("{place}: no measurable difference between {short} and {long} requests{most}")
        }
        Conclusion::TooFewPairs => {
            format!("{place}: too few pairs to compare {short} and {long} requests")
        }
    }
}

/// A figure of the device at both points; pairs of replicates decide what follows.
fn device_change(
    metric: DeviceMetric,
    ends: &Ends<'_>,
    seen: &BTreeMap<&str, PointLog<'_>>,
) -> Option<DeviceChange> {
    let of = |point: &StudyPoint| by_replicate(metric, seen.get(point.id.as_str())?);
    let (from, to) = (of(ends.shortest.1)?, of(ends.longest.1)?);
    let both = from.iter().filter_map(|(number, from)| Some((*from, *to.get(number)?)));
    let (first, second): (Vec<f64>, Vec<f64>) = both.unzip();
    let comparison = paired(&first, &second).ok();
    Some(DeviceChange {
        metric,
        from: mean(from.values().copied())?,
        to: mean(to.values().copied())?,
        ratio: comparison.as_ref().map(|one| one.ratio.value),
        ratio_ci95: comparison.as_ref().and_then(|one| one.ratio.ci95),
        conclusion: comparison.map_or(Conclusion::TooFewPairs, |one| one.conclusion),
    })
}

fn by_replicate(metric: DeviceMetric, seen: &PointLog<'_>) -> Option<BTreeMap<u32, f64>> {
    let figure = |(round, one): (u32, &Replicate)| {
        let delta = one.evidence.as_ref()?.device_delta?;
        Some((round, device_figure(metric, &Iostat::of(&delta))?))
    };
    let all: BTreeMap<u32, f64> = seen.rounds().filter_map(figure).collect();
    (!all.is_empty()).then_some(all)
}
