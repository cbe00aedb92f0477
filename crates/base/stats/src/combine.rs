//! Several replicates of one point become one figure.
//!
//! Purpose: the mean of the replicates with an interval that no source of error escapes.
//! Invariant: the interval is the wider of two. Within: what the batches of each replicate allow.
//! Between: Student's t on the replicate values, which also sees what differs from run to run and
//! stays constant within one (placement, allocation, cache state).
//! Rates are not weighted: replicates of one point count alike. What is a mean over requests, such
//! as a latency, is weighted by their rates, so that the mean rate times the mean latency still is
//! the mean number of requests in flight.

use crate::measured::around;
use crate::student::t95;
use crate::{Measured, Verdict, Verdicts};

/// What one replicate alone cannot rule out and several can: their spread shows it.
const OF_ONE_REPLICATE: [Verdict; 3] =
    [Verdict::TooFewSamples, Verdict::NotSteady, Verdict::BurstLimited];

/// One figure from replicates of the same point; `None` without any.
///
/// `n` is the number of replicates; with a single one it stays the number of its batches. Verdicts
/// of all replicates are kept, but for those on one replicate's course (`too_few_samples`,
/// `not_steady`, `burst_limited`): a figure of three or more has them when at least half of its
/// replicates do, since the interval between replicates covers a single one. With two replicates
/// the interval is wide (t = 12.7): two agreeing runs are weak evidence.
pub fn combine(replicates: &[Measured]) -> Option<Measured> {
    let alike: Vec<(f64, Measured)> = replicates.iter().map(|one| (1.0, one.clone())).collect();
    combine_weighted(&alike)
}

/// The same where replicates have weights: for a mean latency its number of requests per second.
/// `None` without any weight.
///
/// Method: ratio estimator over replicates (Cochran, Sampling Techniques, section 6.4).
pub fn combine_weighted(replicates: &[(f64, Measured)]) -> Option<Measured> {
    let weighing: Vec<&(f64, Measured)> = replicates.iter().filter(|(w, _)| *w > 0.0).collect();
    if let [(_, only)] = weighing.as_slice() {
        return Some(only.clone());
    }
    let n = weighing.len() as f64;
    let usual = weighing.iter().map(|(weight, _)| weight).sum::<f64>() / n;
    let shares: Vec<f64> = weighing.iter().map(|(weight, _)| weight / usual).collect();
    let figures: Vec<Measured> = weighing.into_iter().map(|(_, one)| one.clone()).collect();
    figures.first()?;
    let mean = shares.iter().zip(&figures).map(|(share, one)| share * one.value).sum::<f64>() / n;
    let apart = |(share, one): (&f64, &Measured)| share * (one.value - mean);
    let deviations: Vec<f64> = shares.iter().zip(&figures).map(apart).collect();
    let (_, between) = mean_and_half_width(&deviations);
    let half_width = between.max(half_width_within(&shares, &figures));
    Some(Measured::new(mean, around(mean, half_width), figures.len() as u64, shared(&figures)))
}

/// The verdicts that a figure takes over from its replicates.
fn shared(replicates: &[Measured]) -> Verdicts {
    let holds = |verdict: &Verdict| {
        let having = replicates.iter().filter(|one| one.verdicts.has(*verdict)).count();
        let covered = OF_ONE_REPLICATE.contains(verdict) && replicates.len() >= 3;
        !covered || 2 * having >= replicates.len()
    };
    replicates.iter().flat_map(|one| one.verdicts.iter()).filter(holds).collect()
}

/// The mean of independent values, no two of which are of one moment; of a single one without an
/// interval, `None` without any.
pub fn mean_of(values: &[f64]) -> Option<Measured> {
    let (n, verdicts) = (values.len() as u64, Verdicts::none());
    match values {
        [] => None,
        [only] => Some(Measured::without_interval(*only, n, verdicts)),
        all => {
            let (mean, half_width) = mean_and_half_width(all);
            Some(Measured::new(mean, [mean - half_width, mean + half_width], n, verdicts))
        }
    }
}

