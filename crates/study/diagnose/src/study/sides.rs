//! The two sides of a contrast: which cells stand above its line, which below, and their figures.
//!
//! Invariant: figures are paired by replicate; what was measured on one side only is left out.

use std::collections::{BTreeMap, BTreeSet};

use iostrata_plan::study::{Cell, Contrast, StudyPlan, Take, ThenMetric};
use iostrata_stats::{Cells, FigurePair, Measured};

use super::then::by_replicate;
use crate::observed::PointLog;

/// Windows that differ by more have other extremes for their length alone.
const WINDOWS_APART_MAX: f64 = 1.1;

/// What stands against what, replicate by replicate.
pub(super) struct Sides {
    pub points: [Vec<String>; 2],
    /// How the points were chosen.
    pub cells: Cells,
    both: Vec<BothSides>,
}

/// Figures of both sides in one replicate of a cell.
struct BothSides {
    cell: usize,
    replicate: u32,
    above: Measured,
    below: Measured,
}

impl Sides {
    /// The pairs as they are compared: those above the line over those below it.
    pub fn pairs(&self) -> Vec<FigurePair<'_>> {
        let pairs = self.both.iter().map(|one| FigurePair {
            cell: one.cell,
            replicate: one.replicate,
            first: &one.below,
            second: &one.above,
        });
        pairs.collect()
    }

    /// The figures above the line.
    pub fn above(&self) -> impl Iterator<Item = f64> {
        self.both.iter().map(|one| one.above.value)
    }

    /// Those below it.
    pub fn below(&self) -> impl Iterator<Item = f64> {
        self.both.iter().map(|one| one.below.value)
    }

    /// Of one cell, from figures of the same replicates.
    #[cfg(test)]
    pub fn of_one_cell(above: Vec<Measured>, below: Vec<Measured>) -> Self {
        let both = (0..)
            .zip(above.into_iter().zip(below))
            .map(|(replicate, (above, below))| BothSides { cell: 0, replicate, above, below });
        Self { points: <_>::default(), cells: Cells::Planned, both: both.collect() }
    }

    fn add(&mut self, cells: [&Cell; 2], both: BothSides) {
        for (points, cell) in self.points.iter_mut().zip(cells) {
            if !points.contains(&cell.id) {
                points.push(cell.id.clone());
            }
        }
        self.both.push(both);
    }
}

/// The replicates of every cell of the plan.
pub(super) fn by_cell(
    metric: ThenMetric,
    plan: &StudyPlan,
    seen: &BTreeMap<&str, PointLog<'_>>,
) -> Vec<BTreeMap<u32, Measured>> {
    let of = |cell: &Cell| {
        let seen = seen.get(cell.id.as_str());
        seen.map(|seen| by_replicate(metric, cell, seen)).unwrap_or_default()
    };
    plan.cells.iter().map(of).collect()
}

pub(super) fn sides(
    contrast: &Contrast,
    plan: &StudyPlan,
    seen: &BTreeMap<&str, PointLog<'_>>,
) -> Option<Sides> {
    let figures = by_cell(contrast.metric, plan, seen);
    let windows: Vec<BTreeMap<u32, f64>> =
        plan.cells.iter().map(|cell| windows_s(seen.get(cell.id.as_str()))).collect();
    let mut sides = Sides { points: <_>::default(), cells: Cells::Planned, both: Vec::new() };
    let mut add = |cell: usize, replicate: u32, a: usize, b: usize| {
        let both = figures[a].get(&replicate).zip(figures[b].get(&replicate));
        let is_alike = || match (windows[a].get(&replicate), windows[b].get(&replicate)) {
            (Some(a), Some(b)) => (a / b).max(b / a) <= WINDOWS_APART_MAX,
            _ => true,
        };
        if let Some((above, below)) = both
            && (!contrast.metric.is_extreme() || is_alike())
        {
            let (above, below) = (above.clone(), below.clone());
            let cells = [&plan.cells[a], &plan.cells[b]];
            sides.add(cells, BothSides { cell, replicate, above, below });
        }
    };
    match contrast.take {
        Take::Only => {
            for (cell, (a, b)) in pairs(contrast, plan).into_iter().enumerate() {
                figures[a].keys().for_each(|&replicate| add(cell, replicate, a, b));
            }
        }
        take => {
            let replicates: BTreeSet<u32> =
                figures.iter().flat_map(BTreeMap::keys).copied().collect();
            for replicate in replicates {
                let best = |cells: &Vec<usize>| best_of_others(cells, take, replicate, &figures);
                let [above, below] = contrast.sides(&plan.cells);
                if let Some((a, b)) = best(&above).zip(best(&below)) {
                    add(0, replicate, a, b);
                }
            }
        }
    }
    if sides.points.iter().any(|points| points.len() > 1) && contrast.take != Take::Only {
        sides.cells = Cells::Chosen;
    }
    (!sides.both.is_empty()).then_some(sides)
}

