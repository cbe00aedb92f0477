//! From equal slices of time to a mean with its 95 % interval.
//!
//! Purpose: the one way by which a rate or a mean latency gets its interval.
//! Method: the shapes of the series (drift, steps) are found and taken out; the interval is
//! Student's t on batch means of the noise that is left, at least 30 batches, with the remaining
//! autocorrelation corrected, and wider on the side of a long tail. What the interval holds with
//! 95 %:
//! - noise of any colour, and what comes back with a period of a small part of the window: the
//!   long-run mean;
//! - drift and steps: the mean of the process over the measured window. It does not predict the
//!   time after it, so `not_steady` goes with it, as with what swings slowly for the window.
//!
//! Invariants: the value is the plain mean of all slices (for a ratio: sum over count), so that it
//! agrees with totals divided by time; it lies in its interval. Below 30 slices, or when the noise
//! is so slow that fewer than 10 independent batches or 25 independent slices remain,
//! `too_few_samples` is raised and the interval, wide as it is, is kept.

use crate::measured::around;
use crate::noise::{BATCHES_MIN, MeanError, independent_slices, mean, mean_error};
use crate::shape::{Decomposition, decompose};
use crate::{Measured, Steadiness, Verdict};

/// Fewest batches, counted as if independent, that an interval may rest on without a verdict.
const EFFECTIVE_BATCHES_MIN: f64 = 10.0;
/// Fewest slices, counted so.
const INDEPENDENT_SLICES_MIN: f64 = 25.0;

/// The mean of a value per slice: counts, rates, bytes; `n` is the number of batches that its
/// interval rests on. `None` without slices or when one is not finite.
///
/// For slices whose number was fixed beforehand; for those that a stopping rule ended, use
/// [`StoppingRule::estimate`](crate::StoppingRule::estimate).
pub fn estimate(slices: &[f64]) -> Option<Measured> {
    Some(shaped_estimate(slices, 1.0)?.0)
}

/// [`estimate`] with an interval so many times as wide, and the shapes that were found.
pub(crate) fn shaped_estimate(slices: &[f64], widening: f64) -> Option<(Measured, Steadiness)> {
    if slices.is_empty() || !slices.iter().all(|value| value.is_finite()) {
        return None;
    }
    let value = mean(slices);
    Some(finish(value, decompose(slices, value), widening))
}

/// The ratio of two sums: with the sum of latencies and the number of requests of each slice, the
/// mean latency. Slices without requests are allowed.
///
/// Method: ratio estimator; the interval is that of the mean of `sum - ratio * count` over the mean
/// count (Cochran, Sampling Techniques, section 6.4). `None` when the lengths differ, nothing was
/// counted, or a value is not finite.
pub fn estimate_ratio(sums: &[f64], counts: &[f64]) -> Option<Measured> {
    let finite = sums.iter().chain(counts).all(|value| value.is_finite());
    let total: f64 = counts.iter().sum();
    if sums.len() != counts.len() || !finite || total <= 0.0 {
        return None;
    }
    let ratio = sums.iter().sum::<f64>() / total;
    let usual = total / counts.len() as f64;
    let deviations: Vec<f64> =
        sums.iter().zip(counts).map(|(sum, count)| (sum - ratio * count) / usual).collect();
    Some(finish(ratio, decompose(&deviations, ratio), 1.0).0)
}

/// The estimate around `value`, its interval `widening` times as wide as the noise requires.
fn finish(value: f64, apart: Decomposition, widening: f64) -> (Measured, Steadiness) {
    let mut verdicts = apart.steadiness.verdicts();
    let error = mean_error(&apart.noise, apart.taken);
    let is_fast = || independent_slices(&apart.noise, apart.taken) >= INDEPENDENT_SLICES_MIN;
    if !error.as_ref().is_some_and(|error| is_enough(error) && is_fast()) {
        verdicts.add(Verdict::TooFewSamples);
    }
    let n = error.map_or(apart.noise.len(), |error| error.batches) as u64;
    let ends = |error: MeanError| {
        let [below, above] = error.half_widths().map(|half| around(value, widening * half));
        [below[0], above[1]]
    };
    let measured = match error.filter(|_| apart.noise.len() >= 4).map(ends) {
        Some(ci95) => Measured::new(value, ci95, n, verdicts),
        None => Measured::without_interval(value, n, verdicts),
    };
    (measured, apart.steadiness)
}

