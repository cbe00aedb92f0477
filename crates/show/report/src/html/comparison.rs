//! Rungs that were measured interleaved because they are compared: file APIs, sync methods.

use iostrata_run::ProbeDocument;
use maud::{Markup, html};

use super::ladder::{axis_title, bar, better};
use super::parts;
use crate::RunView;
use crate::chart::{Bar, Charts, bars, id_of};
use crate::view::{Comparison, comparisons};
use crate::words;

/// Every comparison; nothing when there is none.
pub(crate) fn section(
    view: &RunView<'_>,
    probe: &ProbeDocument,
    charts: &mut Charts,
) -> Option<Markup> {
    let all = comparisons(view, probe);
    if all.is_empty() {
        return None;
    }
    Some(html! {
        p.say {
            "Measured in turns, one replicate of each after the other, so that what changes over "
            "time touches all of them alike."
        }
        @for (n, one) in all.iter().enumerate() { (chart(n, one, charts)) }
    })
}

fn chart(n: usize, one: &Comparison<'_>, charts: &mut Charts) -> Markup {
    let Some(first) = one.rungs.first() else { return html! {} };
    let rows: Vec<Bar<'_>> = one.rungs.iter().map(|rung| bar(rung)).collect();
    let name = format!("compare-{n}-{}", id_of(one.block));
    let chart = bars(&name, &first.unit, &axis_title(&first.unit), &rows);
    parts::figure(charts, &chart, &title(one.block), better(first.better))
}

/// What a block of the probe's plan compares; other blocks by their own name.
fn title(block: &str) -> String {
    match block {
        "api" => "File APIs at equal depth".to_owned(),
        "commits" => "Sync laboratory: ways to make a commit durable".to_owned(),
        "append" => "Over written space, into allocated space, beyond the end".to_owned(),
        "flushed" => "Direct, or buffered and flushed".to_owned(),
        "mixed_files" => "The lock of a file: readers and writers on one file or many".to_owned(),
        "unwritten_files" => "The lock of a file: unwritten extents".to_owned(),
        "buffered_files" => "The lock of a file: buffered writes".to_owned(),
        other => words::title(other),
    }
}
