//! Every point with its evidence: figure, latency, device columns, processors, cautions.
//!
//! Invariant: a column that no point has is left out; every column can be sorted by the number that
//! the document holds.

use iostrata_plan::OpKind;
use iostrata_plan::study::FactorLevels;
use iostrata_run::host::{CpuShares, Iostat};
use iostrata_run::{StudyDocument, StudyOp, StudyPoint};
use iostrata_stats::LatencyUs;

use super::levels::{factor_words, place, varying};
use super::matrix::is_wide;
use crate::report::cell::{Cell, Tone, count, empty, figure, interval, optional, text, verdicts};
use crate::report::document::{Blocks, On, Table, TableLayout};
use crate::report::kind::common::{self, unknown};

/// A column behind the figure: its group, its head, its unit, and its number for a point.
type Evidence = (&'static str, &'static str, &'static str, fn(&StudyPoint) -> Option<f64>);

fn mean_us(point: &StudyPoint, kind: OpKind) -> Option<f64> {
    let op = point.ops[kind].as_ref()?;
    (op.iops > 0.0).then_some(op.latency_us.mean)
}

fn device(point: &StudyPoint, of: fn(&Iostat) -> Option<f64>) -> Option<f64> {
    point.device.as_ref().and_then(of)
}

fn cpu(point: &StudyPoint, of: fn(&CpuShares) -> f64) -> Option<f64> {
    point.cpu.as_ref().map(of)
}

const LATENCY: &str = "Mean latency";
const DEVICE: &str = "Device, as iostat -x";
const DISK: &str = "Emulated disk";
const CPU: &str = "Processors, %";

/// The columns behind the figure.
const COLUMNS: [Evidence; 31] = [
    ("Point", "bytes/s", "bytes/s", |p| Some(p.bytes_per_s)),
    ("Point", "in flight", "", |p| Some(p.depth_mean)),
    (LATENCY, "reads", "us", |p| mean_us(p, OpKind::Read)),
    (LATENCY, "writes", "us", |p| mean_us(p, OpKind::Write)),
    (LATENCY, "flushes", "us", |p| mean_us(p, OpKind::Sync)),
    (DEVICE, "r/s", "", |p| device(p, |d| Some(d.reads_per_s))),
    (DEVICE, "rrqm/s", "", |p| device(p, |d| Some(d.reads_merged_per_s))),
    (DEVICE, "r_await ms", "", |p| device(p, |d| d.read_await_ms)),
    (DEVICE, "rareq-sz KiB", "", |p| device(p, |d| d.read_size_kib)),
    (DEVICE, "w/s", "", |p| device(p, |d| Some(d.writes_per_s))),
    (DEVICE, "wrqm/s", "", |p| device(p, |d| Some(d.writes_merged_per_s))),
    (DEVICE, "w_await ms", "", |p| device(p, |d| d.write_await_ms)),
    (DEVICE, "wareq-sz KiB", "", |p| device(p, |d| d.write_size_kib)),
    (DEVICE, "f/s", "", |p| device(p, |d| d.flushes_per_s)),
    (DEVICE, "aqu-sz", "", |p| device(p, |d| Some(d.queue_size))),
    (DEVICE, "%util", "", |p| device(p, |d| Some(d.util_pct))),
    (DISK, "in order, %", "", |p| p.emulated.as_ref()?.in_order_pct()),
    (DISK, "most at once", "", |p| p.emulated.as_ref().map(|d| f64::from(d.depth_max))),
    (DISK, "late replies, %", "", |p| p.emulated.as_ref()?.late_pct()),
    (CPU, "busy", "", |p| cpu(p, CpuShares::busy_pct)),
    (CPU, "usr", "", |p| cpu(p, |c| c.user_pct)),
    (CPU, "sys", "", |p| cpu(p, |c| c.system_pct)),
    (CPU, "irq", "", |p| cpu(p, |c| c.irq_pct)),
    (CPU, "softirq", "", |p| cpu(p, |c| c.softirq_pct)),
    (CPU, "iowait", "", |p| cpu(p, |c| c.iowait_pct)),
    (CPU, "idle", "", |p| cpu(p, |c| c.idle_pct)),
    (CPU, "steal", "", |p| cpu(p, |c| c.steal_pct)),
    ("Per request", "CPU", "ns", |p| p.cpu_ns_per_io),
    ("Per request", "switches", "", |p| p.switches_per_io),
    ("Waiting", "all for I/O, %", "", |p| p.io_pressure_full_pct),
    ("Waiting", "limit used, %", "", |p| p.io_limit_used_pct),
];

/// Those that Markdown has, too.
const SHORT: [&str; 3] = ["aqu-sz", "%util", "busy"];

/// The table; nothing without points.
pub(super) fn section(study: &StudyDocument) -> Option<Blocks> {
    if study.points.is_empty() {
        return None;
    }
    let all: Vec<&StudyPoint> = study.points.iter().collect();
    let factors = varying(study, &all);
    let is_there = |column: &&Evidence| all.iter().any(|point| column.3(point).is_some());
    let evidence: Vec<&Evidence> = COLUMNS.iter().filter(is_there).collect();
    let mut table = Table::of(all.iter().copied());
    for factor in &factors {
        table = table.words(&factor_words(&factor.factor), |point| level(point, factor));
    }
    if factors.is_empty() {
        table = table.words("Point", |point| text(&point.title));
    }
    let wide = |point: &StudyPoint| match is_wide(study, point) {
        true => Tone::Warn,
        false => Tone::Plain,
    };
    table = table
        .numbers(rate_words(study), |p| figure(p.value, p.value_ci95, p.value_n, &p.unit))
        .numbers("95 %", |p| interval(p.value, p.value_ci95, &p.unit).toned(wide(p)))
        .numbers_on(On::PAGE, "n", |p| count(p.value_n))
        .numbers_on(On::PAGE, "Lowest to highest", |p| interval(p.value, p.value_range, &p.unit))
        .group("Point", 4);
    for (group, head, unit, of) in evidence {
        let on = if SHORT.contains(head) { On::FILES } else { On::PAGE };
        table = table.numbers_on(on, head, |p| optional(of(p), unit)).group(group, 1);
    }
    let table = table
        .words("Cautions", |p| verdicts(&p.verdicts))
        .each(|p, row| row.point = Some((p.id.clone(), p.title.clone())))
        .kind(TableLayout::Wide);
    let mut body = Blocks::new();
    body.say(
        "Every point in the study's order. On the page a click on a head sorts by it. Device \
         columns are means over the replicates.",
    );
    body.table(On::FILES, table);
    unknown(&mut body, &study.unknown);
    Some(body)
}

/// What is counted per second; points of a study count the same.
fn rate_words(study: &StudyDocument) -> &str {
    study.points.first().map_or("IOPS", |point| point.unit.as_str())
}

fn level(point: &StudyPoint, factor: &FactorLevels) -> Cell {
    let level = point.levels.iter().find(|at| at.factor == factor.factor);
    let cell = text(level.map_or("", |at| at.level.as_str()));
    Cell { order: Some(place(point, factor) as f64), ..cell }
}

/// Every latency of every point; nothing when no point has requests.
pub(super) fn latencies(study: &StudyDocument) -> Option<Blocks> {
    type Item<'a> = (&'a StudyPoint, String, &'a StudyOp, Option<LatencyUs>, bool);
    let mut rows: Vec<Item<'_>> = Vec::new();
    for point in &study.points {
        for (name, op) in point.ops.named() {
            let all = common::latencies(op.iops > 0.0, op.latency_us, op.response_us);
            rows.extend(all.map(|(us, is_service)| {
                let end = if is_service { "" } else { ", response" };
                (point, format!("{name}{end}"), op, us, is_service)
            }));
        }
    }
    let mean_ci95 = |(_, _, op, us, is_service): &Item<'_>| match us.is_some() && *is_service {
        true => interval(op.latency_us.mean, op.latency_us_mean_ci95, "us"),
        false => empty(),
    };
    let table = Table::of(rows)
        .words("Point", |row| text(&row.0.title))
        .words("Requests", |row| text(&row.1))
        .numbers("per second", |row| figure(row.2.iops, row.2.iops_ci95, row.2.iops_n, ""))
        .numbers("Mean", |row| optional(row.3.map(|us| us.mean), "us"))
        .numbers("95 % interval", mean_ci95);
    let table = common::percentiles(table, |row| row.3)
        .numbers("Slowest", |row| optional(row.3.map(|us| us.max), "us"))
        .numbers_on(On::PAGE, "n", |row| count(row.2.iops_n))
        .kind(TableLayout::Wide);
    if table.is_empty() {
        return None;
    }
    let mut body = Blocks::new();
    body.say(
        "Service latency over all replicates of a point; response latency, from the scheduled \
         start, where requests were rated and for flushes.",
    );
    body.folded(On::FILES, "Every latency as a table", table);
    Some(body)
}
