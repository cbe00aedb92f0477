//! Curves: throughput and latency over load, files, flush rate.

use iostrata_run::{Curve, CurvePoint, ProbeDocument};
use maud::{Markup, html};

use super::ladder::{self, axis_title};
use super::parts::{self, cell, number, table, text};
use crate::chart::{Charts, Line, Mark, id_of, line_colour, lines};
use crate::view::curve_families;
use crate::words;

/// Every curve; nothing when there is none.
pub(crate) fn section(probe: &ProbeDocument, charts: &mut Charts) -> Option<Markup> {
    if probe.curves.is_empty() {
        return None;
    }
    let families = curve_families(&probe.curves);
    Some(html! { @for family in &families { (family_charts(family, charts)) } })
}

/// The charts of curves that share axis and unit.
fn family_charts(family: &[&Curve], charts: &mut Charts) -> Markup {
    let Some(first) = family.first() else { return html! {} };
    html! {
        h3 { (heading(first, family.len())) }
        @for curve in family {
            p.say { @if family.len() > 1 { b { (short(curve)) ". " } } (curve.text) }
        }
        @if first.unit == "us" {
            (latency_chart(first, family, "", charts))
        } @else {
            @let title = format!("Latency over {}", latency_axis(first));
            div.pair {
                (value_chart(first, family, charts))
                (latency_chart(first, family, &title, charts))
            }
        }
        details data-print { summary { "As a table" } (points(family)) }
    }
}

fn heading(first: &Curve, curves: usize) -> String {
    if curves == 1 {
        return first.title.clone();
    }
    if first.unit == "us" {
        return format!("Latency over {}", first.axis);
    }
    format!("{} over {}", ladder::unit_title(&first.unit), first.axis)
}

fn value_chart(first: &Curve, family: &[&Curve], charts: &mut Charts) -> Markup {
    let values = value_lines(family);
    let chart = lines(&id_of(&first.name), &first.axis, &axis_title(&first.unit), &values);
    parts::figure(charts, &chart, &format!("Over {}", first.axis), VALUE_SAYS)
}

/// Mean and 99th percentile; nothing where no latency is known.
fn latency_chart(first: &Curve, family: &[&Curve], title: &str, charts: &mut Charts) -> Markup {
    let all = latency_lines(family);
    if all.is_empty() {
        return html! {};
    }
    let name = format!("{}-latency", id_of(&first.name));
    let chart = lines(&name, &latency_axis(first), "latency, us", &all);
    parts::figure(charts, &chart, title, LATENCY_SAYS)
}

fn latency_axis(curve: &Curve) -> String {
    if over_value(curve) { axis_title(&curve.unit) } else { curve.axis.clone() }
}

/// The curve's name without its axis: `4 KiB random reads` over requests in flight.
fn short(curve: &Curve) -> &str {
    curve.title.split(" over ").next().unwrap_or(&curve.title)
}

/// Latency is drawn over throughput where the axis is load; else over the axis itself.
fn over_value(curve: &Curve) -> bool {
    curve.axis.contains("in flight")
}

/// The point that the document marks, and what it is on this axis. The last point of a curve over
/// load is no knee: it was still rising there.
fn marked(curve: &Curve) -> Option<(f64, &'static str)> {
    let x = curve.knee_x?;
    let last = curve.points.last().is_some_and(|point| point.x == x);
    match curve.axis.as_str() {
        "files" => Some((x, "enough")),
        axis if axis.starts_with("pages") => Some((x, "carried")),
        _ => (!last).then_some((x, "knee")),
    }
}

const VALUE_SAYS: &str = "Whiskers are 95 % intervals.";
const LATENCY_SAYS: &str = "Solid is the mean, dotted the 99th percentile.";

fn value_lines<'a>(family: &[&'a Curve]) -> Vec<Line<'a>> {
    let line = |(n, curve): (usize, &&'a Curve)| Line {
        name: short(curve),
        colour: line_colour(n),
        dashed: false,
        marks: curve
            .points
            .iter()
            .map(|point| Mark {
                x: point.x,
                y: point.value,
                ci95: point.value_ci95,
                hover: hover(curve, point),
            })
            .collect(),
        marked: marked(curve),
    };
    family.iter().enumerate().map(line).collect()
}

/// Mean and 99th percentile: over the value where that is a rate, else over the axis.
fn latency_lines<'a>(family: &[&'a Curve]) -> Vec<Line<'a>> {
    let mut all = Vec::new();
    for (n, curve) in family.iter().enumerate() {
        let line = |dashed: bool, of: fn(&CurvePoint) -> Option<f64>| {
            let mark = |point: &CurvePoint| {
                let x = if over_value(curve) { point.value } else { point.x };
                let y = of(point)?;
                // The mean of a latency curve is its value, which has an interval.
                let ci95 = point.value_ci95.filter(|_| curve.unit == "us" && y == point.value);
                Some(Mark { x, y, ci95, hover: hover(curve, point) })
            };
            let marks: Vec<Mark> = curve.points.iter().filter_map(mark).collect();
            let at = |(x, word): (f64, &'static str)| {
                let point = curve.points.iter().find(|point| point.x == x)?;
                Some((if over_value(curve) { point.value } else { x }, word))
            };
            let marked = marked(curve).filter(|_| !dashed).and_then(at);
            let (name, colour) = (short(curve), line_colour(n));
            (marks.len() > 1).then_some(Line { name, colour, dashed, marks, marked })
        };
        all.extend(line(false, |point| point.latency_mean_us));
        all.extend(line(true, |point| point.latency_p99_us));
    }
    all
}

fn hover(curve: &Curve, point: &CurvePoint) -> String {
    let place = format!("{}, {} {}", curve.title, words::value(point.x, ""), curve.axis);
    let mut text = crate::chart::Hover {
        title: &place,
        value: point.value,
        unit: &curve.unit,
        ci95: point.value_ci95,
        n: point.value_n,
        verdicts: None,
    }
    .text();
    for (name, latency) in [("mean", point.latency_mean_us), ("p99", point.latency_p99_us)] {
        if let Some(latency) = latency {
            let (shown, exact) = (words::value(latency, "us"), words::exact(latency));
            text.push_str(&format!("<br>{name} {shown}  ({exact})"));
        }
    }
    text
}

fn points(family: &[&Curve]) -> Markup {
    let axis = family.first().map_or(String::new(), |curve| words::title(&curve.axis));
    let columns = [
        text("Curve"),
        number(&axis),
        number("Value"),
        number("95 % interval"),
        number("n"),
        number("Mean latency"),
        number("99th percentile"),
    ];
    let latency = |us: Option<f64>| cell(us.map_or(String::new(), |us| words::value(us, "us")));
    let row = |curve: &Curve, point: &CurvePoint| {
        vec![
            cell(short(curve)),
            cell(words::value(point.x, "")),
            cell(words::value(point.value, &curve.unit)),
            parts::interval(point.value_ci95, &curve.unit),
            cell(point.value_n.to_string()),
            latency(point.latency_mean_us),
            latency(point.latency_p99_us),
        ]
    };
    let rows = family
        .iter()
        .flat_map(|curve| curve.points.iter().map(move |point| row(curve, point)))
        .collect();
    table(&columns, rows)
}
