//! A simulated queue: the answer, curves over the sizes of the queue and of the index (one chart
//! for each kernel on one scale, the same figures as tables for a terminal), the post compared with
//! the model, every run.

use iostrata_run::{
    KernelThen, QueueComparison, QueueDevice, QueueDocument, QueuePoint, QueueQuestion, QueueRun,
    QueueThenRow, RunResult,
};
use iostrata_stats::Interval;

use super::common::{cautions, facts, unavailable};
use crate::report::RunView;
use crate::report::cell::{
    Cell, Span, Text, count, empty, figure, optional, ratio, ratio_interval, text, value,
};
use crate::report::chart::{Chart, Course, Hover, Line, Lines, Mark, Plot, Scale, Stroke};
use crate::report::colour::Colour;
use crate::report::document::{
    Block, Blocks, Card, On, Panels, Report, Row, Style, Table, TableLayout, all_verdicts,
};
use crate::report::view::Head;
use crate::report::words::{self, grouped};

pub(super) fn report(view: &RunView<'_>, _on: On) -> Option<(Head, Report)> {
    let Some(RunResult::SimulateQueue(queue)) = view.result else { return None };
    let mut report = Report::new(&queue.headline, summary(queue));
    if queue.headline.is_empty() {
        report.headline = vec![queue.title.clone()];
    }
    let source = format!(" In virtual time, as in: {}.", queue.then_source);
    report.question = Some(Text::default().strong(&queue.title).plain(source));
    let first = |what| queue.effects.iter().find(|effect| effect.what == what);
    report.strip = vec![
        card(queue, "A larger queue", "rows per hour", first(QueueQuestion::NrRequests)),
        card(queue, "What a reader pays", "99th percentile", first(QueueQuestion::Reader)),
        simulated(queue),
    ];
    report.add("sizes", "Over the size of the queue", over_queue(queue));
    report.add("reader", "A reader beside the inserts", reader(queue));
    report.add("growth", "As the index grows", over_index(queue));
    report.add("then", "The post and the model", then(queue));
    report.add("compared", "One thing at a time", compared(queue));
    report.add("runs", "Every run", runs(queue));
    report.add("unavailable", "Not simulated", unavailable(view, &queue.unavailable));
    report.add("method", "The method and its limits", method(queue));
    report.kept = queue.report.as_ref().map(|path| Text::default().strong("Report: ").plain(path));
    Some((view.head(None, None), report))
}

fn summary(queue: &QueueDocument) -> Text {
    let replicates = queue.runs.iter().map(|run| run.rows_per_hour_n).max().unwrap_or(0);
    let stopped =
        if queue.interrupted { "Stopped before its end; replicates are missing. " } else { "" };
    let mut said = format!(
        "{stopped}{} runs of {replicates} replicates in virtual time, seed {}, in {}",
        queue.runs.len(),
        queue.seed,
        words::value(queue.duration_s, "s"),
    );
    if queue.runs.iter().any(|run| run.nr_requests_taken < run.nr_requests) {
        said.push_str("; in brackets: sizes that the kernel does not take");
    }
    Text::from(said + ". ").with(Span::Verdicts(queue.verdicts.clone()))
}

/// The kernels that were simulated, in order of time.
fn kernels(queue: &QueueDocument) -> Vec<KernelThen> {
    let is_there = |kernel: &KernelThen| queue.runs.iter().any(|run| run.kernel == *kernel);
    KernelThen::ALL.into_iter().filter(is_there).collect()
}

/// The requested queue sizes, rising.
fn sizes(queue: &QueueDocument) -> Vec<u64> {
    let mut sizes: Vec<u64> = queue.runs.iter().map(|run| run.nr_requests).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// The runs on a device under a kernel, by rising queue size.
fn runs_on<'a>(
    queue: &'a QueueDocument,
    device: &QueueDevice,
    kernel: KernelThen,
) -> Vec<&'a QueueRun> {
    let same = |run: &&QueueRun| run.device == device.device && run.kernel == kernel;
    let mut runs: Vec<&QueueRun> = queue.runs.iter().filter(same).collect();
    runs.sort_by_key(|run| run.nr_requests);
    runs
}

/// Whether any run has a reader in addition to the inserts.
fn has_reader(queue: &QueueDocument) -> bool {
    queue.runs.iter().any(|run| run.reader.is_some())
}

fn kernel_words(kernel: KernelThen) -> &'static str {
    match kernel {
        KernelThen::Y2009 => "the kernel of 2009",
        KernelThen::Today => "today's kernel",
    }
}

/// What a queue size became: `100,000`, or `100,000 (takes 2,048)`.
fn asked_and_taken(run: &QueueRun) -> String {
    let asked = grouped(run.nr_requests);
    match run.nr_requests_taken {
        taken if taken == run.nr_requests => asked,
        taken => format!("{asked} (takes {})", grouped(taken)),
    }
}

