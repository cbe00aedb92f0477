//! Losses between rungs that do identical work, or the statement that there is none.

use iostrata_run::{Loss, ProbeDocument};
use maud::{Markup, html};

use super::parts::{self, cell, number, table, text};
use crate::chart::{Bar, Charts, bars, layer_colour};
use crate::view::rung_title;
use crate::words;

/// The chart of losses with its table, or a plain statement.
pub(crate) fn section(probe: &ProbeDocument, charts: &mut Charts) -> Markup {
    if probe.losses.is_empty() {
        let sure = probe.incomplete.is_none() && probe.undecided.is_empty() && probe.compared > 0;
        return html! {
            p.lead.good[sure] { (words::no_loss(probe)) }
            (undecided(probe))
        };
    }
    let titles: Vec<String> = probe.losses.iter().map(|loss| title(probe, loss)).collect();
    let rows: Vec<Bar<'_>> =
        probe.losses.iter().zip(&titles).map(|(loss, title)| bar(loss, title)).collect();
    let chart = bars("losses", "percent", "percent lost", &rows);
    let says = "Share of what the lower rung delivers that the upper one does not, with its paired \
                95 % interval. Both do identical work and differ in one layer.";
    let one = rows.len() == 1;
    html! {
        // One bar is not a chart.
        @if !one { (parts::figure(charts, &chart, "Lost between two rungs", says)) }
        (losses(probe, &probe.losses))
        (undecided(probe))
    }
}

fn title(probe: &ProbeDocument, loss: &Loss) -> String {
    let layer = words::title(loss.layer.title());
    format!("{layer}: {}", rung_title(probe, &loss.to))
}

fn bar<'a>(loss: &'a Loss, title: &'a str) -> Bar<'a> {
    Bar {
        title,
        value: loss.loss_pct,
        ci95: loss.loss_pct_ci95,
        n: loss.loss_pct_n,
        colour: layer_colour(loss.layer),
        verdicts: None,
    }
}

/// Comparisons whose figures vary too much.
fn undecided(probe: &ProbeDocument) -> Markup {
    html! {
        @if !probe.undecided.is_empty() {
            h3 { "Not decided" }
            p.say { "Their intervals allow a loss that would matter and do not show one." }
            (losses(probe, &probe.undecided))
        }
    }
}

fn losses(probe: &ProbeDocument, all: &[Loss]) -> Markup {
    let columns = [
        text("What it says"),
        text("From"),
        text("To"),
        text("Layer"),
        number("Loss"),
        number("95 % interval"),
        number("Pairs"),
        text("Basis"),
    ];
    let row = |loss: &Loss| {
        vec![
            cell(&loss.text),
            cell(rung_title(probe, &loss.from)),
            cell(rung_title(probe, &loss.to)),
            parts::layer(loss.layer),
            cell(words::value(loss.loss_pct, "percent")),
            parts::interval(loss.loss_pct_ci95, "percent"),
            cell(loss.loss_pct_n.to_string()),
            cell(words::title(&loss.basis)),
        ]
    };
    table(&columns, all.iter().map(row).collect())
}
