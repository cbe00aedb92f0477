//! What each factor of a study does, and which factors change each other's effect.
//!
//! Purpose: from the replicated figures of a factorial plan, possibly with cells left out by
//! constraints and replicates left out by the budget, every main effect and every two-factor
//! interaction as a ratio with its interval. Method: a contrast is only taken over figures that are
//! equal in every other factor and belong to the same replicate, so that neither holes in the plan
//! nor what is common to a replicate bias it. Main effect of level b against a: the geometric mean
//! of the ratios b / a. Interaction: the ratio of two such ratios. Each interval is that of
//! `contrast`. All contrasts together are one family, for which the p values are adjusted by
//! [`benjamini_hochberg`](crate::benjamini_hochberg): the list is read as a list, so the share of
//! false statements in it is what must be small. Invariants: fewer than three pairs or three
//! replicates never conclude; "no measurable difference" is a result and states what difference it
//! still allows; multiplying all values by a number, or giving them in another order, changes
//! nothing. A main effect is an average over the cells measured: where the factor interacts, read
//! its range and its interactions instead. It takes no more than two factors at once.

#[cfg(test)]
mod coverage;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use crate::combine::mean_and_half_width;
use crate::contrast::{CellDifference, contrast};
use crate::multiplicity::{ERROR_RATE, benjamini_hochberg, p_value};
use crate::{Conclusion, Interval, Measured, PAIRS_MIN, Verdicts};

/// An interaction matters when it is significant and changes an effect by more than this ratio, up
/// or down.
const INTERACTION_RATIO_MIN: f64 = 1.05;

/// One figure of a factorial plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// Index of the level of each factor, in the order of the plan's factors.
    pub levels: Vec<usize>,
    /// Number of the replicate; figures of the same replicate were measured in the same block.
    pub replicate: u32,
    /// The figure; positive, in any unit that all share.
    pub value: Measured,
}

/// A change of one factor from a level to another; all are indexes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LevelChange {
    /// Index of the factor.
    pub factor: usize,
    /// Index of the level compared with.
    pub from: usize,
    /// Index of the level that is compared.
    pub to: usize,
}

/// A ratio taken over matched cells.
#[derive(Clone, Debug, PartialEq)]
pub struct Effect {
    /// Geometric mean over cells, from pairs of figures, for an interaction from pairs of pairs;
    /// its interval, of this contrast alone, is absent with a single one.
    pub ratio: Measured,
    /// The lowest and the highest of the cells' own ratios. Their noise is in it: with many cells
    /// it is wider than what the effect really varies.
    pub cell_range: Interval,
    /// Whether every one of several cells shows it by itself and in the same direction (at least
    /// three pairs in each, and its own interval beyond 1), and their mean does over replicates. It
    /// may hold where the interval of the mean holds 1, since a few cells that differ are little
    /// evidence about cells that were not measured.
    pub is_everywhere: bool,
    /// p value of the mean over these cells alone, replicates being the units, adjusted for all
    /// contrasts of the family; absent with fewer than three replicates.
    pub p_of_these_cells: Option<f64>,
    /// Cells that the pairs come from.
    pub cells: u64,
    /// p value adjusted for all contrasts of the family, main effects or interactions; absent when
    /// nothing may be concluded.
    pub p_adjusted: Option<f64>,
    /// What follows, with all contrasts of the family taken into account: the interval may exclude
    /// 1 and there is still no measurable difference, because among many contrasts some do so by
    /// chance.
    pub conclusion: Conclusion,
}

/// What a change of one factor does to the figure.
#[derive(Clone, Debug, PartialEq)]
pub struct MainEffect {
    /// The change.
    pub change: LevelChange,
    /// The figure after it over the figure before.
    pub effect: Effect,
}

