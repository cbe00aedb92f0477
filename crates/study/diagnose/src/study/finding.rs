//! What a study found: statements over its effects and curves.
//!
//! Invariant: a finding states only what an interval supports; a factor without any measurable
//! effect is a finding too.

use iostrata_plan::Layer;
use iostrata_plan::study::FactorLevels;
use iostrata_run::{AxisKind, StudyAxis, StudyEffect, StudyPoint};
use iostrata_stats::{Conclusion, KNOWN_PCT_MAX, Measured, Verdict, Verdicts, allowed_pct};
use serde_json::json;

use super::axis::{WORKERS, no_gain, place};
use super::layer_loss::{FILESYSTEM_LOSS, layer_losses};
use super::response::RATE;
use crate::case::{NamedStatement, StudyCase};
use crate::statement::Statement;

/// Names in the catalogue.
pub(crate) const COLLAPSE: &str = "collapse_along_axis";
pub(crate) const ENOUGH: &str = "enough";
pub(crate) const INDIFFERENT: &str = "no_measurable_difference";
pub(crate) const LOOP_CEILING: &str = "loop_ceiling";

/// Factors that set the amount of data. More of it is other work, not more of the same: their
/// curves are shown, and nothing is called too much or enough.
const AMOUNTS: [&str; 2] = ["size", "volume_size"];

/// What file systems take and what more load takes, the largest losses first.
pub(crate) fn losses(case: &StudyCase<'_>) -> Vec<NamedStatement> {
    let layers = layer_losses(case.plan, case.seen).into_iter();
    let falls = case.axes.iter().filter_map(collapse);
    let mut all: Vec<NamedStatement> = layers
        .map(|said| (FILESYSTEM_LOSS, said))
        .chain(falls.map(|said| (COLLAPSE, said)))
        .collect();
    let size = |one: &NamedStatement| one.1.effect_pct().unwrap_or(0.0).abs();
    all.sort_by(|a, b| size(b).total_cmp(&size(a)));
    all
}

/// More workers do less.
fn collapse(axis: &StudyAxis) -> Option<Statement> {
    if axis.kind != AxisKind::Collapse || AMOUNTS.contains(&axis.factor.as_str()) {
        return None;
    }
    let (ci95, n) = (axis.change_pct_ci95, axis.points.len() as u64);
    let change = Measured { value: axis.change_pct?, ci95, n, verdicts: Verdicts::none() };
    let said = Statement::sized(Layer::FileApi, &change.scaled(-1.0), axis.text.clone())
        .with("axis", json!(axis.factor))
        .with("from", json!(axis.at))
        .with("points", json!(axis.points));
    Some(said)
}

/// How many of something are enough.
pub(crate) fn enough(case: &StudyCase<'_>) -> Vec<NamedStatement> {
    case.axes.iter().filter_map(files).map(|said| (ENOUGH, said)).collect()
}

fn files(axis: &StudyAxis) -> Option<Statement> {
    if [WORKERS, RATE].iter().chain(&AMOUNTS).any(|factor| *factor == axis.factor) {
        return None;
    }
    let said = no_gain(axis.enough?, &axis.factor, axis.beyond_pct_max?);
    let text = format!("{}: {said}", place(&axis.levels));
    let said = Statement::new(Layer::FileApi, axis.points.len() as u64, text);
    Some(said.with("axis", json!(axis.factor)).with("points", json!(axis.points)))
}

/// Factors none of whose levels differ.
pub(crate) fn indifferent(case: &StudyCase<'_>) -> Vec<NamedStatement> {
    let of_factor = |factor: &FactorLevels| {
        let of: Vec<&StudyEffect> =
            case.effects.iter().filter(|effect| effect.factor == factor.factor).collect();
        let none = of.iter().all(|effect| {
            effect.conclusion == Conclusion::NoMeasurableDifference && !effect.is_everywhere
        });
        let allowed = of.iter().filter_map(|effect| effect.ratio_ci95.map(allowed_pct));
        let allowed = allowed.fold(0.0, f64::max);
        if of.is_empty() || !none || allowed > KNOWN_PCT_MAX {
            return None;
        }
        let text = format!(
            "{}: no measurable difference between {}; up to {allowed:.1} % is not ruled out",
            factor.factor,
            factor.levels.join(", ")
        );
        let n = of.iter().map(|effect| effect.ratio_n).sum();
        Some(Statement::new(Layer::Block, n, text).with("factor", json!(factor.factor)))
    };
    let all = case.plan.factors.iter().filter_map(of_factor);
    all.map(|said| (INDIFFERENT, said)).collect()
}

/// Points that measured the loop device and not what lies on it.
pub(crate) fn at_loop_ceiling(case: &StudyCase<'_>) -> Vec<NamedStatement> {
    let is_limited = |point: &&StudyPoint| point.verdicts.has(Verdict::LoopLimited);
    let limited: Vec<&str> =
        case.points.iter().filter(is_limited).map(|point| point.id.as_str()).collect();
    if limited.is_empty() {
        return Vec::new();
    }
    let text = format!(
        "{} of {} points lie at what the loop device itself can do, and the file below it can \
         do more: differences between those points are understated",
        limited.len(),
        case.points.len()
    );
    let said = Statement::new(Layer::Device, limited.len() as u64, text);
    vec![(LOOP_CEILING, said.with("points", json!(limited)))]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn falling(factor: &str) -> StudyAxis {
        StudyAxis {
            text: format!("falls along {factor}"),
            factor: factor.to_owned(),
            levels: Vec::new(),
            points: vec!["a".to_owned(), "b".to_owned()],
            x: vec![1.0, 2.0],
            kind: AxisKind::Collapse,
            at: Some(1.0),
            change_pct: Some(-50.0),
            change_pct_ci95: Some([-60.0, -40.0]),
            enough: Some(1.0),
            beyond_pct_max: Some(6.0),
            response: None,
        }
    }

    #[test]
    fn more_data_is_no_collapse() {
        assert!(collapse(&falling("iodepth")).is_some() && files(&falling("iodepth")).is_some());
        for amount in AMOUNTS {
            assert!(collapse(&falling(amount)).is_none() && files(&falling(amount)).is_none());
        }
    }
}
