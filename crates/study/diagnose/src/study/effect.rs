//! Main effects and interactions of a study, in words.
//!
//! Invariant: an effect is taken over points that are equal in every other factor. A point that has
//! no level of a factor (files of a raw device) stands at that factor's first level, unless another
//! point stands there: then it is compared along the other factors alone.

use std::collections::BTreeMap;

use iostrata_plan::study::{Cell, FactorLevels, StudyPlan};
use iostrata_run::{StudyEffect, StudyInteraction};
use iostrata_stats::{
    Conclusion, Effect, Effects, KNOWN_PCT_MAX, LevelChange, MainEffect, Measured, Observation,
    allowed_pct, effects,
};

use super::points::figures;
use crate::observed::PointLog;

/// Interactions that are listed at most.
const INTERACTIONS_MAX: usize = 24;

/// The effects of a study's factors, curves left out: what happens along one is not one ratio.
pub(crate) fn effects_of(
    plan: &StudyPlan,
    seen: &BTreeMap<&str, PointLog<'_>>,
) -> (Vec<StudyEffect>, Vec<StudyInteraction>) {
    let cells = plan.cells.iter().zip(places(plan));
    let observations: Vec<Observation> =
        cells.flat_map(|(cell, place)| observations(&place, cell, seen)).collect();
    let Some(found) = effects(&observations) else { return (Vec::new(), Vec::new()) };
    (main(plan, unit(seen), &found), interactions(plan, &found))
}

/// What points count per second.
fn unit<'a>(seen: &BTreeMap<&str, PointLog<'a>>) -> &'a str {
    let first = seen.values().find_map(|seen| seen.replicates.first());
    first.map_or("IOPS", |one| one.point.metric.unit.as_str())
}

/// Where every cell stands: the index of its level of each factor. A cell that has none where
/// another one stands at the first gets an index behind the last level, where no effect is listed.
fn places(plan: &StudyPlan) -> Vec<Vec<usize>> {
    let place = |cell: &Cell, none: fn(&FactorLevels) -> usize| -> Vec<usize> {
        let level = |factor: &FactorLevels| {
            let level = cell.level(&factor.factor);
            let index = level.and_then(|level| factor.levels.iter().position(|one| one == level));
            index.unwrap_or_else(|| none(factor))
        };
        plan.factors.iter().map(level).collect()
    };
    let first: Vec<Vec<usize>> = plan.cells.iter().map(|cell| place(cell, |_| 0)).collect();
    let is_alone = |one: &Vec<usize>| first.iter().filter(|other| *other == one).count() == 1;
    let cells = plan.cells.iter().zip(&first);
    cells
        .map(|(cell, first)| match is_alone(first) {
            true => first.clone(),
            false => place(cell, |factor| factor.levels.len()),
        })
        .collect()
}

/// Whether a change is between two levels that the study names.
fn is_named(plan: &StudyPlan, change: LevelChange) -> bool {
    change.from.max(change.to) < plan.factors[change.factor].levels.len()
}

fn observations(
    levels: &[usize],
    cell: &Cell,
    seen: &BTreeMap<&str, PointLog<'_>>,
) -> Vec<Observation> {
    let Some(seen) = seen.get(cell.id.as_str()) else { return Vec::new() };
    let positive = figures(seen).into_iter().filter(|(_, value)| value.value > 0.0);
    positive
        .map(|(replicate, value)| Observation { levels: levels.to_vec(), replicate, value })
        .collect()
}

fn main(plan: &StudyPlan, unit: &str, found: &Effects) -> Vec<StudyEffect> {
    let is_listed = |one: &&MainEffect| {
        !plan.factors[one.change.factor].is_curve() && is_named(plan, one.change)
    };
    let listed = found.main.iter().filter(is_listed);
    listed
        .map(|one| {
            let (factor, from, to) = names(plan, one.change);
            StudyEffect {
                text: sentence((factor, unit), from, to, &one.effect),
                factor: factor.to_owned(),
                from: from.to_owned(),
                to: to.to_owned(),
                ratio: one.effect.ratio.value,
                ratio_ci95: one.effect.ratio.ci95,
                ratio_n: one.effect.ratio.n,
                ratio_min: one.effect.cell_range[0],
                ratio_max: one.effect.cell_range[1],
                is_everywhere: one.effect.is_everywhere,
                conclusion: one.effect.conclusion,
                verdicts: one.effect.ratio.verdicts.clone(),
            }
        })
        .collect()
}

