//! Curves over load, files or flush rate, and rungs that were measured in turns to be compared.

use iostrata_plan::Layer;
use iostrata_run::{Curve, CurvePoint, ProbeDocument, Rung};

use super::{bar, better};
use crate::report::RunView;
use crate::report::cell::{Text, count, figure, interval, optional, text, value};
use crate::report::chart::{Chart, Course, Hover, Line, Lines, Mark, Plot, Stroke, id_of};
use crate::report::colour::Colour;
use crate::report::document::{Block, Blocks, On, Panels, Style, Table};
use crate::report::words;

/// Every curve; nothing when there is none.
pub(super) fn curves(probe: &ProbeDocument) -> Option<Blocks> {
    let mut families: Vec<Vec<&Curve>> = Vec::new();
    for curve in &probe.curves {
        let same = |family: &&mut Vec<&Curve>| {
            family.first().is_some_and(|one| one.axis == curve.axis && one.unit == curve.unit)
        };
        match families.iter_mut().find(same) {
            Some(family) => family.push(curve),
            None => families.push(vec![curve]),
        }
    }
    let mut body = Blocks::new();
    for family in &families {
        if let Some(first) = family.first() {
            draw(&mut body, first, family);
        }
    }
    (!families.is_empty()).then_some(body)
}

/// The charts of curves that share axis and unit, which share a chart.
fn draw(body: &mut Blocks, first: &Curve, family: &[&Curve]) {
    let several = family.len() > 1;
    let heading = match (several, first.unit.as_str()) {
        (false, _) => first.title.clone(),
        (true, "us") => format!("Latency over {}", first.axis),
        (true, unit) => format!("{} over {}", unit_title(unit), first.axis),
    };
    body.title(On::FILES, heading);
    for curve in family {
        let name = if several { format!("{}. ", short(curve)) } else { String::new() };
        body.say(Text::default().strong(name).plain(curve.text.as_str()));
    }
    let says = "Solid is the mean, dotted the 99th percentile.";
    let latencies = latency_lines(family);
    let latencies = (!latencies.is_empty()).then(|| {
        let title = match first.unit.as_str() {
            "us" => String::new(),
            _ => format!("Latency over {}", latency_axis(first)),
        };
        let plot = Plot::Lines(Lines::new(latency_axis(first), "latency, us", latencies));
        Chart::new(format!("{}-latency", id_of(&first.name)), title, plot).says(says)
    });
    let mut charts = Vec::new();
    if first.unit != "us" {
        let plot = Plot::Lines(Lines::new(
            first.axis.clone(),
            axis_title(&first.unit),
            value_lines(family),
        ));
        let chart = Chart::new(id_of(&first.name), format!("Over {}", first.axis), plot);
        charts.push(chart.says("Whiskers are 95 % intervals."));
    }
    charts.extend(latencies);
    let panels = Panels { legend: Vec::new(), charts, has_switch: false };
    body.add(On::PAGE, Block::Panels(panels));
    body.folded(On::FILES, "As a table", Block::Table(points(family)));
}

/// A unit as the title of a chart: `reads/s` is `Reads per second`.
fn unit_title(unit: &str) -> String {
    match unit {
        "ns" => "Cost in nanoseconds".to_owned(),
        unit => words::title(&axis_title(unit)),
    }
}

/// A unit as the title of an axis: `reads/s` is `reads per second`.
fn axis_title(unit: &str) -> String {
    unit.strip_suffix("/s").map_or(unit.to_owned(), |what| format!("{what} per second"))
}

/// Latency is drawn over throughput where the axis is load; else over the axis itself.
fn over_value(curve: &Curve) -> bool {
    curve.axis.contains("in flight")
}

fn latency_axis(curve: &Curve) -> String {
    if over_value(curve) { axis_title(&curve.unit) } else { curve.axis.clone() }
}

