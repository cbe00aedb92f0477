//! A probe: the ladder, what is lost where, curves and comparisons, findings, what to change.
//!
//! Invariant: selects, never computes. A rung that is not known, or was not measured, keeps its row
//! in the short ladder: rows are the same in every run, side by side only where the same number of
//! requests is in flight.

use std::collections::BTreeSet;

use Layer::{Device, FileApi, Filesystem};
use iostrata_plan::{Better, Layer, rung};
use iostrata_run::{
    Curve, CurvePoint, Finding, FindingKind, Loss, ProbeDocument, RunResult, Rung,
    TransactionBound, Unknown,
};
use iostrata_stats::Verdict;

use super::common::{
    changes, findings, host, method, over_time, replicate_verdicts, unavailable, unknown,
    verifications,
};
use crate::report::cell::{
    Span, Text, Tone, count, figure, interval, layer, optional, text, value, verdicts,
};
use crate::report::chart::{Bar, Chart, Course, Hover, Line, Lines, Mark, Plot, Stroke, id_of};
use crate::report::colour::Colour;
use crate::report::document::{
    Block, Blocks, On, Panels, Report, Style, Table, TableLayout, all_verdicts,
};
use crate::report::view::Head;
use crate::report::{RunView, words};

/// How settings are tried out.
const TRIED: &str = "Applied inside the probe's own files and measured in turns, before and after.";
/// Losses that a terminal names, and comparisons that are open.
const LOSSES: usize = 3;

pub(super) fn report(view: &RunView<'_>, _on: On) -> Option<(Head, Report)> {
    let Some(RunResult::Probe(probe)) = view.result else { return None };
    let mut report = Report::new(&probe.headline, summary(view, probe));
    report.add("ladder", "The ladder", rungs(probe));
    report.add("transactions", "Transactions", bounds(probe));
    report.add("losses", "Losses", losses(probe));
    report.add("load", "Under load", curves(probe));
    report.add("comparisons", "Side by side", side_by_side(view, probe));
    report.add("time", "Over time", over_time(view, On::PAGE));
    let is_whole = probe.incomplete.is_none()
        && !probe.unavailable.iter().any(|unavailable| unavailable.was_planned());
    let cleared = "Every suspicion that was raised was cleared by the points that test it.";
    let cleared = (is_whole && probe.undecided.is_empty()).then_some(cleared);
    report.add("findings", "Findings", findings(&probe.findings, probe.interrupted, cleared));
    report.add("advice", changes_title(probe), changes(&probe.advice));
    report.add("redo", "Redo log size", redo(probe));
    report.add("verified", "Tried here, in turns", verifications(&probe.verifications, TRIED));
    report.add("latency", "Application and device", latency(probe));
    report.add("unavailable", "Not measured here", unavailable(view, &probe.unavailable));
    report.add("host", "The machine", host(view, Some(&probe.host)));
    report.add("method", "How it was measured", method(true, carried(view, probe)));
    Some((view.head(Some(&probe.host), None), report))
}

fn carried(view: &RunView<'_>, probe: &ProbeDocument) -> BTreeSet<Verdict> {
    let mut all = replicate_verdicts(view);
    let of_rungs = probe.rungs.iter().map(|rung| &rung.verdicts);
    all.extend(all_verdicts(of_rungs.chain([&probe.verdicts])));
    all
}

/// Seconds in which anything was measured.
fn measured_s(view: &RunView<'_>) -> f64 {
    view.replicates().map(|one| one.duration_s).sum()
}

