//! Printed figures beside those of the model at equally many rows; and where they disagree.

use iostrata_run::{QueueDocument, QueueThenRow};
use maud::{Markup, html};

use crate::simulate::{Moment, bare, figures, moments};
use crate::words;

/// The table; nothing where the post's device and kernel were not simulated.
pub(super) fn section(queue: &QueueDocument) -> Option<Markup> {
    let moments = moments(queue);
    if moments.is_empty() {
        return None;
    }
    Some(html! {
        p.say {
            "Post: " b { (queue.then_source) } ". " (queue.then_machine) ". Each figure stands "
            "beside the model's at equally many rows. Only figures that the post prints are here."
        }
        @if !queue.contradictions.is_empty() {
            ul.plainly { @for sentence in &queue.contradictions { li { (sentence) } } }
        }
        div.scroll { (table(&moments)) }
    })
}

fn table(moments: &[Moment<'_>]) -> Markup {
    html! {
        table {
            thead {
                tr {
                    th {}
                    @for moment in moments { th.n colspan="3" { (moment.name) } }
                }
                tr {
                    th { "iostat" }
                    @for _ in moments {
                        th.n { "post" } th.n { "model" } th.n { "model / post" }
                    }
                }
            }
            tbody { @for name in figures(moments) { tr {
                td { (name) }
                @for moment in moments { (cells(row(moment, name))) }
            } } }
        }
    }
}

fn row<'a>(moment: &Moment<'a>, name: &str) -> Option<&'a QueueThenRow> {
    moment.rows.iter().find(|row| row.row.text == name).copied()
}

fn cells(found: Option<&QueueThenRow>) -> Markup {
    let row = found.map(|found| &found.row);
    let then = row.and_then(|row| Some(bare(row.then?, &row.unit)));
    let now = row.and_then(|row| Some(bare(row.now?, &row.unit)));
    let times = row.and_then(|row| row.times).filter(|times| times.is_finite());
    let sure = row.and_then(|row| {
        let ci95 = words::interval(row.now_ci95?, &row.unit);
        Some(format!("95 %: {ci95}, n = {}, {}", row.now_n, row.points.join(", ")))
    });
    html! {
        td.n { (then.unwrap_or_default()) }
        td.n title=[sure] { b { (now.unwrap_or_default()) } }
        td.n.muted { (times.map(words::times).unwrap_or_default()) }
    }
}
