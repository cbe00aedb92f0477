//! System changes: what was asked for and what the kernel took.

use iostrata_run::{ChangeRecord, StudyDocument};
use maud::{Markup, html};

use crate::html::parts::{cell, table, text};

/// The table; nothing when nothing was changed.
pub(crate) fn section(study: &StudyDocument) -> Option<Markup> {
    if study.changes.is_empty() {
        return None;
    }
    let columns = [text("Change"), text("Asked"), text("Took")];
    let rows: Vec<Vec<Markup>> = study.changes.iter().map(row).collect();
    Some(html! {
        p.say {
            (study.changes.len()) " changes, each written down before it was made and taken back "
            "at the end. What the kernel took otherwise than asked is marked."
        }
        @if rows.len() > 12 {
            details data-print { summary { "Every change" } (table(&columns, rows)) }
        } @else { (table(&columns, rows)) }
    })
}

fn row(change: &ChangeRecord) -> Vec<Markup> {
    let other = change.took.is_some() && change.asked.is_some() && change.took != change.asked;
    vec![
        cell(&change.text),
        cell(change.asked.as_deref().unwrap_or_default()),
        html! { @if let Some(took) = &change.took { span.warn[other] { (took) } } },
    ]
}