fn summary(view: &RunView<'_>, probe: &ProbeDocument) -> Text {
    let starred = probe.rungs.iter().filter(|rung| !rung.verdicts.is_sound()).count();
    let mut parts = vec![
        words::counted(probe.rungs.len(), "rung"),
        words::counted(view.replicates().count(), "replicate"),
    ];
    parts.push(words::value(probe.duration_s, "s"));
    parts.push(format!("{} written", words::value(probe.bytes_written as f64, "bytes")));
    let mut sentence = parts.join(", ");
    if starred > 0 {
        sentence += &format!("; {} with a caution", words::counted(starred, "figure"));
    }
    if !probe.unknown.is_empty() {
        sentence += &format!("; {} not known", words::counted(probe.unknown.len(), "figure"));
    }
    sentence += &format!(
        "; \u{b1} is half the 95 % interval. {} ",
        words::intervals_hold_for(measured_s(view))
    );
    let stopped = if probe.interrupted { "Stopped before its end. " } else { "" };
    Text::from(stopped).plain(sentence).with(Span::Verdicts(probe.verdicts.clone()))
}

/// Charts and a table of every rung; for a terminal the rows that are the same in every run.
fn rungs(probe: &ProbeDocument) -> Blocks {
    let rows = LADDER.iter().flat_map(|depth| depth.rows(probe));
    let layers: BTreeSet<Layer> = rows.filter_map(|row| Some(row.rung?.layer)).collect();
    let mut body = Blocks::new();
    body.say(
        "What each step of the path delivers, side by side only where equally many requests are in \
         flight. Whiskers are 95 % intervals; a star marks a figure of which less may be said.",
    );
    let named = layers.into_iter().map(Span::Layer).collect();
    let said = Text(named).plain("Colours of bars are layers, here and everywhere.");
    body.add(On::PAGE, Block::Text(Style::Note(Tone::Plain), said));
    for depth in &LADDER {
        depth_chart(&mut body, depth, probe);
    }
    body.table(On::TERMINAL, short(probe));
    let starred = LADDER.iter().flat_map(|depth| depth.rows(probe));
    let first = starred.filter_map(|row| row.rung?.verdicts.iter().next());
    let starred: BTreeSet<Verdict> = first.collect();
    body.add(On::TERMINAL, Block::Verdicts(starred.into_iter().collect()));
    unknown(&mut body, &probe.unknown);
    body.folded(On::FILES, "All rungs as a table", Block::Table(table(&probe.rungs)));
    body
}

