//! Curves over the sizes of the queue and of the index, one chart for each kernel on one scale, and
//! the same figures as tables for a terminal.

use iostrata_run::{KernelThen, QueueDevice, QueueDocument, QueuePoint, QueueRun};
use iostrata_stats::Interval;

use super::{asked_and_taken, has_reader, kernel_words, kernels, runs_on, sizes};
use crate::report::cell::text;
use crate::report::chart::{Chart, Course, Hover, Line, Lines, Mark, Plot, Scale, Stroke};
use crate::report::colour::Colour;
use crate::report::document::{Block, Blocks, On, Panels, Row, Style, Table};
use crate::report::words::{self, grouped};

/// A figure of a chart with its interval and samples.
type Figure = (f64, Option<Interval>, u64);

/// What a chart shows: its name, its title, its unit, and how it is read off a run.
struct Shown {
    name: &'static str,
    title: &'static str,
    unit: &'static str,
    of: fn(&QueueRun) -> Option<Figure>,
}

const RATE: Shown = Shown {
    name: "rate",
    title: "Rows per hour",
    unit: "rows/h",
    of: |run| Some((run.rows_per_hour, run.rows_per_hour_ci95, run.rows_per_hour_n)),
};
const WRITES: Shown = Shown {
    name: "writes",
    title: "Writes per second at the device",
    unit: "writes/s",
    of: |run| Some((run.iostat.writes_per_s, None, 0)),
};
const SIZE: Shown = Shown {
    name: "size",
    title: "Size of a write",
    unit: "KiB",
    of: |run| Some((run.iostat.write_size_kib?, None, 0)),
};
const READER: Shown = Shown {
    name: "reader",
    title: "99th percentile of its reads",
    unit: "ms",
    of: |run| {
        let reader = run.reader.as_ref()?;
        let ci95 = reader.latency_us_p99_ci95.map(|ends| ends.map(|us| us / 1e3));
        Some((reader.latency_us.p99 / 1e3, ci95, reader.latency_us_p99_n))
    },
};

/// Rows per hour, requests and their size over the size of the queue.
pub(super) fn over_queue(queue: &QueueDocument) -> Option<Blocks> {
    let at = queue.runs.first()?.index_bytes as f64 / 1e9;
    let mut body = Blocks::new();
    body.say(format!("All at an index of {at:.1} GB."));
    let axes = "Both axes are logarithmic; whiskers are 95 % intervals between replicates. On \
                hover: the figure, and what the kernel took of the size asked for.";
    body.add(On::PAGE, Block::Text(Style::Say, axes.into()));
    body.add(On::PAGE, family(queue, &[&RATE, &WRITES, &SIZE]));
    let rate = |run: &QueueRun| Some(words::value(run.rows_per_hour, ""));
    let size = |run: &QueueRun| Some(words::value(run.iostat.write_size_kib?, ""));
    body.title(On::TERMINAL, "Rows per hour by nr_requests")
        .table(On::TERMINAL, pivot(queue, rate));
    body.title(On::TERMINAL, "Size of a write, KiB").table(On::TERMINAL, pivot(queue, size));
    Some(body)
}

/// What a reader waits for over the size of the queue.
pub(super) fn reader(queue: &QueueDocument) -> Option<Blocks> {
    let mut body = Blocks::new();
    body.say(
        "One reader of another table, 16 KiB at random places, one read at a time, while the \
         inserts go on.",
    );
    body.add(On::PAGE, family(queue, &[&READER]));
    let p99 = |run: &QueueRun| Some(words::value(run.reader.as_ref()?.latency_us.p99, "us"));
    body.title(On::TERMINAL, "99th percentile by nr_requests")
        .table(On::TERMINAL, pivot(queue, p99));
    has_reader(queue).then_some(body)
}

/// One row for each device and kernel, one column for each queue size.
fn pivot(queue: &QueueDocument, of: impl Fn(&QueueRun) -> Option<String>) -> Table {
    let devices = || queue.devices.iter().enumerate();
    let rows = kernels(queue).into_iter().flat_map(|kernel| devices().map(move |d| (kernel, d)));
    let mut table = Table::of(rows).words("", |(_, (_, device))| text(&device.title));
    for size in sizes(queue) {
        table = table.numbers(&grouped(size), |(kernel, (_, device))| {
            let runs = runs_on(queue, device, *kernel);
            let run = runs.iter().find(|run| run.nr_requests == size);
            let found = run.and_then(|run| of(run)).unwrap_or_default();
            // What the kernel does not take is what the size before it gave.
            let is_refused = run.is_some_and(|run| run.nr_requests_taken < size);
            text(if is_refused && !found.is_empty() { format!("({found})") } else { found })
        });
    }
    let name = |(kernel, (n, _)): &(KernelThen, (usize, &QueueDevice)), row: &mut Row| {
        row.group = (*n == 0).then(|| kernel_words(*kernel).to_owned());
    };
    table.each(name).into()
}

