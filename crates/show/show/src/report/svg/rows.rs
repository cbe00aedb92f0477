//! Charts of rows: bars, ratios, parts of a whole.
//!
//! Invariant: what lies beyond the axis is cut there and named.

use iostrata_stats::Interval;
use maud::{Markup, html};

use super::axis::Axis;
use crate::report::chart::{Bar, Branch, Stack, reach};
use crate::report::colour::Colour;
use crate::report::words;

/// Pixels that a row has on a phone.
const ROW_WIDTH: f64 = 200.0;

/// Steps of their axis, about.
const STEPS: f64 = 5.0;

/// The vertical lines of an axis behind a row.
fn grid(axis: &Axis, ticks: &[(f64, String)]) -> Markup {
    html! {
        @for (tick, _) in ticks {
            @let x = axis.percent(*tick);
            line.grid x1=(x) x2=(x) y1="-6" y2="100%" {}
        }
    }
}

/// The labels below rows or lines.
pub(super) fn labels(axis: &Axis, ticks: &[(f64, String)], y: f64) -> Markup {
    html! {
        @for (tick, label) in ticks {
            @let at = axis.at(*tick);
            @let anchor = if at < 0.04 { "start" } else if at > 0.96 { "end" } else { "middle" };
            text x=(axis.percent(*tick)) y=(y) text-anchor=(anchor) { (label) }
        }
    }
}

/// The axis below rows.
fn foot(axis: &Axis, ticks: &[(f64, String)], title: &str) -> Markup {
    html! {
        div.row { svg height="16" { (labels(axis, ticks, 12.0)) } }
        p.axis { (title) }
    }
}

pub(super) fn bars(title: &str, rows: &[Bar]) -> (Markup, Option<String>) {
    let figures: Vec<_> = rows.iter().map(|row| (row.value, row.ci95)).collect();
    let axis = Axis::linear(reach(&figures));
    let ticks = axis.apart(&axis.labelled(STEPS), ROW_WIDTH);
    let cut: Vec<&str> =
        rows.iter().filter(|row| row.value > axis.high).map(|row| row.title.as_str()).collect();
    let ends = rows.iter().filter(|row| row.ci95.is_some_and(|ci95| axis.cuts(ci95))).count();
    let cut = match (cut.is_empty(), ends) {
        (false, _) => Some(format!("Cut off at the axis: {}.", cut.join(", "))),
        (true, 0) => None,
        (true, n) => Some(format!("The intervals of {n} end beyond the axis.")),
    };
    let body = html! {
        div.rows {
            @for (n, row) in rows.iter().enumerate() {
                div.row data-at={ "0." (n) } title=(row.hover) {
                    span.name { (row.title) }
                    svg height="20" {
                        (grid(&axis, &ticks))
                        @let ends = [0.0, row.value.min(axis.high)];
                        @let [from, to] = ends.map(|end| axis.at(end) * 100.0);
                        rect x={ (format!("{:.2}%", from.min(to))) } y="3" height="14"
                            width=(format!("{:.2}%", (to - from).abs()))
                            style={ "fill:" (row.colour.css()) } {}
                        @if row.value > axis.high {
                            svg x="97%" overflow="visible" {
                                path.break d="M0,0l5,5-5,5 5,5-5,5" {}
                            }
                        }
                        (whisker(&axis, row.ci95))
                    }
                    span.value { b { (row.shown) } " " (row.spread) }
                }
            }
            (foot(&axis, &ticks, title))
        }
    };
    (body, cut)
}

/// A horizontal interval.
/// Pixels of a row of bars in a file of its own.
const PLACED_ROW: f64 = 22.0;

/// Bars at fixed places: names, bars and figures in columns of these widths. Gives their height,
/// too.
pub(super) fn placed_bars(rows: &[Bar], [names, bars]: [f64; 2]) -> (Markup, f64) {
    let figures: Vec<_> = rows.iter().map(|row| (row.value, row.ci95)).collect();
    let axis = Axis::linear(reach(&figures));
    let row = |(n, row): (usize, &Bar)| {
        let [from, to] = [0.0, row.value.min(axis.high)].map(|end| axis.at(end) * bars);
        let (left, width) = (from.min(to), (to - from).abs());
        html! {
            g transform={ "translate(0 " (PLACED_ROW * n as f64) ")" } {
                text y="14" { (row.title) }
                svg x=(names) width=(bars) height="20" overflow="visible" {
                    rect x=(format!("{left:.1}")) y="3" height="14" width=(format!("{width:.1}"))
                        style={ "fill:" (row.colour.css()) } {}
                    (whisker(&axis, row.ci95))
                }
                text x=(names + bars + 10.0) y="14" { (row.shown) " " (row.spread) }
            }
        }
    };
    let body = html! { @for one in rows.iter().enumerate() { (row(one)) } };
    (body, PLACED_ROW * rows.len() as f64)
}

