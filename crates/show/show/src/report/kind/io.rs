//! The run of one I/O workload, and of job files: each job as a single workload is shown.

use iostrata_plan::OpKind;
use iostrata_run::{FioDocument, FioJobDocument, IoDocument, IoOpDocument, RunResult};
use iostrata_stats::LatencyUs;

use super::common::{host, latencies, method, over_time, percentiles, replicate_verdicts};
use crate::report::cell::{Span, Text, Tone, empty, figure, optional, text};
use crate::report::document::{Block, Blocks, Card, On, Report, Style, Table};
use crate::report::view::Head;
use crate::report::{RunView, words};

pub(super) fn report(view: &RunView<'_>, _on: On) -> Option<(Head, Report)> {
    let Some(RunResult::Io(io)) = view.result else { return None };
    // A terminal has the figures below in the same few lines.
    let mut report = Report::new(&[], "");
    report.headline = vec![headline(io)];
    report.strip = cards(io);
    report.add("requests", "Requests", workload(io));
    report.add("time", "Over time", over_time(view, On::PAGE));
    report.add("host", "The machine", host(view, None));
    let mut all = replicate_verdicts(view);
    all.extend(io.verdicts.iter());
    report.add("method", "How it was measured", method(false, all));
    report.kept = io.run.as_ref().map(|run| format!("The run is kept in {run}").into());
    Some((view.head(None, None), report))
}

/// `104 K reads/s, writes unknown`.
pub(super) fn headline(io: &IoDocument) -> String {
    let rate = |(name, op): (&str, &IoOpDocument)| {
        let shown = words::shown(op.iops, op.iops_ci95, &format!("{name}/s"));
        if shown.why.is_some() { format!("{name} {}", shown.text) } else { shown.text }
    };
    let rates: Vec<String> = io.ops.named().map(rate).collect();
    if rates.is_empty() { "Nothing completed".to_owned() } else { rates.join(", ") }
}

/// One for each kind of request.
pub(super) fn cards(io: &IoDocument) -> Vec<Card> {
    let card = |(name, op): (&'static str, &IoOpDocument)| {
        let shown = words::shown(op.iops, op.iops_ci95, &format!("{name}/s"));
        let half = shown.half.map_or(String::new(), |half| format!("{half}, "));
        let why = shown.why.map_or(String::new(), |why| format!("{why}; "));
        let bandwidth = match op.bytes_per_s {
            rate if rate > 0.0 => format!("{}, ", words::value(rate, "bytes/s")),
            _ => String::new(),
        };
        let us = |us: f64| words::value(us, "us");
        let latency = match op.ios {
            0 => String::new(),
            _ => format!(
                "; {bandwidth}mean {}, p99 {}",
                us(op.latency_us.mean),
                us(op.latency_us.p99)
            ),
        };
        let rest = format!("{why}{half}n = {}{latency}", op.iops_n);
        Card { title: name, big: shown.text.into(), text: rest.into() }
    };
    io.ops.named().map(card).collect()
}

/// Figures and percentiles, and what speaks against them.
pub(super) fn workload(io: &IoDocument) -> Blocks {
    let mut body = Blocks::new();
    body.table(On::ALL, table(io));
    body.note(effort(io));
    if let Some(repeats) = repeats(io) {
        body.note(repeats);
    }
    let warn = |words: String| Block::Text(Style::Note(Tone::Warn), words.into());
    for one in &io.unknown {
        let why = words::because(one.why, one.between, None, &one.unit);
        let kind = OpKind::ALL.iter().find(|kind| kind.name() == one.name);
        let name = kind.map_or(one.title.as_str(), |kind| kind.plural());
        body.add(On::ALL, warn(format!("{name} unknown: {why}")));
    }
    if !io.verdicts.is_sound() {
        body.add(On::ALL, Block::Verdicts(io.verdicts.iter().collect()));
    }
    for error in &io.errors {
        let words = format!("{} requests failed with error {}", error.count, error.errno);
        body.add(On::ALL, warn(words));
    }
    for note in &io.notes {
        body.note(note.as_str());
    }
    body
}

fn table(io: &IoDocument) -> Table {
    // Name, requests, latency, and whether the rate belongs to the row.
    let mut rows: Vec<(Text, &IoOpDocument, Option<LatencyUs>, bool)> = Vec::new();
    for (name, op) in io.ops.named() {
        for (us, is_service) in latencies(op.ios > 0, op.latency_us, op.response_us) {
            let name = match is_service {
                true => Text::default().strong(name),
                false => Text::from(format!("{name}, from schedule")),
            };
            rows.push((name, op, us, is_service));
        }
    }
    let rate = |op: &IoOpDocument| figure(op.iops, op.iops_ci95, op.iops_n, "/s");
    // Flushes move no bytes of their own.
    let bytes = |op: &IoOpDocument| optional(Some(op.bytes_per_s).filter(|b| *b > 0.0), "bytes/s");
    let table = Table::of(rows)
        .words("", |(name, ..)| text(name.clone()))
        .numbers("rate", |(_, op, _, own)| if *own { rate(op) } else { empty() })
        .numbers("bandwidth", |(_, op, _, own)| if *own { bytes(op) } else { empty() })
        .numbers("mean", |(_, _, us, _)| optional(us.map(|us| us.mean), "us"));
    let table = percentiles(table, |(_, _, us, _)| *us);
    table.numbers("max", |(_, _, us, _)| optional(us.map(|us| us.max), "us")).into()
}