/// Lines that may lie upon each other differ in dash, too.
fn stroke(n: usize) -> Stroke {
    Stroke { colour: Colour::Line(n), dash: n % 3, faint: 1.0 }
}

fn legend(names: impl Iterator<Item = String>) -> Vec<(Stroke, String)> {
    names.enumerate().map(|(n, name)| (stroke(n), name)).collect()
}

/// One chart for each kernel and figure, those of a figure on one scale.
fn family(queue: &QueueDocument, all: &[&Shown]) -> Block {
    let ticks: Vec<(f64, String)> =
        sizes(queue).into_iter().map(|size| (size as f64, grouped(size))).collect();
    let mut charts = Vec::new();
    for shown in all {
        let known = |run: &QueueRun| (shown.of)(run).filter(|one| one.0 > 0.0);
        let ends = ends(queue.runs.iter().filter_map(known).map(|one| one.0));
        for kernel in kernels(queue) {
            let line = |(n, device): (usize, &QueueDevice)| {
                let mark = |run: &QueueRun| {
                    let title = format!("{}, nr_requests {}", device.title, asked_and_taken(run));
                    Some(mark(run.nr_requests as f64, &title, shown.unit, known(run)?))
                };
                let marks = runs_on(queue, device, kernel).into_iter().filter_map(mark).collect();
                line(n, marks)
            };
            let lines = queue.devices.iter().enumerate().map(line).collect();
            let mut lines =
                Lines::new("nr_requests", shown.unit, lines).panel(Scale::Logarithmic(Some(ends)));
            lines.ticks = Some(ticks.clone());
            let title = format!("{}, {}", shown.title, kernel_words(kernel));
            charts.push(Chart::new(format!("{}-{kernel}", shown.name), title, Plot::Lines(lines)));
        }
    }
    let legend = legend(queue.devices.iter().map(|device| device.title.clone()));
    Block::Panels(Panels { legend, charts, has_switch: false })
}

fn line(n: usize, marks: Vec<Mark>) -> Line {
    Line { name: String::new(), stroke: stroke(n), course: Course::Points(marks), marked: None }
}

fn mark(x: f64, title: &str, unit: &str, (value, ci95, n): Figure) -> Mark {
    Hover { title, value, unit, ci95, n, verdicts: None }.mark(x)
}

/// Ends of a logarithmic axis around figures.
fn ends(values: impl Iterator<Item = f64> + Clone) -> Interval {
    let low = values.clone().fold(f64::INFINITY, f64::min);
    let high = values.fold(0.0, f64::max);
    if low > high { [1.0, 10.0] } else { [low / 1.6, high * 1.6] }
}

/// Rows per hour over the size of the index on the first device, one line for each queue size.
pub(super) fn over_index(queue: &QueueDocument) -> Option<Blocks> {
    let device = queue.devices.first()?;
    let of_device = queue.runs.iter().filter(|run| run.device == device.device);
    let points: Vec<&QueuePoint> = of_device.flat_map(|run| &run.points).collect();
    let mut at: Vec<u64> = points.iter().map(|point| point.index_bytes).collect();
    at.sort_unstable();
    at.dedup();
    if at.len() < 2 {
        return None;
    }
    let label = |bytes: &u64| (*bytes as f64, format!("{:.2} GB", *bytes as f64 / 1e9));
    let ticks: Vec<(f64, String)> = at.iter().map(label).collect();
    let ends = ends(points.iter().map(|point| point.rows_per_hour).filter(|rate| *rate > 0.0));
    let sizes = sizes(queue);
    let growth = |run: &QueueRun| {
        let n = sizes.iter().position(|size| *size == run.nr_requests).unwrap_or(0);
        let mark = |point: &QueuePoint| {
            let rows = words::value(point.rows as f64, "rows");
            let title = format!("nr_requests {}, {rows}", asked_and_taken(run));
            let figure = (point.rows_per_hour, point.rows_per_hour_ci95, point.rows_per_hour_n);
            mark(point.index_bytes as f64, &title, "rows/h", figure)
        };
        line(n, run.points.iter().filter(|point| point.rows_per_hour > 0.0).map(mark).collect())
    };
    let chart = |kernel: KernelThen| {
        let lines = runs_on(queue, device, kernel).into_iter().map(growth).collect();
        let mut lines =
            Lines::new("size of the index", "rows/h", lines).panel(Scale::Logarithmic(Some(ends)));
        lines.ticks = Some(ticks.clone());
        let title = format!("Rows per hour, {}", kernel_words(kernel));
        Chart::new(format!("growth-{kernel}"), title, Plot::Lines(lines))
    };
    let charts = kernels(queue).into_iter().map(chart).collect();
    let legend = legend(sizes.iter().map(|size| format!("nr_requests {}", grouped(*size))));
    let mut body = Blocks::new();
    let said = format!(
        "On {}. A small index is dirtied many times over before it is written; a large one hardly.",
        device.title
    );
    body.add(On::PAGE, Block::Text(Style::Say, said.into()));
    body.add(On::PAGE, Block::Panels(Panels { legend, charts, has_switch: false }));
    Some(body)
}
