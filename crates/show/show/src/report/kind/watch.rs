//! What was watched of a target: its course, its stalls, what was changed on it and what its advice
//! is expected to change; and several recordings as one picture, the throughput of each at one
//! scale.
//!
//! Invariant: panels of that picture stand in the order in which the runs were named, two next to
//! each other, so that the user chooses what is above what.

use std::collections::BTreeSet;

use iostrata_plan::Layer;
use iostrata_run::{
    CHARTS, ExpectedEffect, ExpectedFigure, FIGURES, Figure, FigureChart, Finding, FindingKind,
    LockWait, RunResult, SamplerCost, SessionState, StallCause, StallSnapshot, TransactionStall,
    TunedFigure, TunedSetting, WatchDocument,
};
use iostrata_stats::Measured;

use super::common::{changes, facts, findings, unavailable, verifications};
use crate::report::cell::{Cell, Text, Tone, change, empty, figure, text, value};
use crate::report::chart::{Chart, Course, Line, Lines, Plot, Scale, Slices, solid};
use crate::report::colour::Colour;
use crate::report::document::{Block, Blocks, Card, On, Panels, Report, Sheet, Style, Table};
use crate::report::view::Head;
use crate::report::{RunView, words};

/// What is counted per second.
const RATE: &str = "transactions/s";
/// How settings are tried out.
const TRIED: &str = "Set on the server under the load that it had, and measured in turns with the \
                     settings of before, which it has again. A pair is two windows one after the \
                     other.";
/// Stalls that a terminal lists.
const STALLS: usize = 10;

pub(super) fn report(view: &RunView<'_>, _on: On) -> Option<(Head, Report)> {
    let Some(RunResult::Watch(watched)) = view.result else { return None };
    let mut report = Report::new(&headline(watched), "");
    report.question = Some(
        Text::default()
            .strong(&watched.target.name)
            .plain(format!(": {} {}", watched.target.flavour, watched.target.version)),
    );
    report.strip = cards(watched);
    report.add("stalls", "Stalls", stalls(watched));
    report.add("course", "Second by second", course(watched));
    if !watched.tuned.is_empty() {
        report.add("tuned", "What tuning saved and cost", tuned(&watched.tuned));
    }
    report.add("changed", "What was set", changed(&watched.settings));
    if !watched.findings.is_empty() {
        report.add("findings", "Findings", findings(&watched.findings, false, None));
    }
    if !watched.advice.is_empty() {
        report.add("advice", "What to change", advised(watched));
    }
    report.add("verified", "Tried here, in turns", verifications(&watched.verifications, TRIED));
    report.add("unavailable", "Not tried", unavailable(view, &watched.unavailable));
    report.add("settings", "The target", target(watched));
    Some((view.head(None, None).with_place(&watched.target.name), report))
}

/// What to change, what that is expected to do, and how to see more of it beforehand.
fn advised(watched: &WatchDocument) -> Blocks {
    let mut body = changes(&watched.advice);
    expected_blocks(watched, &mut body);
    if watched.settings.is_empty() && watched.verifications.is_empty() {
        let say = "What a setting of flushing or the redo would do, before it is set: iostrata \
                   simulate flush --from with this run directory. watch --verify tries it.";
        body.add(On::ALL, Block::Text(Style::Note(Tone::Plain), say.into()));
    }
    body
}

