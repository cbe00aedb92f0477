//! The two sides of a contrast: which cells stand above its line, which below, and their figures.
//!
//! Invariant: figures are paired by replicate; what was measured on one side only is left out.

use std::collections::BTreeMap;

use iostrata_spec::study::{Cell, Contrast, StudyPlan, Take, ThenMetric};
use iostrata_stats::Measured;

use super::points::{Seen, paired_replicates};
use super::then::by_replicate;

/// What stands against what: the cells with their replicates in pairs.
pub(super) struct Sides {
    pub points: [Vec<String>; 2],
    pub above: Vec<Measured>,
    pub below: Vec<Measured>,
}

/// The replicates of every cell of the plan.
pub(super) fn by_cell(
    metric: ThenMetric,
    plan: &StudyPlan,
    seen: &BTreeMap<&str, Seen<'_>>,
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
    seen: &BTreeMap<&str, Seen<'_>>,
) -> Option<Sides> {
    let figures = by_cell(contrast.metric, plan, seen);
    let mut sides = Sides { points: [vec![], vec![]], above: vec![], below: vec![] };
    for (a, b) in pairs(contrast, plan, &figures) {
        let (above, below) = paired_replicates(&figures[a], &figures[b]);
        if above.is_empty() {
            continue;
        }
        for (points, cell) in sides.points.iter_mut().zip([a, b]) {
            let id = &plan.cells[cell].id;
            if !points.contains(id) {
                points.push(id.clone());
            }
        }
        sides.above.extend(above);
        sides.below.extend(below);
    }
    (!sides.above.is_empty()).then_some(sides)
}

/// Cells above and below the line, by their place.
pub(super) fn pairs(
    contrast: &Contrast,
    plan: &StudyPlan,
    figures: &[BTreeMap<u32, Measured>],
) -> Vec<(usize, usize)> {
    if contrast.take == Take::Only {
        let only = |(a, below): (usize, Vec<usize>)| match below.as_slice() {
            [b] => Some((a, *b)),
            _ => None,
        };
        return contrast.counterparts(&plan.cells).into_iter().filter_map(only).collect();
    }
    let mean = |cell: usize| {
        let values = figures[cell].values().map(|figure| figure.value);
        values.sum::<f64>() / figures[cell].len() as f64
    };
    let best = |cells: &[usize]| {
        let measured = cells.iter().copied().filter(|&cell| !figures[cell].is_empty());
        let order = |a: &usize, b: &usize| mean(*a).total_cmp(&mean(*b));
        match contrast.take {
            Take::Min => measured.min_by(order),
            _ => measured.max_by(order),
        }
    };
    let [above, below] = contrast.sides(&plan.cells).map(|cells| best(&cells));
    above.zip(below).into_iter().collect()
}

/// An end of an interval: two decimals, unless they say next to nothing.
pub(super) fn end(ratio: f64) -> String {
    if ratio < 0.1 { iostrata_units::count(ratio) } else { format!("{ratio:.2}") }
}