fn card(
    queue: &QueueDocument,
    title: &'static str,
    what: &str,
    effect: Option<&QueueComparison>,
) -> Card {
    let Some(effect) = effect else {
        let text = "There are no two runs to compare.".into();
        return Card { title, big: "Not simulated".into(), text };
    };
    let device = queue.devices.iter().find(|device| device.device == effect.device);
    let range =
        effect.ratio_ci95.map(|ci95| format!(", 95 % {}", words::times_range(ci95, effect.ratio)));
    let said = format!(
        "{} \u{2192} {}, {}, {}{}, n = {}. ",
        effect.from,
        effect.to.trim_start_matches("nr_requests "),
        device.map_or(&effect.device, |device| &device.title),
        kernel_words(effect.kernel),
        range.unwrap_or_default(),
        effect.ratio_n
    );
    let link = Span::Link("compared".to_owned(), "All comparisons".to_owned());
    let big = format!("{} {what}", words::times(effect.ratio));
    Card { title, big: big.into(), text: Text::from(said).with(link) }
}

fn simulated(queue: &QueueDocument) -> Card {
    let sizes: Vec<String> = sizes(queue).into_iter().map(grouped).collect();
    let kernels: Vec<&str> = kernels(queue).into_iter().map(kernel_words).collect();
    let reader = if has_reader(queue) { "; with and without a reader" } else { "" };
    let text = format!(
        "nr_requests {}; {}; {}{reader}; seed {}.",
        sizes.join(" \u{b7} "),
        words::counted(queue.devices.len(), "device"),
        kernels.join(", "),
        queue.seed
    );
    let runs = words::counted(queue.runs.len(), "run");
    let big = format!("{runs} in {}", words::value(queue.duration_s, "s"));
    Card { title: "Simulated", big: big.into(), text: text.into() }
}

/// Printed figures next to those of the model at equally many rows, a group of columns for each
/// moment; and where they disagree. Nothing where the post's device and kernel were not simulated.
fn then(queue: &QueueDocument) -> Option<Blocks> {
    let mut moments: Vec<&str> = Vec::new();
    let mut figures: Vec<&str> = Vec::new();
    for row in &queue.then {
        if !moments.contains(&row.moment.as_str()) {
            moments.push(&row.moment);
        }
        if !figures.contains(&row.row.text.as_str()) {
            figures.push(&row.row.text);
        }
    }
    let mut table = Table::of(figures).words("iostat", |name| text(*name));
    for moment in moments.iter().copied() {
        let cell = |name: &str, at: usize| {
            let same = |row: &&QueueThenRow| row.moment == moment && row.row.text == name;
            then_cells(queue.then.iter().find(same))[at].clone()
        };
        table = table
            .numbers("post", |name| cell(name, 0))
            .numbers("model", |name| cell(name, 1))
            .numbers_on(On::FILES, "model / post", |name| cell(name, 2))
            .group(moment, 3);
    }
    let mut body = Blocks::new();
    let post = Text::from("Post: ")
        .strong(&queue.then_source)
        .plain(format!(". {}. ", queue.then_machine));
    body.say(post.plain(
        "Each figure stands beside the model's at equally many rows. Only figures that the post \
         prints are here.",
    ));
    if !queue.contradictions.is_empty() {
        body.title(On::ALL, "Where they disagree");
        let all = queue.contradictions.iter().map(|one| one.as_str().into()).collect();
        body.add(On::ALL, Block::List(all));
    }
    body.table(On::ALL, table.kind(TableLayout::Slim));
    (!moments.is_empty()).then_some(body)
}

fn then_cells(found: Option<&QueueThenRow>) -> [Cell; 3] {
    let Some(found) = found else { return [empty(), empty(), empty()] };
    let row = &found.row;
    // The unit stands in the figure's name.
    let unit = if row.unit == "ms" { "ms" } else { "" };
    let sure = row.now_ci95.map(|ci95| {
        let range = words::interval(ci95, row.now, &row.unit);
        format!("95 %: {range}, n = {}, {}", row.now_n, row.points.join(", "))
    });
    let now = Cell { tip: sure, ..optional(row.now, unit) };
    let times = row.times.filter(|times| times.is_finite());
    [optional(row.then, unit), now, times.map_or_else(empty, ratio)]
}

