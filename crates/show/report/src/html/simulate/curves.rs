//! Charts of a simulated queue, one for each kernel beside each other, on the same scale.

use iostrata_run::{KernelThen, QueueDevice, QueueDocument, QueuePoint, QueueRun};
use iostrata_stats::Interval;
use maud::{Markup, html};

use crate::chart::{
    Charts, Hover, Mark, PanelTrace, Tick, Vertical, dash_style, line_colour, sizes as chart,
};
use crate::html::parts;
use crate::simulate::{
    asked_and_taken, grouped, has_reader, kernel_words, kernels, runs_on, sizes,
};

/// A figure of a chart.
struct Figure {
    value: f64,
    ci95: Option<Interval>,
    n: u64,
}

/// What a chart shows: its name, its title, its unit, and how it is read off a run.
struct Shown {
    name: &'static str,
    title: &'static str,
    unit: &'static str,
    of: fn(&QueueRun) -> Option<Figure>,
}

fn plain(value: Option<f64>) -> Option<Figure> {
    Some(Figure { value: value.filter(|value| *value > 0.0)?, ci95: None, n: 0 })
}

const RATE: Shown = Shown {
    name: "rate",
    title: "Rows per hour",
    unit: "rows/h",
    of: |run| {
        let (value, ci95, n) = (run.rows_per_hour, run.rows_per_hour_ci95, run.rows_per_hour_n);
        (value > 0.0).then_some(Figure { value, ci95, n })
    },
};
const WRITES: Shown = Shown {
    name: "writes",
    title: "Writes per second at the device",
    unit: "writes/s",
    of: |run| plain(Some(run.iostat.writes_per_s)),
};
const SIZE: Shown = Shown {
    name: "size",
    title: "Size of a write",
    unit: "KiB",
    of: |run| plain(run.iostat.write_size_kib),
};
const READER: Shown = Shown {
    name: "reader",
    title: "99th percentile of its reads",
    unit: "ms",
    of: |run| {
        let reader = run.reader.as_ref()?;
        let ci95 = reader.latency_us_p99_ci95.map(|ends| ends.map(|us| us / 1e3));
        let (value, n) = (reader.latency_us.p99 / 1e3, reader.latency_us_p99_n);
        (value > 0.0).then_some(Figure { value, ci95, n })
    },
};

/// Rows per hour, requests and their size over the size of the queue.
pub(super) fn over_queue(queue: &QueueDocument, charts: &mut Charts) -> Option<Markup> {
    let at = queue.runs.first()?.index_bytes as f64 / 1e9;
    Some(html! {
        p.say {
            "All at an index of " (format!("{at:.1}")) " GB. Both axes are logarithmic; whiskers are 95 % "
            "intervals between replicates. On hover: the figure, and what the kernel took of the "
            "size asked for."
        }
        (devices_legend(queue))
        (family(queue, &RATE, charts))
        (family(queue, &WRITES, charts))
        (family(queue, &SIZE, charts))
    })
}

/// What a reader waits for over the size of the queue.
pub(super) fn reader(queue: &QueueDocument, charts: &mut Charts) -> Option<Markup> {
    has_reader(queue).then(|| html! {
        p.say {
            "One reader of another table, 16 KiB at random places, one read at a time, while the "
            "inserts go on."
        }
        (devices_legend(queue))
        (family(queue, &READER, charts))
    })
}

fn devices_legend(queue: &QueueDocument) -> Markup {
    let names: Vec<String> = queue.devices.iter().map(|device| device.title.clone()).collect();
    legend(&names)
}

fn legend(names: &[String]) -> Markup {
    html! {
        div.legend { ul.layers { @for (n, name) in names.iter().enumerate() {
            li {
                span.stroke style={
                    "border-top:3px " (dash_style(dash(n))) " " (line_colour(n))
                } {}
                (name)
            }
        } } }
    }
}

/// Lines that may lie upon each other differ in dash, too.
fn dash(n: usize) -> usize {
    n % 3
}

/// One chart for each kernel.
fn family(queue: &QueueDocument, shown: &Shown, charts: &mut Charts) -> Markup {
    let all = queue.runs.iter().filter_map(shown.of);
    let ends = ends(all.map(|figure| figure.value));
    let ticks: Vec<Tick> = sizes(queue)
        .into_iter()
        .map(|size| Tick { at: size as f64, label: grouped(size) })
        .collect();
    html! {
        div.panels { @for kernel in kernels(queue) {
            @let lines = lines(queue, shown, kernel);
            @let name = format!("{}-{kernel}", shown.name);
            @let vertical = Vertical { title: shown.unit, ends };
            @let chart = chart(&name, "nr_requests", &ticks, &vertical, &lines);
            (parts::figure(charts, &chart, &format!("{}, {}", shown.title, kernel_words(kernel)), ""))
        } }
    }
}

