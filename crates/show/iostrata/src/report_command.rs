//! `iostrata report`: makes the views of runs again, finished or partial.

use std::path::Path;

use iostrata_diagnose::{ProbeEnd, summarise, summarise_study};
use iostrata_report::RunView;
use iostrata_run::{Event, RunKind, RunReadError, RunReader, RunResult, RunWriter};
use iostrata_spec::OpKind;

use crate::args::{Format, ReportArgs};
use crate::display::{colour, print_json, print_text, width};
use crate::ending::Ending;
use crate::study_diff::end_of;

/// Runs the command.
///
/// # Errors
/// When a run cannot be read, or its report not be written.
pub fn run(args: &ReportArgs) -> Result<(), Ending> {
    let format = if args.json { Some(Format::Json) } else { args.format };
    args.runs.iter().try_for_each(|dir| one(dir, format))
}

/// One run in one form; without a form its summary and, last, the path of its report.
fn one(dir: &Path, format: Option<Format>) -> Result<(), Ending> {
    let bad = |error: RunReadError| Ending::Usage(error.to_string());
    let mut run = RunReader::open(dir).map_err(bad)?;
    let concluded = match run.result() {
        Some(_) => None,
        None => {
            run.read_histograms().map_err(bad)?;
            conclude(&run)?
        }
    };
    let view = RunView {
        manifest: run.manifest(),
        result: concluded.as_ref().or(run.result()),
        events: run.events(),
        notes: run.notes(),
    };
    let summary = || print_text(&iostrata_report::terminal(&view, width(), colour()));
    match format {
        None => {
            summary()?;
            write_html(dir, &run, &view)
        }
        Some(Format::Html) => write_html(dir, &run, &view),
        Some(Format::Markdown) => print_text(&iostrata_report::markdown(&view)),
        Some(Format::Terminal) => summary(),
        Some(Format::Json) => match view.result {
            Some(result) => print_json(result),
            None => Err(Ending::NotHere(format!("{}: no result was kept", dir.display()))),
        },
    }
}

/// The result of a probe or study that was killed before it could conclude.
fn conclude(run: &RunReader) -> Result<Option<RunResult>, Ending> {
    let Some(host) = run.manifest().host.clone() else { return Ok(None) };
    if let (RunKind::Study, Some(plan)) = (run.manifest().kind, &run.manifest().study) {
        let document = summarise_study(host, plan, run.events(), end_of(run.events()));
        return Ok(Some(RunResult::Study(Box::new(document))));
    }
    if run.manifest().kind != RunKind::Probe {
        return Ok(None);
    }
    let last_s = run.events().iter().rev().find_map(|event| match event {
        Event::Replicate(replicate) => Some(replicate.started_s + replicate.duration_s),
        _ => None,
    });
    let written = run.events().iter().map(|event| match event {
        Event::Replicate(replicate) => replicate
            .streams
            .iter()
            .filter_map(|s| s.ops[OpKind::Write].as_ref())
            .map(|w| w.bytes)
            .sum(),
        _ => 0,
    });
    let end = ProbeEnd {
        bytes_written: written.sum(),
        duration_s: last_s.unwrap_or(0.0),
        interrupted: true,
        is_full: false,
    };
    Ok(Some(RunResult::Probe(Box::new(summarise(host, run.events(), end)))))
}

fn write_html(dir: &Path, run: &RunReader, view: &RunView<'_>) -> Result<(), Ending> {
    let html = iostrata_report::html(view);
    let path = RunWriter::resume(dir, run.manifest())
        .and_then(|writer| writer.write_report(&html))
        .map_err(|error| {
            Ending::NotHere(format!("the report cannot be written: {error} (or use --format)"))
        })?;
    print_text(&format!("{}\n", path.display()))
}
