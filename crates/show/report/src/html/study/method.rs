//! How a study was measured, what it cost, and what the words beside the figures mean.

use iostrata_run::StudyDocument;
use maud::{Markup, html};

use crate::RunView;
use crate::html::method;
use crate::words;

/// The rules, the costs, and every verdict that occurs.
pub(crate) fn section(view: &RunView<'_>, study: &StudyDocument) -> Markup {
    html! {
        dl.facts {
            @for (name, what) in facts(study) { div { dt { (name) } dd { (what) } } }
            @for (name, what) in words::measured(&study.method) {
                div { dt { (name) } dd { (what) } }
            }
        }
        p {
            "Points are measured in replicates, in a random order that mixes them, so that what "
            "changes over time touches all alike. Each replicate is cut into batches; the interval "
            "shown is the wider of the one within replicates and the one between them, at 95 %. n "
            "is the number of independent samples behind it. A point stops when it is precise "
            "enough; where the budget is short, replicates are dropped, not points."
        }
        p {
            "An effect compares points that are equal in every other factor. No measurable "
            "difference is a result, too. Profiles are taken while points are measured; latency by "
            "layer comes from a pass of its own, because tracing costs."
        }
        (method::cautions(view))
    }
}

fn facts(study: &StudyDocument) -> Vec<(&'static str, String)> {
    let percent = |pct: f64| words::value(pct, "percent");
    vec![
        ("Time taken", words::value(study.duration_s, "s")),
        ("At a fixed 60 s per point", words::value(study.fixed_minute_s, "s")),
        ("Points", study.points.len().to_string()),
        ("Precision asked for", format!("\u{b1} {}", percent(study.precision * 100.0))),
        ("Points that reached it", percent(study.precise_pct)),
        ("Replicates dropped for the budget", study.replicates_dropped.to_string()),
        ("Written", words::value(study.bytes_written as f64, "bytes")),
    ]
}
