//! Every measured point over time, one at a time, and every replicate as a table.

use iostrata_run::{OpFigures, Replicate, StreamFigures};
use iostrata_spec::Layer;
use maud::{Markup, html};

use super::parts::{self, cell, number, place, table, text};
use crate::RunView;
use crate::chart::{Chart, Charts, TimePoint, time_series};
use crate::words;

/// The chart with its choice of points; nothing when nothing was measured.
pub(crate) fn section(view: &RunView<'_>, charts: &mut Charts) -> Option<Markup> {
    let mut measured = view.measured();
    measured.sort_by_key(|(point, _)| point.layer == Layer::Host);
    let mut choice: Vec<(String, Chart)> = Vec::new();
    for (point, replicates) in measured {
        let time = TimePoint { point, replicates };
        if let Some(chart) = time_series("time", &time) {
            choice.push((time.point.title.clone(), chart));
        }
    }
    let (titles, specs): (Vec<String>, Vec<Chart>) = choice.into_iter().unzip();
    let height = specs.first()?.height;
    charts.add_choice("time", &specs);
    Some(html! {
        p.say {
            "Completed requests per slice of time and their mean latency, every replicate of a "
            "rung. A steady rung is a flat line; a stall or a burst that ends shows here."
        }
        (parts::choice("time", "rung", &titles))
        figure { (place("time", height, "Requests and latency over time")) }
        details { summary { "Every replicate as a table" } (replicates(view)) }
    })
}

fn replicates(view: &RunView<'_>) -> Markup {
    let columns = [
        text("Point"),
        text("Requests"),
        number("Completed"),
        number("Per second"),
        number("Mean"),
        number("p50"),
        number("p99"),
        number("p99.9"),
        number("Slowest"),
        text("Cautions"),
    ];
    let rows = view.replicates().flat_map(|replicate| {
        replicate.streams.iter().flat_map(move |stream| stream_rows(replicate, stream))
    });
    table(&columns, rows.collect())
}

fn stream_rows(replicate: &Replicate, stream: &StreamFigures) -> Vec<Vec<Markup>> {
    stream.ops.named().map(|(name, op)| op_row(replicate, stream, name, op)).collect()
}

fn op_row(
    replicate: &Replicate,
    stream: &StreamFigures,
    name: &str,
    op: &OpFigures,
) -> Vec<Markup> {
    let us = |latency: f64| cell(words::value(latency, "us"));
    let mut verdicts = stream.verdicts.clone();
    verdicts.merge(&replicate.verdicts);
    vec![
        cell(format!("{}, replicate {}", replicate.point.title, replicate.replicate + 1)),
        cell(if stream.name == name {
            name.to_owned()
        } else {
            format!("{}: {name}", stream.name)
        }),
        cell(op.ios.to_string()),
        parts::value(op.iops.value, op.iops.ci95, "/s"),
        us(op.latency_us.mean),
        us(op.latency_us.p50),
        us(op.latency_us.p99),
        us(op.latency_us.p99_9),
        us(op.latency_us.max),
        parts::verdicts(&verdicts),
    ]
}
