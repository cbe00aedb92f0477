//! Single points, drawn when they are chosen: profile, stacks, waits, latency by layer.
//!
//! Invariant: everything shown is in the page's data; the script only draws it.

use iostrata_run::StudyDocument;
use maud::{Markup, PreEscaped, html};

use crate::chart::for_script;
use crate::study::Closely;

const SCRIPT: &str = include_str!("../../../assets/study.js");
const TABLES: &str = include_str!("../../../assets/tables.js");

/// A chooser and everything about the point chosen; nothing without profile and trace.
pub(crate) fn one(study: &StudyDocument) -> Option<Markup> {
    is_there(study).then(|| {
        html! {
            p.say {
                "On-CPU profile by layer, top symbols, flame graph, waits and latency by layer of "
                "the point that is chosen."
            }
            div #closely-one data-closely="1" { (needs_script()) }
        }
    })
}

/// The same for two points.
pub(crate) fn two(study: &StudyDocument) -> Option<Markup> {
    let with = study.points.iter().filter(|point| has_evidence(point)).count();
    (with > 1).then(|| {
        html! {
            p.say {
                "Shares of both, side by side. " code { "iostrata study diff" }
                " gives the differences with their intervals."
            }
            div #closely-two data-closely="2" { (needs_script()) }
        }
    })
}

fn needs_script() -> Markup {
    html! { noscript { p.warn { "Choosing a point needs JavaScript." } } }
}

fn has_evidence(point: &iostrata_run::StudyPoint) -> bool {
    point.profile.is_some() || point.latency_by_layer.is_some()
}

fn is_there(study: &StudyDocument) -> bool {
    study.points.iter().any(has_evidence)
}

/// The data and the script of a study's page.
pub(crate) fn scripts(study: &StudyDocument) -> Markup {
    let json = Closely::of(study).map(|data| match serde_json::to_string(&data) {
        Ok(json) => for_script(&json),
        Err(error) => unreachable!("the data hold numbers, texts and lists only: {error}"),
    });
    html! {
        @if let Some(json) = json {
            script type="application/json" id="point-data" { (PreEscaped(json)) }
        }
        script { (PreEscaped(TABLES)) (PreEscaped(SCRIPT)) }
    }
}
