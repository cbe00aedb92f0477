//! Two treatments compared by interleaved pairs.
//!
//! Purpose: say whether B differs from A, by how much, and with what interval, from replicates run
//! alternately (A B B A ...), so that a slow drift of the machine cancels within pairs.
//! Method: Student's t on the logarithms of the ratios; a ratio of 2 and a ratio of 1/2 then weigh
//! the same, and the interval cannot reach below 0.
//! Invariants: fewer than [`PAIRS_MIN`] pairs never conclude; "no measurable difference" is a
//! result like the others.
//! It does not say why they differ.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::combine::mean_and_half_width;
use crate::{Interval, Measured, Verdicts};

/// Fewest pairs that a conclusion may rest on.
pub const PAIRS_MIN: usize = 3;

/// Above this a difference that is not ruled out says that nothing is known, percent.
pub const KNOWN_PCT_MAX: f64 = 25.0;

/// The largest difference from a ratio of 1, up or down, that its interval allows, percent.
pub fn allowed_pct(ratio_ci95: Interval) -> f64 {
    100.0 * ratio_ci95.iter().map(|end| (end - 1.0).abs()).fold(0.0, f64::max)
}

/// What a comparison came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Conclusion {
    /// The second is higher: the interval lies above a ratio of 1.
    Higher,
    /// The second is lower: the interval lies below a ratio of 1.
    Lower,
    /// The interval holds a ratio of 1.
    NoMeasurableDifference,
    /// Fewer than three pairs.
    TooFewPairs,
}

/// The second treatment over the first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Comparison {
    /// Geometric mean of the ratios second / first.
    pub ratio: f64,
    /// Its 95 % interval; absent with a single pair.
    pub ratio_ci95: Option<Interval>,
    /// Pairs.
    pub n: u64,
    /// What follows from it.
    pub conclusion: Conclusion,
    /// Verdicts of every figure that went in.
    pub verdicts: Verdicts,
}

/// Why figures cannot be compared.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum CompareError {
    /// Pairs need two lists of the same length.
    #[error("{first} replicates cannot be paired with {second}; compare equally many")]
    UnequalLengths {
        /// Values of the first treatment.
        first: usize,
        /// Values of the second treatment.
        second: usize,
    },
    /// Nothing to compare.
    #[error("there are no replicates to compare; measure both sides at least once")]
    NoPairs,
    /// A ratio needs positive figures.
    #[error("the figure {value} cannot be part of a ratio; only positive ones can")]
    NotPositive {
        /// The figure found.
        value: f64,
    },
}

impl Comparison {
    /// Whether the two differ beyond their interval.
    pub fn is_significant(&self) -> bool {
        matches!(self.conclusion, Conclusion::Higher | Conclusion::Lower)
    }

    /// Whether the two are known to differ by less than so many percent: the whole interval lies
    /// within `1 - percent/100 .. 1 + percent/100`. This is more than not being significant.
    pub fn differs_by_less_than(&self, percent: f64) -> bool {
        self.n >= PAIRS_MIN as u64
            && self.ratio_ci95.is_some_and(|[low, high]| {
                low > 1.0 - percent / 100.0 && high < 1.0 + percent / 100.0
            })
    }

    /// The difference of the second from the first in percent, with its interval.
    pub fn change_pct(&self) -> (f64, Option<Interval>) {
        let percent = |ratio: f64| 100.0 * (ratio - 1.0);
        (percent(self.ratio), self.ratio_ci95.map(|ends| ends.map(percent)))
    }

    /// The same with the interval in which one further pair lies, instead of that of the mean:
    /// where pairs differ by what is not known of one thing, their number tells no more of it.
    pub fn change_pct_of_one_more(&self) -> (f64, Option<Interval>) {
        let wider = (self.n as f64 + 1.0).sqrt();
        let percent = |ratio: f64| 100.0 * (ratio - 1.0);
        let end = |end: f64| percent(self.ratio * (end / self.ratio).powf(wider));
        (percent(self.ratio), self.ratio_ci95.map(|ends| ends.map(end)))
    }
}

/// Compares replicate values pairwise: `second[i] / first[i]`.
///
/// # Errors
/// [`CompareError`] when the lists cannot be paired or a value is not positive.
pub fn paired(first: &[f64], second: &[f64]) -> Result<Comparison, CompareError> {
    let ratios = log_ratios(first, second)?;
    Ok(conclude(&ratios, 0.0, Verdicts::none()))
}

