//! The universal scalability law fitted to throughput over workers.
//!
//! Purpose: put numbers on how throughput scales,
//! `X(N) = lambda N / (1 + sigma (N - 1) + kappa N (N - 1))`: lambda is what one worker does, sigma
//! the share of work that waits for others (contention; a queue for one lock), kappa the cost per
//! pair of workers of agreeing with each other (coherency; it makes throughput fall).
//! Source: N. J. Gunther, Guerrilla Capacity Planning, Springer 2007, chapters 4 to 6.
//! Method: `N / X(N)` is linear in `1/lambda`, `sigma/lambda` and `kappa/lambda`, which gives the
//! start; Gauss-Newton on the logarithm of X refines it, each point weighted by its own relative
//! interval. sigma and kappa are not negative: of the fits with either, both or none held at 0, the
//! best that keeps to this is taken.
//! Intervals come from the covariance of the fit without that bound, and are then cut at 0; a
//! parameter that this fit has below 0 keeps the whole half width above 0. As
//! everywhere the wider of two counts: what the points' own intervals allow, and Student's t on how
//! far the points lie from the curve. The latter also pays for the law not being the truth.
//! Invariants: fewer than four different numbers of workers give no fit; multiplying all values by
//! a number multiplies lambda and the peak's value only.
//! It does not say whether the curve collapses measurably; `axis` does.

mod solve;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::student::t95;
use crate::{Measured, Verdicts};
use solve::{Fitted, Sample, fit_bounded, fit_free};

/// Fewest different numbers of workers for a fit of three parameters.
pub const USL_LEVELS_MIN: usize = 4;

/// Least relative half width that a point is taken to have: the law is not exact, and no point may
/// pull the whole curve through itself.
const HALF_WIDTH_MIN: f64 = 0.001;

/// Throughput at a number of workers. Give each number once, with its replicates combined: points
/// count as independent, and what is common to a replicate would count several times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UslPoint {
    /// Workers, or requests in flight; at least 1.
    pub workers: u32,
    /// Throughput; positive, in any unit that all share.
    pub value: Measured,
}

/// The law as it fits the points.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Usl {
    /// Throughput of one worker, in the unit of the points.
    pub lambda: Measured,
    /// Contention, per worker.
    pub sigma: Measured,
    /// Coherency, per pair of workers.
    pub kappa: Measured,
    /// Workers at which the law has its peak, at least 1 and mostly no whole number; absent when
    /// kappa is 0, for then throughput does not fall.
    pub peak_workers: Option<f64>,
    /// Throughput there, in the unit of the points.
    pub peak_value: Option<f64>,
    /// Whether the peak lies within the workers measured; if not it is a guess.
    pub is_peak_measured: bool,
    /// Share of the variance of the values that the law explains; absent when they are all equal.
    /// It can be below 0.
    pub r2: Option<f64>,
    /// Root mean square distance of the points from the law, in percent of the law.
    pub residual_pct: f64,
    /// Points that were fitted.
    pub n: u64,
}

impl Usl {
    /// Throughput at so many workers, in the unit of the points.
    pub fn value_at(&self, workers: f64) -> f64 {
        let (sigma, kappa) = (self.sigma.value, self.kappa.value);
        let cost = 1.0 + sigma * (workers - 1.0) + kappa * workers * (workers - 1.0);
        self.lambda.value * workers / cost
    }
}

/// Why the law cannot be fitted.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum UslError {
    /// Three parameters need four levels.
    #[error(
        "a scalability fit needs {USL_LEVELS_MIN} different numbers of workers, not {found}; measure more levels"
    )]
    TooFewLevels {
        /// Different numbers of workers found.
        found: usize,
    },
    /// Nobody works.
    #[error("0 workers do nothing; a scalability fit begins at 1")]
    NoWorkers,
    /// Throughput that is none.
    #[error("the throughput {value} at {workers} workers cannot be fitted; only positive ones can")]
    NotPositive {
        /// The workers.
        workers: u32,
        /// The figure found.
        value: f64,
    },
    /// What one worker does cannot be told from the points.
    #[error(
        "throughput falls too steeply from {workers_min} workers on to tell what one does; measure 1 worker"
    )]
    OneWorkerUnknown {
        /// The lowest number of workers measured.
        workers_min: u32,
    },
}