/// One run over another, a sentence each.
fn compared(queue: &QueueDocument) -> Option<Blocks> {
    let table = Table::of(&queue.effects)
        .words("What follows", |effect| text(&effect.text))
        .numbers("Ratio", |effect| ratio(effect.ratio))
        .numbers("95 %", |effect| ratio_interval(effect.ratio, effect.ratio_ci95))
        .numbers("n", |effect| count(effect.ratio_n));
    let mut body = Blocks::new();
    body.say(
        "Two runs that differ in one thing, at the same index size. Replicates are compared in \
         pairs that share a seed.",
    );
    body.table(On::FILES, table);
    (!queue.effects.is_empty()).then_some(body)
}

/// Every run with iostat's columns, a table for each device and kernel.
fn runs(queue: &QueueDocument) -> Option<Blocks> {
    let at = queue.runs.first()?.index_bytes as f64 / 1e9;
    let mut body = Blocks::new();
    body.say(format!(
        "The device's columns as iostat has them, at an index of {at:.1} GB without the reader. \
         The other index sizes are in result.json."
    ));
    for device in &queue.devices {
        for kernel in kernels(queue) {
            let runs = runs_on(queue, device, kernel);
            if !runs.is_empty() {
                let title = format!("{}, {} ", device.title, kernel_words(kernel));
                let title = Text::from(title).with(Span::Code(device.device.clone()));
                body.title(On::FILES, title).table(On::FILES, one_device(&runs));
            }
        }
    }
    Some(body)
}

fn one_device(runs: &[&QueueRun]) -> Table {
    let rate =
        |run: &QueueRun| figure(run.rows_per_hour, run.rows_per_hour_ci95, run.rows_per_hour_n, "");
    let p99 = |run: &QueueRun| run.reader.as_ref().map(|reader| reader.latency_us.p99 / 1e3);
    Table::of(runs)
        .numbers("nr_requests", |run| text(asked_and_taken(run)))
        .numbers("rows per hour", |run| rate(run))
        .numbers("w/s", |run| value(run.iostat.writes_per_s, ""))
        .numbers("wrqm/s", |run| value(run.iostat.writes_merged_per_s, ""))
        .numbers("KiB each", |run| optional(run.iostat.write_size_kib, ""))
        .numbers("in the queue", |run| value(run.iostat.queue_size, ""))
        .numbers("await", |run| optional(run.iostat.write_await_ms, "ms"))
        .numbers("%util", |run| value(run.iostat.util_pct, ""))
        .numbers("reader p99", |run| optional(p99(run), "ms"))
        .into()
}

/// The rules, the limits, and every verdict that occurs.
fn method(queue: &QueueDocument) -> Blocks {
    let mut all = vec![
        ("Seed".to_owned(), queue.seed.to_string()),
        ("Real time taken".to_owned(), words::value(queue.duration_s, "s")),
    ];
    all.extend(words::measured(&queue.method));
    let mut body = Blocks::new();
    body.add(On::FILES, facts(all));
    body.say(
        "Nothing was measured on a device: inserts, page cache, block queue and drive are models \
         in virtual time, and the same seed gives the same figures. Each figure is the mean of \
         replicates with seeds of their own; the interval is that between them, at 95 %. It says \
         how much chance is in the figure, not how well the model fits a disk.",
    );
    if !queue.limits.is_empty() {
        let limits = queue.limits.iter().map(|limit| limit.as_str().into()).collect();
        body.add(On::FILES, Block::List(limits));
    }
    let mut carried = all_verdicts(queue.runs.iter().map(|run| &run.verdicts));
    carried.extend(queue.verdicts.iter());
    cautions(&mut body, carried);
    body
}

/// A figure of a chart with its interval and samples.
type Figure = (f64, Option<Interval>, u64);

/// What a chart shows: its name, its title, its unit, and how it is read off a run.
struct QueueChart {
    name: &'static str,
    title: &'static str,
    unit: &'static str,
    of: fn(&QueueRun) -> Option<Figure>,
}

const RATE: QueueChart = QueueChart {
    name: "rate",
    title: "Rows per hour",
    unit: "rows/h",
    of: |run| Some((run.rows_per_hour, run.rows_per_hour_ci95, run.rows_per_hour_n)),
};
const WRITES: QueueChart = QueueChart {
    name: "writes",
    title: "Writes per second at the device",
    unit: "writes/s",
    of: |run| Some((run.iostat.writes_per_s, None, 0)),
};
const SIZE: QueueChart = QueueChart {
    name: "size",
    title: "Size of a write",
    unit: "KiB",
    of: |run| Some((run.iostat.write_size_kib?, None, 0)),
};
const READER: QueueChart = QueueChart {
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
fn over_queue(queue: &QueueDocument) -> Option<Blocks> {
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
fn reader(queue: &QueueDocument) -> Option<Blocks> {
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
fn family(queue: &QueueDocument, all: &[&QueueChart]) -> Block {
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
fn over_index(queue: &QueueDocument) -> Option<Blocks> {
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
