//! Rungs that were measured interleaved because they are compared: file APIs, sync methods.

use iostrata_run::{ProbeDocument, Rung};
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
    let says = format!("{} {}{}", meaning(one.block), extremes(one), better(first.better));
    parts::figure(charts, &chart, &title(one.block), &says)
}

/// Which rung delivers the most and which the least.
fn extremes(one: &Comparison<'_>) -> String {
    let order = |a: &&&Rung, b: &&&Rung| a.value.total_cmp(&b.value);
    let (Some(most), Some(least)) =
        (one.rungs.iter().max_by(order), one.rungs.iter().min_by(order))
    else {
        return String::new();
    };
    let words = |rung: &Rung| format!("{} ({})", words::value(rung.value, &rung.unit), rung.title);
    format!("From {} to {}. ", words(least), words(most))
}

/// What a reader learns from a comparison.
fn meaning(block: &str) -> &'static str {
    match block {
        "api" => "The same reads through each way to the kernel, 16 in flight.",
        "commits" => "The same small writes, made durable in each way there is.",
        "append" => {
            "The same writes of one thread, over written space and beyond the end of the file."
        }
        "flushed" => "The same writes with the same flushes, past the page cache and through it.",
        "mixed_files" | "unwritten_files" | "buffered_files" => {
            "The same threads on one file and on eight: where one file is slower, its lock bites."
        }
        _ => "Measured in turns.",
    }
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
