//! The answers to a study's question: its contrasts, each decided by paired replicates.
//!
//! Invariant: a sentence stands only where the interval of its own contrast supports it; where it
//! does not, the answer says that it cannot be given and why. That two sides differ is said with
//! all answers of the study taken into account (Holm); the interval is that of its contrast alone.

use std::collections::BTreeMap;

use iostrata_plan::study::{Answer, AnswerFrom, Contrast, LevelAt, StudyPlan, ThenMetric};
use iostrata_run::{Finding, StudyAnswer, StudyPoint};
use iostrata_stats::{
    AXIS_MATERIAL_PCT, Comparison, Difference, ERROR_RATE, Interval, Measured, Verdict, Verdicts,
    compare, difference, holm,
};

use super::difference::Scale;
use super::sentence::{Outcome, not_shown, range, template, too_few_pairs, with_figures};
use super::sides::{Sides, end, sides};
use super::{difference, single_effects};
use crate::observed::PointLog;

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
    seen: &BTreeMap<&str, PointLog<'_>>,
    points: &[StudyPoint],
    findings: &[Finding],
) -> Vec<StudyAnswer> {
    // What the chosen parts do not ask is not spoken of, as long as they ask anything.
    let is_asked = |answer: &&Answer| match &answer.from {
        AnswerFrom::Findings(_) => true,
        AnswerFrom::Contrast(contrast) => {
            contrast.sides(&plan.cells).iter().all(|cells| !cells.is_empty())
        }
    };
    let asked: Vec<&Answer> = plan.answers.iter().filter(is_asked).collect();
    let asked = if asked.is_empty() { plan.answers.iter().collect() } else { asked };
    let compared: Vec<Option<(Sides, Compared)>> =
        asked.iter().map(|answer| compared(answer, plan, seen)).collect();
    // Planned or not, one of many answers differs by chance.
    let p = |one: &Option<(Sides, Compared)>| one.as_ref().and_then(|(_, found)| found.p());
    let raw: Vec<f64> = compared.iter().filter_map(p).collect();
    let mut adjusted = holm(&raw).into_iter();
    let adjusted: Vec<Option<f64>> =
        compared.iter().map(|one| p(one).and_then(|_| adjusted.next())).collect();
    let each = asked.into_iter().zip(compared).zip(adjusted);
    each.flat_map(|((answer, compared), p)| match &answer.from {
        AnswerFrom::Findings(ids) => quoted(&answer.asks, ids, findings),
        AnswerFrom::Contrast(contrast) => {
            vec![decided(&answer.asks, contrast, plan, seen, points, compared, p)]
        }
    })
    .collect()
}

/// What the two sides of a contrast came to.
enum Compared {
    Ratio(Comparison),
    Difference(Difference, Scale),
    /// One of the figures is 0, to which no ratio can be taken.
    NoRatio,
}

impl Compared {
    fn p(&self) -> Option<f64> {
        match self {
            Self::Ratio(found) => found.p,
            Self::Difference(found, _) => found.p,
            Self::NoRatio => None,
        }
    }
}

/// The two sides of an answer that is a contrast; nothing where they were not measured.
fn compared(
    answer: &Answer,
    plan: &StudyPlan,
    seen: &BTreeMap<&str, PointLog<'_>>,
) -> Option<(Sides, Compared)> {
    let AnswerFrom::Contrast(contrast) = &answer.from else { return None };
    let sides = sides(contrast, plan, seen)?;
    let pairs = sides.pairs();
    let found = match difference::scale(contrast.metric) {
        Some(scale) => {
            difference(&pairs, sides.cells).map(|found| Compared::Difference(found, scale))
        }
        None => compare(&pairs, sides.cells).map(Compared::Ratio),
    };
    let found = found.unwrap_or(Compared::NoRatio);
    drop(pairs);
    Some((sides, found))
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
    seen: &BTreeMap<&str, PointLog<'_>>,
    points: &[StudyPoint],
    compared: Option<(Sides, Compared)>,
    p: Option<f64>,
) -> StudyAnswer {
    let Some((sides, found)) = compared else {
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
    let (text, figures) = match found {
        Compared::Difference(found, scale) => {
            let text = difference::outcome(&found, p, scale)
                .map(|outcome| difference::sentence(contrast, &sides, &found, outcome, scale));
            (text, StudyAnswer { difference: Some(found.value), ..<_>::default() })
        }
        Compared::Ratio(found) => {
            let text = outcome(&found, p).map(|outcome| {
                let split = match outcome.0 {
                    Outcome::Same => String::new(),
                    _ => single_effects::in_words(contrast, plan, seen, &found),
                };
                sentence(contrast, &sides, &found, outcome) + &split
            });
            let Comparison { ratio, ratio_ci95, n, .. } = found;
            (text, StudyAnswer { ratio: Some(ratio), ratio_ci95, ratio_n: n, ..<_>::default() })
        }
        Compared::NoRatio => {
            let why = match contrast.metric {
                ThenMetric::Iops => "a window of it has no request at all; measure for longer",
                _ => "one of its figures is 0, and no ratio can be taken to that",
            };
            (Err(why.to_owned()), StudyAnswer::default())
        }
    };
    let (text, is_known) = match text {
        Ok(sentence) => (sentence + &but(&verdicts), true),
        Err(why) => (unknown(asks, &why).text, false),
    };
    let [of, over] = sides.points;
    StudyAnswer { asks: asks.to_owned(), text, is_known, of, over, verdicts, ..figures }
}

/// The sentence of an outcome, with its figures and interval.
fn sentence(
    contrast: &Contrast,
    sides: &Sides,
    found: &Comparison,
    (outcome, ends): (Outcome, Interval),
) -> String {
    let mean = |side: &[Measured]| {
        let logs: f64 = side.iter().map(|one| one.value.ln()).sum();
        (logs / side.len() as f64).exp()
    };
    let template = template(contrast, outcome);
    let said = with_figures(template, contrast.metric, sides, mean, Some(found.ratio));
    let equal = match found.equal_within_pct().filter(|_| outcome == Outcome::Same) {
        Some(margin) => format!("equal within {margin:.0} %, "),
        None => String::new(),
    };
    format!("{said} ({equal}95 % {})", range(template, ends))
}

/// What was found, with its interval; else why nothing was. `p` is the probability with all answers
/// of the study taken into account.
fn outcome(found: &Comparison, p: Option<f64>) -> Result<(Outcome, Interval), String> {
    let (Some(p), Some(ends @ [low, high])) = (p, found.ratio_ci95) else {
        return Err(too_few_pairs(found.replicates));
    };
    let is_small = 100.0 * (found.ratio - 1.0).abs() < AXIS_MATERIAL_PCT;
    if p <= ERROR_RATE && !is_small {
        let outcome = if found.ratio > 1.0 { Outcome::More } else { Outcome::Less };
        return Ok((outcome, ends));
    }
    if found.equal_within_pct().is_some() {
        return Ok((Outcome::Same, ends));
    }
    let range = format!("95 % {} to {} times", end(low), end(high));
    Err(not_shown(found.is_significant(), &range))
}

/// What a reader must know before repeating the sentence.
fn but(verdicts: &Verdicts) -> String {
    let those = verdicts.iter().filter(|verdict| ON_SOMETHING_ELSE.contains(verdict));
    those.map(|verdict| format!("; but {}", verdict.explain())).collect()
}
