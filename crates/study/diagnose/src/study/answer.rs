//! The answers to a study's question: its contrasts, each decided by paired replicates.
//!
//! Invariant: a sentence stands only where the interval of its own contrast supports it; where it
//! does not, the answer says that it cannot be given and why. The contrasts are planned before
//! anything is measured, so that their intervals stand as they are.

use std::collections::BTreeMap;

use iostrata_run::{Finding, StudyAnswer, StudyPoint};
use iostrata_spec::study::{Answer, AnswerFrom, Contrast, LevelAt, StudyPlan, ThenMetric, filled};
use iostrata_stats::{
    AXIS_MATERIAL_PCT, Comparison, Conclusion, Measured, Verdict, Verdicts, paired_measured,
};

use super::effect::KNOWN_PCT_MAX;
use super::floor::{self, Floored};
use super::points::Seen;
use super::sides::{Sides, end, sides};
use super::single_effects;

/// Findings that one answer quotes at most.
const QUOTED_MAX: usize = 3;
/// Cautions under which a comparison is one of something else than the points say.
const ON_SOMETHING_ELSE: [Verdict; 6] = [
    Verdict::ToolLimited,
    Verdict::Cached,
    Verdict::DirectIgnored,
    Verdict::Sparse,
    Verdict::UnwrittenExtents,
    Verdict::LoopLimited,
];

/// Every answer in the order of the text.
pub(crate) fn answers_of(
    plan: &StudyPlan,
    seen: &BTreeMap<&str, Seen<'_>>,
    points: &[StudyPoint],
    findings: &[Finding],
) -> Vec<StudyAnswer> {
    let one = |answer: &&Answer| match &answer.from {
        AnswerFrom::Findings(ids) => quoted(&answer.asks, ids, findings),
        AnswerFrom::Contrast(contrast) => {
            vec![decided(&answer.asks, contrast, plan, seen, points)]
        }
    };
    // What the chosen parts do not ask is not spoken of, as long as they ask anything.
    let is_asked = |answer: &&Answer| match &answer.from {
        AnswerFrom::Findings(_) => true,
        AnswerFrom::Contrast(contrast) => {
            contrast.sides(&plan.cells).iter().all(|cells| !cells.is_empty())
        }
    };
    let asked: Vec<&Answer> = plan.answers.iter().filter(is_asked).collect();
    match asked.is_empty() {
        true => plan.answers.iter().collect::<Vec<_>>().iter().flat_map(one).collect(),
        false => asked.iter().flat_map(one).collect(),
    }
}

fn quoted(asks: &str, ids: &[String], findings: &[Finding]) -> Vec<StudyAnswer> {
    let found = findings.iter().filter(|finding| ids.contains(&finding.id)).take(QUOTED_MAX);
    let answers: Vec<StudyAnswer> = found
        .map(|finding| StudyAnswer {
            asks: asks.to_owned(),
            text: finding.text.clone(),
            is_known: true,
            ..StudyAnswer::default()
        })
        .collect();
    if answers.is_empty() {
        return vec![unknown(asks, "the points that were measured do not show it")];
    }
    answers
}

fn unknown(asks: &str, why: &str) -> StudyAnswer {
    StudyAnswer {
        asks: asks.to_owned(),
        text: format!("it cannot be said {asks}: {why}"),
        ..StudyAnswer::default()
    }
}

