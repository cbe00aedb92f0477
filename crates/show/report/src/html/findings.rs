//! Findings with their evidence.

use iostrata_run::{Finding, FindingKind, ProbeDocument};
use maud::{Markup, html};

use super::parts;
use crate::words;

/// Every finding, or that there is none.
pub(crate) fn section(probe: &ProbeDocument) -> Markup {
    html! {
        @if probe.findings.is_empty() && probe.interrupted {
            p.lead { "Nothing was found before the run was stopped." }
        } @else if probe.findings.is_empty() {
            p.lead.good { "Nothing stands out." }
            p.say { "Every suspicion that was raised was cleared by the points that test it." }
        }
        @for finding in &probe.findings { (one(finding)) }
    }
}

fn one(finding: &Finding) -> Markup {
    html! {
        div.finding id={ "finding-" (finding.id) } data-finding=(finding.id) {
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
                    @for (name, what) in &finding.evidence {
                        @let (name, text) = words::evidence(name, what);
                        div { dt { (name) } dd { (text) } }
                    }
                }
            }
        }
    }
}