fn headline(watched: &WatchDocument) -> Vec<String> {
    let rate = watched.tps.map_or("Throughput is unknown".to_owned(), |tps| {
        format!("{} on average", words::value(tps, RATE))
    });
    let stalled = match &watched.stalls[..] {
        [] => "it never stalled".to_owned(),
        [only] => {
            let length = words::value(only.length_s, "s");
            format!("it stalled once, for {length}: {}", only.cause)
        }
        all => {
            let length = words::value(watched.stalled_s, "s");
            format!("it stalled {} times, {length} together", all.len())
        }
    };
    let mut lines = vec![format!("{rate} in {}; {stalled}", words::value(watched.duration_s, "s"))];
    // Where a limit decides how much is done, nothing else matters as much.
    let is_limit = |one: &&Finding| one.kind == FindingKind::Loss && one.layer == Layer::Limit;
    // What a setting answers stands with the advice.
    let is_open = |one: &&Finding| {
        one.kind != FindingKind::Sizing
            && !is_limit(one)
            && watched.advice.iter().all(|advice| !advice.why.contains(&one.id))
    };
    let texts = |of: &dyn Fn(&&Finding) -> bool| {
        watched.findings.iter().filter(of).map(|one| one.text.clone()).collect::<Vec<_>>()
    };
    lines.extend(texts(&is_open));
    lines.splice(0..0, texts(&is_limit));
    lines
}

fn cards(watched: &WatchDocument) -> Vec<Card> {
    let mut cards = Vec::new();
    if let Some(tps) = watched.tps {
        let big = words::value(tps, "/s").into();
        let of = format!("mean over {}", words::value(watched.duration_s, "s"));
        cards.push(Card { title: "transactions", big, text: of.into() });
    }
    if let Some(most) = watched.checkpoint_age_pct_max {
        let big = words::value(most, "percent").into();
        let of = "the highest checkpoint age, of its max";
        cards.push(Card { title: "redo", big, text: of.into() });
    }
    if let Some(pages) = watched.pages_written_per_txn {
        let of = "pages written per transaction";
        cards.push(Card { title: "flushing", big: words::small(pages).into(), text: of.into() });
    }
    let longest = watched.stalls.iter().max_by(|a, b| a.length_s.total_cmp(&b.length_s));
    if let Some(TransactionStall { t_s, length_s, cause, .. }) = longest {
        let of = format!("at {}: {cause}", words::value(*t_s, "s"));
        let big = words::value(*length_s, "s").into();
        cards.push(Card { title: "longest stall", big, text: of.into() });
    }
    cards
}

fn tuned(figures: &[TunedFigure]) -> Blocks {
    let side = |side: &Option<Measured>, unit: &str| match side {
        Some(side) => figure(side.value, side.ci95, side.n, unit),
        None => text("not known"),
    };
    let table = Table::of(figures)
        .words("", |one| text(one.title.as_str()))
        .numbers("tuned", |one| side(&one.tuned, &one.unit))
        .numbers("with its own settings", |one| side(&one.untuned, &one.unit));
    let mut body = Blocks::new();
    body.table(On::ALL, table);
    body.say("Only times under a similar load are compared.");
    body
}

fn stalls(watched: &WatchDocument) -> Blocks {
    let mut body = Blocks::new();
    if watched.stalls.is_empty() {
        let never = "No second had less than half of what was usual in the minute before.";
        body.add(On::FILES, Block::Text(Style::Lead(Tone::Good), never.into()));
        return body;
    }
    let table = Table::of(&watched.stalls)
        .numbers("at", |stall| value(stall.t_s, "s"))
        .numbers("length", |stall| value(stall.length_s, "s"))
        .numbers("lowest rate", |stall| value(stall.min_tps, RATE))
        .words("cause", |stall| text(stall.cause.to_string()))
        .words("what speaks for it", |stall| text(stall.evidence.as_str()))
        .most(STALLS);
    body.table(On::ALL, table);
    snapshots(watched, &mut body);
    if watched.stalls.iter().any(|stall| stall.cause == StallCause::Unknown) {
        body.say("Where the cause is unknown, nothing that the target reports explains the stall.");
    }
    body
}

