//! Percentiles of all requests of several replicates together.
//!
//! Purpose: a percentile of a point is computed from its requests, not as a mean of percentiles:
//! half the requests at 100 us and half at 300 us have no median of 200 us.
//! Method: the percentile is read from the merged histogram. For its interval the share of requests
//! up to it is taken in every replicate, which is a ratio over replicates with a standard error;
//! that interval of the share is turned back into latencies by the same histogram (Woodruff, JASA
//! 47, 1952). Its ends are the wider ones of a logit scale, as in svyquantile of R's `survey`, and
//! of an arcsine scale, on which the count of the few requests beyond a high percentile has the
//! same spread wherever it is: the logit makes the upper end too near. As in [`combine`] it is the
//! wider of two: what differs between replicates, and what so many independent requests allow.
//! Beyond a high percentile the sample is not the requests but the moments at which they were slow:
//! three stalls of 500 requests each are three. Fewer than [`MOMENTS_MIN`] give no interval.
//!
//! [`combine`]: crate::combine

use std::f64::consts::FRAC_PI_2;

use serde::{Deserialize, Serialize};

use crate::combine::mean_and_half_width;
use crate::{Interval, LatencyHistogram, LatencyUs, Measured};

/// A percentile.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Percentile {
    /// Which one: 99 is exceeded by one request of a hundred.
    pub percent: f64,
    /// The latency in microseconds.
    pub us: f64,
    /// Its 95 % interval; absent where too few requests lie beyond it.
    pub us_ci95: Option<Interval>,
    /// Separate moments at which requests took as long or longer, as far as they were counted:
    /// requests that wait for the same stall are one. Absent where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moments: Option<u64>,
}

/// Separate moments that a percentile which is quoted must rest on.
pub const MOMENTS_MIN: u64 = 10;

impl Percentile {
    /// Whether it rests on enough separate moments, as far as they are known.
    pub fn is_sampled(&self) -> bool {
        self.moments.is_none_or(|moments| moments >= MOMENTS_MIN)
    }
}

/// The distribution of all requests together; `None` without any.
pub fn pooled_summary<'a>(
    replicates: impl IntoIterator<Item = &'a LatencyHistogram>,
) -> Option<LatencyUs> {
    merged(replicates).summary()
}

/// Percentiles of all requests together, each with its interval; empty without any. Each replicate
/// comes with its mean latency, whose interval shows how many of its requests are independent.
pub fn pooled_percentiles(
    replicates: &[(&LatencyHistogram, &Measured)],
    percents: &[f64],
) -> Vec<Percentile> {
    let all = merged(replicates.iter().map(|(histogram, _)| *histogram));
    let independent: f64 = replicates.iter().map(|(one, mean)| independent(one, mean)).sum();
    let percentile = |&percent: &f64| {
        let us = all.percentile_us(percent)?;
        let quantile = percent / 100.0;
        let moments = moments(&all, quantile);
        let bare = Percentile { percent, us, us_ci95: None, moments };
        let is_sampled = bare.is_sampled();
        let us_ci95 =
            is_sampled.then(|| interval(&all, replicates, quantile, independent, moments));
        Some(Percentile { us_ci95: us_ci95.flatten(), ..bare })
    };
    percents.iter().filter_map(percentile).collect()
}

/// Separate moments behind a percentile. Where the slowest half of what lies beyond it, or quarter,
/// or less, shares its moments, so many times these are all that count: next to one stall of many
/// requests, moments of single ones count for little.
fn moments(all: &LatencyHistogram, quantile: f64) -> Option<u64> {
    let beyond = 1.0 - quantile;
    let of_part = |part: u64| {
        let share = beyond / part as f64;
        let moments = all.moments_from(all.bucket_at(1.0 - share)?)?;
        let is_shared = share * all.count() as f64 > SHARED * moments as f64;
        Some(if part == 1 || is_shared { part * moments } else { u64::MAX })
    };
    // The slowest sixteenth of half of all requests does not move their median.
    let parts = if beyond > TAIL { 2 } else { PARTS.len() };
    PARTS
        .into_iter()
        .take(parts)
        .map(of_part)
        .try_fold(u64::MAX, |least, one| Some(least.min(one?)))
}

