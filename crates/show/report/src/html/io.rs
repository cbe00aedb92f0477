//! The run of one I/O workload.

use iostrata_run::{IoDocument, IoOpDocument};
use iostrata_stats::LatencyUs;
use maud::{Markup, html};

use super::parts::{self, cell, number, table, text};
use crate::words;

/// The kinds of requests that were asked for.
pub(crate) fn ops(io: &IoDocument) -> Vec<(&'static str, &IoOpDocument)> {
    io.ops.named().collect()
}

/// The rates as a headline, and a card per kind.
pub(crate) fn header(io: &IoDocument) -> Markup {
    let rates: Vec<String> = ops(io).iter().map(|(name, op)| rate(name, op)).collect();
    html! {
        h1 { (if rates.is_empty() { "Nothing completed".to_owned() } else { rates.join(", ") }) }
        div.cards { @for (name, op) in ops(io) { (card(name, op)) } }
        @if !io.verdicts.is_sound() {
            p.note.below { (parts::verdicts(&io.verdicts)) }
        }
        @for note in &io.notes { p.note { (note) } }
        @for error in &io.errors {
            p.note.warn { (error.count) " requests failed with error " (error.errno) }
        }
    }
}

/// `104 K reads/s`, or `reads unknown`.
fn rate(name: &str, op: &IoOpDocument) -> String {
    let shown = words::shown(op.iops, op.iops_ci95, &format!("{name}/s"));
    if shown.why.is_some() { format!("{name} {}", shown.text) } else { shown.text }
}

fn card(name: &str, op: &IoOpDocument) -> Markup {
    html! {
        div.card {
            (parts::big(op.iops, op.iops_ci95, &format!("{name}/s")))
            div.spread {
                @if let Some(half) = words::shown(op.iops, op.iops_ci95, "").half {
                    "\u{b1} " (half) ", "
                }
                "n = " (op.iops_n)
            }
            p.what {
                @if op.bytes_per_s > 0.0 { (words::value(op.bytes_per_s, "bytes/s")) ", " }
                "mean " (words::value(op.latency_us.mean, "us")) ", p99 "
                (words::value(op.latency_us.p99, "us"))
            }
        }
    }
}

/// Figures and percentiles.
pub(crate) fn section(io: &IoDocument) -> Markup {
    let columns = [
        text("Requests"),
        number("Per second"),
        number("Bandwidth"),
        number("Mean"),
        number("p50"),
        number("p95"),
        number("p99"),
        number("p99.9"),
        number("Slowest"),
    ];
    let mut rows = Vec::new();
    for (name, op) in ops(io) {
        rows.push(row(name.to_owned(), op, &op.latency_us));
        if let Some(response) = &op.response_us {
            rows.push(row(format!("{name}, from schedule"), op, response));
        }
    }
    let cpu = &io.cpu;
    html! {
        (table(&columns, rows))
        p.note {
            "Measured window " (words::value(io.duration_s, "s")) "; "
            (words::value(io.depth_mean, "")) " requests in flight on average; processor time "
            (words::value(cpu.user_s, "s")) " user, " (words::value(cpu.sys_s, "s")) " system"
            @if let Some(ns) = cpu.ns_per_io { ", " (words::value(ns, "ns")) " per request" }
            @if let Some(late) = io.start_lateness_us_p99 {
                "; 99 % of requests started within " (words::value(late, "us")) " of the schedule"
            }
            "."
        }
    }
}

fn row(name: String, op: &IoOpDocument, latency: &LatencyUs) -> Vec<Markup> {
    let us = |latency: f64| cell(words::value(latency, "us"));
    // Flushes move no bytes of their own.
    let bandwidth = Some(op.bytes_per_s).filter(|rate| *rate > 0.0);
    let bandwidth = bandwidth.map_or(String::new(), |rate| words::value(rate, "bytes/s"));
    vec![
        cell(name),
        parts::value(op.iops, op.iops_ci95, "/s"),
        cell(bandwidth),
        us(latency.mean),
        us(latency.p50),
        us(latency.p95),
        us(latency.p99),
        us(latency.p99_9),
        us(latency.max),
    ]
}
