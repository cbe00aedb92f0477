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
//! It fits no model. The last level is never called enough, since nothing beyond it was measured.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::compare::allowed_pct;
use crate::multiplicity::{ERROR_RATE, holm};
use crate::{Comparison, Conclusion, Measured, PAIRS_MIN, paired_by_number};

/// Differences of up to so many percent between levels are not a shape, and not worth a level.
pub const AXIS_MATERIAL_PCT: f64 = 5.0;

/// One figure on an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct AxisPoint {
    /// The level, such as the number of workers.
    pub level: f64,
    /// Number of the replicate; figures of the same replicate were measured in the same block.
    pub replicate: u32,
    /// The figure; positive, the higher the better, in any unit that all share.
    pub value: Measured,
}

/// What becomes of throughput along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AxisKind {
    /// It does not change beyond what is stated.
    Flat,
    /// It rises to the end.
    Scaling,
    /// It rises and then stays.
    Saturating,
    /// It rises and falls again.
    Collapse,
    /// No two levels differ measurably, and they are not known to be equal either.
    NoMeasurableDifference,
    /// The intervals do not decide it.
    NotClear,
}

/// What a figure does along an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Its shape.
    pub kind: AxisKind,
    /// Where it saturates: from that level on it is known to stay within 5 %. Of a collapse the
    /// last level before the fall: all beyond it are measurably lower than the highest.
    pub at: Option<f64>,
    /// Of a collapse, the last level against the highest one, in percent of that.
    pub change_pct: Option<Measured>,
    /// Where no two levels differ measurably, the largest difference between two, up or down, in
    /// percent, that the intervals still allow.
    pub change_pct_max: Option<f64>,
    /// How much is enough; absent where the last level still is better than the one before, or
    /// fewer than three replicates are common to all levels.
    pub enough: Option<Enough>,
}

/// How much of something is enough, such as how many files.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Enough {
    /// The smallest level compared with which no larger one is measurably better by more than 5 %:
    /// the interval above a ratio of 1 and the ratio above 1.05. The comparisons are not adjusted
    /// for their number: that would make it easier to call a level enough.
    pub level: f64,
    /// The largest gain of a larger level over it, in percent, that the intervals still allow. At
    /// or below 5 it is known that the level is enough; above, only that nothing more was seen.
    pub beyond_pct_max: f64,
}

/// The shape of figures along their axis. Points may come in any order.
///
/// `None` with fewer than two levels, with two figures of a level in one replicate, and where a
/// level is no number or a figure not positive.
pub fn axis(points: &[AxisPoint]) -> Option<Axis> {
    let curve = Curve::of(points)?;
    Some(Axis { enough: enough(&curve), ..shape_of(&curve) })
}

const fn bare(kind: AxisKind, at: Option<f64>) -> Axis {
    Axis { kind, at, change_pct: None, change_pct_max: None, enough: None }
}

fn shape_of(curve: &Curve<'_>) -> Axis {
    let Some(pairs) = curve.all_pairs().filter(|_| curve.common.len() >= PAIRS_MIN) else {
        return bare(AxisKind::NotClear, None);
    };
    if pairs.values().all(|pair| pair.differs_by_less_than(AXIS_MATERIAL_PCT)) {
        return bare(AxisKind::Flat, None);
    }
    let p_values: Vec<f64> = pairs.values().map(p_of).collect();
    if holm(&p_values).iter().all(|&p| p > ERROR_RATE) {
        let most = pairs.values().filter_map(|pair| pair.ratio.ci95).map(allowed_pct);
        let most = most.fold(0.0, f64::max);
        let kind = AxisKind::NoMeasurableDifference;
        return Axis { change_pct_max: Some(most), ..bare(kind, None) };
    }
    let pair = |from: usize, to: usize| &pairs[&(from, to)];
    collapse(curve, pair)
        .or_else(|| saturation(curve, pair))
        .or_else(|| is_scaling(curve, pair).then_some(bare(AxisKind::Scaling, None)))
        .unwrap_or(bare(AxisKind::NotClear, None))
}

/// Chance that noise alone makes two levels differ so much.
fn p_of(comparison: &Comparison) -> f64 {
    comparison.p.unwrap_or(1.0)
}

/// Whether the second is measurably lower, by more than what is material.
fn falls(comparison: &Comparison) -> bool {
    let least = 1.0 - AXIS_MATERIAL_PCT / 100.0;
    comparison.conclusion == Conclusion::Lower && comparison.ratio.value < least
}

/// Whether the second is measurably higher, by more than what is material.
fn rises(comparison: &Comparison) -> bool {
    let most = 1.0 + AXIS_MATERIAL_PCT / 100.0;
    comparison.conclusion == Conclusion::Higher && comparison.ratio.value > most
}

