//! Tables of a simulated queue: comparisons, and every run with iostat's columns.

use iostrata_run::{QueueDocument, QueueRun};
use maud::{Markup, html};

use crate::html::parts::{self, cell, number, table, text};
use crate::simulate::{asked_and_taken, kernel_words, kernels, runs_on};
use crate::words;

/// One run over another, a sentence each.
pub(super) fn compared(queue: &QueueDocument) -> Option<Markup> {
    if queue.effects.is_empty() {
        return None;
    }
    let columns = [text("What follows"), number("Ratio"), number("95 %"), number("n")];
    let rows = queue.effects.iter().map(|effect| {
        vec![
            cell(&effect.text),
            html! { b title=(words::exact(effect.ratio)) { (words::times(effect.ratio)) } },
            cell(effect.ratio_ci95.map(words::times_range).unwrap_or_default()),
            cell(effect.ratio_n.to_string()),
        ]
    });
    Some(html! {
        p.say {
            "Two runs that differ in one thing, at the same index size. Replicates are compared in "
            "pairs that share a seed."
        }
        (table(&columns, rows.collect()))
    })
}

/// Every run, a table for each device and kernel.
pub(super) fn all(queue: &QueueDocument) -> Option<Markup> {
    let at = queue.runs.first()?.index_bytes as f64 / 1e9;
    Some(html! {
        p.say {
            "The device's columns as iostat has them, at an index of " (format!("{at:.1}")) " GB without the "
            "reader. The other index sizes are in result.json."
        }
        @for device in &queue.devices {
            @for kernel in kernels(queue) {
                @let runs = runs_on(queue, device, kernel);
                @if !runs.is_empty() {
                    h3 { (device.title) ", " (kernel_words(kernel)) " " code { (device.device) } }
                    (one_device(&runs))
                }
            }
        }
    })
}

fn one_device(runs: &[&QueueRun]) -> Markup {
    let columns = [
        number("nr_requests"),
        number("rows per hour"),
        number("w/s"),
        number("wrqm/s"),
        number("KiB each"),
        number("in the queue"),
        number("await"),
        number("%util"),
        number("reader p99"),
    ];
    let rows = runs.iter().map(|run| {
        let iostat = &run.iostat;
        let ms = |ms: Option<f64>| cell(ms.map_or(String::new(), |ms| words::value(ms, "ms")));
        let reader = run.reader.as_ref();
        let kib = iostat.write_size_kib.map_or(String::new(), |kib| words::value(kib, ""));
        vec![
            cell(asked_and_taken(run)),
            parts::value(run.rows_per_hour, run.rows_per_hour_ci95, ""),
            cell(words::value(iostat.writes_per_s, "")),
            cell(words::value(iostat.writes_merged_per_s, "")),
            cell(kib),
            cell(words::value(iostat.queue_size, "")),
            ms(iostat.write_await_ms),
            cell(words::value(iostat.util_pct, "")),
            ms(reader.map(|reader| reader.latency_us.p99 / 1e3)),
        ]
    });
    table(&columns, rows.collect())
}