/// How a change of one factor alters what a change of another one does.
#[derive(Clone, Debug, PartialEq)]
pub struct Interaction {
    /// The change whose effect is estimated.
    pub change: LevelChange,
    /// The change that may alter it; of a later factor.
    pub altered_by: LevelChange,
    /// The ratio of `change` at the level `altered_by.to` over its ratio at `altered_by.from`.
    pub effect: Effect,
    /// Whether it is significant and larger than [`INTERACTION_RATIO_MIN`].
    pub matters: bool,
}

/// All effects of a study.
#[derive(Clone, Debug, PartialEq)]
pub struct Effects {
    /// Main effects by factor and levels.
    pub main: Vec<MainEffect>,
    /// Interactions: those that matter first, then by size, the largest first.
    pub interactions: Vec<Interaction>,
}

impl Effects {
    /// The interactions that matter, the largest first.
    pub fn mattering(&self) -> impl Iterator<Item = &Interaction> {
        self.interactions.iter().filter(|interaction| interaction.matters)
    }
}

/// Every main effect (each pair of levels of each factor, the lower index first) and every
/// two-factor interaction that the observations allow. Contrasts without matching cells are left
/// out.
///
/// `None` where the observations are not of one plan: without any, with another number of factors,
/// with two figures of the same levels in one replicate, or with one that is not positive.
pub fn effects(observations: &[Observation]) -> Option<Effects> {
    let plan = Plan::of(observations)?;
    let changes = plan.changes();
    let mut main: Vec<MainEffect> = changes
        .iter()
        .filter_map(|&change| Some(MainEffect { change, effect: effect_of(&plan, &[change])? }))
        .collect();
    let pairs = changes.iter().flat_map(|&one| changes.iter().map(move |&other| (one, other)));
    let mut interactions: Vec<Interaction> = pairs
        .filter(|(change, altered_by)| change.factor < altered_by.factor)
        .filter_map(|(change, altered_by)| {
            let effect = effect_of(&plan, &[change, altered_by])?;
            Some(Interaction { change, altered_by, effect, matters: false })
        })
        .collect();
    // Two families: there are many more interactions, and readers are interested in fewer of them.
    adjust(main.iter_mut().map(|one| &mut one.effect));
    adjust(interactions.iter_mut().map(|one| &mut one.effect));
    for one in &mut interactions {
        one.matters =
            one.effect.conclusion.is_difference() && size(&one.effect) > INTERACTION_RATIO_MIN.ln();
    }
    interactions.sort_by(|a, b| {
        let by_size = size(&b.effect).total_cmp(&size(&a.effect));
        b.matters.cmp(&a.matters).then(by_size)
    });
    Some(Effects { main, interactions })
}

/// How far a ratio is from 1, as a logarithm.
fn size(effect: &Effect) -> f64 {
    effect.ratio.value.ln().abs()
}

/// The effect of changes over all cells where they can be seen, its p value not yet adjusted.
fn effect_of(plan: &Plan<'_>, changes: &[LevelChange]) -> Option<Effect> {
    let ContrastMatch { seen, verdicts } = plan.matched(changes);
    let found = contrast(&seen)?;
    let ratio = found.ratio(seen.len(), verdicts);
    let p = found.p_value().filter(|_| found.replicates >= PAIRS_MIN);
    Some(Effect {
        ratio,
        cell_range: found.cell_range.map(f64::exp),
        is_everywhere: is_everywhere(&seen),
        p_of_these_cells: p_of_these_cells(&seen),
        cells: found.cells as u64,
        p_adjusted: p,
        conclusion: Conclusion::TooFewPairs,
    })
}

/// Whether every one of several cells shows the same direction by itself.
fn is_everywhere(seen: &[CellDifference]) -> bool {
    // What matches a contrast comes cell by cell.
    let cells: Vec<&[CellDifference]> = seen.chunk_by(|a, b| a.cell == b.cell).collect();
    let shows = |cell: &&[CellDifference], sign: f64| {
        let alone = contrast(cell).and_then(|alone| Some((alone.mean, alone.error?)));
        alone.is_some_and(|(mean, error)| sign * mean > error.half_width) && cell.len() >= PAIRS_MIN
    };
    cells.len() > 1 && [-1.0, 1.0].iter().any(|sign| cells.iter().all(|cell| shows(cell, *sign)))
}

