//! Points sorted into levels and replicates.
//!
//! Invariant: levels rise; only figures of the same replicate are compared.

use std::collections::{BTreeMap, BTreeSet};

use super::{AxisError, AxisPoint};
use crate::{Comparison, Measured, Verdicts, paired_measured};

/// A figure over the levels of an axis.
pub(super) struct Curve<'a> {
    /// The levels, rising; two at least.
    pub(super) levels: Vec<f64>,
    /// The figures of each level, by replicate.
    figures: Vec<BTreeMap<u32, &'a Measured>>,
    /// Replicates that every level has.
    pub(super) common: BTreeSet<u32>,
}

impl<'a> Curve<'a> {
    pub(super) fn of(points: &'a [AxisPoint]) -> Result<Self, AxisError> {
        let mut levels: Vec<f64> = points.iter().map(|point| point.level).collect();
        if let Some(&level) = levels.iter().find(|level| !level.is_finite()) {
            return Err(AxisError::LevelNotFinite { level });
        }
        levels.sort_by(f64::total_cmp);
        levels.dedup();
        if levels.len() < 2 {
            return Err(AxisError::TooFewLevels { found: levels.len() });
        }
        let mut figures = vec![BTreeMap::new(); levels.len()];
        for AxisPoint { level, replicate, value: figure } in points {
            let (level, replicate, value) = (*level, *replicate, figure.value);
            if !(value > 0.0 && value.is_finite()) {
                return Err(AxisError::NotPositive { level, replicate, value });
            }
            let at = levels.partition_point(|&known| known < level);
            if figures[at].insert(replicate, figure).is_some() {
                return Err(AxisError::Duplicate { level, replicate });
            }
        }
        let has_all = |replicate: &u32| figures.iter().all(|level| level.contains_key(replicate));
        let common = figures[0].keys().copied().filter(has_all).collect();
        Ok(Self { levels, figures, common })
    }

    /// The figure at one level over that at another, both by index; `None` without a replicate in
    /// common.
    pub(super) fn compare(&self, from: usize, to: usize) -> Option<Comparison> {
        let both = self.figures[from]
            .iter()
            .filter_map(|(replicate, &first)| Some((first, *self.figures[to].get(replicate)?)));
        let (first, second): (Vec<Measured>, Vec<Measured>) =
            both.map(|(first, second)| (first.clone(), second.clone())).unzip();
        // Values were found positive, so the only refusal left is that there are no pairs.
        paired_measured(&first, &second).ok()
    }

    /// Every lower level against every higher one; `None` when two have no replicate in common.
    pub(super) fn all_pairs(&self) -> Option<BTreeMap<(usize, usize), Comparison>> {
        let count = self.levels.len();
        let pairs = (0..count).flat_map(|from| (from + 1..count).map(move |to| (from, to)));
        pairs.map(|(from, to)| Some(((from, to), self.compare(from, to)?))).collect()
    }

    /// The level with the highest figure: the geometric mean over the common replicates, or over
    /// all of a level's when there are none.
    pub(super) fn peak(&self) -> usize {
        let mean = |level: &BTreeMap<u32, &Measured>| {
            let counts =
                |replicate: &u32| self.common.is_empty() || self.common.contains(replicate);
            let logs: Vec<f64> = level
                .iter()
                .filter(|(replicate, _)| counts(replicate))
                .map(|(_, figure)| figure.value.ln())
                .collect();
            logs.iter().sum::<f64>() / logs.len() as f64
        };
        let means: Vec<f64> = self.figures.iter().map(mean).collect();
        // The first of equals, so that a fall begins as early as it may have.
        (1..means.len()).fold(0, |best, at| if means[at] > means[best] { at } else { best })
    }

    pub(super) fn verdicts(&self) -> Verdicts {
        let all = self.figures.iter().flat_map(BTreeMap::values);
        all.flat_map(|figure| figure.verdicts.iter()).collect()
    }
}
