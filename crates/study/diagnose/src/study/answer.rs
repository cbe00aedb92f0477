//! The answers to a study's question: its contrasts, each decided by paired replicates.
//!
//! Invariant: a sentence stands only where the interval of its own contrast supports it; where it
//! does not, the answer says that it cannot be given and why. The contrasts are planned before
//! anything is measured, so that their intervals stand as they are.

use std::collections::BTreeMap;

use iostrata_run::{Finding, StudyAnswer, StudyPoint};
use iostrata_spec::study::{Answer, AnswerFrom, Contrast, LevelAt, StudyPlan, ThenMetric};
use iostrata_stats::{
    AXIS_MATERIAL_PCT, Comparison, Conclusion, Interval, KNOWN_PCT_MAX, Measured, Verdict,
    Verdicts, paired_measured,
};

use super::points::Seen;
use super::sentence::{Outcome, range, template, too_few_pairs, with_figures};
use super::sides::{Sides, end, sides};
use super::{difference, single_effects};

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
    let is_part = |point: &&StudyPoint| sides.points.iter().any(|ids| ids.contains(&point.id));
    let verdicts: Verdicts =
        points.iter().filter(is_part).flat_map(|point| point.verdicts.iter()).collect();
    let (found, figures) = match difference::scale(contrast.metric) {
        Some(scale) => {
            let (found, difference) = difference::decided(contrast, &sides, scale);
            (found, StudyAnswer { difference, ..<_>::default() })
        }
        None => by_ratio(contrast, plan, seen, &sides),
    };
    let (text, is_known) = match found {
        Ok(sentence) => (sentence + &but(&verdicts), true),
        Err(why) => (unknown(asks, &why).text, false),
    };
    let [of, over] = sides.points;
    StudyAnswer { asks: asks.to_owned(), text, is_known, of, over, verdicts, ..figures }
}

/// The sentence that the ratio of the two sides supports, else why none stands, and the ratio.
fn by_ratio(
    contrast: &Contrast,
    plan: &StudyPlan,
    seen: &BTreeMap<&str, Seen<'_>>,
    sides: &Sides,
) -> (Result<String, String>, StudyAnswer) {
    let Ok(found) = paired_measured(&sides.below, &sides.above) else {
        let why = match contrast.metric {
            ThenMetric::Iops => "in a window of it not a single request was done, it is too short",
            _ => "one of its figures is 0, and no ratio can be taken to that",
        };
        return (Err(why.to_owned()), StudyAnswer::default());
    };
    let text = outcome(&found).map(|(outcome, [low, high])| {
        let mean = |side: &[Measured]| {
            let logs: f64 = side.iter().map(|one| one.value.ln()).sum();
            (logs / side.len() as f64).exp()
        };
        let template = template(contrast, outcome);
        let said = with_figures(template, contrast.metric, sides, mean, Some(found.ratio));
        let range = format!(" (95 % {})", range(template, [low, high]));
        let split = match outcome {
            Outcome::Same => String::new(),
            _ => single_effects::in_words(contrast, plan, seen, &found),
        };
        said + &range + &split
    });
    let figures = StudyAnswer {
        ratio: Some(found.ratio),
        ratio_ci95: found.ratio_ci95,
        ratio_n: found.n,
        ..<_>::default()
    };
    (text, figures)
}

/// What was found, with its interval; else why nothing was.
fn outcome(found: &Comparison) -> Result<(Outcome, Interval), String> {
    let ends @ [low, high] = match found.ratio_ci95 {
        Some(ends) if found.conclusion != Conclusion::TooFewPairs => ends,
        _ => return Err(too_few_pairs(found.n)),
    };
    let is_small = 100.0 * (found.ratio - 1.0).abs() < AXIS_MATERIAL_PCT;
    match found.conclusion {
        Conclusion::Higher if !is_small => Ok((Outcome::More, ends)),
        Conclusion::Lower if !is_small => Ok((Outcome::Less, ends)),
        _ if found.differs_by_less_than(KNOWN_PCT_MAX) => Ok((Outcome::Same, ends)),
        _ => Err(format!(
            "its replicates differ too much, anything from {} to {} times is possible",
            end(low),
            end(high)
        )),
    }
}

/// What a reader must know before repeating the sentence.
fn but(verdicts: &Verdicts) -> String {
    let those = verdicts.iter().filter(|verdict| ON_SOMETHING_ELSE.contains(verdict));
    those.map(|verdict| format!("; but {}", verdict.explain())).collect()
}