/// The curve's name without its axis: `4 KiB random reads` over requests in flight.
fn short(curve: &Curve) -> &str {
    curve.title.split(" over ").next().unwrap_or(&curve.title)
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

fn line(curve: &Curve, n: usize, dash: usize, marks: Vec<Mark>) -> Line {
    let name = if dash == 0 { short(curve).to_owned() } else { String::new() };
    let stroke = Stroke { colour: Colour::Line(n), dash, faint: 1.0 };
    Line { name, stroke, course: Course::Points(marks), marked: None }
}

fn value_lines(family: &[&Curve]) -> Vec<Line> {
    let of = |(n, curve): (usize, &&Curve)| {
        let mark = |point: &CurvePoint| Mark {
            x: point.x,
            y: point.value,
            ci95: point.value_ci95,
            hover: hover(curve, point),
        };
        let marks = curve.points.iter().map(mark).collect();
        Line { marked: marked(curve), ..line(curve, n, 0, marks) }
    };
    family.iter().enumerate().map(of).collect()
}

/// Mean and 99th percentile.
fn latency_lines(family: &[&Curve]) -> Vec<Line> {
    let mut all = Vec::new();
    for (n, curve) in family.iter().enumerate() {
        let x_of = |point: &CurvePoint| if over_value(curve) { point.value } else { point.x };
        let lines: [fn(&CurvePoint) -> Option<f64>; 2] =
            [|point| point.latency_mean_us, |point| point.latency_p99_us];
        for (dash, of) in lines.into_iter().enumerate() {
            let mark = |point: &CurvePoint| {
                let y = of(point)?;
                // The mean of a latency curve is its value, which has an interval.
                let ci95 = point.value_ci95.filter(|_| curve.unit == "us" && y == point.value);
                Some(Mark { x: x_of(point), y, ci95, hover: hover(curve, point) })
            };
            let marks: Vec<Mark> = curve.points.iter().filter_map(mark).collect();
            let at =
                |(x, word)| Some((x_of(curve.points.iter().find(|point| point.x == x)?), word));
            let marked = marked(curve).filter(|_| dash == 0).and_then(at);
            if marks.len() > 1 {
                all.push(Line { marked, ..line(curve, n, dash, marks) });
            }
        }
    }
    all
}

fn hover(curve: &Curve, point: &CurvePoint) -> String {
    let title = format!("{}, {} {}", curve.title, words::value(point.x, ""), curve.axis);
    let (value, unit) = (point.value, curve.unit.as_str());
    let (ci95, n) = (point.value_ci95, point.value_n);
    let mut text = Hover { title: &title, value, unit, ci95, n, verdicts: None }.text();
    for (name, latency) in [("mean", point.latency_mean_us), ("p99", point.latency_p99_us)] {
        if let Some(latency) = latency {
            let (shown, exact) = (words::value(latency, "us"), words::exact(latency));
            text.push_str(&format!("\n{name} {shown}  ({exact})"));
        }
    }
    text
}

fn points(family: &[&Curve]) -> Table {
    let axis = family.first().map_or(String::new(), |curve| words::title(&curve.axis));
    Table::of(family.iter().flat_map(|curve| curve.points.iter().map(move |p| (*curve, p))))
        .words("Curve", |(curve, _)| text(short(curve)))
        .numbers(&axis, |(_, point)| value(point.x, ""))
        .numbers("Value", |(curve, p)| figure(p.value, p.value_ci95, p.value_n, &curve.unit))
        .numbers("95 % interval", |(curve, point)| {
            interval(point.value, point.value_ci95, &curve.unit)
        })
        .numbers_on(On::PAGE, "n", |(_, point)| count(point.value_n))
        .numbers("Mean latency", |(_, point)| optional(point.latency_mean_us, "us"))
        .numbers("99th percentile", |(_, point)| optional(point.latency_p99_us, "us"))
        .into()
}

/// Rungs that were measured in turns because they are compared: the same block of the plan and the
/// same unit, two or more, and not all of them one curve. Nothing when there is none.
pub(super) fn side_by_side(view: &RunView<'_>, probe: &ProbeDocument) -> Option<Blocks> {
    let mut groups: Vec<(&str, Vec<&Rung>)> = Vec::new();
    for rung in &probe.rungs {
        let Some(point) = view.point(&rung.name) else { continue };
        // Of a curve, its first point is compared with what was measured beside it.
        let along_curve = probe.curves.iter().any(|curve| {
            let place = curve.points.iter().position(|point| point.rung == rung.name);
            place.is_some_and(|place| place > 0)
        });
        if along_curve || rung.layer == Layer::Host || probe.unknown_of(&rung.name).is_some() {
            continue;
        }
        let same = |(block, rungs): &&mut (&str, Vec<&Rung>)| {
            *block == point.block && rungs.first().is_some_and(|first| first.unit == rung.unit)
        };
        match groups.iter_mut().find(same) {
            Some((_, rungs)) => rungs.push(rung),
            None => groups.push((&point.block, vec![rung])),
        }
    }
    groups.retain(|(_, rungs)| rungs.len() > 1);
    let mut body = Blocks::new();
    let turns = "Measured in turns, one replicate of each after the other, so that what changes \
                 over time touches all of them alike.";
    body.add(On::PAGE, Block::Text(Style::Say, turns.into()));
    for (n, (block, rungs)) in groups.iter().enumerate() {
        let Some(first) = rungs.first() else { continue };
        let bars = rungs.iter().map(|rung| bar(&rung.title, rung, &first.unit)).collect();
        let plot = Plot::Bars(axis_title(&first.unit), bars);
        let says = format!("{} {}{}", meaning(block), extremes(rungs), better(first.better));
        let name = format!("compare-{n}-{}", id_of(block));
        body.chart(Chart::new(name, title(block), plot).says(says));
    }
    (!groups.is_empty()).then_some(body)
}

/// Which rung delivers the most and which the least.
fn extremes(rungs: &[&Rung]) -> String {
    let order = |a: &&&Rung, b: &&&Rung| a.value.total_cmp(&b.value);
    let (Some(most), Some(least)) = (rungs.iter().max_by(order), rungs.iter().min_by(order)) else {
        return String::new();
    };
    let words = |rung: &Rung| format!("{} ({})", words::value(rung.value, &rung.unit), rung.title);
    format!("From {} to {}. ", words(least), words(most))
}

/// What a reader learns from a comparison.
fn meaning(block: &str) -> &'static str {
    match block {
        "api" => "The same reads through each way to the kernel, 16 in flight.",
        "commits" => "The same small writes, made durable in each way there is.",
        "append" => {
            "The same writes of one thread, over written space and beyond the end of the file."
        }
        "flushed" => "The same writes with the same flushes, past the page cache and through it.",
        "mixed_files" | "unwritten_files" | "buffered_files" => {
            "The same threads on one file and on eight: where one file is slower, its lock bites."
        }
        _ => "Measured in turns.",
    }
}

/// What a block of the probe's plan compares; other blocks by their own name.
fn title(block: &str) -> String {
    match block {
        "api" => "File APIs at equal depth".to_owned(),
        "commits" => "Sync laboratory: ways to make a commit durable".to_owned(),
        "append" => "Over written space, into allocated space, beyond the end".to_owned(),
        "flushed" => "Direct, or buffered and flushed".to_owned(),
        "mixed_files" => "The lock of a file: readers and writers on one file or many".to_owned(),
        "unwritten_files" => "The lock of a file: unwritten extents".to_owned(),
        "buffered_files" => "The lock of a file: buffered writes".to_owned(),
        other => words::title(other),
    }
}