/// Parts of what lies beyond a percentile that are examined: all, its slowest half and so on.
const PARTS: [u64; 5] = [1, 2, 4, 8, 16];
/// Share of the requests beyond a high percentile, at most.
const TAIL: f64 = 0.1 + 1e-9;

/// From so many requests of each moment on, moments are the sample.
const SHARED: f64 = 2.0;

fn merged<'a>(replicates: impl IntoIterator<Item = &'a LatencyHistogram>) -> LatencyHistogram {
    let mut all = LatencyHistogram::default();
    replicates.into_iter().for_each(|one| all.merge(one));
    all
}

/// How many independent requests would give the mean an interval as wide as it has; one where it
/// has none.
fn independent(histogram: &LatencyHistogram, mean_us: &Measured) -> f64 {
    let count = histogram.count() as f64;
    match (histogram.stddev_us(), mean_us.half_width_least()) {
        (Some(deviation), Some(half_width)) if half_width > 0.0 => {
            (deviation / (half_width / 1.96)).powi(2).clamp(1.0, count.max(1.0))
        }
        (_, Some(_)) => count,
        (_, None) => count.min(1.0),
    }
}

fn interval(
    all: &LatencyHistogram,
    replicates: &[(&LatencyHistogram, &Measured)],
    quantile: f64,
    independent: f64,
    moments: Option<u64>,
) -> Option<Interval> {
    if quantile <= 0.0 || quantile >= 1.0 {
        return None;
    }
    let spread = quantile * (1.0 - quantile);
    let beyond = 1.0 - quantile;
    let of_moments = moments.map_or(0.0, |moments| {
        // Moments differ in the requests that they hold: as an exponential law does.
        let is_shared = beyond * all.count() as f64 > SHARED * moments as f64;
        let spread = if is_shared { 2.0 } else { 1.0 };
        beyond * (spread / moments as f64).sqrt()
    });
    let within = 1.96 * (spread / independent).sqrt().max(of_moments);
    let half_width = within.max(between(all, replicates, quantile)?);
    let (logit, angle) = ((quantile / beyond).ln(), quantile.sqrt().asin());
    let [low, high] = [-1.0, 1.0].map(|side| {
        let of_logit = 1.0 / (1.0 + (-(logit + side * half_width / spread)).exp());
        let turned = angle + side * half_width / (2.0 * spread.sqrt());
        let of_angle = turned.clamp(0.0, FRAC_PI_2).sin().powi(2);
        if side < 0.0 { of_logit.min(of_angle) } else { of_logit.max(of_angle) }
    });
    // Beyond the slowest independent request the sample sets no end.
    let has_end = (1.0 - high) * independent >= 1.0 && low * independent >= 1.0;
    has_end.then(|| [low, high].map(|share| all.quantile_us(share)))
}

