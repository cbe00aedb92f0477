//! `iostrata report`: makes the views of runs again, finished or partial.

use std::path::{Path, PathBuf};

use iostrata_database::watch::WatchRecord;
use iostrata_diagnose::{ProbeEnd, summarise, summarise_study};
use iostrata_run::{RunKind, RunReadError, RunReader, RunResult, RunWriter};
use iostrata_show::report::RunView;

use crate::args::{Format, ReportArgs};
use crate::display::{colour, print_json, print_text, width};
use crate::exit_error::ExitError;
use crate::watch_command::concluded;

/// Runs the command.
///
/// # Errors
/// When a run cannot be read, or its report not be written.
pub fn run(args: &ReportArgs) -> Result<(), ExitError> {
    let format = if args.json { Some(Format::Json) } else { args.format };
    if format == Some(Format::Svg) && args.runs.len() > 1 {
        return recordings(&args.runs);
    }
    args.runs.iter().try_for_each(|dir| one(dir, format))
}

/// One run in one form; without a form its summary and, last, the path of its report.
fn one(dir: &Path, format: Option<Format>) -> Result<(), ExitError> {
    let bad = |error: RunReadError| ExitError::Usage(error.to_string());
    let mut run = RunReader::open(dir).map_err(bad)?;
    let concluded = match run.result() {
        Some(_) => None,
        None => {
            run.read_histograms().map_err(bad)?;
            conclude(&run)
        }
    };
    let view = RunView {
        manifest: run.manifest(),
        result: concluded.as_ref().or(run.result()),
        events: run.events(),
        notes: run.notes(),
    };
    let summary = || print_text(&iostrata_show::report::terminal(&view, width(), colour()));
    match format {
        None => {
            summary()?;
            write_html(dir, &run, &view)
        }
        Some(Format::Html) => write_html(dir, &run, &view),
        Some(Format::Markdown) => print_text(&iostrata_show::report::markdown(&view)),
        Some(Format::Terminal) => summary(),
        Some(Format::Svg) => match view.result {
            Some(RunResult::Watch(_)) => recordings(&[dir.to_owned()]),
            _ => match iostrata_show::report::svg(&view) {
                Ok(picture) => print_text(&picture),
                Err(error) => Err(ExitError::Usage(format!("{}: {error}", dir.display()))),
            },
        },
        Some(Format::Json) => match view.result {
            Some(result) => print_json(result),
            None => Err(ExitError::NotHere(format!("{}: no result was kept", dir.display()))),
        },
    }
}

/// Recordings as one picture, by the names of their directories.
fn recordings(dirs: &[PathBuf]) -> Result<(), ExitError> {
    let open = |dir: &PathBuf| {
        let name = dir.file_name().unwrap_or(dir.as_os_str()).to_string_lossy().into_owned();
        let run = RunReader::open(dir).map_err(|error| ExitError::Usage(error.to_string()))?;
        Ok((name, run))
    };
    let runs = dirs.iter().map(open).collect::<Result<Vec<_>, ExitError>>()?;
    let views: Vec<(&str, RunView<'_>)> =
        runs.iter().map(|(name, run)| (name.as_str(), RunView::of(run))).collect();
    match iostrata_show::report::svg_of_recordings(&views) {
        Ok(picture) => print_text(&picture),
        Err(error) => {
            let text = format!("several runs are drawn where all are recordings: {error}");
            Err(ExitError::Usage(text))
        }
    }
}

/// The result of a run that was killed before it could conclude.
fn conclude(run: &RunReader) -> Option<RunResult> {
    if matches!(run.manifest().kind, RunKind::Watch | RunKind::Tune) {
        let document = WatchRecord::document_of(run.events())?;
        return Some(RunResult::Watch(Box::new(concluded(document))));
    }
    let host = run.manifest().host.clone()?;
    let (events, end) = (run.events(), ProbeEnd::of(run.events()));
    match (run.manifest().kind, &run.manifest().study) {
        (RunKind::Study, Some(plan)) => {
            Some(RunResult::Study(Box::new(summarise_study(host, plan, events, end))))
        }
        (RunKind::Probe, _) => Some(RunResult::Probe(Box::new(summarise(host, events, end)))),
        _ => None,
    }
}

fn write_html(dir: &Path, run: &RunReader, view: &RunView<'_>) -> Result<(), ExitError> {
    let html = iostrata_show::report::html(view);
    let path = RunWriter::resume(dir, run.manifest())
        .and_then(|writer| writer.write_report(&html))
        .map_err(|error| {
            ExitError::NotHere(format!("the report cannot be written: {error} (or use --format)"))
        })?;
    print_text(&format!("{}\n", path.display()))
}
