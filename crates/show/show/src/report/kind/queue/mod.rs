//! A simulated queue: the answer, curves over queue and index sizes, the post beside the model,
//! every run.

use iostrata_run::{
    KernelThen, QueueComparison, QueueDevice, QueueDocument, QueueQuestion, QueueRun, QueueThenRow,
    RunResult,
};

use super::common::{cautions, facts, unavailable};
use crate::report::RunView;
use crate::report::cell::{
    Cell, Span, Text, count, empty, figure, optional, ratio, ratio_interval, text, value,
};
use crate::report::document::{Block, Blocks, Card, On, Report, Table, TableLayout, all_verdicts};
use crate::report::evidence;
use crate::report::head::Head;
use crate::report::words::{self, grouped};

mod curves;

use curves::{over_index, over_queue, reader};

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

/// The queue sizes that were asked for, rising.
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

/// Whether any run has a reader beside the inserts.
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

/// Printed figures beside those of the model at equally many rows, a group of columns for each
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
    all.extend(evidence::measured(&queue.method));
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
