//! Every point with its evidence: figure, latency, device columns, processors, cautions.
//!
//! Invariant: a column that no point has is left out; every column can be sorted by the number that
//! the document holds.

use iostrata_run::host::{CpuShares, Iostat};
use iostrata_run::{StudyDocument, StudyPoint};
use iostrata_spec::OpKind;
use iostrata_spec::study::FactorLevels;
use maud::{Markup, html};

use crate::html::ladder::unknown;
use crate::html::parts;
use crate::study::{factor_words, place, varying};
use crate::words;

/// A column: its group, its head, what it means, and its number for a point.
struct Column {
    group: &'static str,
    head: &'static str,
    unit: &'static str,
    of: fn(&StudyPoint) -> Option<f64>,
}

const fn column(
    group: &'static str,
    head: &'static str,
    unit: &'static str,
    of: fn(&StudyPoint) -> Option<f64>,
) -> Column {
    Column { group, head, unit, of }
}

fn device(point: &StudyPoint, of: fn(&Iostat) -> Option<f64>) -> Option<f64> {
    point.device.as_ref().and_then(of)
}

fn cpu(point: &StudyPoint, of: fn(&CpuShares) -> f64) -> Option<f64> {
    point.cpu.as_ref().map(of)
}

const DEVICE: &str = "Device, as iostat -x";
const DISK: &str = "Emulated disk";
const CPU: &str = "Processors, %";
const REQUEST: &str = "Per request";

/// The columns behind the figure.
const COLUMNS: [Column; 30] = [
    column("Point", "bytes/s", "bytes/s", |p| Some(p.bytes_per_s)),
    column("Point", "in flight", "", |p| Some(p.depth_mean)),
    column("Mean latency", "reads", "us", |p| Some(p.ops[OpKind::Read].as_ref()?.latency_us.mean)),
    column("Mean latency", "writes", "us", |p| {
        Some(p.ops[OpKind::Write].as_ref()?.latency_us.mean)
    }),
    column("Mean latency", "flushes", "us", |p| {
        Some(p.ops[OpKind::Sync].as_ref()?.latency_us.mean)
    }),
    column(DEVICE, "r/s", "", |p| device(p, |d| Some(d.reads_per_s))),
    column(DEVICE, "rrqm/s", "", |p| device(p, |d| Some(d.reads_merged_per_s))),
    column(DEVICE, "r_await ms", "", |p| device(p, |d| d.read_await_ms)),
    column(DEVICE, "rareq-sz KiB", "", |p| device(p, |d| d.read_size_kib)),
    column(DEVICE, "w/s", "", |p| device(p, |d| Some(d.writes_per_s))),
    column(DEVICE, "wrqm/s", "", |p| device(p, |d| Some(d.writes_merged_per_s))),
    column(DEVICE, "w_await ms", "", |p| device(p, |d| d.write_await_ms)),
    column(DEVICE, "wareq-sz KiB", "", |p| device(p, |d| d.write_size_kib)),
    column(DEVICE, "f/s", "", |p| device(p, |d| d.flushes_per_s)),
    column(DEVICE, "aqu-sz", "", |p| device(p, |d| Some(d.queue_size))),
    column(DEVICE, "%util", "", |p| device(p, |d| Some(d.util_pct))),
    column(DISK, "in order, %", "", |p| p.emulated.as_ref()?.in_order_pct()),
    column(DISK, "most at once", "", |p| p.emulated.as_ref().map(|d| f64::from(d.depth_max))),
    column(DISK, "late replies, %", "", |p| p.emulated.as_ref()?.late_pct()),
    column(CPU, "usr", "", |p| cpu(p, |c| c.user_pct)),
    column(CPU, "sys", "", |p| cpu(p, |c| c.system_pct)),
    column(CPU, "irq", "", |p| cpu(p, |c| c.irq_pct)),
    column(CPU, "softirq", "", |p| cpu(p, |c| c.softirq_pct)),
    column(CPU, "iowait", "", |p| cpu(p, |c| c.iowait_pct)),
    column(CPU, "idle", "", |p| cpu(p, |c| c.idle_pct)),
    column(CPU, "steal", "", |p| cpu(p, |c| c.steal_pct)),
    column(REQUEST, "CPU", "ns", |p| p.cpu_ns_per_io),
    column(REQUEST, "switches", "", |p| p.switches_per_io),
    column("Waiting", "all for I/O, %", "", |p| p.io_pressure_full_pct),
    column("Waiting", "limit used, %", "", |p| p.io_limit_used_pct),
];

