//! What a figure does along a numeric axis: workers, files, sizes.
//!
//! Purpose: name the shape of a rate over the levels of one factor, everything else being equal,
//! and say from which level on more brings nothing.
//! Method: levels are compared by pairs of the same replicate. First, whether any two levels differ
//! at all, by Holm's procedure over all pairs, so that noise is called a shape in at most 5 % of
//! cases. Then: collapse, when the last level lies more than 5 % below the highest one; the highest
//! was chosen after seeing the figures, so this too is adjusted, over all levels that could have
//! been it. Saturation and flatness are claims that there is nothing, and rest only on intervals
//! that lie within 5 % (each must, so they need no adjustment: Berger, Multiparameter hypothesis
//! testing and acceptance sampling, Technometrics 24, 1982).
//! Invariants: a higher value is better; fewer than three common replicates conclude nothing;
//! multiplying all values by a number, or giving them in another order, changes nothing.
//! It fits no model.

mod curve;
mod enough;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::multiplicity::{ERROR_RATE, holm, p_value};
use crate::{Comparison, Conclusion, Interval, Measured, PAIRS_MIN, Verdicts};
use curve::Curve;
pub use enough::{Enough, enough};

/// Differences of up to so many percent between levels are not a shape.
pub const AXIS_MATERIAL_PCT: f64 = 5.0;

/// One figure on an axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AxisPoint {
    /// The level, such as the number of workers.
    pub level: f64,
    /// Number of the replicate; figures of the same replicate were measured in the same block.
    pub replicate: u32,
    /// The figure; positive, the higher the better, in any unit that all share.
    pub value: Measured,
}

/// The shape of a figure along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", tag = "shape")]
pub enum AxisShape {
    /// All levels are known to be within 5 % of each other.
    Flat,
    /// It rises up to the last level; more may bring more.
    Scaling,
    /// It rises, and from a level on it is known to stay within 5 %.
    Saturating {
        /// That level.
        at: f64,
    },
    /// The last level is measurably lower, by more than 5 %, than the highest one.
    Collapse {
        /// The last level before the fall: all beyond it are measurably lower than the highest.
        from: f64,
        /// What the last level lost of the highest one, in percent of that.
        loss_pct: f64,
        /// Its 95 % interval.
        loss_pct_ci95: Interval,
    },
    /// No two levels differ measurably, and they are not known to be equal either.
    NoMeasurableDifference {
        /// The largest difference between two levels, up or down, in percent, that the intervals
        /// still allow.
        change_pct_max: f64,
    },
    /// Levels differ, but not in one of the ways above, or too few replicates are common to them.
    NotClear,
}

/// One level compared with the next lower one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AxisStep {
    /// The lower level.
    pub from: f64,
    /// The next one.
    pub to: f64,
    /// The figure at the next level over that at the lower one; not adjusted for the other steps.
    pub comparison: Comparison,
}

/// What a figure does along an axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Axis {
    /// Its shape.
    pub shape: AxisShape,
    /// Every level against the one before, as far as they have replicates in common.
    pub steps: Vec<AxisStep>,
    /// The level with the highest figure.
    pub peak: f64,
    /// The last level over the peak; absent when the last level is the peak.
    pub peak_to_last: Option<Comparison>,
    /// Replicates that all levels have in common.
    pub replicates: u64,
    /// Verdicts of every figure that went in.
    pub verdicts: Verdicts,
}

/// Why a shape cannot be had.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum AxisError {
    /// An axis needs levels.
    #[error("an axis of {found} level(s) has no shape; measure at least two levels")]
    TooFewLevels {
        /// Different levels found.
        found: usize,
    },
    /// A level that is no number.
    #[error("the level {level} has no place on an axis; only finite numbers do")]
    LevelNotFinite {
        /// The level found.
        level: f64,
    },
    /// Two figures for the same thing.
    #[error("level {level} has two figures in replicate {replicate}; give each its number")]
    Duplicate {
        /// The level.
        level: f64,
        /// The replicate.
        replicate: u32,
    },
    /// A ratio needs positive figures.
    #[error(
        "the figure {value} of level {level} in replicate {replicate} cannot be part of a ratio; only positive ones can"
    )]
    NotPositive {
        /// The level.
        level: f64,
        /// The replicate.
        replicate: u32,
        /// The figure found.
        value: f64,
    },
}