fn collapse<'a>(curve: &Curve<'_>, pair: impl Fn(usize, usize) -> &'a Comparison) -> Option<Axis> {
    let (peak, last) = (curve.peak(), curve.levels.len() - 1);
    if peak == last || !falls(pair(peak, last)) {
        return None;
    }
    let p_values: Vec<f64> = (0..last).map(|at| p_of(pair(at, last))).collect();
    if holm(&p_values)[peak] > ERROR_RATE {
        return None;
    }
    let from = (peak + 1..last).rev().find(|&at| !falls(pair(peak, at))).unwrap_or(peak);
    let change_pct = Some(pair(peak, last).change_pct());
    Some(Axis { change_pct, ..bare(AxisKind::Collapse, Some(curve.levels[from])) })
}

fn saturation<'a>(
    curve: &Curve<'_>,
    pair: impl Fn(usize, usize) -> &'a Comparison,
) -> Option<Axis> {
    let last = curve.levels.len() - 1;
    let holds =
        |at: usize| (at + 1..=last).all(|to| pair(at, to).differs_by_less_than(AXIS_MATERIAL_PCT));
    let at = (1..last).find(|&at| holds(at) && rises(pair(0, at)))?;
    Some(bare(AxisKind::Saturating, Some(curve.levels[at])))
}

fn is_scaling<'a>(curve: &Curve<'_>, pair: impl Fn(usize, usize) -> &'a Comparison) -> bool {
    let last = curve.levels.len() - 1;
    rises(pair(0, last))
        && rises(pair(last - 1, last))
        && !(0..last).any(|at| falls(pair(at, at + 1)))
}

fn enough(curve: &Curve<'_>) -> Option<Enough> {
    let last = curve.levels.len() - 1;
    let larger = |at: usize| -> Option<Vec<Comparison>> {
        (at + 1..=last).map(|to| curve.compare(at, to)).collect()
    };
    let (at, all) = (0..last)
        .filter(|_| curve.common.len() >= PAIRS_MIN)
        .find_map(|at| Some((at, larger(at).filter(|all| !all.iter().any(rises))?)))?;
    let ends = all.iter().filter_map(|one| one.change_pct().ci95.map(|[_, high]| high));
    let beyond_pct_max = ends.fold(f64::NEG_INFINITY, f64::max);
    Some(Enough { level: curve.levels[at], beyond_pct_max })
}

/// A figure over the levels of an axis.
struct Curve<'a> {
    /// The levels, rising; two at least.
    levels: Vec<f64>,
    /// The figures of each level, by replicate.
    figures: Vec<BTreeMap<u32, &'a Measured>>,
    /// Replicates that every level has.
    common: BTreeSet<u32>,
}

impl<'a> Curve<'a> {
    fn of(points: &'a [AxisPoint]) -> Option<Self> {
        let is_usable = |point: &AxisPoint| {
            let value = point.value.value;
            point.level.is_finite() && value > 0.0 && value.is_finite()
        };
        let mut levels: Vec<f64> = points.iter().map(|point| point.level).collect();
        levels.sort_by(f64::total_cmp);
        levels.dedup();
        if levels.len() < 2 || !points.iter().all(is_usable) {
            return None;
        }
        let mut figures = vec![BTreeMap::new(); levels.len()];
        for AxisPoint { level, replicate, value } in points {
            let at = levels.partition_point(|known| known < level);
            if figures[at].insert(*replicate, value).is_some() {
                return None;
            }
        }
        let has_all = |replicate: &u32| figures.iter().all(|level| level.contains_key(replicate));
        let common = figures[0].keys().copied().filter(has_all).collect();
        Some(Self { levels, figures, common })
    }

    /// The figure at one level over that at another, both by index; `None` without a replicate in
    /// common.
    fn compare(&self, from: usize, to: usize) -> Option<Comparison> {
        // Values were found positive, so the only refusal left is that there are no pairs.
        paired_by_number(&self.figures[from], &self.figures[to]).ok()
    }

    /// Every lower level against every higher one; `None` when two have no replicate in common.
    fn all_pairs(&self) -> Option<BTreeMap<(usize, usize), Comparison>> {
        let count = self.levels.len();
        let pairs = (0..count).flat_map(|from| (from + 1..count).map(move |to| (from, to)));
        pairs.map(|(from, to)| Some(((from, to), self.compare(from, to)?))).collect()
    }

    /// The level with the highest figure: the geometric mean over the common replicates, or over
    /// all of a level's when there are none.
    fn peak(&self) -> usize {
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
}