/// The table; nothing without points.
pub(crate) fn section(study: &StudyDocument) -> Option<Markup> {
    if study.points.is_empty() {
        return None;
    }
    let all: Vec<&StudyPoint> = study.points.iter().collect();
    let factors = varying(study, &all);
    let columns: Vec<&Column> = COLUMNS
        .iter()
        .filter(|column| all.iter().any(|point| (column.of)(point).is_some()))
        .collect();
    Some(html! {
        p.say {
            "Every point in the study's order. A click on a head sorts by it. Device columns are "
            "means over the replicates."
        }
        div.scroll.tall.bleed tabindex="0" role="region" aria-label="Every point" {
            table.wide data-sort {
                thead { (groups(&factors, &columns)) (heads(&factors, &columns)) }
                tbody { @for point in &all { (row(study, point, &factors, &columns)) } }
            }
        }
        (unknown(&study.unknown))
    })
}

/// The row of names above groups of columns.
fn groups(factors: &[&FactorLevels], columns: &[&Column]) -> Markup {
    let mut spans: Vec<(&str, usize)> = Vec::new();
    for column in columns {
        match spans.last_mut() {
            Some((group, span)) if *group == column.group => *span += 1,
            _ => spans.push((column.group, 1)),
        }
    }
    // The figure and its count belong to the first group.
    if let Some((_, span)) = spans.first_mut() {
        *span += 3;
    }
    html! {
        tr.groups {
            th.sticky colspan=(factors.len().max(1)) {}
            @for (group, span) in spans { th colspan=(span) { (group) } }
            th {}
        }
    }
}

fn heads(factors: &[&FactorLevels], columns: &[&Column]) -> Markup {
    html! {
        tr {
            @if factors.is_empty() { th { "Point" } }
            @for factor in factors { th { (factor_words(&factor.factor)) } }
            th.n { "IOPS" } th.n { "95 %" } th.n { "n" }
            @for column in columns { th.n { (column.head) } }
            th { "Cautions" }
        }
    }
}

fn row(
    study: &StudyDocument,
    point: &StudyPoint,
    factors: &[&FactorLevels],
    columns: &[&Column],
) -> Markup {
    let shown = words::shown(point.value, point.value_ci95, "");
    let wide = point
        .value_ci95
        .is_none_or(|[low, high]| (high - low) / 2.0 > study.precision * point.value.abs());
    let interval = point.value_ci95.map(|ci95| words::interval(ci95, &point.unit));
    html! {
        tr title=(point.title) data-point=(point.id) {
            @if factors.is_empty() { td { (point.title) } }
            @for factor in factors { (level_cell(point, factor)) }
            td.n data-v=(point.value) title=(words::exact(point.value)) {
                b { (shown.text) }
            }
            td.n.warn[wide] title=[interval] {
                @match shown.half { Some(half) => { "\u{b1} " (half) }, None => "none" }
            }
            td.n { (point.value_n) }
            @for column in columns { (number_cell(column, point)) }
            td { (parts::verdicts(&point.verdicts)) }
        }
    }
}

fn level_cell(point: &StudyPoint, factor: &FactorLevels) -> Markup {
    let level = point.levels.iter().find(|at| at.factor == factor.factor);
    html! { td data-v=(place(point, factor)) { (level.map_or("", |at| at.level.as_str())) } }
}

fn number_cell(column: &Column, point: &StudyPoint) -> Markup {
    html! {
        @match (column.of)(point) {
            Some(number) => td.n data-v=(number) { (words::value(number, column.unit)) },
            None => td.n {},
        }
    }
}
