//! The sentences of an answer, with their figures.
//!
//! Invariant: which of the three holds was decided before; here nothing is weighed.

use iostrata_plan::study::{Contrast, ThenMetric, filled};
use iostrata_stats::{Interval, PAIRS_MIN};

use super::sides::{Sides, end};

/// Which of the three sentences holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    More,
    Less,
    Same,
}

/// Why nothing is concluded from so many replicates.
pub(super) fn too_few_pairs(replicates: u64) -> String {
    match replicates {
        1 => format!("only 1 replicate has both sides; {PAIRS_MIN} are needed"),
        n => format!("only {n} replicates have both sides; {PAIRS_MIN} are needed"),
    }
}

/// Why nothing is concluded from an interval, which stands behind it: among several answers some
/// lie beyond nothing by chance.
pub(super) fn not_shown(is_beyond_nothing: bool, range: &str) -> String {
    match is_beyond_nothing {
        true => format!("not significant after correction for the number of answers ({range})"),
        false => format!("too noisy ({range})"),
    }
}

/// The sentence of an outcome, without its figures.
pub(super) fn template(contrast: &Contrast, outcome: Outcome) -> &str {
    match outcome {
        Outcome::More => &contrast.more,
        Outcome::Less => &contrast.less,
        Outcome::Same => &contrast.same,
    }
}

/// The sentence with its figures. The sentence of a difference names no ratio, as a text that does
/// is refused; the plan of an older run may still.
pub(super) fn with_figures(
    template: &str,
    metric: ThenMetric,
    sides: &Sides,
    mean: impl Fn(&[f64]) -> f64,
    ratio: Option<f64>,
) -> String {
    let percent = |share: f64| iostrata_stats::units::percent(100.0 * share);
    filled(template, |name| match (name, ratio) {
        ("of", _) => figure(mean(&sides.above().collect::<Vec<_>>()), metric.unit()),
        ("over", _) => figure(mean(&sides.below().collect::<Vec<_>>()), metric.unit()),
        ("times", Some(ratio)) => iostrata_stats::units::count(ratio),
        ("share", Some(ratio)) => percent(ratio),
        (_, Some(ratio)) => percent((ratio - 1.0).abs()),
        (_, None) => "?".to_owned(),
    })
}

/// The interval of a ratio, in whatever the sentence names the ratio by: `1.6 to 2.0 times`,
/// `31 to 45 %` less, `16 to 25 %` of it.
pub(super) fn range(template: &str, [low, high]: Interval) -> String {
    let names = |name: &str| template.contains(&format!("{{{name}}}"));
    let percent = |low: f64, high: f64| {
        let low = iostrata_stats::units::percent(100.0 * low);
        let low = low.strip_suffix(" %").unwrap_or(&low);
        format!("{low} to {}", iostrata_stats::units::percent(100.0 * high))
    };
    match () {
        () if names("times") => format!("{} to {} times", end(low), end(high)),
        () if names("change") && low >= 1.0 => percent(low - 1.0, high - 1.0),
        () if names("change") && high <= 1.0 => percent(1.0 - high, 1.0 - low),
        () if names("share") => percent(low, high),
        () => format!("{} to {} times", end(low), end(high)),
    }
}

/// A figure as a sentence has it: rates without their unit, which the sentence names itself.
fn figure(value: f64, unit: &str) -> String {
    match unit {
        "us" => iostrata_stats::units::microseconds(value),
        "ms" => iostrata_stats::units::microseconds(1e3 * value),
        "B/s" => format!("{}/s", iostrata_stats::units::bytes(value)),
        _ => iostrata_stats::units::count(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_in_what_the_sentence_names_its_ratio_by() {
        let ends = |template: &str, low: f64, high: f64| range(template, [low, high]);
        assert_eq!(ends("{of} is {times} times", 1.6, 1.97), "1.60 to 1.97 times");
        assert_eq!(ends("{change} more", 1.1, 1.456), "10 to 46 %");
        assert_eq!(ends("{change} fewer", 0.55, 0.69), "31 to 45 %");
        assert_eq!(ends("only {share} of it", 0.16, 0.25), "16 to 25 %");
        assert_eq!(ends("only {share} of it", 0.004, 0.25), "0.4 to 25 %");
        assert_eq!(ends("nothing", 0.9, 1.1), "0.90 to 1.10 times");
        assert_eq!(ends("{change} either way", 0.9, 1.1), "0.90 to 1.10 times");
    }
}
