//! When a point has been measured long enough.
//!
//! Purpose: stop as soon as the interval is narrow enough, without the bias of looking all the time
//! (an interval watched long enough is narrow by luck at some moment). Method: the criterion is
//! tested only at geometrically spaced moments, and must hold at two successive ones; the data up
//! to the moment before are part of the data now, so no state is kept. What selection is left (a
//! point stops a little more readily when its noise happens to look small) is paid for by widening
//! the interval that is reported by 6 %, a figure from simulation. Invariants: never before
//! [`StoppingRule::slices_min`] slices, never with `too_few_samples`, and never while the rate
//! drifts or just stepped: its mean is not yet one number. The bound on time is the caller's.

use crate::estimate::shaped_estimate;
use crate::{Measured, Shape, Verdict};

/// Ratio between successive moments of testing.
const GROWTH: f64 = 1.3;
/// Fewest slices at the first test: enough for 30 batches of two.
const SLICES_MIN: usize = 60;
/// Widening of the interval of a series that was stopped by looking at it.
const WIDENING: f64 = 1.06;

/// How long a window must be for a relative half width of `precision`, when one of `duration_s` has
/// `relative_half_width`: noise averages out with the square root of time. Infinite when nothing is
/// known of the width.
pub fn time_for_precision(duration_s: f64, relative_half_width: f64, precision: f64) -> f64 {
    duration_s * (relative_half_width / precision).powi(2)
}

/// What to do at a moment of testing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Measure on.
    Go,
    /// The interval is narrow enough.
    Enough,
}

/// Stops when the half width of the 95 % interval is at most `precision` of the mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StoppingRule {
    precision: f64,
    slices_min: usize,
}

impl StoppingRule {
    /// A rule for a relative half width (0.03 is 3 %) and the fewest slices to measure; at least 60
    /// are always taken. A precision of 0 never stops.
    pub fn new(precision: f64, slices_min: usize) -> Self {
        assert!(precision >= 0.0, "a precision is not negative, unlike {precision}");
        Self { precision, slices_min: slices_min.max(SLICES_MIN) }
    }

    /// Slices at which to test first.
    pub fn slices_min(&self) -> usize {
        self.slices_min
    }

    /// The next moment of testing after so many slices.
    pub fn next_check(&self, slices_so_far: usize) -> usize {
        self.moments().find(|&moment| moment > slices_so_far).unwrap_or(usize::MAX)
    }

    /// Decides on the slices so far. Call it at the moments of [`next_check`](Self::next_check);
    /// slices beyond the last such moment are ignored.
    pub fn decide(&self, slices: &[f64]) -> Stop {
        let (mut last, mut before) = (None, None);
        for moment in self.moments().take_while(|&moment| moment <= slices.len()) {
            (before, last) = (last, Some(moment));
        }
        let holds = |moment: Option<usize>| moment.is_some_and(|at| self.is_met(&slices[..at]));
        if holds(last) && holds(before) { Stop::Enough } else { Stop::Go }
    }

    /// The figure to report of slices that this rule stopped, or that it would have stopped: like
    /// [`estimate`], 6 % wider.
    pub fn estimate(&self, slices: &[f64]) -> Option<Measured> {
        Some(shaped_estimate(slices, WIDENING)?.0)
    }

    /// Whether slices alone are good enough; [`decide`](Self::decide) checks it twice.
    fn is_met(&self, slices: &[f64]) -> bool {
        let Some((mean, steadiness)) = shaped_estimate(slices, 1.0) else { return false };
        let moves = steadiness.shapes.iter().any(|shape| {
            let slow = matches!(shape, Shape::Drift { .. } | Shape::Step { .. });
            slow && steadiness.relative_size(shape) > self.precision.max(0.05)
        });
        !moves
            && !mean.verdicts.has(Verdict::TooFewSamples)
            && mean.relative_half_width() <= self.precision
    }

    /// All moments of testing, rising.
    fn moments(&self) -> impl Iterator<Item = usize> {
        let grow = |moment: &usize| {
            let next = (*moment as f64 * GROWTH).ceil();
            (next < 1e15).then_some(next as usize)
        };
        std::iter::successors(Some(self.slices_min), grow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use crate::simulate::{ProcessKind, series};

    /// Slices at which the rule stops on a series.
    fn stops_at(rule: &StoppingRule, slices: &[f64]) -> Option<usize> {
        let mut moment = rule.next_check(0);
        while moment <= slices.len() {
            if rule.decide(&slices[..moment]) == Stop::Enough {
                return Some(moment);
            }
            moment = rule.next_check(moment);
        }
        None
    }

    #[test]
    fn tests_only_at_growing_moments() {
        let rule = StoppingRule::new(0.03, 100);
        let moments: Vec<usize> =
            std::iter::successors(Some(rule.next_check(0)), |&at| Some(rule.next_check(at)))
                .take(5)
                .collect();
        assert_eq!(moments, [100, 130, 169, 220, 286]);
        let calm: Vec<f64> = (0..400).map(|at| 1_000.0 + f64::from(at % 7)).collect();
        assert_eq!(rule.decide(&calm[..129]), Stop::Go, "one good look is not enough");
        assert_eq!(rule.decide(&calm[..130]), Stop::Enough);
    }

    #[test]
    fn a_finer_precision_takes_longer_and_zero_never_stops() {
        let (slices, _) = series(&mut Random::new(3), ProcessKind::Autocorrelated(0.3), 4_000);
        let coarse = stops_at(&StoppingRule::new(0.03, 60), &slices).unwrap();
        let fine = stops_at(&StoppingRule::new(0.008, 60), &slices).unwrap();
        assert!(coarse < fine, "{coarse} {fine}");
        assert_eq!(stops_at(&StoppingRule::new(0.0, 60), &slices), None);
    }

    #[test]
    fn goes_on_while_the_rate_drifts() {
        let drifting: Vec<f64> = (0..2_000).map(|at| 1_000.0 + f64::from(at + at % 3)).collect();
        assert_eq!(stops_at(&StoppingRule::new(0.05, 60), &drifting), None);
    }
}