/// Whether an interval may go without `too_few_samples`.
fn is_enough(error: &MeanError) -> bool {
    error.batches >= BATCHES_MIN && error.effective_batches() >= EFFECTIVE_BATCHES_MIN
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use crate::simulate::{ProcessKind, series};

    /// Sum of latencies and number of requests per slice, at a rate that wanders; the mean
    /// latency is 100 us.
    fn latencies(rng: &mut Random, slices: usize, per_slice: f64) -> (Vec<f64>, Vec<f64>) {
        let (busy, _) = series(rng, ProcessKind::Autocorrelated(0.5), slices);
        busy.iter()
            .map(|busy| {
                let count = (per_slice * busy / 1_000.0 + 0.5 * rng.normal()).round().max(0.0);
                let sum: f64 = (0..count as usize).map(|_| 100.0 * rng.exponential()).sum();
                (sum, count)
            })
            .unzip()
    }

    #[test]
    fn a_ratio_holds_the_mean_latency() {
        for (per_slice, slices) in [(0.7, 600), (20.0, 300)] {
            let (mut rng, mut held, mut empty) = (Random::new(6), 0, 0);
            for _ in 0..1_000 {
                let (sums, counts) = latencies(&mut rng, slices, per_slice);
                empty += counts.iter().filter(|count| **count == 0.0).count();
                let [low, high] = estimate_ratio(&sums, &counts).unwrap().ci95.unwrap();
                held += u32::from(low <= 100.0 && 100.0 <= high);
            }
            assert!((930..=970).contains(&held), "{held} of 1000 at {per_slice} per slice");
            assert!(per_slice > 1.0 || empty > 10_000, "slices without requests are part of it");
        }
    }

    #[test]
    fn the_value_is_the_plain_ratio_and_lies_in_its_interval() {
        let found = estimate_ratio(&[3.0, 0.0, 5.0, 1.0, 2.0], &[1.0, 0.0, 2.0, 1.0, 1.0]).unwrap();
        assert!(found.value == 11.0 / 5.0 && found.ci95.is_some());
    }

    #[test]
    fn refuses_what_has_no_mean() {
        assert_eq!(estimate(&[]), None);
        assert_eq!(estimate(&[1.0, f64::NAN]), None);
        assert_eq!(estimate_ratio(&[1.0], &[0.0]), None);
        assert_eq!(estimate_ratio(&[1.0], &[1.0, 2.0]), None);
    }

    #[test]
    fn few_slices_say_so() {
        let few = estimate(&[3.0, 4.0, 5.0]).unwrap();
        assert!(few.ci95.is_none() && few.verdicts.has(Verdict::TooFewSamples));
        assert_eq!(few.n, 3);
        let (slices, _) = series(&mut Random::new(1), ProcessKind::White, 29);
        let short = estimate(&slices).unwrap();
        assert!(short.ci95.is_some() && short.verdicts.has(Verdict::TooFewSamples));
        let (slices, _) = series(&mut Random::new(1), ProcessKind::White, 300);
        let enough = estimate(&slices).unwrap();
        assert!(enough.verdicts.is_sound() && enough.n >= 30);
    }

    #[test]
    fn slow_noise_has_too_few_independent_batches() {
        let mut rng = Random::new(2);
        let flagged = (0..200)
            .filter(|_| {
                let (slices, _) = series(&mut rng, ProcessKind::Autocorrelated(0.98), 300);
                let verdicts = estimate(&slices).unwrap().verdicts;
                verdicts.has(Verdict::TooFewSamples) || verdicts.has(Verdict::NotSteady)
            })
            .count();
        assert!(flagged > 190, "{flagged} of 200 flagged");
    }

    /// Windows that an autocorrelation of 0.95 moved little have batches enough.
    #[test]
    fn slow_noise_has_too_few_independent_slices() {
        let mut rng = Random::new(2);
        let mut flagged = |rho: f64| {
            let all = (0..200).map(|_| series(&mut rng, ProcessKind::Autocorrelated(rho), 500).0);
            all.filter(|slices| !estimate(slices).unwrap().verdicts.is_sound()).count()
        };
        assert!(flagged(0.95) > 190 && flagged(0.8) < 20);
    }

    #[test]
    fn batches_grow_with_correlation_and_never_below_thirty() {
        let mut rng = Random::new(3);
        let mut batches = |rho: f64| {
            let (slices, _) = series(&mut rng, ProcessKind::Autocorrelated(rho), 4_000);
            estimate(&slices).unwrap().n
        };
        let (longer, shorter) = (batches(0.9), batches(0.0));
        assert!(30 <= longer && longer < shorter, "correlated slices need longer batches");
    }

    #[test]
    fn a_constant_series_has_an_interval_of_no_width() {
        let flat = estimate(&[7.0; 100]).unwrap();
        assert_eq!(flat.ci95, Some([7.0, 7.0]));
        assert!(flat.verdicts.is_sound());
        let idle = estimate(&[0.0; 100]).unwrap();
        assert_eq!((idle.value, idle.ci95), (0.0, Some([0.0, 0.0])));
    }
}