/// The rungs of a depth; one alone is written and not drawn.
fn depth_chart(body: &mut Blocks, depth: &Depth, probe: &ProbeDocument) {
    let known: Vec<(&'static str, &Rung)> =
        depth.rows(probe).filter_map(|row| Some((row.title, row.rung?))).collect();
    let axis = if depth.unit == "/s" { "per second" } else { depth.unit };
    match known.as_slice() {
        [] => {}
        [(title, rung)] => {
            let shown = words::shown(rung.value, rung.value_ci95, &rung.unit);
            let half = shown.half.map_or(String::new(), |half| format!(" {half} "));
            let said =
                Text::default().strong(depth.title).plain(format!(": {title} {}", shown.text));
            let said = said.with(Span::Muted(half)).with(Span::Verdicts(rung.verdicts.clone()));
            body.add(On::PAGE, Block::Text(Style::Plain, said));
        }
        several => {
            let bars = several.iter().map(|(title, rung)| bar(title, rung, depth.unit)).collect();
            let plot = Plot::Bars(axis.to_owned(), bars);
            body.chart(Chart::new(format!("ladder-{}", depth.name), depth.title, plot));
        }
    }
}

fn bar(title: &str, rung: &Rung, unit: &str) -> Bar {
    let hover = Hover {
        title,
        value: rung.value,
        unit,
        ci95: rung.value_ci95,
        n: rung.value_n,
        verdicts: Some(&rung.verdicts),
    };
    Bar::of(&hover, Colour::Layer(rung.layer))
}

/// The rows that every run has, with what is not known of them.
fn short(probe: &ProbeDocument) -> Table {
    let rows = LADDER
        .iter()
        .flat_map(|depth| depth.rows(probe).enumerate().map(move |(n, row)| (depth, n, row)));
    let value = |(depth, _, row): &(&Depth, usize, LadderRow<'_>)| match (row.rung, row.unknown) {
        (Some(rung), _) => figure(rung.value, rung.value_ci95, rung.value_n, depth.unit),
        (None, Some(_)) => text("unknown").toned(Tone::Warn),
        (None, None) => text("-").toned(Tone::Dim),
    };
    let each = |row: &LadderRow<'_>| optional(row.rung.and_then(|rung| rung.latency_us), "us");
    let carried = |row: &LadderRow<'_>| row.rung.map(|rung| verdicts(&rung.verdicts));
    Table::of(rows)
        .words("", |(_, _, row)| layer(row.layer))
        .words("", |(_, _, row)| text(row.title))
        .numbers("per second", value)
        .numbers("each", |(_, _, row)| each(row))
        .words("", |(_, _, row)| carried(row).unwrap_or_default())
        .each(|(depth, n, row), shown| {
            shown.group = (*n == 0).then(|| depth.title.to_owned());
            shown.below =
                row.unknown.map(|one| words::because(one.why, one.between, None, depth.unit));
        })
        .into()
}

fn table(rungs: &[Rung]) -> Table {
    Table::of(rungs)
        .words("Rung", |one| text(&one.title))
        .words("Layer", |one| layer(one.layer))
        .numbers("Value", |one| figure(one.value, one.value_ci95, one.value_n, &one.unit))
        .numbers("95 % interval", |one| interval(one.value, one.value_ci95, &one.unit))
        .numbers_on(On::PAGE, "n", |one| count(one.value_n))
        .numbers_on(On::PAGE, "Lowest to highest", |one| {
            interval(one.value, one.value_range, &one.unit)
        })
        .words("Cautions", |one| verdicts(&one.verdicts))
        .into()
}

/// The title of a rung by its name; the name itself when there is no such rung.
fn rung_title<'a>(probe: &'a ProbeDocument, name: &'a str) -> &'a str {
    probe.rungs.iter().find(|rung| rung.name == name).map_or(name, |rung| &rung.title)
}

/// Which direction is good.
fn better(better: Better) -> &'static str {
    match better {
        Better::Higher => "Longer is better.",
        Better::Lower => "Shorter is better.",
    }
}

/// Every loss, or the statement that there is none.
fn losses(probe: &ProbeDocument) -> Blocks {
    let mut body = Blocks::new();
    let others: Vec<Text> =
        other_losses(probe).map(|finding| finding.text.as_str().into()).collect();
    if probe.losses.is_empty() && others.is_empty() {
        let sure = probe.incomplete.is_none() && probe.undecided.is_empty() && probe.compared > 0;
        let tone = if sure { Tone::Good } else { Tone::Plain };
        body.add(On::ALL, Block::Text(Style::Lead(tone), no_loss(probe).into()));
    }
    if !others.is_empty() {
        body.add(On::ALL, Block::List(others));
    }
    if !probe.losses.is_empty() {
        // One bar is not a chart.
        if probe.losses.len() > 1 {
            let bars = probe.losses.iter().map(|loss| loss_bar(probe, loss)).collect();
            let plot = Plot::Bars("percent lost".to_owned(), bars);
            body.chart(Chart::new("losses", "Lost between two rungs", plot).says(
                "Share of what the lower rung delivers that the upper one does not, with its \
                 paired 95 % interval. Both do identical work and differ in one layer.",
            ));
        }
        let mut sorted: Vec<&Loss> = probe.losses.iter().collect();
        sorted.sort_by(|a, b| b.loss_pct.total_cmp(&a.loss_pct));
        body.table(On::ALL, loss_table(probe, &sorted));
    }
    if !probe.undecided.is_empty() {
        body.title(On::ALL, "Not decided");
        body.say("Their intervals hold a loss that would matter, and none.");
        body.table(On::ALL, loss_table(probe, &probe.undecided.iter().collect::<Vec<_>>()));
    }
    if !probe.small_losses.is_empty() {
        body.title(On::ALL, "Below the threshold");
        body.say("They lose beyond their interval, and less than a finding needs.");
        body.table(On::ALL, loss_table(probe, &probe.small_losses.iter().collect::<Vec<_>>()));
    }
    body
}

