//! The answers to a study's question: its contrasts, each decided by paired replicates.
//!
//! Invariant: a sentence stands only where the interval of its own contrast supports it; where it
//! does not, the answer states that it cannot be given and why. Whether two sides differ is decided
//! with all answers of the study taken into account (Holm); the interval is of its contrast alone.

use std::collections::BTreeMap;

use iostrata_plan::study::{
    Answer, AnswerFrom, Cell, Contrast, LevelAt, StudyPlan, Take, ThenMetric,
};
use iostrata_run::{AnswerFigure, Finding, StudyAnswer, StudyPoint};
use iostrata_stats::{
    AXIS_MATERIAL_PCT, Comparison, Difference, ERROR_RATE, Interval, Measured, Verdict, Verdicts,
    combine, compare, difference, holm_of_known,
};

use super::difference::Scale;
use super::sentence::{Outcome, not_shown, range, template, too_few_pairs, with_figures};
use super::sides::{Sides, end, pairs, sides};
use super::then::by_replicate;
use super::{difference, single_effects, then};
use crate::observed::PointLog;

/// Findings that one answer quotes at most.
const QUOTED_MAX: usize = 3;
/// Cautions under which a comparison is about something else than the points describe.
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
    // Questions outside the chosen parts are left out, as long as these have any.
    let is_asked = |answer: &&Answer| match &answer.from {
        AnswerFrom::Findings(_) => true,
        AnswerFrom::Contrast(contrast) => {
            contrast.sides(&plan.cells).iter().all(|cells| !cells.is_empty())
        }
    };
    let asked: Vec<&Answer> = plan.answers.iter().filter(is_asked).collect();
    let asked = if asked.is_empty() { plan.answers.iter().collect() } else { asked };
    let compared: Vec<Option<(Sides, SideComparison)>> =
        asked.iter().map(|answer| compared(answer, plan, seen)).collect();
    // Planned or not, one of many answers differs by chance.
    let p = |one: &Option<(Sides, SideComparison)>| one.as_ref().and_then(|(_, found)| found.p());
    let adjusted = holm_of_known(compared.iter().map(p));
    let each = asked.into_iter().zip(compared).zip(adjusted);
    let answers = each.flat_map(|((answer, compared), p)| match &answer.from {
        AnswerFrom::Findings(ids) => quoted(&answer.asks, ids, findings),
        AnswerFrom::Contrast(contrast) => {
            let answer = decided(&answer.asks, contrast, plan, seen, points, compared, p);
            vec![StudyAnswer { figures: figures(contrast, plan, seen, points), ..answer }]
        }
    });
    let mut answers: Vec<StudyAnswer> = answers.collect();
    let shared = shared_cautions(&answers);
    for one in answers.iter_mut().filter(|one| is_compared(one)) {
        one.text += &but(one.verdicts.iter().filter(|verdict| !shared.contains(verdict)));
    }
    answers
}

/// Whether an answer is a comparison that was decided.
fn is_compared(answer: &StudyAnswer) -> bool {
    answer.is_known && (answer.ratio.is_some() || answer.difference.is_some())
}

/// The cautions that every comparison of several carries: they are stated once, for all.
pub(super) fn shared_cautions(answers: &[StudyAnswer]) -> Vec<Verdict> {
    let compared: Vec<&StudyAnswer> = answers.iter().filter(|one| is_compared(one)).collect();
    if compared.len() < 2 {
        return Vec::new();
    }
    let is_shared = |verdict: &Verdict| compared.iter().all(|one| one.verdicts.has(*verdict));
    ON_SOMETHING_ELSE.into_iter().filter(is_shared).collect()
}

/// What the two sides of a contrast came to.
enum SideComparison {
    Ratio(Comparison),
    Difference(Difference, Scale),
    /// One of the figures is 0, to which no ratio can be taken.
    NoRatio,
}