fn lines(queue: &QueueDocument, shown: &Shown, kernel: KernelThen) -> Vec<PanelTrace> {
    let line = |(n, device): (usize, &QueueDevice)| {
        let mark = |run: &QueueRun| {
            let figure = (shown.of)(run)?;
            let title = format!("{}, nr_requests {}", device.title, asked_and_taken(run));
            Some(mark(run.nr_requests as f64, &title, shown.unit, &figure))
        };
        PanelTrace {
            name: device.title.clone(),
            colour: line_colour(n),
            dash: dash(n),
            is_fit: false,
            marks: runs_on(queue, device, kernel).into_iter().filter_map(mark).collect(),
        }
    };
    queue.devices.iter().enumerate().map(line).collect()
}

fn mark(x: f64, title: &str, unit: &str, figure: &Figure) -> Mark {
    let (value, ci95, n) = (figure.value, figure.ci95, figure.n);
    let hover = Hover { title, value, unit, ci95, n, verdicts: None };
    Mark { x, y: value, ci95, hover: hover.text() }
}

/// Ends of a logarithmic axis around figures.
fn ends(values: impl Iterator<Item = f64> + Clone) -> [f64; 2] {
    let low = values.clone().fold(f64::INFINITY, f64::min);
    let high = values.fold(0.0, f64::max);
    if low > high { [1.0, 10.0] } else { [low / 1.6, high * 1.6] }
}

/// Rows per hour over the size of the index on the first device, one line for each queue size.
pub(super) fn over_index(queue: &QueueDocument, charts: &mut Charts) -> Option<Markup> {
    let device = queue.devices.first()?;
    let of_device = queue.runs.iter().filter(|run| run.device == device.device);
    let points: Vec<&QueuePoint> = of_device.flat_map(|run| &run.points).collect();
    let mut at: Vec<(u64, u64)> =
        points.iter().map(|point| (point.index_bytes, point.rows)).collect();
    at.sort_unstable();
    at.dedup();
    if at.len() < 2 {
        return None;
    }
    let label = |bytes: u64| format!("{:.2} GB", bytes as f64 / 1e9);
    let ticks: Vec<Tick> =
        at.iter().map(|(bytes, _)| Tick { at: *bytes as f64, label: label(*bytes) }).collect();
    let ends = ends(points.iter().map(|point| point.rows_per_hour).filter(|rate| *rate > 0.0));
    let names: Vec<String> =
        sizes(queue).into_iter().map(|size| format!("nr_requests {}", grouped(size))).collect();
    Some(html! {
        p.say {
            "On " (device.title) ". A small index is dirtied many times over before it is written; "
            "a large one hardly."
        }
        (legend(&names))
        div.panels { @for kernel in kernels(queue) {
            @let lines = growth(queue, device, kernel);
            @let name = format!("growth-{kernel}");
            @let vertical = Vertical { title: "rows/h", ends };
            @let chart = chart(&name, "size of the index", &ticks, &vertical, &lines);
            (parts::figure(charts, &chart, &format!("Rows per hour, {}", kernel_words(kernel)), ""))
        } }
    })
}

fn growth(queue: &QueueDocument, device: &QueueDevice, kernel: KernelThen) -> Vec<PanelTrace> {
    let all = sizes(queue);
    let line = |run: &QueueRun| {
        let n = all.iter().position(|size| *size == run.nr_requests).unwrap_or(0);
        let mark = |point: &QueuePoint| {
            let rows = crate::words::value(point.rows as f64, "rows");
            let title = format!("nr_requests {}, {rows}", asked_and_taken(run));
            let (value, ci95) = (point.rows_per_hour, point.rows_per_hour_ci95);
            let figure = Figure { value, ci95, n: point.rows_per_hour_n };
            mark(point.index_bytes as f64, &title, "rows/h", &figure)
        };
        PanelTrace {
            name: format!("nr_requests {}", grouped(run.nr_requests)),
            colour: line_colour(n),
            dash: dash(n),
            is_fit: false,
            marks: run.points.iter().map(mark).collect(),
        }
    };
    runs_on(queue, device, kernel).into_iter().map(line).collect()
}
