//! From equal slices of time to a mean with its 95 % interval.
//!
//! Purpose: the one way by which a rate or a mean latency gets its interval.
//! Method: the shapes of the series (drift, steps, waves) are found and taken out; the interval is
//! Student's t on batch means of the noise that is left, at least 30 batches, with the remaining
//! autocorrelation corrected. What the interval holds with 95 %:
//! - noise of any colour: the long-run mean;
//! - waves: the long-run mean, even when the window cuts the last cycle short; the interval is then
//!   centred on the mean freed of the cut cycle, and reaches to the plain mean;
//! - drift and steps: the mean of the process over the measured window. It says nothing about the
//!   time after it, so `not_steady` goes with it.
//!
//! Invariants: the value is the plain mean of all slices (for a ratio: sum over count), so that it
//! agrees with totals divided by time; it lies in its interval. Below 30 slices, or when the noise
//! is so slow that fewer than 10 independent batches remain, `too_few_samples` is raised and the
//! interval, wide as it is, is kept.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::noise::{BATCHES_MIN, MeanError, mean, mean_error};
use crate::shape::{Decomposed, decompose};
use crate::student::t95;
use crate::{Interval, Measured, Steadiness, Verdict, Verdicts};

/// Fewest batches, counted as if independent, that an interval may rest on without a verdict.
const EFFECTIVE_BATCHES_MIN: f64 = 10.0;

/// The mean of a series of slices and how well it is known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// Mean over all slices, in the unit of the slices.
    pub mean: f64,
    /// 95 % interval of the mean; absent below four slices.
    pub mean_ci95: Option<Interval>,
    /// Batches the interval rests on.
    pub batches: u64,
    /// Slices in each batch.
    pub slices_per_batch: u64,
    /// Autocorrelation left between neighbouring batches, for which the interval was widened.
    pub lag1: f64,
    /// Degrees of freedom of the interval's Student t.
    pub freedom: f64,
    /// The shapes found.
    pub steadiness: Steadiness,
    /// `too_few_samples`, `not_steady`, `burst_limited`, as far as they apply.
    pub verdicts: Verdicts,
}

impl Estimate {
    /// The figure as it travels; `n` is the number of batches.
    pub fn measured(&self) -> Measured {
        let verdicts = self.verdicts.clone();
        match self.mean_ci95 {
            Some(ci95) => Measured::new(self.mean, ci95, self.batches, verdicts),
            None => Measured::without_interval(self.mean, self.batches, verdicts),
        }
    }

    /// Half the interval's width over the mean; infinite without an interval or at a mean of 0.
    pub fn relative_half_width(&self) -> f64 {
        self.measured().relative_half_width()
    }
}

/// The mean of a value per slice: counts, rates, bytes. `None` without slices or when one is not
/// finite.
pub fn estimate(slices: &[f64]) -> Option<Estimate> {
    if slices.is_empty() || !slices.iter().all(|value| value.is_finite()) {
        return None;
    }
    let value = mean(slices);
    Some(finish(value, decompose(slices, value), 1.0))
}

/// The ratio of two sums: with the sum of latencies and the number of requests of each slice, the
/// mean latency. Slices without requests are allowed.
///
/// Method: ratio estimator; the interval is that of the mean of `sum - ratio * count` over the mean
/// count (Cochran, Sampling Techniques, section 6.4). `None` when the lengths differ, nothing was
/// counted, or a value is not finite.
pub fn estimate_ratio(sums: &[f64], counts: &[f64]) -> Option<Estimate> {
    let finite = sums.iter().chain(counts).all(|value| value.is_finite());
    let total: f64 = counts.iter().sum();
    if sums.len() != counts.len() || !finite || total <= 0.0 {
        return None;
    }
    let ratio = sums.iter().sum::<f64>() / total;
    let usual = total / counts.len() as f64;
    let deviations: Vec<f64> =
        sums.iter().zip(counts).map(|(sum, count)| (sum - ratio * count) / usual).collect();
    Some(finish(ratio, decompose(&deviations, ratio), 1.0))
}

/// The estimate around `value`, its interval `inflation` times as wide as the noise asks for.
fn finish(value: f64, apart: Decomposed, inflation: f64) -> Estimate {
    let mut verdicts = apart.steadiness.verdicts();
    let error = mean_error(&apart.noise, apart.fitted);
    if !error.as_ref().is_some_and(is_enough) {
        verdicts.add(Verdict::TooFewSamples);
    }
    let known = error.filter(|_| apart.noise.len() >= 4);
    let mean_ci95 = known.map(|error| {
        let half_width = inflation * t95(error.freedom) * error.standard_error();
        let centre = value - apart.cut_wave;
        [(centre - half_width).min(value), (centre + half_width).max(value)]
    });
    Estimate {
        mean: value,
        mean_ci95,
        batches: error.map_or(apart.noise.len(), |error| error.batches) as u64,
        slices_per_batch: error.map_or(1, |error| error.slices_per_batch) as u64,
        lag1: error.map_or(0.0, |error| error.lag1),
        freedom: error.map_or(0.0, |error| error.freedom),
        steadiness: apart.steadiness,
        verdicts,
    }
}

/// Whether an interval may go without `too_few_samples`.
fn is_enough(error: &MeanError) -> bool {
    error.batches >= BATCHES_MIN && error.effective_batches() >= EFFECTIVE_BATCHES_MIN
}