/// The shape of figures along their axis. Points may come in any order.
///
/// # Errors
/// [`AxisError`] when there are fewer than two levels or a point cannot be used.
pub fn axis(points: &[AxisPoint]) -> Result<Axis, AxisError> {
    let curve = Curve::of(points)?;
    let (peak, last) = (curve.peak(), curve.levels.len() - 1);
    let steps = (0..last).filter_map(|at| {
        let (from, to) = (curve.levels[at], curve.levels[at + 1]);
        Some(AxisStep { from, to, comparison: curve.compare(at, at + 1)? })
    });
    Ok(Axis {
        shape: shape_of(&curve),
        steps: steps.collect(),
        peak: curve.levels[peak],
        peak_to_last: if peak < last { curve.compare(peak, last) } else { None },
        replicates: curve.common.len() as u64,
        verdicts: curve.verdicts(),
    })
}

fn shape_of(curve: &Curve) -> AxisShape {
    let Some(pairs) = curve.all_pairs().filter(|_| curve.common.len() >= PAIRS_MIN) else {
        return AxisShape::NotClear;
    };
    if pairs.values().all(|pair| pair.differs_by_less_than(AXIS_MATERIAL_PCT)) {
        return AxisShape::Flat;
    }
    let p_values: Vec<f64> = pairs.values().map(p_of).collect();
    if holm(&p_values).iter().all(|&p| p > ERROR_RATE) {
        let allows = |pair: &Comparison| {
            let ends = pair.change_pct().1.unwrap_or_default();
            ends.iter().fold(0.0f64, |most, end| most.max(end.abs()))
        };
        let change_pct_max = pairs.values().map(allows).fold(0.0, f64::max);
        return AxisShape::NoMeasurableDifference { change_pct_max };
    }
    let pair = |from: usize, to: usize| &pairs[&(from, to)];
    collapse(curve, pair)
        .or_else(|| saturation(curve, pair))
        .or_else(|| is_scaling(curve, pair).then_some(AxisShape::Scaling))
        .unwrap_or(AxisShape::NotClear)
}

/// Chance that noise alone makes two levels differ so much.
fn p_of(comparison: &Comparison) -> f64 {
    comparison.ratio_ci95.map_or(1.0, |[low, high]| {
        p_value(comparison.ratio.ln(), (high / low).ln() / 2.0, comparison.n as f64 - 1.0)
    })
}

/// Whether the second is measurably lower, by more than what is material.
fn falls(comparison: &Comparison) -> bool {
    comparison.conclusion == Conclusion::Lower && comparison.ratio < 1.0 - AXIS_MATERIAL_PCT / 100.0
}

/// Whether the second is measurably higher, by more than so many percent.
fn rises(comparison: &Comparison, percent: f64) -> bool {
    comparison.conclusion == Conclusion::Higher && comparison.ratio > 1.0 + percent / 100.0
}

fn collapse<'a>(curve: &Curve, pair: impl Fn(usize, usize) -> &'a Comparison) -> Option<AxisShape> {
    let (peak, last) = (curve.peak(), curve.levels.len() - 1);
    if peak == last || !falls(pair(peak, last)) {
        return None;
    }
    let p_values: Vec<f64> = (0..last).map(|at| p_of(pair(at, last))).collect();
    if holm(&p_values)[peak] > ERROR_RATE {
        return None;
    }
    let from = (peak + 1..last).rev().find(|&at| !falls(pair(peak, at))).unwrap_or(peak);
    let (change, ends) = pair(peak, last).change_pct();
    let [low, high] = ends?;
    let (loss_pct, loss_pct_ci95) = (-change, [-high, -low]);
    Some(AxisShape::Collapse { from: curve.levels[from], loss_pct, loss_pct_ci95 })
}

fn saturation<'a>(
    curve: &Curve,
    pair: impl Fn(usize, usize) -> &'a Comparison,
) -> Option<AxisShape> {
    let last = curve.levels.len() - 1;
    let holds =
        |at: usize| (at + 1..=last).all(|to| pair(at, to).differs_by_less_than(AXIS_MATERIAL_PCT));
    let at = (1..last).find(|&at| holds(at) && rises(pair(0, at), AXIS_MATERIAL_PCT))?;
    Some(AxisShape::Saturating { at: curve.levels[at] })
}

fn is_scaling<'a>(curve: &Curve, pair: impl Fn(usize, usize) -> &'a Comparison) -> bool {
    let last = curve.levels.len() - 1;
    rises(pair(0, last), AXIS_MATERIAL_PCT)
        && rises(pair(last - 1, last), AXIS_MATERIAL_PCT)
        && !(0..last).any(|at| falls(pair(at, at + 1)))
}