/// Losses that compare no two rungs, such as the cap of a volume.
fn other_losses(probe: &ProbeDocument) -> impl Iterator<Item = &Finding> {
    let is_row = move |finding: &Finding| {
        let rung = ["to", "point"].iter().find_map(|name| finding.evidence.get(*name)?.as_str());
        probe.losses.iter().any(|loss| Some(loss.to.as_str()) == rung)
    };
    let all = probe.findings.iter();
    all.filter(move |finding| finding.kind == FindingKind::Loss && !is_row(finding))
}

fn loss_bar(probe: &ProbeDocument, loss: &Loss) -> Bar {
    let layer = words::title(loss.layer.title());
    let title = format!("{layer}: {}", rung_title(probe, &loss.to));
    let hover = Hover {
        title: &title,
        value: loss.loss_pct,
        unit: "percent",
        ci95: loss.loss_pct_ci95,
        n: loss.loss_pct_n,
        verdicts: None,
    };
    Bar::of(&hover, Colour::Layer(loss.layer))
}

fn loss_table(probe: &ProbeDocument, all: &[&Loss]) -> Table {
    Table::of(all)
        .words("Layer", |loss| layer(loss.layer))
        .numbers("Loss", |loss| value(loss.loss_pct, "percent"))
        .numbers("95 % interval", |loss| interval(loss.loss_pct, loss.loss_pct_ci95, "percent"))
        .numbers_on(On::FILES, "Pairs", |loss| count(loss.loss_pct_n))
        .words("What it says", |loss| text(&loss.text))
        .words_on(On::FILES, "From", |loss| text(rung_title(probe, &loss.from)))
        .words_on(On::FILES, "To", |loss| text(rung_title(probe, &loss.to)))
        .words_on(On::FILES, "Basis", |loss| text(words::title(&loss.basis)))
        .most(LOSSES)
        .into()
}

/// What the layers cost at most where no loss was found, and in how many comparisons.
fn no_loss(probe: &ProbeDocument) -> String {
    if probe.interrupted {
        return "No loss seen before the run was stopped.".to_owned();
    }
    let open = probe.undecided.len();
    let comparisons = |n: usize| format!("{} of equal work", words::counted(n, "comparison"));
    let most = probe.cost_at_most();
    match ((probe.compared as usize).saturating_sub(open), open) {
        (0, 0) => "Nothing could be compared.".to_owned(),
        (0, open) => format!("Nothing is known of losses: {} stayed open.", comparisons(open)),
        (decided, 0) => format!("{most} ({}).", comparisons(decided)),
        (decided, open) => {
            format!("{most} ({}); {open} stayed open.", comparisons(decided))
        }
    }
}

/// What a list of advice is called: settings to change where a loss stands behind one of them, else
/// settings that suit a storage that loses nothing.
fn changes_title(probe: &ProbeDocument) -> &'static str {
    let is_loss = |id: &String| {
        probe.findings.iter().any(|one| one.id == *id && one.kind == FindingKind::Loss)
    };
    let gives_back = probe.advice.iter().any(|advice| advice.why.iter().any(is_loss));
    if gives_back || probe.advice.is_empty() {
        "What to change"
    } else {
        "Settings for this storage"
    }
}

/// Redo sizes over write rates.
fn redo(probe: &ProbeDocument) -> Option<Blocks> {
    let table = Table::of(&probe.redo_table)
        .numbers("Redo written by the load", |row| value(row.redo_bytes_per_s, "bytes/s"))
        .numbers("Capacity for half an hour of it", |row| {
            value(row.redo_capacity_bytes as f64, "bytes")
        })
        .numbers("Time to flush a full log's pages", |row| value(row.drain_s, "s"));
    let mut body = Blocks::new();
    body.say(
        "A disk has no redo rate of its own: find your load's (Innodb_os_log_written per second) \
         in the first column. A larger log coalesces more writes and takes longer to flush.",
    );
    body.table(On::FILES, table);
    (!probe.redo_table.is_empty()).then_some(body)
}

