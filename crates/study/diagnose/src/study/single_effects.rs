//! What the changes behind an answer do each alone, and whether they make up the whole together.
//!
//! Invariants: every change is measured against the points below the line, not against the change
//! before it. A chain of changes multiplies to the whole whatever was measured; changes that were
//! made alone need not, so that their product can be held against it.

use std::collections::BTreeMap;

use iostrata_plan::study::{Contrast, StudyPlan};
use iostrata_run::{AnswerEffect, AnswerSplit};
use iostrata_stats::{
    Cells, FigurePair, Interval, KNOWN_PCT_MAX, Measured, Verdicts, compare, is_within_pct,
};

use super::sides::{by_cell, end, pairs, sides};
use crate::observed::PointLog;

/// Each change behind an answer that differs, its share of the whole (logarithms of ratios add up,
/// so that shares of them do), and what is left of the whole; nothing where a change was not
/// measured alone or a figure of one is 0.
pub(super) fn split(
    contrast: &Contrast,
    plan: &StudyPlan,
    seen: &BTreeMap<&str, PointLog<'_>>,
    whole: f64,
) -> Option<AnswerSplit> {
    let alone = |(name, effect): (&str, Contrast)| {
        let sides = sides(&effect, plan, seen)?;
        let Measured { value: ratio, ci95, n, .. } =
            compare(&sides.pairs(), sides.cells).ok()?.ratio;
        Some(AnswerEffect {
            name: name.to_owned(),
            ratio,
            ratio_ci95: Some(ci95?),
            ratio_n: n,
            share_pct: 100.0 * ratio.ln() / whole.ln(),
        })
    };
    let effects: Option<Vec<AnswerEffect>> = contrast.of_effects().into_iter().map(alone).collect();
    let (effects, rest) = (effects?, rest(contrast, plan, seen)?);
    (!effects.is_empty()).then_some(AnswerSplit {
        effects,
        rest: rest.value,
        rest_ci95: rest.ci95,
        rest_n: rest.n,
    })
}

/// What stands behind the sentence of an answer that differs and has changes behind it.
pub(super) fn in_words(split: Option<&AnswerSplit>, whole: f64) -> String {
    let Some(split) = split else {
        return "; it cannot be split, since not every change was measured alone or a figure of one is 0".to_owned();
    };
    let words = split.effects.iter().map(|one| {
        let ends = one.ratio_ci95.map_or_else(String::new, |[low, high]| {
            format!("; 95 % {} to {}", end(low), end(high))
        });
        format!("{} {:.2} times ({:.0} % of it{ends})", one.name, one.ratio, one.share_pct)
    });
    let words = words.collect::<Vec<_>>().join(", ");
    format!(". Each alone: {words}; {}", together(split.rest, split.rest_ci95, whole))
}

/// Whether the changes explain the whole together. The rest is the whole over their product.
fn together(rest: f64, ci95: Option<Interval>, whole: f64) -> String {
    let product = whole / rest;
    let Some([low, high]) = ci95 else {
        return format!("multiplied {product:.2} times, from too few replicates to tell more");
    };
    let left = format!("the whole is {rest:.2} times that, 95 % {} to {}", end(low), end(high));
    // A rest that may be as large as the whole explains nothing.
    let is_known = is_within_pct([low, high], KNOWN_PCT_MAX)
        && low.ln().abs().max(high.ln().abs()) < whole.ln().abs();
    let explains = match (low <= 1.0 && 1.0 <= high, is_known) {
        (true, true) => "together they explain it, within 25 %",
        (true, false) => "whether they explain it together cannot be said",
        (false, _) if (rest < 1.0) == (whole > 1.0) => "they overlap",
        (false, _) => "they do more together than each alone",
    };
    format!("multiplied {product:.2} times: {explains} ({left})")
}

/// The whole over the product of the single changes, by replicates that have all of them.
fn rest(
    contrast: &Contrast,
    plan: &StudyPlan,
    seen: &BTreeMap<&str, PointLog<'_>>,
) -> Option<Measured> {
    let figures = by_cell(contrast.metric, plan, seen);
    let (mut whole, mut product) = (Vec::new(), Vec::new());
    let effects = contrast.of_effects();
    let mut places = Vec::new();
    for (place, (above, below)) in pairs(contrast, plan).into_iter().enumerate() {
        let alone = |effect: &Contrast| {
            let found = pairs(effect, plan).into_iter();
            found.filter(|(_, own)| *own == below).map(|(cell, _)| cell).next()
        };
        let cells: Vec<usize> =
            effects.iter().map(|(_, effect)| alone(effect)).collect::<Option<_>>()?;
        for (replicate, base) in &figures[below] {
            let over_base = |cell: &usize| {
                figures[*cell].get(replicate).map(|figure| figure.value / base.value)
            };
            let singles: Option<Vec<f64>> = cells.iter().map(over_base).collect();
            let Some((of, singles)) = figures[above].get(replicate).zip(singles) else { continue };
            let value = base.value * singles.iter().product::<f64>();
            if !value.is_finite() {
                return None;
            }
            places.push((place, *replicate));
            whole.push(Measured { ci95: None, ..of.clone() });
            product.push(Measured::without_interval(value, 1, Verdicts::none()));
        }
    }
    let figures = product.iter().zip(&whole);
    let both = places.iter().zip(figures);
    let pair =
        |(&(cell, replicate), (first, second))| FigurePair { cell, replicate, first, second };
    Some(compare(&both.map(pair).collect::<Vec<_>>(), Cells::Planned).ok()?.ratio)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rest_that_may_be_as_large_as_the_whole_explains_nothing() {
        let of = |whole: f64, rest: f64, ends| together(rest, ends, whole);
        assert!(of(6.0, 1.0, Some([0.9, 1.1])).contains("together they explain it"));
        assert!(of(6.0, 1.59, Some([0.98, 2.58])).contains("cannot be said"), "0.8 to 1.25");
        assert!(of(1.07, 1.0, Some([0.9, 1.1])).contains("cannot be said"));
        assert!(of(6.0, 0.8, Some([0.7, 0.9])).contains("they overlap"));
        assert!(of(0.5, 1.2, Some([1.1, 1.3])).contains("they overlap"));
        assert!(of(6.0, 1.2, Some([1.1, 1.3])).contains("more together than each alone"));
        assert!(of(6.0, 1.2, None).contains("too few replicates"));
    }
}
