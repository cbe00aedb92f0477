//! How a queue was simulated, and what the model leaves out.

use iostrata_run::QueueDocument;
use maud::{Markup, html};

use crate::RunView;
use crate::html::method;
use crate::words;

/// The rules, the limits, and every verdict that occurs.
pub(super) fn section(view: &RunView<'_>, queue: &QueueDocument) -> Markup {
    html! {
        dl.facts {
            div { dt { "Seed" } dd { (queue.seed) } }
            div { dt { "Real time taken" } dd { (words::value(queue.duration_s, "s")) } }
            @for (name, what) in words::measured(&queue.method) {
                div { dt { (name) } dd { (what) } }
            }
        }
        p {
            "Nothing was measured on a device: inserts, page cache, block queue and drive are "
            "models in virtual time, and the same seed gives the same figures. Each figure is the "
            "mean of replicates with seeds of their own; the interval is that between them, at 95 "
            "%. It says how much chance is in the figure, not how well the model fits a disk."
        }
        @if !queue.limits.is_empty() {
            ul.plainly { @for limit in &queue.limits { li { (limit) } } }
        }
        (method::cautions(view))
    }
}
