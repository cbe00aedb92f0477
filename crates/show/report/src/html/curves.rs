//! Curves: throughput and latency over load, files, flush rate.

use iostrata_run::{Curve, CurvePoint, ProbeDocument};
use maud::{Markup, html};

use super::ladder::axis_title;
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
    let name = id_of(&first.name);
    let heading = match family {
        [one] => one.title.clone(),
        _ => format!("{} over {}", words::title(&axis_title(&first.unit)), first.axis),
    };
    let over_x = lines(&name, &first.axis, &axis_title(&first.unit), &value_lines(family));
    let latency = latency_lines(family);
    let x_title = if over_value(first) { axis_title(&first.unit) } else { first.axis.clone() };
    html! {
        h3 { (heading) }
        @for curve in family { p.say { (curve.text) } }
        @if latency.is_empty() {
            (parts::figure(charts, &over_x, "", VALUE_SAYS))
        } @else {
            @let latency = lines(&format!("{name}-latency"), &x_title, "latency, us", &latency);
            div.pair {
                (parts::figure(charts, &over_x, &format!("Over {}", first.axis), VALUE_SAYS))
                (parts::figure(charts, &latency, &format!("Latency over {x_title}"), LATENCY_SAYS))
            }
        }
        details data-print { summary { "As a table" } (points(family)) }
    }
}

/// Latency is drawn over throughput where the axis is load; else over the axis itself.
fn over_value(curve: &Curve) -> bool {
    curve.axis.contains("in flight")
}

const VALUE_SAYS: &str = "Whiskers are 95 % intervals; a large dot marks the knee.";
const LATENCY_SAYS: &str = "Solid is the mean, dotted the 99th percentile.";

fn value_lines<'a>(family: &[&'a Curve]) -> Vec<Line<'a>> {
    let line = |(n, curve): (usize, &&'a Curve)| Line {
        name: &curve.title,
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
        knee: curve.knee_x,
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
                Some(Mark { x, y: of(point)?, ci95: None, hover: hover(curve, point) })
            };
            let marks: Vec<Mark> = curve.points.iter().filter_map(mark).collect();
            let at_knee = |point: &&CurvePoint| Some(point.x) == curve.knee_x;
            let knee = curve.points.iter().find(at_knee).filter(|_| !dashed);
            let knee = knee.map(|point| if over_value(curve) { point.value } else { point.x });
            let (name, colour) = (curve.title.as_str(), line_colour(n));
            (marks.len() > 1).then_some(Line { name, colour, dashed, marks, knee })
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
    let columns = [
        text("Curve"),
        number("Place"),
        number("Value"),
        number("95 % interval"),
        number("n"),
        number("Mean latency"),
        number("99th percentile"),
    ];
    let latency = |us: Option<f64>| cell(us.map_or(String::new(), |us| words::value(us, "us")));
    let row = |curve: &Curve, point: &CurvePoint| {
        vec![
            cell(&curve.title),
            cell(format!("{} {}", words::value(point.x, ""), curve.axis)),
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
