//! The ladder: every rung with its interval, one chart per unit, coloured by layer.

use iostrata_run::{ProbeDocument, Rung};
use iostrata_spec::{Better, Layer};
use maud::{Markup, html};

use super::parts::{self, cell, number, table, text};
use crate::RunView;
use crate::chart::{Bar, Charts, bars, id_of, layer_colour};
use crate::view::{UnitGroup, ladder};
use crate::words;

/// Charts of the ladder and the table behind them.
pub(crate) fn section(view: &RunView<'_>, probe: &ProbeDocument, charts: &mut Charts) -> Markup {
    let groups = ladder(view, probe);
    let mut layers: Vec<Layer> = probe.rungs.iter().map(|rung| rung.layer).collect();
    layers.sort();
    layers.dedup();
    html! {
        p.say {
            "What each step of the path delivers, from the device up. Whiskers are 95 % intervals; "
            "a star marks a figure that carries a caution. Of what is measured over a range only "
            "the ends are here, of what is compared only the best; the rest follows below."
        }
        ul.layers { @for layer in layers { li { (parts::layer(layer)) } } }
        @for group in &groups { (unit_chart(group, charts)) }
        details data-print { summary { "All rungs as a table" } (rungs(&probe.rungs)) }
    }
}

fn unit_chart(group: &UnitGroup<'_>, charts: &mut Charts) -> Markup {
    let rows: Vec<Bar<'_>> = group.rungs.iter().map(|rung| bar(rung)).collect();
    let name = format!("ladder-{}", id_of(group.unit));
    let chart = bars(&name, group.unit, &axis_title(group.unit), &rows);
    parts::figure(charts, &chart, &unit_title(group.unit), better(group.better))
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
            cell(words::value(rung.value, &rung.unit)),
            parts::interval(rung.value_ci95, &rung.unit),
            cell(rung.value_n.to_string()),
            parts::verdicts(&rung.verdicts),
        ]
    };
    table(&columns, rungs.iter().map(row).collect())
}