/// Compares replicates pairwise; the interval is never narrower than their own intervals allow, and
/// their verdicts are kept.
///
/// # Errors
/// [`CompareError`] when the lists cannot be paired or a value is not positive.
pub fn paired_measured(
    first: &[Measured],
    second: &[Measured],
) -> Result<Comparison, CompareError> {
    let values = |side: &[Measured]| side.iter().map(|one| one.value).collect::<Vec<f64>>();
    let ratios = log_ratios(&values(first), &values(second))?;
    let squares: f64 = first
        .iter()
        .chain(second)
        .filter(|one| one.ci95.is_some())
        .map(|one| one.relative_half_width().powi(2))
        .sum();
    Ok(conclude(&ratios, squares.sqrt() / ratios.len() as f64, verdicts_of(first, second)))
}

fn verdicts_of(first: &[Measured], second: &[Measured]) -> Verdicts {
    let mut verdicts = Verdicts::none();
    first.iter().chain(second).for_each(|one| verdicts.merge(&one.verdicts));
    verdicts
}

/// Compares replicates pairwise by their difference `second[i] - first[i]`, for figures that may be
/// 0, to which no ratio can be taken: the mean of the differences with its 95 % interval, which is
/// absent with a single pair and never narrower than the replicates' own intervals allow.
///
/// # Errors
/// [`CompareError`] when the lists cannot be paired.
pub fn paired_difference(
    first: &[Measured],
    second: &[Measured],
) -> Result<Measured, CompareError> {
    check_lengths(first.len(), second.len())?;
    let apart: Vec<f64> = first.iter().zip(second).map(|(a, b)| b.value - a.value).collect();
    let n = apart.len() as u64;
    let verdicts = verdicts_of(first, second);
    if apart.len() < 2 {
        return Ok(Measured::without_interval(apart[0], n, verdicts));
    }
    let (value, between) = mean_and_half_width(&apart);
    let widths = first.iter().chain(second).filter_map(Measured::half_width);
    let squares: f64 = widths.map(|half| half.powi(2)).sum();
    let half_width = between.max(squares.sqrt() / n as f64);
    Ok(Measured { value, ci95: Some([value - half_width, value + half_width]), n, verdicts })
}

fn check_lengths(first: usize, second: usize) -> Result<(), CompareError> {
    if first != second {
        return Err(CompareError::UnequalLengths { first, second });
    }
    if first == 0 {
        return Err(CompareError::NoPairs);
    }
    Ok(())
}

fn log_ratios(first: &[f64], second: &[f64]) -> Result<Vec<f64>, CompareError> {
    check_lengths(first.len(), second.len())?;
    let usable = |value: f64| value > 0.0 && value.is_finite();
    if let Some(&value) = first.iter().chain(second).find(|&&value| !usable(value)) {
        return Err(CompareError::NotPositive { value });
    }
    Ok(first.iter().zip(second).map(|(a, b)| (b / a).ln()).collect())
}

