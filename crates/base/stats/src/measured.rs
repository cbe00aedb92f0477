//! A figure as it travels: value, interval, sample count, verdicts.
//!
//! Invariant: no public constructor makes one without its interval and its sample count. A figure
//! whose interval could not be computed is marked `too_few_samples`.

use serde::{Deserialize, Serialize};

use crate::{Verdict, Verdicts};

/// A 95 % confidence interval, `[low, high]`.
pub type Interval = [f64; 2];

/// The interval around a value with so much to each side.
///
/// Rates, times and costs are positive: theirs is taken on a logarithmic scale (delta method), so
/// that a wide one never reaches below zero; a narrow one is as good as symmetric.
pub(crate) fn around(value: f64, half_width: f64) -> Interval {
    if value <= 0.0 {
        return [value - half_width, value + half_width];
    }
    let factor = (half_width / value).min(WIDEST).exp();
    [value / factor, value * factor]
}

/// Beyond this many times e nothing is known, and the ends stay finite.
const WIDEST: f64 = 50.0;

/// A measured value with its 95 % interval, the number of samples behind it, and its verdicts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Measured {
    /// The point estimate, in the unit that its field or its unit string names.
    pub value: f64,
    /// The 95 % interval; absent when there were too few samples for one.
    pub ci95: Option<Interval>,
    /// Independent samples behind the value: batches within one replicate, or replicates.
    pub n: u64,
    /// What speaks against the value; empty means sound.
    pub verdicts: Verdicts,
}

impl Measured {
    /// A figure with its interval.
    ///
    /// # Panics
    /// When the value is not finite or lies outside its interval: that is a bug of the estimator.
    pub fn new(value: f64, ci95: Interval, n: u64, verdicts: Verdicts) -> Self {
        assert!(value.is_finite(), "a measured value must be finite, not {value}");
        assert!(ci95[0] <= value && value <= ci95[1], "{value} lies outside {ci95:?}");
        Self { value, ci95: Some(ci95), n, verdicts }
    }

    /// A figure with too few samples for an interval; it carries `too_few_samples`.
    pub fn without_interval(value: f64, n: u64, mut verdicts: Verdicts) -> Self {
        assert!(value.is_finite(), "a measured value must be finite, not {value}");
        verdicts.add(Verdict::TooFewSamples);
        Self { value, ci95: None, n, verdicts }
    }

    /// Half the interval's width relative to the value, on the logarithmic scale wherever the
    /// interval lies above zero; infinite without an interval or at zero.
    pub fn relative_half_width(&self) -> f64 {
        let half_width = self.half_width().filter(|_| self.value != 0.0);
        half_width.map_or(f64::INFINITY, |half_width| half_width / self.value.abs())
    }

    /// The half width that [`around`] makes this interval of; the mean of both where a tail makes
    /// one wider.
    pub(crate) fn half_width(&self) -> Option<f64> {
        self.ci95.map(|[low, high]| match low > 0.0 {
            true => self.value * (high / low).ln() / 2.0,
            false => (high - low) / 2.0,
        })
    }

    /// The half width on the narrower side: without what a long tail adds to the other one.
    pub(crate) fn half_width_least(&self) -> Option<f64> {
        self.ci95.map(|[low, high]| match low > 0.0 {
            true => self.value * (self.value / low).min(high / self.value).ln(),
            false => (self.value - low).min(high - self.value),
        })
    }

    /// The same figure in another unit (`factor` new units per old unit).
    pub fn scaled(&self, factor: f64) -> Self {
        self.mapped(|value| value * factor)
    }

    /// What a function that only rises, or only falls, makes of it.
    #[must_use]
    pub fn mapped(&self, of: impl Fn(f64) -> f64) -> Self {
        let ends = |ends: Interval| {
            let [one, other] = ends.map(&of);
            if one <= other { [one, other] } else { [other, one] }
        };
        let (n, verdicts) = (self.n, self.verdicts.clone());
        Self { value: of(self.value), ci95: self.ci95.map(ends), n, verdicts }
    }

    /// Whether it is above 0 beyond its interval.
    pub fn is_above_zero(&self) -> bool {
        self.ci95.is_some_and(|[low, _]| low > 0.0)
    }

    /// Whether all of its interval lies below a bound.
    pub fn is_below(&self, bound: f64) -> bool {
        self.ci95.is_some_and(|[_, high]| high < bound)
    }
}

/// A latency distribution in microseconds, as the contract prints it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LatencyUs {
    /// Arithmetic mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p99_9: f64,
    /// The slowest request.
    pub max: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_positive_stays_positive() {
        let [low, high] = around(100.0, 2.0);
        assert!((low - 98.0).abs() < 0.03 && (high - 102.0).abs() < 0.03, "{low} {high}");
        let [low, high] = around(993.0, 2_504.0);
        assert!(low > 0.0 && low < 993.0 && high > 993.0, "{low} {high}");
        let [low, high] = around(1.0, f64::INFINITY);
        assert!(low > 0.0 && high.is_finite(), "{low} {high}");
        assert_eq!(around(-4.0, 10.0), [-14.0, 6.0], "a difference may be either");
    }

    #[test]
    fn the_half_width_is_read_back_as_it_was_given() {
        for (value, half_width) in [(993.0, 2_504.0), (100.0, 2.0), (7.0, 0.0), (-4.0, 10.0)] {
            let found = Measured::new(value, around(value, half_width), 9, Verdicts::none());
            assert!((found.half_width().unwrap() - half_width).abs() < 1e-9, "{found:?}");
            assert!((found.half_width_least().unwrap() - half_width).abs() < 1e-9, "{found:?}");
            let relative = half_width / value.abs();
            assert!((found.relative_half_width() - relative).abs() < 1e-12, "{found:?}");
        }
        let skewed = Measured::new(10.0, [10.0 / 1.1, 10.0 * 1.3], 9, Verdicts::none());
        assert!((skewed.half_width_least().unwrap() - 10.0 * 1.1_f64.ln()).abs() < 1e-9);
        let old = Measured::new(993.0, [-1_511.0, 3_497.0], 9, Verdicts::none());
        assert_eq!(old.half_width(), Some(2_504.0), "written before intervals were logarithmic");
    }
}