fn effort(io: &IoDocument) -> String {
    let mut text = format!(
        "{} measured, {} in flight, CPU {} user + {} system",
        words::value(io.duration_s, "s"),
        words::value(io.depth_mean, ""),
        words::value(io.cpu.user_s, "s"),
        words::value(io.cpu.sys_s, "s"),
    );
    if let Some(ns) = io.cpu.ns_per_io {
        text.push_str(&format!(", {} per request", words::value(ns, "ns")));
    }
    if let Some(late) = io.start_lateness_us_p99 {
        text.push_str(&format!(", start lateness p99 {}", words::value(late, "us")));
    }
    text
}

/// What the intervals above do not cover: the next run.
fn repeats(io: &IoDocument) -> Option<String> {
    let moved = io.ops.iter().filter(|(kind, _)| *kind != OpKind::Sync);
    let found = moved.filter_map(|(kind, op)| {
        let name = kind.plural();
        let [low, high] = op.iops_repeat_ci95?;
        let range = format!("{} to {}", words::value(low, "/s"), words::value(high, "/s"));
        Some((op.iops_repeat_n, format!("{range} {name}")))
    });
    let (runs, ranges): (Vec<u64>, Vec<String>) = found.unzip();
    let basis = match runs.first()? {
        0 => "no earlier run here; a drift of 5 % is assumed".to_owned(),
        1 => "by one earlier run here".to_owned(),
        runs => format!("by {runs} earlier runs here"),
    };
    let ranges = ranges.join(", ");
    Some(format!("\u{b1} is for this window; measured again within the hour: {ranges} ({basis})"))
}

pub(super) fn fio_report(view: &RunView<'_>, _on: On) -> Option<(Head, Report)> {
    let Some(RunResult::Fio(fio)) = view.result else { return None };
    let jobs: Vec<&FioJobDocument> = fio.waves.iter().flat_map(|wave| &wave.jobs).collect();
    let written = words::value(fio.bytes_written as f64, "bytes");
    let mut summary = Text::from(format!("{written} written."));
    if !fio.verdicts.is_sound() {
        summary = summary.plain(" ").with(Span::Verdicts(fio.verdicts.clone()));
    }
    let mut report = Report::new(&[], summary);
    match jobs.as_slice() {
        [only] => {
            report.headline = vec![headline(&only.figures)];
            report.strip = cards(&only.figures);
        }
        jobs => {
            let waves = if fio.waves.len() == 1 { "together" } else { "in waves" };
            report.headline = vec![format!("{} workloads, run {waves}", jobs.len())];
        }
    }
    sections(&mut report, fio);
    report.add("time", "Over time", over_time(view, On::PAGE));
    report.add("host", "The machine", host(view, None));
    let mut all = replicate_verdicts(view);
    all.extend(fio.verdicts.iter());
    report.add("method", "How it was measured", method(false, all));
    report.kept = fio.run.as_ref().map(|run| format!("The run is kept in {run}").into());
    Some((view.head(None, None), report))
}

/// One for each job, and one for what was ignored of the job files.
fn sections(report: &mut Report, fio: &FioDocument) {
    for (number, wave) in fio.waves.iter().enumerate() {
        for (place, job) in wave.jobs.iter().enumerate() {
            let clones = match job.clones {
                1 => String::new(),
                clones => format!(", {clones} clones"),
            };
            let duration = words::value(wave.duration_s, "s");
            let of = match fio.waves.len() {
                1 => String::new(),
                _ => format!(" (wave {}, {duration})", number + 1),
            };
            let mut body = workload(&job.figures);
            if let Some(description) = &job.description {
                let say =
                    Block::Text(crate::report::document::Style::Say, description.as_str().into());
                body.0.insert(0, (On::ALL, say));
            }
            let id = format!("job-{}-{}", number + 1, place + 1);
            report.add(&id, &format!("{}{clones}{of}", job.name), body);
        }
    }
    if !fio.warnings.is_empty() {
        let mut body = crate::report::document::Blocks::new();
        let all = fio.warnings.iter().map(|warning| warning.to_string().into()).collect();
        body.add(On::ALL, Block::List(all));
        report.add("warnings", "Not as fio does it", body);
    }
}