/// What went on when stalls began.
fn snapshots(watched: &WatchDocument, body: &mut Blocks) {
    let said: Vec<(f64, String)> = watched
        .snapshots
        .iter()
        .flat_map(|one| one.sentences().into_iter().map(|text| (one.stall_t_s, text)))
        .collect();
    if said.is_empty() {
        return;
    }
    let table = Table::of(&said)
        .numbers("stall at", |(t_s, _)| value(*t_s, "s"))
        .words("what went on when it began", |(_, said)| text(said.as_str()))
        .most(STALLS);
    body.title(On::FILES, "When they began");
    body.table(On::ALL, table);
    for one in &watched.snapshots {
        let name = format!("Who waited, and the monitor, at {}", words::value(one.stall_t_s, "s"));
        body.folded(On::PAGE, name, facts(snapshot_facts(one)));
    }
    let failed = watched.on_stall.iter().filter(|one| !one.is_sound);
    for one in failed.take(STALLS) {
        let at = words::value(one.stall_t_s, "s");
        body.note(format!("The command of --on-stall, for the stall at {at}: {}.", one.ended));
    }
}

fn snapshot_facts(one: &StallSnapshot) -> Vec<(String, String)> {
    let state = |one: &SessionState| (format!("{} sessions", one.sessions), one.state.clone());
    let wait = |one: &LockWait| {
        let index = one.index.as_ref().map_or(String::new(), |index| format!(" ({index})"));
        let text = format!("for {}, {} of {}{index}", one.blocking, one.mode, one.object);
        (format!("connection {} waits", one.waiting), text)
    };
    let line = |line: &String| ("monitor".to_owned(), line.clone());
    let missing = |line: &String| ("not reported".to_owned(), line.clone());
    let sessions = one.sessions.iter().map(state);
    let waits = one.lock_waits.iter().map(wait);
    let monitor = one.monitor.iter().map(line);
    sessions.chain(waits).chain(monitor).chain(one.missing.iter().map(missing)).collect()
}

/// A chart with a line for each of its figures that the target reports.
fn chart(watched: &WatchDocument, of: &FigureChart) -> Option<Chart> {
    let n = watched.samples.len();
    let width_s = watched.duration_s / n.checked_sub(1)?.max(1) as f64;
    let line = |figure: &'static Figure| {
        let (_, label) = figure.chart.filter(|(chart, _)| *chart == of)?;
        let first = watched.samples.iter().find_map(figure.of)?;
        Some((figure, label, first))
    };
    let told: Vec<(&Figure, &str, f64)> = FIGURES.iter().filter_map(line).collect();
    let unit = told.first()?.0.unit;
    let drawn = told.iter().enumerate().map(|(at, (figure, label, first))| {
        let mut last = *first;
        // Where the target did not answer, the line goes on as it was.
        let values = watched.samples.iter().map(|one| {
            last = (figure.of)(one).unwrap_or(last);
            last
        });
        let slices = Slices { width_s, values: values.collect(), unit, title: (*label).to_owned() };
        Line {
            name: if told.len() > 1 { (*label).to_owned() } else { String::new() },
            stroke: solid(Colour::Line(at)),
            course: Course::Slices(slices),
            marked: None,
        }
    });
    let lines = Lines::new("seconds since watching began", unit, drawn.collect());
    let plot = Plot::Lines(Lines { scale: Scale::Linear, ..lines });
    Some(Chart::new(format!("watch-{}", of.name), of.title, plot))
}

fn course(watched: &WatchDocument) -> Option<Blocks> {
    let mut body = Blocks::new();
    for chart in CHARTS.iter().filter_map(|of| chart(watched, of)) {
        body.chart(chart);
    }
    (watched.samples.len() > 1).then_some(body)
}

fn changed(settings: &[TunedSetting]) -> Option<Blocks> {
    let table = Table::of(settings)
        .numbers("at", |one| value(one.t_s, "s"))
        .words("setting", |one| text(one.name.as_str()))
        .numbers("from", |one| text(one.from.as_str()))
        .numbers("to", |one| text(one.to.as_str()))
        .words("why", |one| text(one.why.as_str()))
        .most(STALLS);
    let mut body = Blocks::new();
    body.table(On::ALL, table);
    (!settings.is_empty()).then_some(body)
}