impl SideComparison {
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
) -> Option<(Sides, SideComparison)> {
    let AnswerFrom::Contrast(contrast) = &answer.from else { return None };
    let sides = sides(contrast, plan, seen)?;
    let pairs = sides.pairs();
    let found = match difference::scale(contrast.metric) {
        Some(scale) => {
            difference(&pairs, sides.cells).map(|found| SideComparison::Difference(found, scale))
        }
        None => compare(&pairs, sides.cells).map(SideComparison::Ratio),
    };
    let found = found.unwrap_or(SideComparison::NoRatio);
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

/// Why an answer has no sides.
fn no_points(contrast: &Contrast) -> String {
    let at = |own: &[LevelAt]| {
        let words: Vec<&str> = own.iter().map(|at| at.level.as_str()).collect();
        words.join(", ")
    };
    let (of, over) = (at(&contrast.of), at(&contrast.over));
    format!("no points were measured that set {of} against {over}")
}

fn decided(
    asks: &str,
    contrast: &Contrast,
    plan: &StudyPlan,
    seen: &BTreeMap<&str, PointLog<'_>>,
    points: &[StudyPoint],
    compared: Option<(Sides, SideComparison)>,
    p: Option<f64>,
) -> StudyAnswer {
    let Some((sides, found)) = compared else {
        return unknown(asks, &no_points(contrast));
    };
    let is_part = |point: &&StudyPoint| sides.points.iter().any(|ids| ids.contains(&point.id));
    let verdicts: Verdicts =
        points.iter().filter(is_part).flat_map(|point| point.verdicts.iter()).collect();
    let (text, figures) = match found {
        SideComparison::Difference(found, scale) => {
            let text = difference::outcome(&found, p, scale)
                .map(|outcome| difference::sentence(contrast, &sides, &found, outcome, scale));
            (text, StudyAnswer { difference: Some(found.value), ..<_>::default() })
        }
        SideComparison::Ratio(found) => {
            let Measured { value: ratio, ci95: ratio_ci95, n: ratio_n, .. } = found.ratio;
            let outcome = outcome(&found, p);
            let differs = |found: &(Outcome, Interval)| found.0 != Outcome::Same;
            let is_split = !contrast.effects.is_empty() && outcome.as_ref().is_ok_and(differs);
            let split = match is_split {
                true => single_effects::split(contrast, plan, seen, ratio),
                false => None,
            };
            let text = outcome.map(|outcome| {
                let each = match is_split {
                    true => single_effects::in_words(split.as_ref(), ratio),
                    false => String::new(),
                };
                sentence(contrast, &sides, &found, outcome) + &each
            });
            let ratio = Some(ratio);
            (text, StudyAnswer { ratio, ratio_ci95, ratio_n, split, ..<_>::default() })
        }
        SideComparison::NoRatio => {
            let why = match contrast.metric {
                ThenMetric::Iops => "a window of it has no request at all; measure for longer",
                _ => "one of its figures is 0, and no ratio can be taken to that",
            };
            (Err(why.to_owned()), StudyAnswer::default())
        }
    };
    let (text, is_known) = match text {
        Ok(sentence) => (sentence, true),
        Err(why) => (unknown(asks, &why).text, false),
    };
    let [of, over] = sides.points;
    StudyAnswer {
        asks: asks.to_owned(),
        text,
        is_known,
        of,
        over,
        metric: contrast.metric.name().to_owned(),
        unit: contrast.metric.unit().to_owned(),
        factors: contrasted(contrast),
        verdicts,
        ..figures
    }
}

/// The sentence of an outcome, with its figures and interval.
fn sentence(
    contrast: &Contrast,
    sides: &Sides,
    found: &Comparison,
    (outcome, ends): (Outcome, Interval),
) -> String {
    let mean =
        |side: &[f64]| (side.iter().map(|value| value.ln()).sum::<f64>() / side.len() as f64).exp();
    let template = template(contrast, outcome);
    let said = with_figures(template, contrast.metric, sides, mean, Some(found.ratio.value));
    let equal = match found.equal_within_pct().filter(|_| outcome == Outcome::Same) {
        Some(margin) => format!("equal within {margin:.0} %, "),
        None => String::new(),
    };
    format!("{said} ({equal}95 % {})", range(template, ends))
}

/// What was found, with its interval; else why nothing was. `p` is the probability with all answers
/// of the study taken into account.
fn outcome(found: &Comparison, p: Option<f64>) -> Result<(Outcome, Interval), String> {
    let (Some(p), Some(ends @ [low, high])) = (p, found.ratio.ci95) else {
        return Err(too_few_pairs(found.replicates));
    };
    let is_small = 100.0 * (found.ratio.value - 1.0).abs() < AXIS_MATERIAL_PCT;
    if p <= ERROR_RATE && !is_small {
        let outcome = if found.ratio.value > 1.0 { Outcome::More } else { Outcome::Less };
        return Ok((outcome, ends));
    }
    if found.equal_within_pct().is_some() {
        return Ok((Outcome::Same, ends));
    }
    let range = format!("95 % {} to {} times", end(low), end(high));
    Err(not_shown(found.is_significant(), &range))
}

/// What a reader must know before repeating the sentence.
fn but(verdicts: impl Iterator<Item = Verdict>) -> String {
    let those = verdicts.filter(|verdict| ON_SOMETHING_ELSE.contains(verdict));
    those.map(|verdict| format!("; but {}", verdict.explain())).collect()
}

/// The factors in which the sides of a contrast are set apart, each once.
fn contrasted(contrast: &Contrast) -> Vec<String> {
    let mut factors: Vec<String> = Vec::new();
    for at in contrast.of.iter().chain(&contrast.over) {
        if !factors.contains(&at.factor) {
            factors.push(at.factor.clone());
        }
    }
    factors
}

/// The metric of every point of both sides, and of the points that differ from one of these in the
/// contrasted factors alone: every level of a setting in addition to the two in question.
fn figures(
    contrast: &Contrast,
    plan: &StudyPlan,
    seen: &BTreeMap<&str, PointLog<'_>>,
    points: &[StudyPoint],
) -> Vec<AnswerFigure> {
    let factors = contrasted(contrast);
    let of_sides: Vec<usize> = match contrast.take {
        Take::Only => pairs(contrast, plan).into_iter().flat_map(|(a, b)| [a, b]).collect(),
        Take::Max | Take::Min => contrast.sides(&plan.cells).concat(),
    };
    let is_alike = |one: &Cell, other: &Cell| {
        let rest = |of: &Cell| -> Vec<LevelAt> {
            of.levels.iter().filter(|at| !factors.contains(&at.factor)).cloned().collect()
        };
        rest(one) == rest(other)
    };
    let belongs = |(at, cell): &(usize, &Cell)| {
        of_sides.iter().any(|side| side == at || is_alike(&plan.cells[*side], cell))
    };
    let figure = |(_, cell): (usize, &Cell)| {
        let point = points.iter().find(|point| point.id == cell.id)?;
        let (value, ci95, value_n) = then::of_point(contrast.metric, point)?;
        // Some figures of a point have no interval of their own; its replicates have one.
        let between = || {
            let replicates = by_replicate(contrast.metric, cell, seen.get(cell.id.as_str())?);
            combine(&replicates.into_values().collect::<Vec<_>>())?.ci95
        };
        let value_ci95 = ci95.or_else(between);
        Some(AnswerFigure { point: cell.id.clone(), value, value_ci95, value_n })
    };
    plan.cells.iter().enumerate().filter(belongs).filter_map(figure).collect()
}