/// Half width of the share of requests up to a quantile, from how it differs between replicates;
/// 0 with one replicate, of which that is not known.
fn between(
    all: &LatencyHistogram,
    replicates: &[(&LatencyHistogram, &Measured)],
    quantile: f64,
) -> Option<f64> {
    let bucket = all.bucket_at(quantile)?;
    let counts = |one: &LatencyHistogram| (one.count_up_to(bucket) as f64, one.count() as f64);
    let counts: Vec<(f64, f64)> = replicates.iter().map(|(one, _)| counts(one)).collect();
    if counts.len() < 2 {
        return Some(0.0);
    }
    let (below, requests) =
        counts.iter().fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let (share, usual) = (below / requests, requests / counts.len() as f64);
    let apart: Vec<f64> =
        counts.iter().map(|(below, requests)| (below - share * requests) / usual).collect();
    Some(mean_and_half_width(&apart).1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdicts;
    use crate::random::Random;

    fn histogram(latencies_ns: impl IntoIterator<Item = u64>) -> LatencyHistogram {
        let mut histogram = LatencyHistogram::default();
        latencies_ns.into_iter().for_each(|ns| histogram.record_ns(ns));
        histogram
    }

    /// A mean as if all requests were independent.
    fn mean_of(histogram: &LatencyHistogram) -> Measured {
        let (mean, n) = (histogram.mean_us().unwrap(), histogram.count());
        let half = 1.96 * histogram.stddev_us().unwrap() / (n as f64).sqrt();
        Measured::new(mean, [mean - half, mean + half], n, Verdicts::none())
    }

    fn percentiles(replicates: &[LatencyHistogram], percents: &[f64]) -> Vec<Percentile> {
        let means: Vec<Measured> = replicates.iter().map(mean_of).collect();
        let pairs: Vec<(&LatencyHistogram, &Measured)> = replicates.iter().zip(&means).collect();
        pooled_percentiles(&pairs, percents)
    }

    #[test]
    fn a_known_mixture_has_the_percentiles_of_its_requests() {
        // One request in ten takes 3 ms in every second replicate, none in the others.
        let calm = histogram((0..10_000).map(|_| 100_000));
        let slow = histogram((0..10_000).map(|i| if i % 10 == 0 { 3_000_000 } else { 100_000 }));
        let both = [calm.clone(), slow.clone(), calm.clone(), slow.clone()];
        let near = |got: f64, expected: f64| (got / expected - 1.0).abs() < 0.01;
        let found = percentiles(&both, &[50.0, 94.0, 96.0, 99.0]);
        for (one, expected) in found.iter().zip([100.0, 100.0, 3_000.0, 3_000.0]) {
            assert!(near(one.us, expected), "{one:?}");
        }
        let all = pooled_summary(&both).unwrap();
        assert!(near(all.p99, 3_000.0) && near(all.mean, 0.95 * 100.0 + 0.05 * 3_000.0));
        // The result of a mean of percentiles: a latency that no request had.
        let mean_p99 =
            (calm.percentile_us(99.0).unwrap() + slow.percentile_us(99.0).unwrap()) / 2.0;
        assert!(near(mean_p99, 1_550.0), "{mean_p99}");
    }

    #[test]
    fn the_interval_sees_what_differs_between_replicates() {
        let of = |ns: u64| histogram((0..10_000).map(|i| ns + i));
        let alike = percentiles(&[of(100_000), of(100_000), of(100_000), of(100_000)], &[50.0]);
        let apart = percentiles(&[of(70_000), of(100_000), of(130_000), of(160_000)], &[50.0]);
        let width = |found: &[Percentile]| found[0].us_ci95.map_or(f64::INFINITY, |[l, h]| h - l);
        assert!(width(&alike) < 3.0, "{alike:?}");
        assert!(width(&apart) > 30.0, "{apart:?}");
    }

    #[test]
    fn an_interval_of_one_window_holds_the_truth() {
        let mut rng = Random::new(3);
        // Of ten requests beyond the percentile the logit alone holds it in 93 %.
        for (percent, n, rounds, least) in [
            (50.0, 400, 500, 92.0),
            (95.0, 1_000, 500, 92.0),
            (99.0, 2_000, 500, 92.0),
            (99.9, 10_000, 2_000, 94.5),
        ] {
            let truth_us = -(1.0f64 - percent / 100.0).ln() * 1e3;
            let mut held = 0;
            for _ in 0..rounds {
                let one = histogram((0..n).map(|_| (rng.exponential() * 1e6) as u64));
                let found = percentiles(&[one], &[percent]);
                let [low, high] = found[0].us_ci95.unwrap();
                held += u32::from(low <= truth_us && truth_us <= high);
            }
            let share = 100.0 * f64::from(held) / f64::from(rounds);
            println!("p{percent} of {n} requests: {share} %");
            assert!((least..=98.5).contains(&share), "p{percent}: {share} %");
        }
    }

    #[test]
    fn too_few_requests_beyond_a_percentile_give_it_no_interval() {
        let few = histogram((1..=1_000).map(|us| us * 1_000));
        let found = percentiles(std::slice::from_ref(&few), &[50.0, 99.9, 100.0]);
        let [low, high] = found[0].us_ci95.unwrap();
        let close = |found: f64, expected: f64| (found / expected - 1.0).abs() < 0.01;
        assert!(close(low, 469.0) && close(high, 532.0), "{low} {high}");
        assert_eq!((found[1].us_ci95, found[2].us_ci95), (None, None));
        assert!(percentiles(&[], &[50.0]).is_empty());
    }

    /// Windows of 500 slices of 20 requests at 100 us; in each stall 500 of them take 3 ms and end
    /// in the same slice.
    fn stalling(windows: usize, stalls: usize) -> Vec<LatencyHistogram> {
        let window = |_| {
            let mut one = histogram((0..10_000).map(|_| 100_000));
            one.record_many_ns(3_000_000, 500 * stalls as u64);
            let mut slowest = vec![100_000; 500];
            (0..stalls).for_each(|stall| slowest[50 + 37 * stall] = 3_000_000);
            one.note_slices(&slowest);
            one
        };
        (0..windows).map(window).collect()
    }

    #[test]
    fn three_stalls_of_many_requests_are_three_samples() {
        let of = |windows, stalls| percentiles(&stalling(windows, stalls), &[50.0, 99.0]);
        let one = of(1, 3);
        assert_eq!((one[1].moments, one[1].us_ci95), (Some(3), None), "{one:?}");
        assert!(!one[1].is_sampled() && one[0].is_sampled(), "{one:?}");
        assert!(one[0].moments.is_some_and(|moments| moments >= 10), "each slice has some");
        assert_eq!(of(3, 3)[1].us_ci95, None, "nine");
        // Less than half of the slowest tenth waits for the stall, which decides its upper end.
        let alone = percentiles(&stalling(1, 1), &[90.0]);
        assert_eq!((alone[0].moments, alone[0].us_ci95), (Some(4), None), "{alone:?}");
        let many = of(4, 3);
        assert!(many[1].moments == Some(12) && many[1].us_ci95.is_some(), "{many:?}");
    }

    #[test]
    fn what_was_read_back_knows_no_moments() {
        let known = &stalling(1, 3)[0];
        let read = LatencyHistogram::from_bytes(&known.to_bytes().unwrap()).unwrap();
        assert_eq!(read, *known);
        assert_eq!(percentiles(std::slice::from_ref(&read), &[99.0])[0].moments, None);
        assert_eq!(percentiles(&[read, known.clone()], &[99.0])[0].moments, None, "nor do both");
    }

    #[test]
    fn dependent_requests_widen_it() {
        let one = histogram((1..=10_000).map(|us| us * 1_000));
        let mean = mean_of(&one);
        let wide =
            Measured { ci95: mean.ci95.map(|[l, h]| [l - 500.0, h + 500.0]), ..mean.clone() };
        let width = |mean: &Measured| {
            let [low, high] = pooled_percentiles(&[(&one, mean)], &[95.0])[0].us_ci95.unwrap();
            high - low
        };
        assert!(width(&wide) > 3.0 * width(&mean));
        let unknown = Measured::without_interval(mean.value, 2, Verdicts::none());
        let found = pooled_percentiles(&[(&one, &unknown)], &[95.0]);
        assert_eq!(found[0].us_ci95, None, "how many of them are independent is unknown");
    }

    #[test]
    fn the_interval_holds_the_percentile_of_the_process() {
        let (mut rng, rounds) = (Random::new(61), 400);
        for (percent, drift) in [(50.0, 0.0), (95.0, 0.0), (50.0, 0.1), (99.0, 0.1)] {
            // Exponential latencies whose scale differs from replicate to replicate; the truth from
            // very many replicates.
            let mut draw = |replicates: usize, requests: usize| -> Vec<LatencyHistogram> {
                let one = |rng: &mut Random| {
                    let scale = 1e6 * (drift * rng.normal()).exp();
                    histogram((0..requests).map(|_| (scale * rng.exponential()) as u64))
                };
                (0..replicates).map(|_| one(&mut rng)).collect()
            };
            let truth_us = merged(&draw(3_000, 200)).percentile_us(percent).unwrap();
            let held = (0..rounds).filter(|_| {
                let found = percentiles(&draw(6, 1_000), &[percent]);
                found[0].us_ci95.is_some_and(|[low, high]| low <= truth_us && truth_us <= high)
            });
            let share = 100.0 * held.count() as f64 / f64::from(rounds);
            println!("p{percent} drift {drift}: {share} %");
            assert!((91.0..=99.9).contains(&share), "p{percent}, drift {drift}: {share} %");
        }
    }
}