/// Latency seen by the application, and the device's own.
fn latency(probe: &ProbeDocument) -> Option<Blocks> {
    let with_both = |rung: &&Rung| rung.latency_us.is_some() && rung.device_latency_us.is_some();
    let table = Table::of(probe.rungs.iter().filter(with_both))
        .words("Rung", |rung| text(&rung.title))
        .words("Layer", |rung| layer(rung.layer))
        .numbers("At the application", |rung| optional(rung.latency_us, "us"))
        .numbers("At the device", |rung| optional(rung.device_latency_us, "us"))
        .kind(TableLayout::Slim);
    let is_there = !table.is_empty();
    let mut body = Blocks::new();
    body.say(
        "Mean latency of the same requests, as the application waits for them and as the device's \
         own counters have it. What lies between is spent above the device. The device's figure is \
         a mean over the window; time held back by a limit of a control group is not in it.",
    );
    body.table(On::FILES, table);
    is_there.then_some(body)
}

/// Rungs with equally many requests in flight, which may be compared at a glance.
struct Depth {
    /// Short name for ids.
    name: &'static str,
    /// What they have in common.
    title: &'static str,
    /// The unit that they share: `/s` for requests, else the unit of their rungs.
    unit: &'static str,
    /// The rows from the device up.
    rows: &'static [(&'static str, Layer, &'static str)],
}

/// Every row.
const LADDER: [Depth; 5] = [
    Depth {
        name: "one",
        title: "One request in flight",
        unit: "/s",
        rows: &[
            (rung::READ_4K_DEPTH_1, Device, "4 KiB random reads"),
            (rung::READ_16K_DEPTH_1, Device, "16 KiB random reads"),
            (rung::OVERWRITE_16K, Filesystem, "16 KiB overwrites in order"),
            (rung::COMMIT_FDATASYNC, FileApi, "4 KiB write + fdatasync"),
            (rung::COMMIT_DSYNC, FileApi, "4 KiB write with O_DSYNC"),
        ],
    },
    Depth {
        name: "eight",
        title: "8 threads",
        unit: "/s",
        rows: &[
            (rung::WRITE_16K_FILES_1, Filesystem, "16 KiB overwrites of 1 file"),
            (rung::WRITE_16K_FILES_8, Filesystem, "16 KiB overwrites of 8 files"),
            ("unwritten_16k_files_8", Filesystem, "16 KiB first writes, 8 files"),
        ],
    },
    Depth {
        name: "sixteen",
        title: "16 in flight",
        unit: "/s",
        rows: &[
            (rung::READ_16K_SYNC_16, FileApi, "16 KiB reads, threads"),
            (rung::READ_16K_LIBAIO_16, FileApi, "16 KiB reads, libaio"),
            (rung::READ_16K_IO_URING_16, FileApi, "16 KiB reads, io_uring"),
            (rung::COMMIT_FDATASYNC_16, FileApi, "4 KiB write + fdatasync"),
        ],
    },
    Depth {
        name: "thirty-two",
        title: "32 in flight",
        unit: "/s",
        rows: &[
            (rung::READ_4K_DEPTH_32, Device, "4 KiB random reads"),
            (rung::READ_16K_DEPTH_32, Device, "16 KiB random reads"),
            (rung::SUSTAINED_16K, Device, "16 KiB random writes, long"),
        ],
    },
    Depth {
        name: "in-order",
        title: "In order, 8 in flight",
        unit: "MiB/s",
        rows: &[
            (rung::SEQUENTIAL_READ_1M, Device, "1 MiB reads"),
            (rung::SEQUENTIAL_WRITE_1M, Device, "1 MiB writes"),
        ],
    },
];

