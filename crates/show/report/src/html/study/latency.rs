//! Latencies of every point: mean with interval, and percentiles.

use iostrata_run::{StudyDocument, StudyOp, StudyPoint};
use iostrata_stats::LatencyUs;
use maud::{Markup, html};

use crate::html::parts::{cell, number, text, wide};
use crate::words;

/// The table, folded; nothing when no point has requests.
pub(crate) fn section(study: &StudyDocument) -> Option<Markup> {
    let rows: Vec<Vec<Markup>> = study.points.iter().flat_map(rows).collect();
    if rows.is_empty() {
        return None;
    }
    let columns = [
        text("Point"),
        text("Requests"),
        number("per second"),
        number("Mean"),
        number("95 % interval"),
        number("p50"),
        number("p95"),
        number("p99"),
        number("p99.9"),
        number("Slowest"),
        number("n"),
    ];
    Some(html! {
        p.say {
            "Service latency over all replicates of a point; response latency, from the scheduled "
            "start, where requests were rated and for flushes."
        }
        details data-print { summary { "Every latency as a table" } (wide(&columns, rows)) }
    })
}

fn rows(point: &StudyPoint) -> Vec<Vec<Markup>> {
    let mut rows = Vec::new();
    for (name, op) in point.ops.named() {
        rows.push(row(point, name.to_owned(), op, &op.latency_us, true));
        if let Some(response) = &op.response_us {
            rows.push(row(point, format!("{name}, response"), op, response, false));
        }
    }
    rows
}

fn row(
    point: &StudyPoint,
    name: String,
    op: &StudyOp,
    latency: &LatencyUs,
    is_service: bool,
) -> Vec<Markup> {
    let us = |us: f64| html! { span title=(words::exact(us)) { (words::value(us, "us")) } };
    let ci95 = op.latency_us_mean_ci95.filter(|_| is_service);
    vec![
        cell(&point.title),
        cell(name),
        crate::html::parts::value(op.iops, op.iops_ci95, ""),
        us(latency.mean),
        cell(ci95.map_or(String::new(), |ci95| words::interval(ci95, "us"))),
        us(latency.p50),
        us(latency.p95),
        us(latency.p99),
        us(latency.p99_9),
        us(latency.max),
        cell(op.iops_n.to_string()),
    ]
}
