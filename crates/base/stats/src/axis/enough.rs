//! The level from which on more brings nothing.
//!
//! Invariant: the last level is never the answer, since nothing beyond it was measured.

use serde::{Deserialize, Serialize};

use super::curve::Curve;
use super::{AxisError, AxisPoint, rises};
use crate::{Comparison, PAIRS_MIN, Verdicts};

/// How much of something is enough, such as how many files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Enough {
    /// The smallest level compared with which no larger one is measurably better by more than
    /// `percent`; absent when the last level still is better than the one before, or fewer than
    /// three replicates are common to all levels.
    pub level: Option<f64>,
    /// The gain, in percent, that is not worth a larger level.
    pub percent: f64,
    /// The figure at `level` over that at the smallest level; absent without a level and when it is
    /// the smallest.
    pub gain: Option<Comparison>,
    /// The largest gain of a larger level over `level`, in percent, that the intervals still allow.
    /// At or below `percent` it is known that the level is enough; above, only that nothing more
    /// was seen.
    pub beyond_pct_max: Option<f64>,
    /// Replicates that all levels have in common.
    pub replicates: u64,
    /// Verdicts of every figure that went in.
    pub verdicts: Verdicts,
}

/// The smallest level from which on no larger level is measurably better by more than `percent` (5
/// is usual). Points may come in any order.
///
/// Better means that the interval lies above a ratio of 1 and the ratio itself above `percent`. The
/// comparisons are not adjusted for their number: that would make it easier to call a level enough.
///
/// # Errors
/// [`AxisError`] when there are fewer than two levels or a point cannot be used.
pub fn enough(points: &[AxisPoint], percent: f64) -> Result<Enough, AxisError> {
    let curve = Curve::of(points)?;
    let last = curve.levels.len() - 1;
    let larger = |at: usize| -> Option<Vec<Comparison>> {
        (at + 1..=last).map(|to| curve.compare(at, to)).collect()
    };
    let is_enough = |all: &Vec<Comparison>| !all.iter().any(|one| rises(one, percent));
    let found = (0..last)
        .filter(|_| curve.common.len() >= PAIRS_MIN)
        .find_map(|at| Some((at, larger(at).filter(is_enough)?)));
    let beyond = |all: &Vec<Comparison>| {
        let ends = all.iter().filter_map(|one| one.change_pct().1.map(|[_, high]| high));
        ends.fold(f64::NEG_INFINITY, f64::max)
    };
    Ok(Enough {
        level: found.as_ref().map(|(at, _)| curve.levels[*at]),
        percent,
        gain: found.as_ref().filter(|(at, _)| *at > 0).and_then(|(at, _)| curve.compare(0, *at)),
        beyond_pct_max: found.as_ref().map(|(_, all)| beyond(all)),
        replicates: curve.common.len() as u64,
        verdicts: curve.verdicts(),
    })
}