/// The same with half the width of its 95 % interval, of two values at least.
pub(crate) fn mean_and_half_width(values: &[f64]) -> (f64, f64) {
    assert!(values.len() >= 2, "an interval needs two values, not {}", values.len());
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, t95(n - 1.0) * (variance / n).sqrt())
}

/// Half width of the mean if the replicates differed only by as much as their own intervals allow.
/// Replicates without an interval count with the widest one present.
fn half_width_within(shares: &[f64], replicates: &[Measured]) -> f64 {
    let widths = replicates.iter().map(Measured::half_width);
    let widest = widths.clone().flatten().fold(0.0, f64::max);
    let weighed = shares.iter().zip(widths).map(|(share, width)| share * width.unwrap_or(widest));
    weighed.map(|width| width.powi(2)).sum::<f64>().sqrt() / replicates.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use crate::{Verdict, Verdicts};

    fn sound(value: f64, half_width: f64) -> Measured {
        Measured::new(value, around(value, half_width), 40, Verdicts::none())
    }

    #[test]
    fn takes_the_wider_interval() {
        let calm = combine(&[sound(100.0, 9.0), sound(100.1, 9.0), sound(99.9, 9.0)]).unwrap();
        let [low, high] = calm.ci95.unwrap();
        assert!(((high / low).ln() * 50.0 - 9.0 / 3f64.sqrt()).abs() < 1e-9, "within is wider");
        let wild = combine(&[sound(90.0, 0.1), sound(100.0, 0.1), sound(110.0, 0.1)]).unwrap();
        let [low, high] = wild.ci95.unwrap();
        assert!(
            ((high / low).ln() * 50.0 - 4.3027 * 10.0 / 3f64.sqrt()).abs() < 0.01,
            "between is"
        );
        assert_eq!((wild.n, wild.value), (3, 100.0));
    }

    #[test]
    fn wide_replicates_do_not_widen_each_other() {
        // Half widths h/v of 2.5: of four alike replicates the figure has half of that.
        let [low, high] = combine(&vec![sound(1_000.0, 2_500.0); 4]).unwrap().ci95.unwrap();
        assert!(((high / low).ln() / 2.0 - 1.25).abs() < 1e-9, "{low} {high}");
    }

    #[test]
    fn a_single_unsteady_replicate_is_covered_by_the_others() {
        let mut wild = sound(5.0, 1.0);
        wild.verdicts.add(Verdict::NotSteady);
        let of = |wild_ones: usize| {
            let mut all = vec![wild.clone(); wild_ones];
            all.resize(4, sound(5.0, 1.0));
            combine(&all).unwrap().verdicts.has(Verdict::NotSteady)
        };
        assert_eq!([of(0), of(1), of(2), of(4)], [false, false, true, true]);
    }

    #[test]
    fn keeps_every_verdict_and_a_single_replicate_as_it_is() {
        let mut cached = sound(5.0, 1.0);
        cached.verdicts.add(Verdict::Cached);
        let few = Measured::without_interval(5.0, 3, Verdicts::none());
        let both = combine(&[cached.clone(), few]).unwrap();
        assert!(both.verdicts.has(Verdict::Cached) && both.verdicts.has(Verdict::TooFewSamples));
        let one_of_five = [&[cached.clone()][..], &vec![sound(5.0, 1.0); 4]].concat();
        assert!(combine(&one_of_five).unwrap().verdicts.has(Verdict::Cached));
        assert_eq!(combine(&[cached.clone()]), Some(cached));
        assert_eq!(combine(&[]), None);
    }

    #[test]
    fn holds_the_truth_when_replicates_differ() {
        let (mut rng, mut held) = (Random::new(5), 0);
        for _ in 0..2_000 {
            let replicates: Vec<Measured> =
                (0..4).map(|_| sound(50.0 + 3.0 * rng.normal(), 0.5)).collect();
            let [low, high] = combine(&replicates).unwrap().ci95.unwrap();
            held += u32::from(low <= 50.0 && 50.0 <= high);
        }
        assert!((1_860..=1_940).contains(&held), "{held} of 2000");
    }
}
