//! One I/O workload for a terminal: rates, bandwidth, percentiles, and what speaks against them.

use iostrata_run::{IoDocument, IoOpDocument};
use iostrata_spec::OpKind;
use iostrata_stats::{LatencyUs, Verdict};

use super::paper::{Paper, pad, right};
use crate::words;

/// Columns of a row's name, a rate with its spread, a bandwidth, a latency.
const NAME: usize = 10;
const RATE: usize = 18;
const BANDWIDTH: usize = 11;
const LATENCY: usize = 9;

/// The lines below the origin.
pub(crate) fn lines(io: &IoDocument, paper: &Paper) -> Vec<String> {
    let mut lines = vec![paper.dim(&head())];
    for (name, op) in io.ops.named() {
        lines.push(row(name, op, &op.latency_us, paper));
        if let Some(response) = &op.response_us {
            lines.push(format!(
                "{}{}",
                pad("  response", NAME + RATE + BANDWIDTH + 2),
                latencies(response)
            ));
        }
    }
    lines.push(String::new());
    lines.push(effort(io));
    lines.extend(repeats(io).iter().flat_map(|text| paper.wrapped(text, 0)));
    lines.extend(cautions(io, paper));
    lines.extend(io.run.iter().map(|run| paper.dim(&format!("The run is kept in {run}"))));
    lines
}

fn head() -> String {
    let latency = ["mean", "p50", "p95", "p99", "p99.9", "max"].map(|name| right(name, LATENCY));
    format!(
        "{}{}  {}{}",
        pad("", NAME),
        right("rate", RATE),
        right("bandwidth", BANDWIDTH),
        latency.concat()
    )
}

fn row(name: &str, op: &IoOpDocument, latency: &LatencyUs, paper: &Paper) -> String {
    let shown = words::shown(op.iops, op.iops_ci95, "/s");
    let spread = shown.half.map_or(String::new(), |half| format!(" {} {half}", paper.plus_minus()));
    let rate = shown.text;
    let room = RATE.saturating_sub(rate.chars().count() + spread.chars().count());
    let bandwidth =
        if op.bytes_per_s > 0.0 { words::value(op.bytes_per_s, "bytes/s") } else { String::new() };
    format!(
        "{}{}{}{}  {}{}",
        paper.bold(&pad(name, NAME)),
        " ".repeat(room),
        paper.bold(&rate),
        paper.dim(&spread),
        right(&bandwidth, BANDWIDTH),
        latencies(latency),
    )
}

fn latencies(latency: &LatencyUs) -> String {
    [latency.mean, latency.p50, latency.p95, latency.p99, latency.p99_9, latency.max]
        .map(|us| right(&words::value(us, "us"), LATENCY))
        .concat()
}

fn effort(io: &IoDocument) -> String {
    let mut text = format!(
        "{} measured, {} in flight, CPU {} user + {} system",
        words::value(io.duration_s, "s"),
        words::value(io.depth_mean, ""),
        words::value(io.cpu.user_s, "s"),
        words::value(io.cpu.sys_s, "s"),
    );
    if let Some(ns) = io.cpu.ns_per_io {
        text.push_str(&format!(", {} per request", words::value(ns, "ns")));
    }
    if let Some(late) = io.start_lateness_us_p99 {
        text.push_str(&format!(", start lateness p99 {}", words::value(late, "us")));
    }
    text
}

/// What the intervals above do not say: what the next run will bring.
fn repeats(io: &IoDocument) -> Option<String> {
    let moved = io.ops.iter().filter(|(kind, _)| *kind != OpKind::Sync);
    let found = moved.filter_map(|(kind, op)| {
        let name = kind.plural();
        let [low, high] = op.iops_repeat_ci95?;
        let range = format!("{} to {}", words::value(low, "/s"), words::value(high, "/s"));
        Some((op.iops_repeat_n, format!("{range} {name}")))
    });
    let (runs, ranges): (Vec<u64>, Vec<String>) = found.unzip();
    let basis = match runs.first()? {
        0 => "no earlier run here; a drift of 5 % is assumed".to_owned(),
        1 => "by one earlier run here".to_owned(),
        runs => format!("by {runs} earlier runs here"),
    };
    let ranges = ranges.join(", ");
    Some(format!("+- is for this window; measured again within the hour: {ranges} ({basis})"))
}

fn cautions(io: &IoDocument, paper: &Paper) -> Vec<String> {
    let unknown = io.unknown.iter().map(|one| {
        format!("{}s unknown: {}", one.name, words::because(one.why, one.between, &one.unit))
    });
    let mut texts: Vec<String> = unknown.collect();
    let verdict = |verdict: Verdict| format!("{}: {}", words::verdict(verdict), verdict.explain());
    texts.extend(io.verdicts.iter().map(verdict));
    let error = |error: &iostrata_run::IoErrorCount| {
        format!("{} requests failed with error {}", error.count, error.errno)
    };
    texts.extend(io.errors.iter().map(error));
    let mut lines: Vec<String> = texts
        .iter()
        .flat_map(|text| paper.wrapped(text, 0))
        .map(|line| paper.warn(&line))
        .collect();
    let notes = io.notes.iter().flat_map(|note| paper.wrapped(note, 0));
    lines.extend(notes.map(|line| paper.dim(&line)));
    lines
}
