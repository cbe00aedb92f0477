//! Latency histograms: recorded in nanoseconds, read in microseconds.
//!
//! Purpose: hold the latencies of any number of requests in 35 KB with every percentile within 1 %.
//! Invariants: the buckets never grow, so recording neither allocates nor fails; the mean and the
//! maximum come from an own sum and an own maximum, so they are exact; a latency above 1,000 s
//! counts in the last bucket, still exact in mean and maximum.
//! It takes no time itself and keeps no order of arrival: time series live elsewhere.
//! Source of the buckets: HdrHistogram, 2 significant digits (256 sub-buckets, so that a bucket is
//! at most 1/128 of its value wide, and its middle at most 1/256 away).

use hdrhistogram::Histogram;
use statrs::distribution::{Binomial, DiscreteCDF};

use crate::{Interval, LatencyUs};

/// Smallest latency told apart, in nanoseconds.
const LOW_NS: u64 = 1;
/// Latencies above this, in nanoseconds (1,000 s), share the last bucket.
pub(crate) const HIGH_NS: u64 = 1_000_000_000_000;
/// Significant decimal digits kept.
const DIGITS: u8 = 2;
/// Nanoseconds in a microsecond.
const NS_PER_US: f64 = 1_000.0;

/// A latency histogram with a fixed size and a relative error of at most 1 %.
#[derive(Clone, PartialEq)]
pub struct LatencyHistogram {
    pub(crate) buckets: Histogram<u64>,
    pub(crate) sum_ns: u128,
    pub(crate) max_ns: u64,
}

/// One bucket that holds at least one latency, for charts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bucket {
    /// Smallest latency that falls into the bucket, in microseconds.
    pub low_us: f64,
    /// First latency above the bucket, in microseconds.
    pub high_us: f64,
    /// Latencies recorded in it; never 0.
    pub count: u64,
}

impl LatencyHistogram {
    /// An empty histogram; the only allocation of its life.
    pub fn new() -> Self {
        let buckets = match Histogram::new_with_bounds(LOW_NS, HIGH_NS, DIGITS) {
            Ok(buckets) => buckets,
            Err(error) => unreachable!("the bounds of a latency histogram are constants: {error}"),
        };
        Self { buckets, sum_ns: 0, max_ns: 0 }
    }

    /// Counts one latency, in nanoseconds. Never allocates, never fails.
    #[inline]
    pub fn record_ns(&mut self, latency_ns: u64) {
        self.buckets.saturating_record(latency_ns.min(HIGH_NS));
        self.sum_ns += u128::from(latency_ns);
        self.max_ns = self.max_ns.max(latency_ns);
    }

    /// The histogram of counts by value, with the exact sum and maximum behind them.
    pub(crate) fn from_counts(
        counts: impl Iterator<Item = (u64, u64)>,
        sum_ns: u64,
        max_ns: u64,
    ) -> Self {
        let mut histogram = Self { sum_ns: u128::from(sum_ns), max_ns, ..Self::new() };
        counts.for_each(|(ns, count)| histogram.buckets.saturating_record_n(ns, count));
        histogram
    }

    /// Latencies recorded.
    pub fn count(&self) -> u64 {
        self.buckets.len()
    }

