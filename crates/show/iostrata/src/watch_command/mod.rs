//! `iostrata watch`: samples of targets as they come, in one of several views.
//!
//! Invariant: nothing is changed on what is watched, but for counters, and for the settings that a
//! recording advises, when that is requested. Views take samples from a [`Stream`]; what is
//! recorded and exported is so there, whichever view runs.

#[cfg(test)]
mod golden_tests;
mod lines;
pub mod recorder;
pub mod source;
mod stall_hook;
mod stream;
mod summary;
mod trial;

use std::io::IsTerminal;
use std::sync::Arc;

use iostrata_change::ServerToken;
use iostrata_database::watch::WatchStep;
use iostrata_diagnose::diagnose_watch;
use iostrata_run::{RunKind, RunResult, StallSnapshot, WatchDocument, WatchSample};
use iostrata_study::Listener;
use serde::Serialize;

use crate::args::WatchArgs;
use crate::display::{Display, print_json, print_text};
use crate::exit_error::ExitError;
use crate::run_sink::RunSink;
use crate::signals::Interruption;
use crate::simulate_command::expect;
use recorder::Export;
use source::EnabledCounters;
use source::Source;
use stream::{Next, Stream, TargetUpdate};
use trial::Trial;

/// Runs the command.
///
/// # Errors
/// With the exit codes of the contract.
pub fn run(args: &WatchArgs, interruption: &Interruption) -> Result<(), ExitError> {
    let is_one = args.targets.len() == 1;
    if !is_one && (args.record.is_some() || args.printing.json) {
        let option = if args.printing.json { "--json" } else { "--record" };
        return Err(ExitError::Usage(format!(
            "{option}: {} targets were named; name one, or use --json-lines",
            args.targets.len()
        )));
    }
    if args.summary {
        return summary::run(args, interruption);
    }
    let export = args.metrics_addr.map(Export::listen).transpose()?;
    let trial = if args.verify { Some(Trial::begin(args)?) } else { None };
    let display = Display::new(args.printing.quiet);
    let mut sink = match &args.record {
        Some(dir) => Some(RunSink::begin(RunKind::Watch, "watch", Some(dir), &display)?),
        None => None,
    };
    let counters = if args.enable_counters { Some(EnabledCounters::enable(args)?) } else { None };
    let mut set: Vec<ServerToken> = trial.iter().map(|trial| trial.one().clone()).collect();
    set.extend(counters.iter().flat_map(|counters| counters.servers.clone()));
    let sources: Result<Vec<Source>, ExitError> =
        args.targets.iter().map(|target| Source::open(target, args, &set)).collect();
    let keeper = sink.as_mut().map(|sink| sink as &mut (dyn Listener + Send));
    let mut stream = Stream::begin(sources?, args, keeper, interruption)?;
    if let Some(export) = &export {
        export.begin(&stream.targets, &display);
        stream.export_to(Arc::clone(&export.board));
    }
    let ended = view(args, &mut stream, &display);
    let ended = ended.and(counters.map_or(Ok(()), EnabledCounters::put_back));
    drop(export);
    let commands = stream.stall_commands();
    for one in commands.iter().filter(|one| !one.is_sound) {
        let at = iostrata_stats::units::seconds(one.stall_t_s);
        display.note(&format!("--on-stall at {at} ({}): {}", one.target, one.ended));
    }
    let mut document = stream.document().map(concluded);
    if let Some(document) = &mut document {
        document.on_stall = commands;
    }
    drop(stream);
    let tried = match (&trial, &mut document) {
        (Some(trial), Some(document)) if ended.is_ok() && !interruption.is_set() => {
            trial.run(args, document, (&display, interruption))
        }
        _ => Ok(()),
    };
    if let (Some(sink), Some(document)) = (&mut sink, &document) {
        keep(sink, document, args)?;
    }
    if let Some(document) = document.filter(|_| args.printing.json && !args.once) {
        print_json(&document)?;
    }
    let ended = ended.and(tried).and(match interruption.is_set() {
        true => Err(ExitError::Interrupted(interruption.exit_code())),
        false => Ok(()),
    });
    match sink {
        Some(sink) => sink.end(ended),
        None => ended,
    }
}

/// With what follows from it.
pub fn concluded(document: WatchDocument) -> WatchDocument {
    let (findings, advice) = diagnose_watch(&document);
    let mut concluded = WatchDocument { findings, advice, ..document };
    expect(&mut concluded);
    concluded
}

/// Shows the samples until they end.
fn view(args: &WatchArgs, stream: &mut Stream<'_>, display: &Display) -> Result<(), ExitError> {
    match args {
        WatchArgs { once: true, .. } => once(args, stream, display),
        WatchArgs { json_lines: true, .. } => each(stream, json_line),
        args if args.printing.json => each(stream, |_| Ok(())),
        _ if args.lines || args.printing.quiet || !lines::has_screen() => {
            lines::show_lines(stream, display, std::io::stdout().is_terminal())
        }
        _ => lines::show_screen(stream),
    }
}

/// Takes every sample as it comes.
fn each(
    stream: &mut Stream<'_>,
    mut take: impl FnMut(&TargetUpdate) -> Result<(), ExitError>,
) -> Result<(), ExitError> {
    loop {
        match stream.next() {
            Next::Sample(arrived) => take(&arrived)?,
            Next::Nothing => {}
            Next::End => return Ok(()),
        }
    }
}

/// A sample, with what went on when a stall began where that was requested.
#[derive(Serialize)]
struct JsonLine<'a> {
    #[serde(flatten)]
    sample: &'a WatchSample,
    #[serde(skip_serializing_if = "Option::is_none")]
    snapshot: Option<&'a StallSnapshot>,
}

fn json_line(arrived: &TargetUpdate) -> Result<(), ExitError> {
    let WatchStep { sample, snapshot, .. } = &arrived.watched;
    let text = serde_json::to_string(&JsonLine { sample, snapshot: snapshot.as_deref() })
        .map_err(|error| ExitError::Bug(format!("the sample cannot be written: {error}")))?;
    print_text(&format!("{text}\n"))
}

/// The first sample with rates of each target.
fn once(args: &WatchArgs, stream: &mut Stream<'_>, display: &Display) -> Result<(), ExitError> {
    let mut samples: Vec<TargetUpdate> = Vec::new();
    each(stream, |arrived| {
        samples.retain(|one| one.target != arrived.target);
        samples.push(arrived.clone());
        Ok(())
    })?;
    samples.sort_by_key(|one| one.target);
    let errors: Vec<&String> =
        samples.iter().filter_map(|one| one.watched.sample.error.as_ref()).collect();
    // Of several, those that answer are shown with those that do not.
    if let Some(error) = errors.first().filter(|_| errors.len() == samples.len()) {
        return Err(ExitError::NotHere((*error).clone()));
    }
    if args.json_lines {
        return samples.iter().try_for_each(json_line);
    }
    match samples.first() {
        Some(only) if args.printing.json => print_json(&only.watched.sample),
        _ => lines::once(stream, &samples, display),
    }
}

/// Keeps the document with its report, and prints where.
fn keep(
    sink: &mut RunSink<'_>,
    document: &WatchDocument,
    args: &WatchArgs,
) -> Result<(), ExitError> {
    let is_kept = sink.keep_with_report(document);
    if is_kept && !args.printing.json && !args.json_lines && !args.once {
        let result = RunResult::Watch(Box::new(document.clone()));
        sink.print(&result, &[], false)?;
    }
    Ok(())
}
