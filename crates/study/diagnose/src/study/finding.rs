//! What a study found: statements over its effects and curves.
//!
//! Invariant: a finding says only what an interval supports; a factor without any measurable effect
//! is a finding too.

use std::collections::BTreeMap;

use iostrata_plan::Layer;
use iostrata_plan::study::StudyPlan;
use iostrata_run::{AxisKind, Finding, FindingKind, StudyAxis, StudyEffect, StudyPoint};
use iostrata_stats::{Conclusion, KNOWN_PCT_MAX, Verdict, allowed_pct};
use serde_json::json;

use super::axis::{WORKERS, no_gain, place};
use super::layer_loss::layer_losses;
use super::points::Seen;
use super::response::{RATE, responses};

/// Every statement by name; `docs/study-findings.md` has an entry for each.
pub const STUDY_FINDINGS: [&str; 11] = [
    "filesystem_loss",
    "collapse_along_axis",
    "enough",
    "no_measurable_difference",
    "loop_ceiling",
    "response_at_rate",
    "longer_queue_helps",
    "longer_queue_hurts",
    "longer_queue_no_difference",
    "queue_length_refused",
    "emulation_late",
];

/// Factors that say how much data there is. More of it is other work, not more of the same: their
/// curves are shown, and nothing is called too much or enough.
const AMOUNTS: [&str; 2] = ["size", "volume_size"];

/// The statements, the largest losses first.
pub(crate) fn findings_of(
    plan: &StudyPlan,
    seen: &BTreeMap<&str, Seen<'_>>,
    points: &[StudyPoint],
    effects: &[StudyEffect],
    axes: &[StudyAxis],
) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    findings.extend(layer_losses(plan, seen));
    findings.extend(axes.iter().filter_map(collapse));
    findings.sort_by(|a, b| size(b).total_cmp(&size(a)));
    findings.extend(responses(axes));
    findings.extend(axes.iter().filter_map(files));
    findings.extend(indifferent(plan, effects));
    findings.extend(at_loop_ceiling(points));
    findings
}

fn size(finding: &Finding) -> f64 {
    finding.effect_pct.unwrap_or(0.0).abs()
}

/// More workers do less.
fn collapse(axis: &StudyAxis) -> Option<Finding> {
    if axis.kind != AxisKind::Collapse || AMOUNTS.contains(&axis.factor.as_str()) {
        return None;
    }
    let loss = -axis.change_pct?;
    Some(Finding {
        id: "collapse_along_axis".to_owned(),
        kind: FindingKind::Loss,
        text: axis.text.clone(),
        layer: Layer::FileApi,
        effect_pct: Some(loss),
        effect_pct_ci95: axis.change_pct_ci95.map(|[low, high]| [-high, -low]),
        effect_pct_n: axis.points.len() as u64,
        evidence: evidence(&[
            ("axis", json!(axis.factor)),
            ("from", json!(axis.at)),
            ("points", json!(axis.points)),
        ]),
    })
}

/// How many of something are enough.
fn files(axis: &StudyAxis) -> Option<Finding> {
    if [WORKERS, RATE].iter().chain(&AMOUNTS).any(|factor| *factor == axis.factor) {
        return None;
    }
    let said = no_gain(axis.enough?, &axis.factor, axis.beyond_pct_max?);
    Some(Finding {
        id: "enough".to_owned(),
        kind: FindingKind::Sizing,
        text: format!("{}: {said}", place(&axis.levels)),
        layer: Layer::FileApi,
        effect_pct: None,
        effect_pct_ci95: None,
        effect_pct_n: axis.points.len() as u64,
        evidence: evidence(&[("axis", json!(axis.factor)), ("points", json!(axis.points))]),
    })
}

/// Factors none of whose levels differ.
fn indifferent(plan: &StudyPlan, effects: &[StudyEffect]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for factor in &plan.factors {
        let of: Vec<&StudyEffect> =
            effects.iter().filter(|effect| effect.factor == factor.factor).collect();
        let none = of.iter().all(|effect| {
            effect.conclusion == Conclusion::NoMeasurableDifference && !effect.is_everywhere
        });
        if of.is_empty() || !none {
            continue;
        }
        let allowed = of.iter().filter_map(|effect| effect.ratio_ci95.map(allowed_pct));
        let allowed = allowed.fold(0.0, f64::max);
        if allowed > KNOWN_PCT_MAX {
            continue;
        }
        findings.push(Finding {
            id: "no_measurable_difference".to_owned(),
            kind: FindingKind::Sizing,
            text: format!(
                "{}: no measurable difference between {}; up to {allowed:.1} % is not ruled out",
                factor.factor,
                factor.levels.join(", ")
            ),
            layer: Layer::Block,
            effect_pct: None,
            effect_pct_ci95: None,
            effect_pct_n: of.iter().map(|effect| effect.ratio_n).sum(),
            evidence: evidence(&[("factor", json!(factor.factor))]),
        });
    }
    findings
}

/// Points that measured the loop device and not what lies on it.
fn at_loop_ceiling(points: &[StudyPoint]) -> Option<Finding> {
    let limited: Vec<&str> = points
        .iter()
        .filter(|point| point.verdicts.has(Verdict::LoopLimited))
        .map(|point| point.id.as_str())
        .collect();
    (!limited.is_empty()).then(|| Finding {
        id: "loop_ceiling".to_owned(),
        kind: FindingKind::Caution,
        text: format!(
            "{} of {} points lie at what the loop device itself can do, and the file below it can \
             do more: differences between those points are understated",
            limited.len(),
            points.len()
        ),
        layer: Layer::Device,
        effect_pct: None,
        effect_pct_ci95: None,
        effect_pct_n: limited.len() as u64,
        evidence: evidence(&[("points", json!(limited))]),
    })
}

fn evidence(entries: &[(&str, serde_json::Value)]) -> BTreeMap<String, serde_json::Value> {
    entries.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
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
