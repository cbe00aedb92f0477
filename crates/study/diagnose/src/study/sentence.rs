//! The sentences of an answer, with their figures.
//!
//! Invariant: which of the three holds was decided before; here nothing is weighed.

use iostrata_spec::study::{Contrast, ThenMetric, filled};
use iostrata_stats::{Measured, PAIRS_MIN};

use super::sides::Sides;

/// Which of the three sentences holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    More,
    Less,
    Same,
}

/// Why nothing is concluded from so many pairs.
pub(super) fn too_few_pairs(n: u64) -> String {
    format!("{n} of the {PAIRS_MIN} pairs of replicates it takes")
}

/// The sentence of an outcome, without its figures.
pub(super) fn template(contrast: &Contrast, outcome: Outcome) -> &str {
    match outcome {
        Outcome::More => &contrast.more,
        Outcome::Less => &contrast.less,
        Outcome::Same => &contrast.same,
    }
}

/// The sentence with its figures. That of a difference has no ratio to name, as a text is refused
/// that does; the plan of an older run may still.
pub(super) fn with_figures(
    template: &str,
    metric: ThenMetric,
    sides: &Sides,
    mean: impl Fn(&[Measured]) -> f64,
    ratio: Option<f64>,
) -> String {
    let percent = |share: f64| iostrata_units::percent(100.0 * share);
    filled(template, |name| match (name, ratio) {
        ("of", _) => figure(mean(&sides.above), metric.unit()),
        ("over", _) => figure(mean(&sides.below), metric.unit()),
        ("times", Some(ratio)) => iostrata_units::count(ratio),
        ("share", Some(ratio)) => percent(ratio),
        (_, Some(ratio)) => percent((ratio - 1.0).abs()),
        (_, None) => "?".to_owned(),
    })
}

/// A figure as a sentence has it: rates without their unit, which the sentence names itself.
fn figure(value: f64, unit: &str) -> String {
    match unit {
        "us" => iostrata_units::microseconds(value),
        "ms" => iostrata_units::microseconds(1e3 * value),
        "B/s" => format!("{}/s", iostrata_units::bytes(value)),
        _ => iostrata_units::count(value),
    }
}