    /// Whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.buckets.is_empty()
    }

    /// Adds every latency of another histogram.
    pub fn merge(&mut self, other: &Self) {
        let added = self.buckets.add(&other.buckets);
        assert!(added.is_ok(), "latency histograms share their bounds: {added:?}");
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// Forgets everything, keeping the memory.
    pub fn reset(&mut self) {
        self.buckets.reset();
        self.sum_ns = 0;
        self.max_ns = 0;
    }

    /// Mean latency in microseconds, exact; `None` when empty.
    pub fn mean_us(&self) -> Option<f64> {
        (!self.is_empty()).then(|| self.sum_ns as f64 / self.count() as f64 / NS_PER_US)
    }

    /// The distribution in microseconds; `None` when empty.
    pub fn summary(&self) -> Option<LatencyUs> {
        Some(LatencyUs {
            mean: self.mean_us()?,
            p50: self.percentile_us(50.0)?,
            p95: self.percentile_us(95.0)?,
            p99: self.percentile_us(99.0)?,
            p99_9: self.percentile_us(99.9)?,
            max: self.max_ns as f64 / NS_PER_US,
        })
    }

    /// Percentile `percent` (0 to 100; values outside are clamped) in microseconds: the smallest
    /// latency that at least this share of the requests did not exceed. `None` when empty.
    pub fn percentile_us(&self, percent: f64) -> Option<f64> {
        (!self.is_empty()).then(|| self.quantile_us(percent / 100.0))
    }

    /// The 95 % interval of a percentile, in microseconds, from order statistics.
    ///
    /// `effective_n` is the number of independent requests behind the histogram; requests that
    /// arrive together are slow together, so it is usually far below [`count`](Self::count).
    /// The number of latencies below the true percentile is binomial, so its 2.5 % and 97.5 %
    /// points are the ranks of the two ends (David and Nagaraja, Order Statistics, section 7.1).
    /// `None` when empty, and when the upper rank lies beyond the largest latency: then the sample
    /// sets no upper end (p99.9 needs about 3,700 independent requests).
    pub fn percentile_us_ci95(&self, percent: f64, effective_n: u64) -> Option<Interval> {
        let n = effective_n.min(self.count());
        let share = (percent / 100.0).clamp(0.0, 1.0);
        if n == 0 {
            return None;
        }
        let below = Binomial::new(share, n).ok()?;
        let low_rank = below.inverse_cdf(0.025);
        let high_rank = below.inverse_cdf(0.975) + 1;
        if low_rank == 0 || high_rank > n {
            return None;
        }
        let at = |rank: u64| self.quantile_us(rank as f64 / n as f64);
        Some([at(low_rank), at(high_rank)])
    }

    /// Every bucket that holds something, in rising order.
    pub fn iter_buckets(&self) -> impl Iterator<Item = Bucket> + '_ {
        self.buckets.iter_recorded().map(|step| {
            let value = step.value_iterated_to();
            Bucket {
                low_us: self.buckets.lowest_equivalent(value) as f64 / NS_PER_US,
                high_us: self.buckets.next_non_equivalent(value) as f64 / NS_PER_US,
                count: step.count_at_value(),
            }
        })
    }

    /// The middle of the bucket at a quantile, never above the exact maximum.
    fn quantile_us(&self, quantile: f64) -> f64 {
        if quantile >= 1.0 {
            return self.max_ns as f64 / NS_PER_US;
        }
        // 99.9 / 100 * 1000 is a hair above 999, which would be rounded up to rank 1000.
        let value = self.buckets.value_at_quantile(quantile.max(0.0) * (1.0 - 1e-12));
        self.buckets.median_equivalent(value).min(self.max_ns) as f64 / NS_PER_US
    }
}

impl Default for LatencyHistogram {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for LatencyHistogram {
    /// The summary, not the 4,000 buckets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LatencyHistogram")
            .field("count", &self.count())
            .field("summary", &self.summary())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::Rng;

    /// Exact percentile of sorted latencies in microseconds: the value at rank ceil(p n).
    fn exact_us(sorted_ns: &[u64], percent: f64) -> f64 {
        let rank = (percent / 100.0 * sorted_ns.len() as f64 - 1e-6).ceil().max(1.0) as usize;
        sorted_ns[rank - 1] as f64 / 1e3
    }

    fn close(got: f64, want: f64) -> bool {
        (got - want).abs() <= want * 0.01
    }

