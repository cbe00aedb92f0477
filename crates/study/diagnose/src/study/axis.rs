//! What becomes of throughput along the numeric factors of a study.
//!
//! Invariant: a curve holds points that are equal in every other level; its shape rests on
//! replicates that were measured in the same rounds.

use std::collections::BTreeMap;

use iostrata_plan::study::setting::Setting;
use iostrata_plan::study::{Cell, FactorLevels, LevelAt, StudyPlan};
use iostrata_run::{AxisKind, StudyAxis, StudyPoint};
use iostrata_stats::{AXIS_MATERIAL_PCT, Axis, AxisPoint, Enough, KNOWN_PCT_MAX, axis};

use super::effect::not_ruled_out;
use super::points::{figures, groups};
use super::response::response;
use crate::observed::PointLog;

/// The factor of which more is more load.
pub(crate) const WORKERS: &str = "workers";

/// The curves of a plan, factor by factor, each in the plan's order.
pub(crate) fn axes_of(
    plan: &StudyPlan,
    seen: &BTreeMap<&str, PointLog<'_>>,
    points: &[StudyPoint],
) -> Vec<StudyAxis> {
    let factors = plan.factors.iter().filter(|factor| factor.is_axis);
    factors.flat_map(|factor| axes_along(plan, factor, seen, points)).collect()
}

fn axes_along(
    plan: &StudyPlan,
    factor: &FactorLevels,
    seen: &BTreeMap<&str, PointLog<'_>>,
    points: &[StudyPoint],
) -> Vec<StudyAxis> {
    let along = plan.cells.iter().filter(|cell| cell.level(&factor.factor).is_some());
    let groups = groups(&factor.factor, along.map(|cell| (&*cell.levels, cell)));
    let curve = |(levels, cells)| one(&factor.factor, levels, cells, seen, points);
    groups.into_iter().filter_map(curve).collect()
}

fn one(
    factor: &str,
    levels: Vec<LevelAt>,
    cells: Vec<&Cell>,
    seen: &BTreeMap<&str, PointLog<'_>>,
    points: &[StudyPoint],
) -> Option<StudyAxis> {
    let mut places: Vec<(f64, &str)> = cells
        .iter()
        .filter(|cell| points.iter().any(|point| point.id == cell.id && point.value > 0.0))
        .filter_map(|cell| Some((position(factor, cell.level(factor)?)?, cell.id.as_str())))
        .collect();
    places.sort_by(|a, b| a.0.total_cmp(&b.0));
    if places.len() < FactorLevels::CURVE_MIN {
        return None;
    }
    let figures_of =
        |&(level, id): &(f64, &str)| {
            let figures = seen.get(id).map(figures).unwrap_or_default().into_iter();
            figures
                .filter(|(_, value)| value.value > 0.0)
                .map(move |(replicate, value)| AxisPoint { level, replicate, value })
        };
    let all: Vec<AxisPoint> = places.iter().flat_map(figures_of).collect();
    let found = axis(&all)?;
    // Where the intervals still allow a large gain, nothing is known to be enough.
    let known = found.enough.filter(|enough| enough.beyond_pct_max <= KNOWN_PCT_MAX);
    let x: Vec<f64> = places.iter().map(|(level, _)| *level).collect();
    Some(StudyAxis {
        text: sentence(factor, &levels, &x, &found, known),
        factor: factor.to_owned(),
        levels,
        points: places.iter().map(|(_, id)| (*id).to_owned()).collect(),
        x,
        kind: found.kind,
        at: found.at,
        change_pct: found.change_pct.as_ref().map(|change| change.value),
        change_pct_ci95: found.change_pct.as_ref().and_then(|change| change.ci95),
        enough: known.map(|enough| enough.level),
        beyond_pct_max: known.map(|enough| enough.beyond_pct_max),
        response: response(factor, &places, &cells, seen, points),
    })
}

/// Levels in words: `ext4, randwrite, 4K`.
pub(crate) fn place(levels: &[LevelAt]) -> String {
    let words: Vec<String> = levels
        .iter()
        .map(|at| {
            let plain = at.level.parse::<f64>().is_err();
            if plain { at.level.clone() } else { format!("{} {}", at.factor, at.level) }
        })
        .collect();
    words.join(", ")
}

fn sentence(
    factor: &str,
    levels: &[LevelAt],
    x: &[f64],
    found: &Axis,
    enough: Option<Enough>,
) -> String {
    let (place, first, last) = (place(levels), x[0], x[x.len() - 1]);
    let at = found.at.unwrap_or(first);
    let course = match found.kind {
        AxisKind::Flat => {
            format!("flat from {first} to {last} {factor}, all within {AXIS_MATERIAL_PCT:.0} %")
        }
        AxisKind::Scaling => format!("rises up to {last} {factor}"),
        AxisKind::Saturating => {
            format!(
                "rises up to {at} {factor} and stays within {AXIS_MATERIAL_PCT:.0} % after that"
            )
        }
        AxisKind::Collapse => {
            let fall = found.change_pct.as_ref().map(|change| change.scaled(-1.0));
            let [low, high] = fall.as_ref().and_then(|fall| fall.ci95).unwrap_or_default();
            format!(
                "falls after {at} {factor}: at {last} {:.1} % below its best (95 % {low:.1} to \
                 {high:.1} %)",
                fall.map_or(0.0, |fall| fall.value)
            )
        }
        AxisKind::NoMeasurableDifference => format!(
            "no measurable difference between {first} and {last} {factor}{}",
            not_ruled_out(found.change_pct_max.unwrap_or_default())
        ),
        AxisKind::NotClear => format!("its course over {first} to {last} {factor} is not clear"),
    };
    let enough = match enough {
        Some(Enough { level, beyond_pct_max }) if factor != WORKERS => {
            "; ".to_owned() + &no_gain(level, factor, beyond_pct_max)
        }
        _ => String::new(),
    };
    format!("{place}: {course}{enough}")
}

/// `no gain seen beyond files = 4 (up to 6 % possible)`.
pub(crate) fn no_gain(level: f64, factor: &str, most_pct: f64) -> String {
    format!("no gain seen beyond {factor} = {level} (up to {:.0} % possible)", most_pct.max(0.0))
}

/// A level as a place on its axis; nothing for a level that lies on none.
fn position(factor: &str, level: &str) -> Option<f64> {
    match Setting::named(factor) {
        Some(setting) => setting.position(level),
        None => level.parse().ok(),
    }
}
