//! A probe: the ladder, what is lost where, curves and comparisons, findings, what to change.

use std::collections::BTreeSet;

use iostrata_plan::{Better, Layer};
use iostrata_run::{Finding, FindingKind, Loss, ProbeDocument, RunResult, Rung};
use iostrata_stats::Verdict;

use super::common::{
    changes, findings, method, over_time, replicate_verdicts, unavailable, unknown, verifications,
};
use super::host::host;
use crate::report::RunView;
use crate::report::cell::{
    Span, Text, Tone, count, figure, interval, layer, optional, text, value, verdicts,
};
use crate::report::chart::{Bar, Chart, Hover, Plot};
use crate::report::colour::Colour;
use crate::report::document::{Block, Blocks, On, Report, Style, Table, TableLayout, all_verdicts};
use crate::report::head::Head;
use crate::report::words;

mod bounds;
mod compared;
mod ladder;

use ladder::{Depth, LADDER, Row as LadderRow};

/// How settings are tried out.
const TRIED: &str = "Applied inside the probe's own files and measured in turns, before and after.";
/// Losses that a terminal names, and comparisons that are open.
const LOSSES: usize = 3;

pub(super) fn report(view: &RunView<'_>, _on: On) -> Option<(Head, Report)> {
    let Some(RunResult::Probe(probe)) = view.result else { return None };
    let mut report = Report::new(&probe.headline, summary(view, probe));
    report.add("ladder", "The ladder", rungs(probe));
    report.add("transactions", "Transactions", bounds::bounds(probe));
    report.add("losses", "Losses", losses(probe));
    report.add("load", "Under load", compared::curves(probe));
    report.add("comparisons", "Side by side", compared::side_by_side(view, probe));
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

/// The rungs of a depth; one alone is said and not drawn.
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
        body.title(On::ALL, "Measurable, but small");
        body.say("They lose beyond their interval, and less than is worth a change.");
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

/// Latency seen by the application beside the device's own.
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