/// p value of the mean over these cells, whatever it is in others: replicates are the units, so
/// that what is common to one does not look like an effect of every cell.
fn p_of_these_cells(seen: &[CellDifference]) -> Option<f64> {
    let mut sums: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
    for one in seen {
        let (sum, count) = sums.entry(one.replicate).or_default();
        (*sum, *count) = (*sum + one.value, *count + 1.0);
    }
    let means: Vec<f64> = sums.values().map(|(sum, count)| sum / count).collect();
    let (mean, half_width) = (means.len() >= PAIRS_MIN).then(|| mean_and_half_width(&means))?;
    Some(p_value(mean, half_width, means.len() as f64 - 1.0))
}

/// Adjusts the p values of one family of effects that may conclude, and concludes.
fn adjust<'a>(effects: impl Iterator<Item = &'a mut Effect>) {
    let mut tested: Vec<(&mut Effect, f64)> =
        effects.filter_map(|effect| effect.p_adjusted.map(|p| (effect, p))).collect();
    let raw: Vec<f64> = tested.iter().map(|(_, p)| *p).collect();
    let of_these = |(effect, _): &(&mut Effect, f64)| effect.p_of_these_cells.unwrap_or(1.0);
    let of_these: Vec<f64> = tested.iter().map(of_these).collect();
    let adjusted = benjamini_hochberg(&raw).into_iter().zip(benjamini_hochberg(&of_these));
    for ((effect, _), (p, of_these)) in tested.iter_mut().zip(adjusted) {
        effect.p_adjusted = Some(p);
        effect.p_of_these_cells = Some(of_these);
        effect.is_everywhere &= of_these <= ERROR_RATE;
        effect.conclusion = Conclusion::of(Some(p), effect.ratio.value);
    }
}

/// The figures of one plan, found by their levels and replicate.
struct Plan<'a> {
    figures: BTreeMap<(Vec<usize>, u32), &'a Measured>,
    /// Levels of each factor that were measured.
    levels: Vec<BTreeSet<usize>>,
}

/// What matches a contrast.
struct ContrastMatch {
    seen: Vec<CellDifference>,
    /// Verdicts of every figure in it.
    verdicts: Verdicts,
}

impl<'a> Plan<'a> {
    fn of(observations: &'a [Observation]) -> Option<Self> {
        let factors = observations.first()?.levels.len();
        let mut plan = Self { figures: BTreeMap::new(), levels: vec![BTreeSet::new(); factors] };
        for Observation { levels, replicate, value } in observations {
            let is_usable = value.value > 0.0 && value.value.is_finite();
            if levels.len() != factors || !is_usable {
                return None;
            }
            for (known, &level) in plan.levels.iter_mut().zip(levels) {
                known.insert(level);
            }
            if plan.figures.insert((levels.clone(), *replicate), value).is_some() {
                return None;
            }
        }
        Some(plan)
    }

    /// Every change of every factor, from a lower to a higher index.
    fn changes(&self) -> Vec<LevelChange> {
        let of_factor = |(factor, levels): (usize, &BTreeSet<usize>)| {
            let pairs = levels.iter().flat_map(|&from| levels.iter().map(move |&to| (from, to)));
            let rising = pairs.filter(|(from, to)| from < to).collect::<Vec<_>>();
            rising.into_iter().map(move |(from, to)| LevelChange { factor, from, to })
        };
        self.levels.iter().enumerate().flat_map(of_factor).collect()
    }

    /// The log ratios of one change, or the ratios of ratios of two, wherever all the figures that
    /// it takes are there.
    fn matched(&self, changes: &[LevelChange]) -> ContrastMatch {
        let mut matched = ContrastMatch { seen: Vec::new(), verdicts: Verdicts::none() };
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
            let mut one =
                CellDifference { cell, replicate: *replicate, value: 0.0, square_min: 0.0 };
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
