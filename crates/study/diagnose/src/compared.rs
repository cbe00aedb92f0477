//! One pair compared: paired replicates, the effect with its interval, and whether it counts.
//!
//! Invariant: replicates pair by number; nothing is concluded from fewer than three pairs. Pairs in
//! which another process or the hypervisor interfered are left out where enough others remain;
//! where not, the effect must clear its threshold with the whole interval.

use iostrata_plan::Better;
use iostrata_run::Replicate;
use iostrata_stats::{Measured, PAIRS_MIN, Verdict, paired_measured};

use crate::disturbed::{OTHER_WORK, carries, is_undisturbed};
use crate::figure::{application_latency_us, mean, metric_of, weighted_mean};
use crate::observed::{EventIndex, Which};
use crate::pair::Pair;

/// Verdicts that call for a wider margin.
const DOUBTFUL: [Verdict; 5] = [
    Verdict::BurstLimited,
    Verdict::CpuLimited,
    Verdict::ForeignIo,
    Verdict::NotSteady,
    Verdict::Steal,
];

/// What the comparison of a pair brought.
#[derive(Clone, Debug)]
pub(crate) struct PairComparison {
    /// Loss of the upper rung in percent, with its paired interval.
    pub loss: Measured,
    /// The most that this loss may be, but for one case in 200.
    pub loss_pct_max: f64,
    /// What a request of the upper rung takes longer, in microseconds.
    pub extra_us: f64,
    /// What a request of the lower rung takes, in microseconds.
    pub lower_us: f64,
    /// The lower rung's figure.
    pub lower: f64,
    /// The upper rung's figure.
    pub upper: f64,
    /// Unit of both.
    pub unit: String,
    /// Whether half of the replicates or more carry a verdict that calls for a margin.
    pub doubtful: bool,
}

/// How large an effect has to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Bar {
    /// Worth confirming: three quarters of the threshold.
    Suspicion,
    /// The threshold, beyond the interval.
    Finding,
    /// The whole interval beyond the threshold.
    Margin,
}

type Both<'a> = (&'a Replicate, &'a Replicate);

/// Replicates of two points with the same number, undisturbed ones where enough of them are left.
fn pairs<'a>(log: &EventIndex<'a>, from: &str, to: &str, which: Which) -> Vec<Both<'a>> {
    let uppers = log.replicates(to, which);
    let all: Vec<Both<'a>> = log
        .replicates(from, which)
        .into_iter()
        .filter_map(|(number, lower)| {
            let upper = uppers.iter().find(|(other, _)| *other == number)?.1;
            Some((lower, upper))
        })
        .collect();
    let undisturbed: Vec<Both<'a>> = all
        .iter()
        .copied()
        .filter(|(lower, upper)| is_undisturbed(lower) && is_undisturbed(upper))
        .collect();
    if undisturbed.len() >= PAIRS_MIN { undisturbed } else { all }
}

/// Compares a pair; `None` where a side is missing, did other work, or is not positive.
pub(crate) fn compare(log: &EventIndex<'_>, pair: &Pair, which: Which) -> Option<PairComparison> {
    let pairs = pairs(log, pair.from, pair.to, which);
    let both: Vec<(Measured, Measured)> = pairs
        .iter()
        .filter_map(|(lower, upper)| Some((metric_of(lower)?, metric_of(upper)?)))
        .collect();
    let (first, _) = pairs.first()?;
    let (mut lower, mut upper): (Vec<Measured>, Vec<Measured>) = both.into_iter().unzip();
    let value = |one: &Measured| one.value;
    let (low, high) = (mean(lower.iter().map(value))?, mean(upper.iter().map(value))?);
    if first.point.metric.better == Better::Lower {
        (lower, upper) = (upper, lower);
    }
    let found = paired_measured(&lower, &upper).ok()?;
    let loss = found.loss_pct();
    if OTHER_WORK.iter().any(|&verdict| loss.verdicts.has(verdict)) {
        return None;
    }
    if pair.needs_idle_cpu && loss.verdicts.has(Verdict::CpuLimited) {
        return None;
    }
    let lower_us = weighted_mean(pairs.iter().map(|both| both.0), application_latency_us)?;
    let upper_us = weighted_mean(pairs.iter().map(|both| both.1), application_latency_us)?;
    Some(PairComparison {
        loss,
        loss_pct_max: found.loss_pct_max(),
        extra_us: upper_us - lower_us,
        lower_us,
        lower: low,
        upper: high,
        unit: first.point.metric.unit.clone(),
        doubtful: is_doubtful(&pairs),
    })
}

fn is_doubtful(pairs: &[Both<'_>]) -> bool {
    let all: Vec<&Replicate> = pairs.iter().flat_map(|(lower, upper)| [*lower, *upper]).collect();
    DOUBTFUL.iter().any(|&verdict| {
        all.iter().filter(|replicate| carries(replicate, verdict)).count() * 2 >= all.len()
    })
}

impl PairComparison {
    /// What a request takes longer at such a loss, in microseconds: as many are in flight on both
    /// sides, so that they take longer as the rate falls.
    pub fn extra_us_at(&self, loss_pct: f64) -> f64 {
        if loss_pct < 100.0 { self.lower_us * loss_pct / (100.0 - loss_pct) } else { f64::INFINITY }
    }

    /// Whether a request is known to take longer by less than counts, by the interval of the loss.
    pub fn is_short(&self, pair: &Pair) -> bool {
        self.loss.ci95.is_some_and(|[_, high]| self.extra_us_at(high) < pair.extra_us_min)
    }

    /// Whether the effect reaches a bar for this pair.
    pub fn reaches(&self, pair: &Pair, bar: Bar) -> bool {
        let (percent, us) = (self.loss.value, self.extra_us);
        let enough =
            |share: f64| percent >= share * pair.loss_pct_min && us >= share * pair.extra_us_min;
        let proven = self.loss.n >= PAIRS_MIN as u64 && self.loss.is_above_zero();
        let low = self.loss.ci95.map_or(f64::NEG_INFINITY, |[low, _]| low);
        match bar {
            Bar::Suspicion => (proven && enough(0.75)) || enough(1.5),
            Bar::Finding if self.doubtful => proven && enough(1.0) && low >= pair.loss_pct_min,
            Bar::Finding => proven && enough(1.0),
            Bar::Margin => proven && enough(1.0) && low >= pair.loss_pct_min,
        }
    }
}