/// What it is, what it does not report, and what sampling it cost.
fn target(watched: &WatchDocument) -> Blocks {
    let mut body = Blocks::new();
    let SamplerCost { samples, failed, sample_us_max, .. } = watched.sampler;
    if samples > 0 {
        body.say(format!(
            "The target was sampled {}; the longest sample took {}.",
            iostrata_stats::units::times(samples),
            words::value(sample_us_max, "us")
        ));
    }
    if failed > 0 {
        body.note(format!("It did not answer {}.", iostrata_stats::units::times(failed)));
    }
    if !watched.target.missing.is_empty() {
        body.title(On::FILES, "What it does not report");
        let missing = watched.target.missing.iter().map(|one| one.as_str().into()).collect();
        body.add(On::FILES, Block::List(missing));
    }
    let settings = watched.target.settings.clone().into_iter().collect();
    body.folded(On::PAGE, "Its settings", facts(settings));
    body
}

/// What the figures are, and what they leave out.
const HOW: &str = "A model of flushing is fitted to the recording and run in pairs, with the \
                   settings as they were and as advised. In brackets the interval in which 95 % of \
                   such pairs lie: what chance and the recording leave open. How far the model is \
                   from the server is not in it; watch --verify measures that.";

/// Effects next to their advice, each once, then the effect of all together.
fn expected_blocks(watched: &WatchDocument, body: &mut Blocks) {
    let mut all: Vec<&ExpectedEffect> = Vec::new();
    let of_one = watched.advice.iter().filter_map(|advice| advice.expected.as_ref());
    for effect in of_one.chain(&watched.expected_together) {
        if !all.contains(&effect) {
            all.push(effect);
        }
    }
    if all.is_empty() {
        return;
    }
    body.title(On::ALL, "What that is expected to change, by simulation");
    let known: Vec<&ExpectedEffect> = all.iter().copied().filter(|one| one.is_known()).collect();
    if !known.is_empty() {
        body.say(HOW);
        let table = Table::of(known)
            .words("set together", |effect| text(expected_settings(effect)))
            .numbers(RATE, |effect| expected_change(effect.tps.as_ref(), "percent"))
            .numbers("worst second over mean", |effect| {
                expected_change(effect.min_over_mean_1s.as_ref(), "points")
            })
            .numbers("pages written per transaction", |effect| {
                expected_change(effect.pages_written_per_txn.as_ref(), "percent")
            });
        body.table(On::ALL, table);
    }
    // What applies to several alike is written once.
    let mut said: Vec<(BTreeSet<&str>, String)> = Vec::new();
    for effect in all {
        let names = effect.settings.keys().map(String::as_str);
        let text = effect.text.join(" ");
        match said.iter_mut().find(|(_, other)| *other == text) {
            Some((others, _)) => others.extend(names),
            None => said.push((names.collect(), text)),
        }
    }
    let in_words = |names: BTreeSet<&str>| names.into_iter().collect::<Vec<_>>().join(", ");
    let said = said.into_iter().map(|(names, text)| (in_words(names), text)).collect();
    body.add(On::ALL, Block::Named(said, usize::MAX));
    if let Some(from) = &watched.expected_from {
        let said = from.text.iter().map(|one| one.as_str().into()).collect();
        body.folded(On::FILES, "The model of this recording", Block::List(said));
    }
}

fn expected_settings(effect: &ExpectedEffect) -> Text {
    let one = |(name, value): (&String, &String)| format!("{name} = {value}");
    let all: Vec<String> = effect.settings.iter().map(one).collect();
    all.join(", ").into()
}

/// By how much a figure changes.
fn expected_change(figure: Option<&ExpectedFigure>, unit: &str) -> Cell {
    let of = |figure: &ExpectedFigure| {
        let Measured { value, ci95, n, .. } = figure.change_pct;
        change(value, ci95, n, unit)
    };
    figure.map_or_else(empty, of)
}

