//! Loss between two rungs of the ladder.
//!
//! Purpose: `loss = 100 (1 - upper / lower)` percent with its interval; the lower rung is nearer to
//! the device. Invariant: a loss carries the verdicts of both rungs. A negative loss is a gain and
//! is reported as such. The caller must make sure that the two rungs did identical work; otherwise
//! the loss is meaningless.

use crate::compare::CompareError;
use crate::{Comparison, Measured};

/// A ratio of the upper rung to the lower one as a loss.
fn loss_of(ratio: &Measured) -> Measured {
    ratio.mapped(|ratio| 100.0 * (1.0 - ratio))
}

impl Comparison {
    /// The loss of the second treatment (the upper rung) against the first (the lower rung), in
    /// percent.
    pub fn loss_pct(&self) -> Measured {
        loss_of(&self.ratio)
    }

    /// The most that this loss may be, in percent, but for one case in 200: the upper end of its
    /// 99 % interval. All of it without an interval.
    pub fn loss_pct_max(&self) -> f64 {
        self.ratio_ci99.map_or(100.0, |[low, _]| 100.0 * (1.0 - low))
    }
}

/// The loss between two rungs that were not run in pairs, in percent.
///
/// The interval takes the two figures as independent: relative half widths add as squares in the
/// logarithm (delta method).
///
/// # Errors
/// [`CompareError::NotPositive`] when a figure is not positive.
pub fn loss_pct(lower: &Measured, upper: &Measured) -> Result<Measured, CompareError> {
    if let Some(bad) = [lower, upper].into_iter().find(|one| one.value <= 0.0) {
        return Err(CompareError::NotPositive { value: bad.value });
    }
    let mut verdicts = lower.verdicts.clone();
    verdicts.merge(&upper.verdicts);
    let value = upper.value / lower.value;
    let ci95 = lower.ci95.and(upper.ci95).map(|_| {
        let width = lower.relative_half_width().hypot(upper.relative_half_width());
        [value * (-width).exp(), value * width.exp()]
    });
    Ok(loss_of(&Measured { value, ci95, n: lower.n.min(upper.n), verdicts }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::paired;
    use crate::measured::around;
    use crate::random::Random;
    use crate::{Verdict, Verdicts};

    fn rung(value: f64, half_width: f64) -> Measured {
        Measured::new(value, around(value, half_width), 3, Verdicts::none())
    }

    #[test]
    fn a_paired_loss_is_the_mirror_of_its_ratio() {
        let compared = paired(&[100.0, 101.0, 99.0], &[80.0, 81.0, 79.0]).unwrap();
        let (found, most) = (compared.loss_pct(), compared.loss_pct_max());
        assert!((found.value - 20.0).abs() < 0.1 && found.is_above_zero());
        let [low, high] = found.ci95.unwrap();
        assert!(low < found.value && found.value < high && !found.is_below(20.0));
        assert!(found.is_below(25.0));
        // t(2) is 9.925 of 99 % and 4.303 of 95 %.
        let width = |end: f64| ((100.0 - found.value) / (100.0 - end)).ln();
        assert!((width(most) / width(high) - 9.925 / 4.303).abs() < 1e-3, "{most} {high}");
    }

    #[test]
    fn a_gain_is_negative_and_no_loss() {
        let found = loss_pct(&rung(100.0, 1.0), &rung(120.0, 1.0)).unwrap();
        assert!((found.value + 20.0).abs() < 1e-9 && !found.is_above_zero());
    }

    #[test]
    fn a_wide_rung_makes_the_loss_as_wide_as_it_is() {
        let found = loss_pct(&rung(1_000.0, 0.0), &rung(993.0, 2_504.0)).unwrap();
        let [low, high] = found.ci95.unwrap();
        let factor = (2_504.0_f64 / 993.0).exp();
        assert!((low - (100.0 - 99.3 * factor)).abs() < 1e-6, "{low}");
        assert!((high - (100.0 - 99.3 / factor)).abs() < 1e-6, "{high}");
    }

    #[test]
    fn verdicts_and_missing_intervals_travel() {
        let mut upper = Measured::without_interval(50.0, 1, Verdicts::none());
        upper.verdicts.add(Verdict::Cached);
        let found = loss_pct(&rung(100.0, 1.0), &upper).unwrap();
        assert!(found.verdicts.has(Verdict::Cached) && found.ci95.is_none());
        assert!(!found.is_above_zero());
        assert!(loss_pct(&rung(0.0, 1.0), &upper).is_err());
    }

    #[test]
    fn the_unpaired_interval_holds_the_truth() {
        let (mut rng, mut held) = (Random::new(4), 0);
        for _ in 0..2_000 {
            let mut draw = |mean: f64| rung(mean * (1.0 + 0.05 * rng.normal()), mean * 0.098);
            let (lower, upper) = (draw(1_000.0), draw(700.0));
            let [low, high] = loss_pct(&lower, &upper).unwrap().ci95.unwrap();
            held += u32::from(low <= 30.0 && 30.0 <= high);
        }
        assert!((1_860..=1_940).contains(&held), "{held} of 2000");
    }
}
