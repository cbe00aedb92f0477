//! `iostrata study diff`: two points of studies beside each other, with their profiles compared.
//!
//! Invariant: points are found by their id or refused with the ids that there are.

use std::path::{Path, PathBuf};

use iostrata_diagnose::{ProbeEnd, summarise_study};
use iostrata_run::host::ProfileDiff;
use iostrata_run::{RunReader, RunResult, StudyDiffDocument, StudyDocument, StudyPoint};
use iostrata_show::report::PointDiff;

use crate::args::DiffArgs;
use crate::display::{colour, print_json, print_text, width};
use crate::exit_error::ExitError;

/// Ids that a refusal lists.
const IDS_LISTED: usize = 12;

/// Runs the command.
///
/// # Errors
/// As the contract's exit codes say.
pub fn run(args: &DiffArgs) -> Result<(), ExitError> {
    let a = point(&args.a, args.run.as_deref())?;
    let b = point(&args.b, args.run.as_deref())?;
    let profiles = a.profile.as_ref().zip(b.profile.as_ref());
    let profile = profiles.map(|(a, b)| ProfileDiff::of(a, b));
    if args.printing.json {
        return print_json(&StudyDiffDocument { a, b, profile });
    }
    let diff = PointDiff { a: (&args.a, &a), b: (&args.b, &b), profile: profile.as_ref() };
    print_text(&iostrata_show::report::point_diff_terminal(&diff, width(), colour()))
}

/// A point: its id where the run is named apart, else `RUN:POINT`.
fn point(name: &str, run: Option<&Path>) -> Result<StudyPoint, ExitError> {
    let bad = |why: String| ExitError::Usage(format!("study diff {name}: {why}"));
    let (run, id) = match (run, name.rsplit_once(':')) {
        (Some(run), _) => (run.to_owned(), name),
        (None, Some((run, id))) => (PathBuf::from(run), id),
        (None, None) => {
            return Err(bad("no run is named; write RUN:POINT, or add --run RUN".to_owned()));
        }
    };
    let document = document(&run).map_err(bad)?;
    let found = document.points.iter().position(|point| point.id == id);
    match found {
        Some(at) => Ok(document.points.into_iter().nth(at).unwrap_or_else(|| {
            panic!("point {at} was just found");
        })),
        None => {
            let ids: Vec<&str> =
                document.points.iter().take(IDS_LISTED).map(|point| point.id.as_str()).collect();
            let more = document.points.len().saturating_sub(ids.len());
            let and = if more > 0 { format!(" and {more} more") } else { String::new() };
            Err(bad(format!("the run has no such point; it has {}{and}", ids.join(", "))))
        }
    }
}

/// The document of a finished run, or what a partial one's events say.
fn document(run: &Path) -> Result<StudyDocument, String> {
    let mut reader = RunReader::open(run).map_err(|error| error.to_string())?;
    if let Some(RunResult::Study(document)) = reader.result() {
        return Ok(document.as_ref().clone());
    }
    reader.read_histograms().map_err(|error| error.to_string())?;
    let manifest = reader.manifest();
    let (Some(plan), Some(host)) = (&manifest.study, &manifest.host) else {
        return Err("the run is no study; name the run directory of one".to_owned());
    };
    Ok(summarise_study(host.clone(), plan, reader.events(), ProbeEnd::of(reader.events())))
}