/// From log ratios, and the half width that the replicates' own intervals ask for at least.
fn conclude(ratios: &[f64], half_width_min: f64, verdicts: Verdicts) -> Comparison {
    let n = ratios.len() as u64;
    if ratios.len() < 2 {
        let (ratio, conclusion) = (ratios[0].exp(), Conclusion::TooFewPairs);
        return Comparison { ratio, ratio_ci95: None, n, conclusion, verdicts };
    }
    let (mean, between) = mean_and_half_width(ratios);
    let half_width = between.max(half_width_min);
    let [low, high] = [(mean - half_width).exp(), (mean + half_width).exp()];
    let conclusion = if ratios.len() < PAIRS_MIN {
        Conclusion::TooFewPairs
    } else if low > 1.0 {
        Conclusion::Higher
    } else if high < 1.0 {
        Conclusion::Lower
    } else {
        Conclusion::NoMeasurableDifference
    };
    Comparison { ratio: mean.exp(), ratio_ci95: Some([low, high]), n, conclusion, verdicts }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;
    use crate::measured::around;
    use crate::random::Random;

    /// Pairs of a machine that drifts by 10 % over the run; `effect` multiplies the second.
    fn drifting_pairs(rng: &mut Random, pairs: usize, effect: f64) -> (Vec<f64>, Vec<f64>) {
        (0..pairs)
            .map(|pair| {
                let base = 1_000.0 * (1.0 + 0.1 * pair as f64 / pairs as f64);
                let one = base * (1.0 + 0.01 * rng.normal());
                (one, base * effect * (1.0 + 0.01 * rng.normal()))
            })
            .unzip()
    }

    #[test]
    fn finds_a_difference_that_a_drift_would_hide() {
        let (a, b) = drifting_pairs(&mut Random::new(1), 6, 1.05);
        let found = paired(&a, &b).unwrap();
        assert_eq!(found.conclusion, Conclusion::Higher);
        let [low, high] = found.ratio_ci95.unwrap();
        assert!(low < 1.05 && 1.05 < high, "{found:?}");
        assert_eq!(paired(&b, &a).unwrap().conclusion, Conclusion::Lower);
    }

    #[test]
    fn raises_few_false_differences_and_holds_the_truth() {
        let (mut rng, mut held, mut equivalent) = (Random::new(2), 0, 0);
        for _ in 0..2_000 {
            let (a, b) = drifting_pairs(&mut rng, 4, 1.0);
            let found = paired(&a, &b).unwrap();
            held += u32::from(found.conclusion == Conclusion::NoMeasurableDifference);
            equivalent += u32::from(found.differs_by_less_than(10.0));
        }
        assert!((1_860..=1_940).contains(&held), "{held} of 2000 without a false difference");
        assert!(equivalent > 1_900, "{equivalent}");
    }

    #[test]
    fn one_more_pair_lies_within_its_interval() {
        let (mut rng, mut held) = (Random::new(3), 0);
        for _ in 0..2_000 {
            let (a, b) = drifting_pairs(&mut rng, 7, 1.3);
            let found = paired(&a[..6], &b[..6]).unwrap();
            let (change, ci95) = found.change_pct_of_one_more();
            let [low, high] = ci95.unwrap();
            assert!(low < change && change < high);
            let more = 100.0 * (b[6] / a[6] - 1.0);
            held += u32::from(low < more && more < high);
        }
        assert!((1_860..=1_940).contains(&held), "{held} of 2000");
    }

    #[test]
    fn two_pairs_conclude_nothing() {
        let found = paired(&[1.0, 1.0], &[9.0, 9.1]).unwrap();
        assert_eq!((found.conclusion, found.n), (Conclusion::TooFewPairs, 2));
        assert!(!found.is_significant() && !found.differs_by_less_than(1e6));
        assert_eq!(paired(&[2.0], &[3.0]).unwrap().ratio_ci95, None);
    }

    #[test]
    fn wide_replicates_widen_the_comparison() {
        let wide = |value: f64| {
            let verdicts = [Verdict::Steal].into_iter().collect();
            Measured::new(value, around(value, value * 0.2), 30, verdicts)
        };
        let (a, b) = ([100.0, 100.1, 99.9].map(wide), [103.0, 103.1, 102.9].map(wide));
        let found = paired_measured(&a, &b).unwrap();
        assert_eq!(found.conclusion, Conclusion::NoMeasurableDifference);
        assert!(found.verdicts.has(Verdict::Steal));
        let plain = paired(&a.map(|one| one.value), &b.map(|one| one.value)).unwrap();
        assert_eq!(plain.conclusion, Conclusion::Higher);
    }

    #[test]
    fn refuses_what_cannot_be_paired() {
        assert_eq!(paired(&[], &[]), Err(CompareError::NoPairs));
        assert_eq!(paired(&[0.0], &[1.0]), Err(CompareError::NotPositive { value: 0.0 }));
        let unequal = CompareError::UnequalLengths { first: 1, second: 2 };
        assert_eq!(paired(&[1.0], &[1.0, 2.0]), Err(unequal));
    }

    #[test]
    fn a_difference_bears_figures_of_nothing() {
        let exact = |values: [f64; 3]| {
            values.map(|value| Measured { value, ci95: None, n: 9, verdicts: Verdicts::none() })
        };
        let found = paired_difference(&exact([0.0, 0.0, 0.0]), &exact([30.0, 34.0, 32.0])).unwrap();
        assert_eq!((found.value, found.n), (32.0, 3));
        // The standard error of 30, 34, 32 is 1.1547, and t(2) 4.3027.
        let [low, high] = found.ci95.unwrap();
        assert!((low - 27.0317).abs() < 1e-3 && (high - 36.9683).abs() < 1e-3, "{low} {high}");
        // Replicates that are not known better than by 6 each do not make a narrower one.
        let wide = |values: [f64; 3]| exact(values).map(|one| around_half(one, 6.0));
        let found = paired_difference(&wide([0.0; 3]), &wide([30.0; 3])).unwrap();
        let half = 6.0 * 6f64.sqrt() / 3.0;
        assert!((found.ci95.unwrap()[1] - 30.0 - half).abs() < 0.05, "{:?}", found.ci95);
        let alone = paired_difference(&exact([1.0; 3])[..1], &exact([4.0; 3])[..1]).unwrap();
        assert_eq!((alone.value, alone.ci95), (3.0, None));
        assert_eq!(paired_difference(&[], &[]), Err(CompareError::NoPairs));
    }

    fn around_half(one: Measured, half: f64) -> Measured {
        Measured { ci95: Some([one.value - half, one.value + half]), ..one }
    }
}