/// Cells above and below the line that are equal otherwise, by their place.
pub(super) fn pairs(contrast: &Contrast, plan: &StudyPlan) -> Vec<(usize, usize)> {
    let only = |(a, below): (usize, Vec<usize>)| match below.as_slice() {
        [b] => Some((a, *b)),
        _ => None,
    };
    contrast.counterparts(&plan.cells).into_iter().filter_map(only).collect()
}

/// The best cell, or the worst, by all replicates but one, in which it is then judged: a cell that
/// is chosen by the figures it is judged by looks better than it is.
fn best_of_others(
    cells: &[usize],
    take: Take,
    replicate: u32,
    figures: &[BTreeMap<u32, Measured>],
) -> Option<usize> {
    if let [only] = cells {
        return Some(*only);
    }
    let mean = |cell: usize| {
        let others = figures[cell].iter().filter(|(one, _)| **one != replicate);
        let (sum, count) = others.fold((0.0, 0.0), |(sum, n), (_, one)| (sum + one.value, n + 1.0));
        (count > 0.0).then(|| (cell, sum / count))
    };
    let known = cells.iter().filter_map(|&cell| mean(cell));
    let order = |a: &(usize, f64), b: &(usize, f64)| a.1.total_cmp(&b.1);
    let best = match take {
        Take::Min => known.min_by(order),
        _ => known.max_by(order),
    };
    best.map(|(cell, _)| cell)
}

/// How long each replicate of a point was measured, in seconds.
fn windows_s(seen: Option<&PointLog<'_>>) -> BTreeMap<u32, f64> {
    let rounds = seen.into_iter().flat_map(|seen| seen.rounds());
    rounds.map(|(round, one)| (round, one.duration_s)).collect()
}

/// An end of an interval: two decimals, unless they would be meaningless.
pub(super) fn end(ratio: f64) -> String {
    if ratio < 0.1 { iostrata_stats::units::count(ratio) } else { format!("{ratio:.2}") }
}

#[cfg(test)]
mod tests {
    use iostrata_stats::{Random, Verdicts, compare};

    use super::*;

    fn measured(value: f64) -> Measured {
        Measured { value, ci95: None, n: 1, verdicts: Verdicts::none() }
    }

    /// Means over 1,000 studies of the best of eight equal cells, chosen by all replicates and by
    /// the others, and what share of intervals holds the truth then.
    #[test]
    fn the_best_of_equal_cells_is_no_better_than_they_are() {
        let (mut rng, cells) = (Random::new(61), (0..8).collect::<Vec<usize>>());
        let (mut naive, mut fair, mut held) = (0.0, 0.0, 0);
        for _ in 0..1_000 {
            let mut cell = || (0..3).map(|at| (at, measured(1.0 + 0.08 * rng.normal()))).collect();
            let figures: Vec<BTreeMap<u32, Measured>> = cells.iter().map(|_| cell()).collect();
            let mean = |one: &BTreeMap<u32, Measured>| {
                one.values().map(|figure| figure.value).sum::<f64>() / 3.0
            };
            naive += figures.iter().map(mean).fold(0.0, f64::max);
            let chosen = |at: u32| {
                let cell = best_of_others(&cells, Take::Max, at, &figures).unwrap();
                figures[cell][&at].clone()
            };
            let chosen: Vec<Measured> = (0..3).map(chosen).collect();
            fair += chosen.iter().map(|one| one.value).sum::<f64>() / 3.0;
            let one = vec![measured(1.0); 3];
            let sides = Sides::of_one_cell(chosen, one);
            let found = compare(&sides.pairs(), Cells::Chosen).unwrap();
            let [low, high] = found.ratio.ci95.unwrap();
            held += u32::from(low <= 1.0 && 1.0 <= high);
        }
        let (naive, fair) = (naive / 1_000.0, fair / 1_000.0);
        println!("best of 8 by its own figures {naive:.3}, by others {fair:.3}, held {held}");
        assert!(naive > 1.05 && (fair - 1.0).abs() < 0.01, "{naive} {fair}");
        assert!((920..=980).contains(&held), "{held}");
    }
}
