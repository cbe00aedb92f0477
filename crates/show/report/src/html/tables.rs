//! Sections that are tables: redo sizes, verifications, latency by layer, what was not measured.

use iostrata_run::{ProbeDocument, Rung, Verification};
use maud::{Markup, html};

use super::parts::{self, cell, number, table, text};
use crate::RunView;
use crate::words;

/// Redo sizes over write rates.
pub(crate) fn redo(probe: &ProbeDocument) -> Option<Markup> {
    if probe.redo_table.is_empty() {
        return None;
    }
    let columns = [
        number("Redo written by the load"),
        number("Capacity for half an hour of it"),
        number("Time to flush a full log's pages"),
    ];
    let rows = probe.redo_table.iter().map(|row| {
        vec![
            cell(words::value(row.redo_bytes_per_s, "bytes/s")),
            cell(words::value(row.redo_capacity_bytes as f64, "bytes")),
            cell(words::value(row.drain_s, "s")),
        ]
    });
    Some(html! {
        p.say {
            "A disk has no redo rate of its own: find your load's (Innodb_os_log_written per second) "
            "in the first column. A larger log coalesces more writes and takes longer to flush."
        }
        (table(&columns, rows.collect()))
    })
}

/// Settings that were tried in the probe's own files.
pub(crate) fn verifications(probe: &ProbeDocument) -> Option<Markup> {
    if probe.verifications.is_empty() {
        return None;
    }
    let columns = [
        text("Setting"),
        text("What was tried"),
        number("Before"),
        number("After"),
        text("Result"),
    ];
    let row = |one: &Verification| {
        vec![
            html! { code { (one.setting) } },
            cell(&one.text),
            parts::value(one.before, one.before_ci95, &one.unit),
            parts::value(one.after, one.after_ci95, &one.unit),
            html! {
                @if one.confirmed { span.tag.good { "confirmed" } }
                @else { span.tag { "no measurable gain" } }
            },
        ]
    };
    let rows = probe.verifications.iter().map(row).collect();
    Some(html! {
        p.say { "Applied inside the probe's own files and measured in turns, before and after." }
        (table(&columns, rows))
    })
}

/// Latency seen by the application beside the device's own.
pub(crate) fn latency(probe: &ProbeDocument) -> Option<Markup> {
    let with_both = |rung: &&Rung| rung.latency_us.is_some() && rung.device_latency_us.is_some();
    let rungs: Vec<&Rung> = probe.rungs.iter().filter(with_both).collect();
    if rungs.is_empty() {
        return None;
    }
    let columns = [text("Rung"), number("At the application"), number("At the device")];
    let us =
        |latency: Option<f64>| cell(latency.map_or(String::new(), |us| words::value(us, "us")));
    let row = |rung: &&Rung| {
        vec![
            html! { span.layer style=(parts::colour(rung.layer)) { (rung.title) } },
            us(rung.latency_us),
            us(rung.device_latency_us),
        ]
    };
    Some(html! {
        p.say {
            "Mean latency of the same requests, as the application waits for them and as the "
            "device's own counters have it. What lies between is spent above the device. The "
            "device's figure is a mean over the window; time held back by a limit of a control "
            "group is not in it."
        }
        (parts::slim(&columns, rungs.iter().map(row).collect()))
    })
}

/// What could not be measured here.
pub(crate) fn unavailable(view: &RunView<'_>) -> Option<Markup> {
    let all = view.unavailable();
    if all.is_empty() {
        return None;
    }
    let rows = all.iter().map(|one| {
        vec![cell(&one.what), cell(&one.why), cell(one.fix.as_deref().unwrap_or("no way here"))]
    });
    Some(table(&[text("What"), text("Why"), text("How to make it possible")], rows.collect()))
}
