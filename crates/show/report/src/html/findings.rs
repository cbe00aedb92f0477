//! Findings with their evidence.

use iostrata_run::{Finding, FindingKind};
use maud::{Markup, html};
use serde_json::Value;

use super::parts;
use crate::words;

/// Findings that are shown at once.
const OPEN_MAX: usize = 12;
/// Evidence that names points; they stand in the curve's own row.
const POINTS: &str = "points";

/// Every finding, or that there is none; `cleared` says what that means.
pub(crate) fn section(findings: &[Finding], interrupted: bool, cleared: &str) -> Markup {
    html! {
        @if findings.is_empty() && interrupted {
            p.lead { "Nothing was found before the run was stopped." }
        } @else if findings.is_empty() {
            p.lead.good { "Nothing stands out." }
            p.say { (cleared) }
        }
        @for (n, finding) in findings.iter().enumerate().take(OPEN_MAX) {
            (one(findings, n, finding))
        }
        @if findings.len() > OPEN_MAX {
            details data-print {
                summary { (findings.len() - OPEN_MAX) " more" }
                @for (n, finding) in findings.iter().enumerate().skip(OPEN_MAX) {
                    (one(findings, n, finding))
                }
            }
        }
    }
}

fn one(all: &[Finding], n: usize, finding: &Finding) -> Markup {
    // Several findings of a study may share an id; links go to the first.
    let first = all.iter().position(|one| one.id == finding.id) == Some(n);
    let anchor = first.then(|| format!("finding-{}", finding.id));
    let shown = |name: &str, what: &Value| !what.is_null() && name != POINTS;
    html! {
        div.finding id=[anchor] data-finding=(finding.id) {
            h3 { (finding.text) }
            p.note {
                @match finding.kind {
                    FindingKind::Loss => span.tag.warn { "loss" },
                    FindingKind::Sizing => span.tag { "sizing" },
                    FindingKind::Caution => span.tag.warn { "caution" },
                }
                (parts::layer(finding.layer)) " \u{b7} "
                @if let Some(effect) = finding.effect_pct {
                    "effect " b { (words::value(effect, "percent")) }
                    @if let Some(ci95) = finding.effect_pct_ci95 {
                        " (" (words::interval(ci95, "percent")) ", n = " (finding.effect_pct_n) ")"
                    }
                    " \u{b7} "
                }
                code { (finding.id) }
            }
            @if !finding.evidence.is_empty() {
                dl.facts {
                    @for (name, what) in finding.evidence.iter().filter(|one| shown(one.0, one.1)) {
                        @let (name, text) = words::evidence(name, what);
                        div { dt { (name) } dd { (text) } }
                    }
                }
            }
        }
    }
}
