//! Observations, found by their levels and replicate.
//!
//! Invariant: what is matched is equal in every factor that is not compared, and of one replicate.

use std::collections::{BTreeMap, BTreeSet};

use super::{EffectsError, LevelChange, Observation};
use crate::contrast::Seen;
use crate::{Measured, Verdicts};

/// The figures of one plan.
pub(super) struct Plan<'a> {
    figures: BTreeMap<(Vec<usize>, u32), &'a Measured>,
    /// Levels of each factor that were measured.
    levels: Vec<BTreeSet<usize>>,
}

/// What matches a contrast.
pub(super) struct Matched {
    pub(super) seen: Vec<Seen>,
    /// Verdicts of every figure in it.
    pub(super) verdicts: Verdicts,
}

impl<'a> Plan<'a> {
    pub(super) fn of(observations: &'a [Observation]) -> Result<Self, EffectsError> {
        let first = observations.first().ok_or(EffectsError::NoObservations)?;
        let expected = first.levels.len();
        let mut plan = Self { figures: BTreeMap::new(), levels: vec![BTreeSet::new(); expected] };
        for Observation { levels, replicate, value } in observations {
            let (levels, replicate, number) = (levels.clone(), *replicate, value.value);
            if levels.len() != expected {
                return Err(EffectsError::UnequalFactors { expected, found: levels.len() });
            }
            if !(number > 0.0 && number.is_finite()) {
                return Err(EffectsError::NotPositive { levels, replicate, value: number });
            }
            for (known, &level) in plan.levels.iter_mut().zip(&levels) {
                known.insert(level);
            }
            if plan.figures.insert((levels.clone(), replicate), value).is_some() {
                return Err(EffectsError::Duplicate { levels, replicate });
            }
        }
        Ok(plan)
    }

    /// Every change of every factor, from a lower to a higher index.
    pub(super) fn changes(&self) -> Vec<LevelChange> {
        let of_factor = |(factor, levels): (usize, &BTreeSet<usize>)| {
            let pairs = levels.iter().flat_map(|&from| levels.iter().map(move |&to| (from, to)));
            let rising = pairs.filter(|(from, to)| from < to).collect::<Vec<_>>();
            rising.into_iter().map(move |(from, to)| LevelChange { factor, from, to })
        };
        self.levels.iter().enumerate().flat_map(of_factor).collect()
    }

    /// The log ratios of one change, or the ratios of ratios of two, wherever all the figures that
    /// it takes are there.
    pub(super) fn matched(&self, changes: &[LevelChange]) -> Matched {
        let mut matched = Matched { seen: Vec::new(), verdicts: Verdicts::none() };
        let (mut cell, mut last) = (0, None);
        for (levels, replicate) in self.figures.keys() {
            if changes.iter().any(|change| levels[change.factor] != change.from) {
                continue;
            }
            // Keys come sorted, and those that start a contrast differ in the other factors only.
            if last.is_some_and(|last| last != levels) {
                cell += 1;
            }
            last = Some(levels);
            let Some(corners) = self.corners(levels, *replicate, changes) else { continue };
            let mut one = Seen { cell, replicate: *replicate, value: 0.0, square_min: 0.0 };
            for (sign, figure) in corners {
                one.value += sign * figure.value.ln();
                one.square_min += figure.ci95.map_or(0.0, |_| figure.relative_half_width().powi(2));
                matched.verdicts.merge(&figure.verdicts);
            }
            matched.seen.push(one);
        }
        matched
    }

    /// The figures at all combinations of the changes made or not, each with the sign of its
    /// logarithm; `None` when one is missing.
    fn corners(
        &self,
        levels: &[usize],
        replicate: u32,
        changes: &[LevelChange],
    ) -> Option<Vec<(f64, &'a Measured)>> {
        let corner = |made: usize| {
            let mut levels = levels.to_vec();
            let mut sign = 1.0;
            for (at, change) in changes.iter().enumerate() {
                if made >> at & 1 == 1 {
                    levels[change.factor] = change.to;
                } else {
                    sign = -sign;
                }
            }
            self.figures.get(&(levels, replicate)).map(|figure| (sign, *figure))
        };
        (0..1 << changes.len()).map(corner).collect()
    }
}