    #[test]
    fn percentiles_are_within_one_percent_on_random_data() {
        let mut rng = Rng::new(1);
        for round in 0..200 {
            let n = 1 + rng.below(3_000) as usize;
            // From single nanoseconds to hundreds of seconds, with ties and tails.
            let (centre, width) = (rng.uniform() * 20.0, rng.uniform() * 3.0);
            let mut all: Vec<u64> =
                (0..n).map(|_| (centre + width * rng.normal()).exp().min(9e11) as u64).collect();
            let mut histogram = LatencyHistogram::new();
            all.iter().for_each(|&ns| histogram.record_ns(ns));
            all.sort_unstable();
            for percent in [0.0, 1.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 100.0] {
                let (got, want) =
                    (histogram.percentile_us(percent).unwrap(), exact_us(&all, percent));
                assert!(close(got, want), "round {round}, n {n}, p{percent}: {got} for {want}");
            }
            let summary = histogram.summary().unwrap();
            let mean = all.iter().map(|&ns| ns as f64).sum::<f64>() / n as f64 / 1e3;
            assert!((summary.mean - mean).abs() <= mean * 1e-12);
            assert_eq!(summary.max, all[n - 1] as f64 / 1e3);
            assert_eq!(histogram.iter_buckets().map(|bucket| bucket.count).sum::<u64>(), n as u64);
        }
    }

    #[test]
    fn empty_has_no_figures() {
        let mut histogram = LatencyHistogram::new();
        assert!(histogram.is_empty() && histogram.summary().is_none());
        assert_eq!(histogram.percentile_us(50.0), None);
        assert_eq!(histogram.percentile_us_ci95(50.0, 100), None);
        histogram.record_ns(5);
        histogram.reset();
        assert_eq!(histogram, LatencyHistogram::new());
    }

    #[test]
    fn merging_equals_recording_all() {
        let mut rng = Rng::new(2);
        let (mut one, mut other, mut both) =
            (LatencyHistogram::new(), LatencyHistogram::new(), LatencyHistogram::new());
        for index in 0..5_000 {
            let ns = (rng.uniform() * 30.0).exp() as u64;
            if index % 3 == 0 {
                one.record_ns(ns)
            } else {
                other.record_ns(ns)
            }
            both.record_ns(ns);
        }
        one.merge(&other);
        assert_eq!(one, both);
    }

    #[test]
    fn extremes_saturate_and_stay_exact() {
        let mut histogram = LatencyHistogram::new();
        for ns in [0, u64::MAX, HIGH_NS + 1] {
            histogram.record_ns(ns);
        }
        assert_eq!(histogram.count(), 3);
        assert_eq!(histogram.summary().unwrap().max, u64::MAX as f64 / 1e3);
        assert!(close(histogram.percentile_us(50.0).unwrap(), HIGH_NS as f64 / 1e3));
    }

    #[test]
    fn a_percentile_interval_holds_the_truth() {
        let (mut rng, rounds) = (Rng::new(3), 500);
        for (percent, n) in [(50.0, 400), (95.0, 1_000), (99.0, 2_000)] {
            let truth_us = -(1.0f64 - percent / 100.0).ln() * 1e3;
            let mut held = 0;
            for _ in 0..rounds {
                let mut histogram = LatencyHistogram::new();
                (0..n).for_each(|_| histogram.record_ns((rng.exponential() * 1e6) as u64));
                let [low, high] = histogram.percentile_us_ci95(percent, n).unwrap();
                held += u32::from(low <= truth_us && truth_us <= high);
            }
            let share = 100.0 * f64::from(held) / f64::from(rounds);
            assert!((92.0..=98.5).contains(&share), "p{percent}: {share} %");
        }
    }

    #[test]
    fn a_far_percentile_of_few_requests_has_no_interval() {
        let mut histogram = LatencyHistogram::new();
        (1..=1_000u64).for_each(|us| histogram.record_ns(us * 1_000));
        assert_eq!(histogram.percentile_us_ci95(99.9, 1_000), None);
        let [low, high] = histogram.percentile_us_ci95(50.0, 1_000).unwrap();
        assert!(close(low, 469.0) && close(high, 532.0), "{low} {high}");
        let wide = histogram.percentile_us_ci95(50.0, 100).unwrap();
        assert!(wide[0] < low && high < wide[1], "fewer independent requests, wider interval");
    }
}
