//! The highest rate at which an objective is held.
//!
//! Purpose: say which rate to try next, and what is known so far. Method: bracketing from below
//! capacity downwards by halves, then bisection, until the bracket is narrow. Invariants: pure;
//! the rate that held is below the one that did not; every rate to try lies strictly between.
//! It assumes that what holds at a rate holds at lower ones. Noise near the answer can make it
//! narrow in on the wrong side of a level, never outside what was tried.

use crate::Interval;

/// The first rate tried, as a share of the capacity.
const FIRST: f64 = 0.95;
/// The search ends when the bracket is this wide, relative to its lower end.
const NARROW: f64 = 0.05;
/// Below this share of the capacity no rate is tried.
const LEAST: f64 = 1.0 / 64.0;

/// What is known of the highest rate at which an objective is held.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateSearch {
    capacity: f64,
    held: Option<f64>,
    missed: Option<f64>,
}

impl RateSearch {
    /// Rates that a search tries at most.
    pub const TRIES_MAX: usize = 11;

    /// A search below the rate that the target gives without a schedule. `None` where that is not
    /// positive and finite.
    pub fn new(capacity: f64) -> Option<Self> {
        let is_usable = capacity.is_finite() && capacity > 0.0;
        is_usable.then_some(Self { capacity, held: None, missed: None })
    }

    /// The rate to try next; none when nothing is left to find.
    pub fn next_rate(&self) -> Option<f64> {
        match (self.held, self.missed) {
            (None, None) => Some(FIRST * self.capacity),
            (None, Some(missed)) => {
                Some(missed / 2.0).filter(|rate| *rate >= LEAST * self.capacity)
            }
            (Some(_), None) => None,
            (Some(held), Some(missed)) => {
                (missed / held > 1.0 + NARROW).then_some((held + missed) / 2.0)
            }
        }
    }

    /// Notes whether the objective was held at a rate.
    pub fn note(&mut self, rate: f64, is_held: bool) {
        if is_held {
            self.held = Some(self.held.map_or(rate, |held| held.max(rate)));
        } else {
            self.missed = Some(self.missed.map_or(rate, |missed| missed.min(rate)));
        }
    }

    /// The highest rate that held.
    pub fn held(&self) -> Option<f64> {
        self.held
    }

    /// Between which rates the highest one lies, as far as it is known.
    pub fn bracket(&self) -> Interval {
        [self.held.unwrap_or(0.0), self.missed.unwrap_or(self.capacity)]
    }

    /// Whether every rate that was tried held, so that the capacity is what bounds it.
    pub fn is_at_capacity(&self) -> bool {
        self.held.is_some() && self.missed.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches a target whose objective holds up to `highest`; gives what was found and how many
    /// rates were tried.
    fn searched(capacity: f64, highest: f64) -> (RateSearch, usize) {
        let mut search = RateSearch::new(capacity).unwrap();
        let mut tried = 0;
        while let Some(rate) = search.next_rate() {
            let [low, high] = search.bracket();
            assert!(low < rate && rate < high, "{rate} in {low} to {high}");
            search.note(rate, rate <= highest);
            tried += 1;
            assert!(tried <= RateSearch::TRIES_MAX, "{search:?}");
        }
        (search, tried)
    }

    #[test]
    fn the_answer_is_bracketed_wherever_it_lies() {
        // The lowest rate that is tried, and one that holds up to just below the next try.
        for share in [0.95 / 32.0, 0.03, 0.0592, 0.1, 0.3, 0.48, 0.7, 0.9, 0.94] {
            let (found, _) = searched(1_000.0, share * 1_000.0);
            let [low, high] = found.bracket();
            assert!(low <= share * 1_000.0 && share * 1_000.0 <= high, "{found:?}");
            assert!(high / low <= 1.05 && !found.is_at_capacity(), "{found:?}");
            assert_eq!(found.held(), Some(low));
        }
    }

    #[test]
    fn what_bounds_it_is_told() {
        let (found, tried) = searched(1_000.0, 2_000.0);
        assert!(found.is_at_capacity() && tried == 1);
        assert_eq!(found.bracket(), [950.0, 1_000.0]);
        let (found, _) = searched(1_000.0, 0.0);
        assert_eq!((found.held(), found.bracket()[0]), (None, 0.0));
        assert!(found.bracket()[1] < 32.0, "{found:?}");
        assert_eq!(RateSearch::new(0.0), None);
        assert_eq!(RateSearch::new(f64::NAN), None);
    }
}