/// Fits the law.
///
/// # Errors
/// [`UslError`] when there are too few levels or the points do not determine the law.
pub fn usl(points: &[UslPoint]) -> Result<Usl, UslError> {
    let samples = samples_of(points)?;
    let workers_min = points.iter().map(|point| point.workers).min().unwrap_or(1);
    let unknown = UslError::OneWorkerUnknown { workers_min };
    let bounded = fit_bounded(&samples).ok_or(unknown.clone())?;
    // Where the free fit breaks down, that of the bounded parameters is what there is.
    let free = fit_free(&samples).unwrap_or_else(|| bounded.clone());
    Ok(result_of(points, &bounded, &free))
}

/// The points with their weights, in an order that does not depend on the one given.
fn samples_of(points: &[UslPoint]) -> Result<Vec<Sample>, UslError> {
    for &UslPoint { workers, ref value } in points {
        if workers == 0 {
            return Err(UslError::NoWorkers);
        }
        if !(value.value > 0.0 && value.value.is_finite()) {
            return Err(UslError::NotPositive { workers, value: value.value });
        }
    }
    let found = points.iter().map(|point| point.workers).collect::<BTreeSet<u32>>().len();
    if found < USL_LEVELS_MIN {
        return Err(UslError::TooFewLevels { found });
    }
    let own = |point: &UslPoint| point.value.ci95.map(|_| point.value.relative_half_width());
    // A point without an interval counts as the least certain one.
    let widest = points.iter().filter_map(own).fold(HALF_WIDTH_MIN, f64::max);
    let mut samples: Vec<Sample> = points
        .iter()
        .map(|point| Sample {
            workers: f64::from(point.workers),
            value: point.value.value,
            half_width: own(point).unwrap_or(widest).max(HALF_WIDTH_MIN),
        })
        .collect();
    samples.sort_by(|a, b| {
        let by_value = a.value.total_cmp(&b.value);
        a.workers.total_cmp(&b.workers).then(by_value).then(a.half_width.total_cmp(&b.half_width))
    });
    Ok(samples)
}

fn result_of(points: &[UslPoint], bounded: &Fitted, free: &Fitted) -> Usl {
    let n = points.len();
    let has_intervals = points.iter().any(|point| point.value.ci95.is_some());
    let freedom = n as f64 - 3.0;
    let between = t95(freedom) * (free.squares / freedom).sqrt();
    let widening = if has_intervals { between.max(1.0) } else { between };
    let verdicts: Verdicts = points.iter().flat_map(|point| point.value.verdicts.iter()).collect();
    let measured = |value: f64, low: f64, high: f64| {
        let ends = [low.max(0.0).min(value), high.max(value)];
        Measured::new(value, ends, n as u64, verdicts.clone())
    };
    let widths = free.half_widths.map(|one| one * widening);
    let around = |value: f64, centre: f64, width: f64| {
        measured(value, centre - width, centre.max(0.0) + width)
    };
    let (log_width, free_lambda) = (widths[0].min(300.0), free.lambda);
    let mut law = Usl {
        lambda: measured(
            bounded.lambda,
            free_lambda * (-log_width).exp(),
            free_lambda * log_width.exp(),
        ),
        sigma: around(bounded.sigma, free.sigma, widths[1]),
        kappa: around(bounded.kappa, free.kappa, widths[2]),
        peak_workers: peak_of(bounded),
        peak_value: None,
        is_peak_measured: false,
        r2: None,
        residual_pct: 0.0,
        n: n as u64,
    };
    law.peak_value = law.peak_workers.map(|workers| law.value_at(workers));
    let most = points.iter().map(|point| point.workers).max().map_or(0.0, f64::from);
    law.is_peak_measured = law.peak_workers.is_some_and(|workers| workers <= most);
    (law.r2, law.residual_pct) = quality(&law, points);
    law
}

/// Where `X` is highest: `sqrt((1 - sigma) / kappa)`.
fn peak_of(fitted: &Fitted) -> Option<f64> {
    (fitted.kappa > 0.0).then(|| ((1.0 - fitted.sigma).max(0.0) / fitted.kappa).sqrt().max(1.0))
}

/// R squared of the values, and the root mean square of the relative residuals in percent.
fn quality(law: &Usl, points: &[UslPoint]) -> (Option<f64>, f64) {
    let n = points.len() as f64;
    let mean = points.iter().map(|point| point.value.value).sum::<f64>() / n;
    let all: f64 = points.iter().map(|point| (point.value.value - mean).powi(2)).sum();
    let at = |point: &UslPoint| law.value_at(f64::from(point.workers));
    let left: f64 = points.iter().map(|point| (point.value.value - at(point)).powi(2)).sum();
    let relative = points.iter().map(|point| (point.value.value / at(point) - 1.0).powi(2));
    let residual_pct = 100.0 * (relative.sum::<f64>() / n).sqrt();
    ((all > 0.0).then(|| 1.0 - left / all), residual_pct)
}