/// The picture of recordings with the names that they go by; nothing where none reports
/// transactions.
pub(crate) fn sheet_of_recordings(runs: &[(&str, &WatchDocument)]) -> Option<Sheet> {
    let told: Vec<(&str, &WatchDocument, Vec<f64>)> =
        runs.iter().filter_map(|(name, run)| Some((*name, *run, rates(run)?))).collect();
    let all = told.iter().flat_map(|(_, _, rates)| rates.iter().copied());
    let top = 1.05 * all.fold(1.0, f64::max);
    let charts: Vec<Chart> = told
        .iter()
        .enumerate()
        .map(|(at, (name, run, rates))| recording_chart(at, name, run, rates.clone(), top))
        .collect();
    let legend = vec![(solid(Colour::Line(0)), RATE.to_owned())];
    let panels = Panels { legend, charts, has_switch: false };
    let title = "Throughput of servers, second by second".to_owned();
    (!told.is_empty()).then(|| Sheet { title, says: says(&told), panels })
}

/// Transactions per second of each sample; where the server did not answer it did none.
fn rates(run: &WatchDocument) -> Option<Vec<f64>> {
    let samples = run.samples.get(1..)?;
    let is_told = samples.iter().any(|one| one.tps.is_some());
    is_told.then(|| samples.iter().map(|one| one.tps.unwrap_or(0.0)).collect())
}

fn recording_chart(
    at: usize,
    name: &str,
    run: &WatchDocument,
    values: Vec<f64>,
    top: f64,
) -> Chart {
    let width_s = run.duration_s / values.len().max(1) as f64;
    let slices = Slices { width_s, values, unit: RATE, title: name.to_owned() };
    let line = Line {
        name: String::new(),
        stroke: solid(Colour::Line(0)),
        course: Course::Slices(slices),
        marked: None,
    };
    let lines = Lines::new("s", RATE, vec![line]).panel(Scale::Shared(top));
    Chart::new(format!("recording-{at}"), name, Plot::Lines(lines))
}

/// What was recorded: the servers, for how long.
fn says(told: &[(&str, &WatchDocument, Vec<f64>)]) -> String {
    let mut servers: Vec<String> = Vec::new();
    for (_, run, _) in told {
        let server = format!("{} {}", run.target.flavour, run.target.version);
        if !servers.contains(&server) {
            servers.push(server);
        }
    }
    let longest = told.iter().map(|(_, run, _)| run.duration_s).fold(0.0, f64::max);
    format!("{}, up to {}.", servers.join(", "), words::value(longest, "s"))
}

#[cfg(test)]
mod tests {
    use iostrata_run::{WatchSample, WatchTarget};

    use super::*;
    use crate::report::svg;

    fn run(rates: &[Option<f64>]) -> WatchDocument {
        let samples = rates.iter().map(|tps| WatchSample { tps: *tps, ..WatchSample::default() });
        let target = WatchTarget {
            flavour: "mariadb".to_owned(),
            version: "10.11".to_owned(),
            ..WatchTarget::default()
        };
        WatchDocument {
            target,
            duration_s: 10.0,
            samples: samples.collect(),
            ..WatchDocument::default()
        }
    }

    #[test]
    fn each_run_is_a_panel_and_what_tells_nothing_is_none() {
        let (high, low) = (run(&[None, Some(400.0), None]), run(&[None, Some(40.0), Some(50.0)]));
        let silent = run(&[None, None]);
        let drawn = sheet_of_recordings(&[("before", &high), ("silent", &silent), ("after", &low)])
            .unwrap();
        let drawn = svg::sheet(&drawn);
        assert!(drawn.contains(">before<") && drawn.contains(">after<"), "{drawn}");
        assert!(!drawn.contains("silent"), "{drawn}");
        assert!(drawn.contains("mariadb 10.11, up to 10"), "{drawn}");
        assert!(sheet_of_recordings(&[("silent", &silent)]).is_none());
    }
}
