//! What the answers at the top of the page rest on.

use iostrata_run::{StudyAnswer, StudyDocument};
use maud::{Markup, html};

use crate::html::parts::{self, cell, number, table, text};
use crate::words;

/// The contrasts behind the answers, folded; nothing where the study's text asks for none.
pub(crate) fn section(study: &StudyDocument) -> Option<Markup> {
    let contrasts = study.answers.iter().filter(|answer| answer.ratio.is_some());
    let rows: Vec<Vec<Markup>> = contrasts.map(row).collect();
    if rows.is_empty() {
        return None;
    }
    let columns = [
        text("It asks"),
        number("Ratio"),
        number("95 % interval"),
        number("Pairs"),
        text("Points above the line"),
        text("Points below it"),
        text("Cautions"),
    ];
    Some(html! {
        p.say {
            "Each answer compares points that the study names beforehand, replicate by replicate. "
            "Above and below the line stand the same work but for what is asked."
        }
        details data-print { summary { "The contrasts as a table" } (table(&columns, rows)) }
    })
}

fn row(answer: &StudyAnswer) -> Vec<Markup> {
    vec![
        html! { span title=(answer.text) { (answer.asks) } },
        html! { @if let Some(ratio) = answer.ratio { b { (words::times(ratio)) } } },
        cell(answer.ratio_ci95.map_or("none".to_owned(), words::times_range)),
        cell(answer.ratio_n.to_string()),
        ids(&answer.of),
        ids(&answer.over),
        parts::verdicts(&answer.verdicts),
    ]
}

fn ids(points: &[String]) -> Markup {
    html! { @for id in points { code { (id) } " " } }
}
