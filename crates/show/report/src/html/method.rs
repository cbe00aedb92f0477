//! How the figures were made, and what the words beside them mean.

use maud::{Markup, html};

use crate::RunView;
use crate::words;

/// The rules in short, and every verdict that occurs.
pub(crate) fn section(view: &RunView<'_>) -> Markup {
    html! {
        p {
            "Each point is measured in replicates, taken in turns with the points it is compared "
            "with. A replicate is cut into at least 30 batches, long enough to be independent; its "
            "interval comes from them. The interval shown is the wider of the one within replicates "
            "and the one between them, at 95 %. n is the number of independent samples behind it."
        }
        @if view.io().is_none() { p {
            "A loss is stated only between two rungs that do identical work and differ in one "
            "layer, with the interval of the paired difference. A finding is stated only after "
            "further points have confirmed it. No measurable difference is a result, too."
        } }
        p {
            "Latency is service latency: from the start of a request to its completion. Percentiles "
            "are within 1 %. On hover a chart shows the rounded figure and, in brackets, the number "
            "as the run directory has it."
        }
        (cautions(view))
    }
}

/// Every verdict that occurs in the run, explained.
pub(crate) fn cautions(view: &RunView<'_>) -> Markup {
    let verdicts = view.verdicts();
    html! {
        @if verdicts.is_empty() {
            p { "No figure of this run carries a caution." }
        } @else {
            h3 { "Cautions in this run" }
            dl.facts {
                @for verdict in verdicts {
                    div { dt { code { (words::verdict(verdict)) } } dd { (verdict.explain()) } }
                }
            }
        }
    }
}