fn decided(
    asks: &str,
    contrast: &Contrast,
    plan: &StudyPlan,
    seen: &BTreeMap<&str, Seen<'_>>,
    points: &[StudyPoint],
) -> StudyAnswer {
    let Some(sides) = sides(contrast, plan, seen) else {
        let at = |own: &[LevelAt]| {
            let words: Vec<&str> = own.iter().map(|at| at.level.as_str()).collect();
            words.join(", ")
        };
        let (of, over) = (at(&contrast.of), at(&contrast.over));
        let why = format!("no points were measured that set {of} against {over}");
        return unknown(asks, &why);
    };
    let floored = Floored::of(contrast.metric, &sides.above, &sides.below);
    let raised = |side: &[Measured]| -> Vec<Measured> {
        side.iter().map(|figure| floor::raised(contrast.metric, figure)).collect()
    };
    let sides = Sides { above: raised(&sides.above), below: raised(&sides.below), ..sides };
    let Ok(comparison) = paired_measured(&sides.below, &sides.above) else {
        return unknown(
            asks,
            match contrast.metric {
                ThenMetric::Iops => {
                    "in a window of it not a single request was done, it is too short"
                }
                _ => "one of its figures is 0, and no ratio can be taken to that",
            },
        );
    };
    let is_part = |point: &&StudyPoint| sides.points.iter().any(|ids| ids.contains(&point.id));
    let verdicts: Verdicts =
        points.iter().filter(is_part).flat_map(|point| point.verdicts.iter()).collect();
    let answer = match outcome(&comparison) {
        Ok(outcome) => {
            let mut text = sentence(contrast, outcome, &comparison, &sides, floored, &verdicts);
            if outcome != Outcome::Same {
                text += &single_effects::in_words(contrast, plan, seen, &comparison);
            }
            StudyAnswer { asks: asks.to_owned(), text, is_known: true, ..<_>::default() }
        }
        Err(why) => unknown(asks, &why),
    };
    let [of, over] = sides.points;
    StudyAnswer {
        ratio: Some(comparison.ratio),
        // What was raised to the floor has no interval of its own.
        ratio_ci95: comparison.ratio_ci95.filter(|_| !floored.is_any()),
        ratio_n: comparison.n,
        of,
        over,
        verdicts,
        ..answer
    }
}

/// Which of the three sentences holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    More,
    Less,
    Same,
}

/// What was found; else why nothing was.
fn outcome(found: &Comparison) -> Result<Outcome, String> {
    let [low, high] = match found.ratio_ci95 {
        Some(ends) if found.conclusion != Conclusion::TooFewPairs => ends,
        _ => return Err(format!("{} of the 3 pairs of replicates it takes", found.n)),
    };
    let is_small = 100.0 * (found.ratio - 1.0).abs() < AXIS_MATERIAL_PCT;
    match found.conclusion {
        Conclusion::Higher if !is_small => Ok(Outcome::More),
        Conclusion::Lower if !is_small => Ok(Outcome::Less),
        _ if found.differs_by_less_than(KNOWN_PCT_MAX) => Ok(Outcome::Same),
        _ => Err(format!(
            "its replicates differ too much, anything from {} to {} times is possible",
            end(low),
            end(high)
        )),
    }
}

fn sentence(
    contrast: &Contrast,
    outcome: Outcome,
    found: &Comparison,
    sides: &Sides,
    floored: Floored,
    verdicts: &Verdicts,
) -> String {
    let template = match outcome {
        Outcome::More => &contrast.more,
        Outcome::Less => &contrast.less,
        Outcome::Same => &contrast.same,
    };
    let said = with_figures(template, contrast.metric, found.ratio, sides, floored);
    let range = match found.ratio_ci95.filter(|_| !floored.is_any()) {
        Some([low, high]) => format!("95 % {} to {} times", end(low), end(high)),
        None => floor::why_no_interval(contrast.metric).to_owned(),
    };
    format!("{said} ({range}){}", but(verdicts))
}

/// What a reader must know before repeating the sentence.
fn but(verdicts: &Verdicts) -> String {
    let those = verdicts.iter().filter(|verdict| ON_SOMETHING_ELSE.contains(verdict));
    those.map(|verdict| format!("; but {}", verdict.explain())).collect()
}

/// The sentence with its figures.
fn with_figures(
    template: &str,
    metric: ThenMetric,
    ratio: f64,
    sides: &Sides,
    floored: Floored,
) -> String {
    let mean = |side: &[Measured]| {
        let logs: f64 = side.iter().map(|one| one.value.ln()).sum();
        figure((logs / side.len() as f64).exp(), metric.unit())
    };
    let percent = |share: f64| iostrata_units::percent(100.0 * share);
    let of = |name: &str| match name {
        "of" => floor::at_most(floored.above) + &mean(&sides.above),
        "over" => floor::at_most(floored.below) + &mean(&sides.below),
        "times" => floored.of_ratio() + &iostrata_units::count(ratio),
        "share" => floored.of_ratio() + &percent(ratio),
        _ => floored.of_change(ratio) + &percent((ratio - 1.0).abs()),
    };
    filled(template, of)
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