fn interactions(plan: &StudyPlan, found: &Effects) -> Vec<StudyInteraction> {
    let listed = found.mattering().filter(|one| {
        let neighbours = |change: LevelChange| {
            let is_near = !plan.factors[change.factor].is_axis || change.to == change.from + 1;
            is_near && is_named(plan, change)
        };
        neighbours(one.change) && neighbours(one.altered_by)
    });
    listed.take(INTERACTIONS_MAX).map(|one| interaction(plan, one)).collect()
}

fn interaction(plan: &StudyPlan, one: &iostrata_stats::Interaction) -> StudyInteraction {
    let (factor, from, to) = names(plan, one.change);
    let (by, by_from, by_to) = names(plan, one.altered_by);
    let ratio = one.effect.ratio.value;
    let how = if ratio > 1.0 { "larger" } else { "smaller" };
    let text = format!(
        "the ratio of {factor} {to} to {from} is {:.0} % {how} at {by} {by_to} than at {by} \
         {by_from}{}",
        100.0 * (ratio - 1.0).abs(),
        interval(&one.effect)
    );
    StudyInteraction {
        factor: factor.to_owned(),
        from: from.to_owned(),
        to: to.to_owned(),
        by: by.to_owned(),
        by_from: by_from.to_owned(),
        by_to: by_to.to_owned(),
        ratio,
        ratio_ci95: one.effect.ratio.ci95,
        ratio_n: one.effect.ratio.n,
        conclusion: one.effect.conclusion,
        text,
    }
}

fn names(plan: &StudyPlan, change: LevelChange) -> (&str, &str, &str) {
    let factor = &plan.factors[change.factor];
    (&factor.factor, &factor.levels[change.from], &factor.levels[change.to])
}

fn sentence((factor, unit): (&str, &str), from: &str, to: &str, effect: &Effect) -> String {
    let pairs = format!("{} pairs in {} points", effect.ratio.n, effect.cells);
    let [lowest, highest] = effect.cell_range;
    match effect.conclusion {
        Conclusion::Higher | Conclusion::Lower => {
            let change = 100.0 * (effect.ratio.value - 1.0);
            let more = if change > 0.0 { "more" } else { "less" };
            format!(
                "{factor} {to} does {:.1} % {more} {unit} than {from}{}; {lowest:.2} to {highest:.2} \
                 times by point ({pairs})",
                change.abs(),
                interval(effect),
            )
        }
        Conclusion::NoMeasurableDifference if effect.is_everywhere => {
            let more = if lowest > 1.0 { "more" } else { "less" };
            format!(
                "{factor} {to} does {more} {unit} than {from} at every point, {lowest:.2} to \
                 {highest:.2} times; the points differ too much to give one ratio ({pairs})"
            )
        }
        Conclusion::NoMeasurableDifference if excludes_one(effect) => format!(
            "{factor} {from} to {to}{}: not significant after correction for the number of effects \
             ({pairs})",
            interval(effect)
        ),
        Conclusion::NoMeasurableDifference => {
            let most = allowed(&effect.ratio);
            format!("no measurable difference between {factor} {from} and {to}{most} ({pairs})")
        }
        Conclusion::TooFewPairs => {
            format!("{factor} {from} and {to}: too few pairs to say ({pairs})")
        }
    }
}

/// Whether the interval alone shows a difference.
fn excludes_one(effect: &Effect) -> bool {
    effect.ratio.ci95.is_some_and(|[low, high]| low > 1.0 || high < 1.0)
}

/// What the interval of a ratio still allows, in words.
pub(crate) fn allowed(ratio: &Measured) -> String {
    ratio.ci95.map(allowed_pct).map_or_else(String::new, not_ruled_out)
}

/// What intervals still allow, in words.
pub(crate) fn not_ruled_out(most_pct: f64) -> String {
    if most_pct > KNOWN_PCT_MAX {
        return format!("; too noisy: one of {most_pct:.0} % is not ruled out");
    }
    format!("; one of up to {most_pct:.1} % is not ruled out")
}

fn interval(effect: &Effect) -> String {
    match effect.ratio.ci95 {
        Some([low, high]) => {
            format!(" (ratio {:.3}, single 95 % {low:.3} to {high:.3})", effect.ratio.value)
        }
        None => String::new(),
    }
}
