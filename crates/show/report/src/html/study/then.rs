//! What was printed then beside what is measured now; blank where nothing was printed.

use iostrata_run::{StudyDocument, ThenRow};
use maud::{Markup, html};

use crate::html::parts::{self, cell, number, table, text};
use crate::words;

/// The table; nothing for a study that replicates nothing.
pub(crate) fn section(study: &StudyDocument) -> Option<Markup> {
    if study.then.is_empty() {
        return None;
    }
    let columns =
        [text("What"), number("Then"), number("Now"), number("Now / then"), text("Cautions")];
    Some(html! {
        p.say {
            @if let Some(source) = &study.then_source { "Then: " b { (source) } ". " }
            @if let Some(machine) = &study.then_machine { (machine) ". " }
            "Only figures that the original prints stand under then; what could be read off its "
            "graphs is left blank."
        }
        div.then { (table(&columns, study.then.iter().map(row).collect())) }
    })
}

fn row(row: &ThenRow) -> Vec<Markup> {
    let then = row.then.map(|low| words::printed(low, row.then_high, &row.unit));
    let times = row.times.filter(|times| times.is_finite());
    vec![
        html! { span title=(row.points.join(", ")) { (row.text) } },
        cell(then.unwrap_or_default()),
        html! { @if let Some(now) = row.now { (today(row, now)) } },
        html! { @if let Some(times) = times { b { (words::times(times)) } } },
        parts::verdicts(&row.verdicts),
    ]
}

/// Today's figure, and below it how sure it is.
fn today(row: &ThenRow, now: f64) -> Markup {
    html! {
        span {
            b title=(words::exact(now)) { (words::value(now, &row.unit)) }
            span.muted.under {
                @match row.now_ci95 {
                    Some(ci95) => (words::interval(ci95, &row.unit)),
                    None => "no interval",
                }
                ", n = " (row.now_n)
            }
        }
    }
}
