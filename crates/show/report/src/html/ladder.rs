//! The ladder: rungs with their intervals, one chart per depth, coloured by layer.

use iostrata_run::{ProbeDocument, Rung, Unknown};
use iostrata_spec::{Better, Layer};
use maud::{Markup, html};

use super::parts::{self, cell, number, table, text};
use crate::chart::{Bar, Charts, bars, layer_colour};
use crate::rows::{Depth, LADDER};
use crate::words;

/// Charts of the ladder and the table behind them.
pub(crate) fn section(probe: &ProbeDocument, charts: &mut Charts) -> Markup {
    let rows = LADDER.iter().flat_map(|depth| depth.rows(probe));
    let mut layers: Vec<Layer> = rows.filter_map(|row| Some(row.rung?.layer)).collect();
    layers.sort();
    layers.dedup();
    html! {
        p.say {
            "What each step of the path delivers, side by side only where equally many requests "
            "are in flight. Colours are layers, here and everywhere. Whiskers are 95 % intervals; "
            "a star marks a figure of which less may be concluded."
        }
        ul.layers { @for layer in layers { li { (parts::layer(layer)) } } }
        div.ladder { @for depth in &LADDER { (depth_chart(depth, probe, charts)) } }
        (unknown(&probe.unknown))
        details data-print { summary { "All rungs as a table" } (rungs(&probe.rungs)) }
    }
}

/// The rungs of a depth; one alone is said and not drawn.
fn depth_chart(depth: &Depth, probe: &ProbeDocument, charts: &mut Charts) -> Markup {
    let known: Vec<(&'static str, &Rung)> =
        depth.rows(probe).filter_map(|row| Some((row.title, row.rung?))).collect();
    let axis = if depth.unit == "/s" { "per second" } else { depth.unit };
    match known.as_slice() {
        [] => html! {},
        [(title, rung)] => html! {
            p {
                b { (depth.title) } ": " (title) " "
                (parts::value(rung.value, rung.value_ci95, &rung.unit))
                (parts::verdicts(&rung.verdicts))
            }
        },
        several => {
            let rows: Vec<Bar<'_>> =
                several.iter().map(|&(title, rung)| Bar { title, ..bar(rung) }).collect();
            let chart = bars(&format!("ladder-{}", depth.name), depth.unit, axis, &rows);
            parts::figure(charts, &chart, depth.title, "")
        }
    }
}

/// What is not known, with the reason of each.
pub(crate) fn unknown(all: &[Unknown]) -> Markup {
    html! {
        @if !all.is_empty() {
            h3 { "Not known" }
            dl.facts {
                @for one in all {
                    div data-unknown=(one.name) {
                        dt { (one.title) }
                        dd { (words::because(one.why, one.between, &one.unit)) }
                    }
                }
            }
        }
    }
}

/// The row of a rung.
pub(crate) fn bar(rung: &Rung) -> Bar<'_> {
    Bar {
        title: &rung.title,
        value: rung.value,
        ci95: rung.value_ci95,
        n: rung.value_n,
        colour: layer_colour(rung.layer),
        verdicts: Some(&rung.verdicts),
    }
}

/// A unit as the title of a chart: `reads/s` is `Reads per second`.
pub(crate) fn unit_title(unit: &str) -> String {
    match unit {
        "us" => "Latency in microseconds".to_owned(),
        "ns" => "Cost in nanoseconds".to_owned(),
        "bytes/s" => "Bytes per second".to_owned(),
        unit => words::title(&axis_title(unit)),
    }
}

/// A unit as the title of an axis: `reads/s` is `reads per second`.
pub(crate) fn axis_title(unit: &str) -> String {
    unit.strip_suffix("/s").map_or(unit.to_owned(), |what| format!("{what} per second"))
}

/// Which direction is good.
pub(crate) fn better(better: Better) -> &'static str {
    match better {
        Better::Higher => "Longer is better.",
        Better::Lower => "Shorter is better.",
    }
}

fn rungs(rungs: &[Rung]) -> Markup {
    let columns = [
        text("Rung"),
        text("Layer"),
        number("Value"),
        number("95 % interval"),
        number("n"),
        text("Cautions"),
    ];
    let row = |rung: &Rung| {
        vec![
            cell(&rung.title),
            parts::layer(rung.layer),
            cell(words::shown(rung.value, rung.value_ci95, &rung.unit).text),
            parts::interval(rung.value_ci95, &rung.unit),
            cell(rung.value_n.to_string()),
            parts::verdicts(&rung.verdicts),
        ]
    };
    table(&columns, rungs.iter().map(row).collect())
}