/// One row with what is known of it.
struct LadderRow<'a> {
    /// The layer.
    layer: Layer,
    /// What is measured, without what the rows of its depth share.
    title: &'static str,
    /// The rung, where its figure is known.
    rung: Option<&'a Rung>,
    /// Why it is not known, where it was measured.
    unknown: Option<&'a Unknown>,
}

impl Depth {
    /// The rows of a run.
    fn rows<'a>(&self, probe: &'a ProbeDocument) -> impl Iterator<Item = LadderRow<'a>> {
        self.rows.iter().map(|&(name, layer, title)| LadderRow {
            layer,
            title,
            rung: probe.known(name),
            unknown: probe.unknown_of(name),
        })
    }
}

/// Every rung of transactions with its bound, then what each resource would allow.
fn bounds(probe: &ProbeDocument) -> Option<Blocks> {
    let rungs: Vec<(&Rung, &TransactionBound)> =
        probe.rungs.iter().filter_map(|rung| Some((rung, rung.bound.as_ref()?))).collect();
    if rungs.is_empty() {
        return None;
    }
    let mut body = Blocks::new();
    body.say(
        "What the storage and the processors below would allow, from the rungs above and from what \
         one transaction uses by the database's own counters. The resource that allows the least \
         binds. Pages that were changed and are not written yet are not counted.",
    );
    body.table(On::ALL, reached(&rungs));
    for (rung, bound) in &rungs {
        let title = format!("What each resource allows: {}", rung.title);
        body.folded(On::FILES, title, Block::Table(resources(bound)));
    }
    Some(body)
}

fn reached(rungs: &[(&Rung, &TransactionBound)]) -> Table {
    Table::of(rungs)
        .words("Transactions", |(rung, _)| text(&rung.title))
        .numbers("Reached", |(rung, _)| {
            figure(rung.value, rung.value_ci95, rung.value_n, &rung.unit)
        })
        .numbers("Allowed", |(_, bound)| {
            figure(bound.value, bound.value_ci95, bound.value_n, &bound.unit)
        })
        .words("Binds", |(_, bound)| text(bound.resource.title()))
        .numbers("Share", |(_, bound)| value(bound.reached_pct, "percent"))
        .numbers_on(On::FILES, "95 % interval", |(_, bound)| {
            interval(bound.reached_pct, bound.reached_pct_ci95, "percent")
        })
        .numbers_on(On::FILES, "n", |(_, bound)| count(bound.reached_pct_n))
        .words_on(On::FILES, "Compared", |(_, bound)| text(bound.basis.replace('_', " ")))
        .into()
}

fn resources(bound: &TransactionBound) -> Table {
    Table::of(&bound.resources)
        .words("Resource", |one| text(one.name.title()))
        .numbers("One transaction uses", |one| optional(one.per_txn, &one.unit))
        .numbers("Allows", |one| optional(one.allows_per_s, &bound.unit))
        .numbers("95 % interval", |one| {
            interval(one.allows_per_s, one.allows_per_s_ci95, &bound.unit)
        })
        .words("By", |one| text(one.rungs.join(", ")))
        .into()
}

/// Every curve; nothing when there is none.
fn curves(probe: &ProbeDocument) -> Option<Blocks> {
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
        let name = if several { format!("{}. ", curve_name(curve)) } else { String::new() };
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
fn curve_name(curve: &Curve) -> &str {
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
    let name = if dash == 0 { curve_name(curve).to_owned() } else { String::new() };
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
        .words("Curve", |(curve, _)| text(curve_name(curve)))
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
fn side_by_side(view: &RunView<'_>, probe: &ProbeDocument) -> Option<Blocks> {
    let mut groups: Vec<(&str, Vec<&Rung>)> = Vec::new();
    for rung in &probe.rungs {
        let Some(point) = view.point(&rung.name) else { continue };
        // Of a curve, its first point is compared with what was measured with it.
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