fn whisker(axis: &Axis, ci95: Option<Interval>) -> Markup {
    let Some([low, high]) = ci95 else { return html! {} };
    let [from, to] = [low, high].map(|end| axis.percent(end.clamp(axis.low, axis.high)));
    html! {
        line.whisker x1=(from) x2=(to) y1="10" y2="10" {}
        @if low >= axis.low { line.whisker x1=(from) x2=(from) y1="6" y2="14" {} }
        @if high <= axis.high { line.whisker x1=(to) x2=(to) y1="6" y2="14" {} }
    }
}

pub(super) fn ratios(title: &str, rows: &[Branch]) -> (Markup, Option<String>) {
    let of = |row: &Branch| [row.ci95.unwrap_or([row.ratio; 2]), [row.ratio; 2]];
    let all = rows.iter().flat_map(|row| of(row).into_iter().chain(row.range)).flatten();
    let all: Vec<f64> = all.filter(|end| end.is_finite() && *end > 0.0).collect();
    let (axis, ticks) = Axis::of_ratios(&all);
    let ticks = axis.apart(&ticks, ROW_WIDTH);
    let one = axis.percent(1.0);
    let names: Vec<&str> = rows
        .iter()
        .filter(|row| of(row).into_iter().chain(row.range).any(|ends| axis.cuts(ends)))
        .map(|row| row.title.as_str())
        .collect();
    let cut = (!names.is_empty()).then(|| format!("Beyond the axis: {}.", names.join(", ")));
    let body = html! {
        div.rows {
            @for (n, row) in rows.iter().enumerate() {
                div.row data-at={ "0." (n) } title=(row.hover) {
                    span.name { (row.title) }
                    svg height="20" style={ "--c:" (row.colour.css()) } {
                        (grid(&axis, &ticks))
                        line.one x1=(one) x2=(one) y1="-6" y2="100%" {}
                        @if let Some([low, high]) = row.range {
                            @let [from, to] =
                                [low, high].map(|end| axis.percent(end.clamp(axis.low, axis.high)));
                            line.band x1=(from) x2=(to) y1="10" y2="10" {}
                        }
                        g.own { (whisker(&axis, row.ci95)) }
                        @let at = axis.percent(row.ratio.clamp(axis.low, axis.high));
                        circle cx=(at) cy="10" r="4.5" {}
                    }
                    span.value {
                        b { (words::times(row.ratio)) }
                        @if let Some(ci95) = row.ci95 { " " (words::times_range(ci95, row.ratio)) }
                    }
                }
            }
            (foot(&axis, &ticks, title))
        }
    };
    (body, cut)
}

pub(super) fn shares(legend: &[(Colour, String)], stacks: &[Stack]) -> Markup {
    let axis = Axis::linear([0.0, 100.0]);
    let ticks: Vec<(f64, String)> =
        [0.0, 25.0, 50.0, 75.0, 100.0].map(|tick| (tick, format!("{tick} %"))).into();
    let is_new = |n: usize| n == 0 || stacks[n - 1].group != stacks[n].group;
    html! {
        ul.layers { @for (colour, name) in legend {
            li { span.layer style={ "--c:" (colour.css()) } { (name) } }
        } }
        div.rows.shares {
            @for (n, stack) in stacks.iter().enumerate() {
                @if is_new(n) && !stack.group.is_empty() { p.group { (stack.group) } }
                div.row {
                    span.name { (stack.title) }
                    svg height="18" {
                        (grid(&axis, &ticks))
                        @for (colour, from, share, hover) in placed(stack) {
                            rect x=(format!("{from:.2}%")) y="1" height="15"
                                width=(format!("{share:.2}%"))
                                style={ "fill:" (colour.css()) } data-at=(n) { title { (hover) } }
                        }
                    }
                }
            }
            div.row { span.name {} svg height="16" { (labels(&axis, &ticks, 12.0)) } }
        }
    }
}

/// The parts of a whole as colour, start and size in percent, hover.
fn placed(stack: &Stack) -> Vec<(Colour, f64, f64, &str)> {
    let whole: f64 = stack.parts.iter().map(|part| part.1).sum();
    let mut from = 0.0;
    let mut all = Vec::new();
    for (colour, size, hover) in &stack.parts {
        let share = size / whole.max(1e-12) * 100.0;
        all.push((*colour, from, share, hover.as_str()));
        from += share;
    }
    all
}
