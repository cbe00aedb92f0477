//! The answers to a study's question: its contrasts, each decided by paired replicates.
//!
//! Invariant: a sentence stands only where the interval of its own contrast supports it; where it
//! does not, the answer says that it cannot be given and why. The contrasts are planned before
//! anything is measured, so that their intervals stand as they are.

use std::collections::BTreeMap;

use iostrata_run::{Finding, StudyAnswer, StudyPoint};
use iostrata_spec::study::{
    Answer, AnswerFrom, Contrast, LevelAt, StudyPlan, Take, ThenMetric, filled,
};
use iostrata_stats::{
    AXIS_MATERIAL_PCT, Comparison, Conclusion, Measured, Verdict, Verdicts, paired_measured,
};

use super::effect::KNOWN_PCT_MAX;
use super::points::{Seen, paired_replicates};
use super::then::by_replicate;

/// Findings that one answer quotes at most.
const QUOTED_MAX: usize = 3;
/// The worst second counts as this share of the mean at least.
const WORST_SECOND_LEAST: f64 = 0.01;
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

/// What stands against what: the cells with their replicates in pairs.
struct Sides {
    points: [Vec<String>; 2],
    above: Vec<Measured>,
    below: Vec<Measured>,
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
    let floored = |side: &[Measured]| -> Vec<Measured> {
        side.iter().map(|figure| above_floor(contrast.metric, figure)).collect()
    };
    let sides = Sides { above: floored(&sides.above), below: floored(&sides.below), ..sides };
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
    let text = sentence(contrast, &comparison, &sides, &verdicts)
        .map(|text| text + &in_steps(contrast, plan, seen, &comparison));
    let answer = match text {
        Ok(text) => StudyAnswer { asks: asks.to_owned(), text, is_known: true, ..<_>::default() },
        Err(why) => unknown(asks, &why),
    };
    let [of, over] = sides.points;
    StudyAnswer {
        ratio: Some(comparison.ratio),
        ratio_ci95: comparison.ratio_ci95,
        ratio_n: comparison.n,
        of,
        over,
        verdicts,
        ..answer
    }
}

/// A second in which nothing was committed counts as one with a hundredth of the mean: a ratio
/// needs something to stand on, and a window of a minute hardly tells less.
fn above_floor(metric: ThenMetric, figure: &Measured) -> Measured {
    let least = if metric == ThenMetric::MinOverMean1s { WORST_SECOND_LEAST } else { f64::MIN };
    Measured { value: figure.value.max(least), ..figure.clone() }
}

fn sides(contrast: &Contrast, plan: &StudyPlan, seen: &BTreeMap<&str, Seen<'_>>) -> Option<Sides> {
    let figures: Vec<BTreeMap<u32, Measured>> = plan
        .cells
        .iter()
        .map(|cell| {
            let seen = seen.get(cell.id.as_str());
            seen.map(|seen| by_replicate(contrast.metric, cell, seen)).unwrap_or_default()
        })
        .collect();
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
fn pairs(
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

/// The sentence that holds; else why none does.
fn sentence(
    contrast: &Contrast,
    found: &Comparison,
    sides: &Sides,
    verdicts: &Verdicts,
) -> Result<String, String> {
    let [low, high] = match found.ratio_ci95 {
        Some(ends) if found.conclusion != Conclusion::TooFewPairs => ends,
        _ => return Err(format!("{} of the 3 pairs of replicates it takes", found.n)),
    };
    let is_small = 100.0 * (found.ratio - 1.0).abs() < AXIS_MATERIAL_PCT;
    let template = match found.conclusion {
        Conclusion::Higher if !is_small => &contrast.more,
        Conclusion::Lower if !is_small => &contrast.less,
        _ if found.differs_by_less_than(KNOWN_PCT_MAX) => &contrast.same,
        _ => {
            return Err(format!(
                "its replicates differ too much, anything from {} to {} times is possible",
                end(low),
                end(high)
            ));
        }
    };
    let said = with_figures(template, contrast.metric, found.ratio, sides);
    Ok(format!("{said} (95 % {} to {} times){}", end(low), end(high), but(verdicts)))
}

/// An end of an interval: two decimals, unless they say next to nothing.
fn end(ratio: f64) -> String {
    if ratio < 0.1 { iostrata_units::count(ratio) } else { format!("{ratio:.2}") }
}

/// How much each step makes of the ratio, where it was taken in steps and differs from 1: the
/// logarithms of ratios add up, so that shares of them do. The steps follow one another on the same
/// replicates, so their product is the whole by construction and proves nothing.
fn in_steps(
    contrast: &Contrast,
    plan: &StudyPlan,
    seen: &BTreeMap<&str, Seen<'_>>,
    total: &Comparison,
) -> String {
    let steps = contrast.of_steps();
    let differs = matches!(total.conclusion, Conclusion::Higher | Conclusion::Lower);
    if steps.is_empty() || !differs {
        return String::new();
    }
    let ratio = |step: &Contrast| {
        let sides = sides(step, plan, seen)?;
        let compared = paired_measured(&sides.below, &sides.above).ok()?;
        Some((compared.ratio, compared.ratio_ci95?))
    };
    let each: Option<Vec<(&str, f64, [f64; 2])>> = steps
        .iter()
        .map(|(name, step)| ratio(step).map(|(ratio, ends)| (*name, ratio, ends)))
        .collect();
    let Some(each) = each else {
        return "; not every step to it was measured, so it cannot be split".to_owned();
    };
    let words = each.iter().map(|(name, ratio, [low, high])| {
        let share = 100.0 * ratio.ln() / total.ratio.ln();
        format!("{name} {ratio:.2} times ({share:.0} %; 95 % {low:.2} to {high:.2})")
    });
    format!(". Of this {}", words.collect::<Vec<_>>().join(", "))
}

/// What a reader must know before repeating the sentence.
fn but(verdicts: &Verdicts) -> String {
    let those = verdicts.iter().filter(|verdict| ON_SOMETHING_ELSE.contains(verdict));
    those.map(|verdict| format!("; but {}", verdict.explain())).collect()
}

/// The sentence with its figures.
fn with_figures(template: &str, metric: ThenMetric, ratio: f64, sides: &Sides) -> String {
    let mean = |side: &[Measured]| {
        let logs: f64 = side.iter().map(|one| one.value.ln()).sum();
        let said = figure((logs / side.len() as f64).exp(), metric.unit());
        let is_floor = |one: &Measured| one.value <= WORST_SECOND_LEAST;
        match metric == ThenMetric::MinOverMean1s && side.iter().all(is_floor) {
            true => format!("at most {said}"),
            false => said,
        }
    };
    let percent = |share: f64| iostrata_units::percent(100.0 * share);
    let of = |name: &str| match name {
        "of" => mean(&sides.above),
        "over" => mean(&sides.below),
        "times" => iostrata_units::count(ratio),
        "share" => percent(ratio),
        _ => percent((ratio - 1.0).abs()),
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
