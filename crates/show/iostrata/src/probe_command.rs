//! `iostrata probe`: announces, runs, concludes, reports.

use std::path::PathBuf;
use std::time::Duration;

use iostrata_diagnose::{ProbeEnd, summarise};
use iostrata_host::{Root, describe_host, describe_path, quiet_check};
use iostrata_report::RunView;
use iostrata_run::{ProbeDocument, ProbeHost, RunKind, RunResult, Unavailable};
use iostrata_study::probe::{self, Announcement, ProbeOptions, ProbeOutcome, TooSmall};
use iostrata_units as units;

use crate::args::ProbeArgs;
use crate::display::{Display, colour, print_json, print_text, width};
use crate::ending::{Ending, ending_of};
use crate::kept::Keeper;
use crate::run_dir::RunDir;
use crate::signals::Interruption;

/// How long the device is watched for other users before the probe begins.
const QUIET: Duration = Duration::from_millis(600);
const PRECISION: f64 = 0.03;

/// Runs the command.
///
/// # Errors
/// As the contract's exit codes say.
pub fn run(args: &ProbeArgs, interruption: &Interruption) -> Result<(), Ending> {
    let options = options(args)?;
    let display = Display::new(args.common.printing.quiet);
    let root = Root::system();
    let path = describe_path(&root, &options.dir)
        .map_err(|error| Ending::Usage(format!("{}: {error}", options.dir.display())))?;
    let announcement = probe::announce(&options, &path).map_err(|error| match error {
        TooSmall::Asked(why) => Ending::Usage(why),
        TooSmall::Room(why) => Ending::NotHere(why),
    })?;
    let host = ProbeHost { machine: describe_host(&root), path };
    display.note(&announced(&options, &announcement, &host));
    note_other_users(&root, &host, &display);
    let mut run_dir = RunDir::begin(RunKind::Probe, "probe", args.common.out.as_deref())?;
    run_dir.manifest.host = Some(host.clone());
    run_dir.rewrite_manifest()?;
    if let Some(note) = &run_dir.note {
        display.note(note);
    }
    let outcome = {
        let mut listener = Keeper { display: &display, run_dir: &mut run_dir, goes_on: true };
        let flag = interruption.flag();
        probe::run(&options, &announcement, &host, flag, &mut listener)
    };
    display.finish();
    let outcome = match outcome {
        Err(_) if interruption.is_set() => {
            return Err(Ending::Interrupted(interruption.exit_code()));
        }
        outcome => outcome.map_err(ending_of)?,
    };
    let document = conclude(host, &outcome, &mut run_dir);
    show(args, &document, &run_dir, &outcome)?;
    run_dir.kept()?;
    if outcome.interrupted {
        return Err(Ending::Interrupted(interruption.exit_code()));
    }
    if document.rungs.iter().all(|rung| rung.name == "meter_null" || rung.name == "clock_read") {
        return Err(Ending::NotHere(format!(
            "nothing could be measured in {}: {}",
            options.dir.display(),
            why_nothing(&document.unavailable)
        )));
    }
    Ok(())
}

/// Why nothing was measured: what was left out says more than what this place lacks.
fn why_nothing(unavailable: &[Unavailable]) -> &str {
    let left_out = unavailable.iter().find(|one| one.is_left_out());
    left_out.or(unavailable.first()).map_or("no reason is known", |one| one.why.as_str())
}

/// The directory: DIR, or where the data of `--target` lies.
fn place(args: &ProbeArgs) -> Result<PathBuf, Ending> {
    match &args.target {
        None => Ok(args.dir.clone()),
        // The target may hold a password and is not repeated.
        Some(target) if target.contains("://") => Err(Ending::Usage(
            "--target: the probe measures storage and connects to no server; name the directory \
             of the server's data instead, for example iostrata probe /var/lib/mysql"
                .to_owned(),
        )),
        Some(target) => Ok(PathBuf::from(target.strip_prefix("engine:").unwrap_or(target))),
    }
}

fn options(args: &ProbeArgs) -> Result<ProbeOptions, Ending> {
    let named = place(args)?;
    let dir = std::fs::canonicalize(&named).map_err(|error| {
        Ending::Usage(format!("{}: {error}; name an existing directory", named.display()))
    })?;
    if !dir.is_dir() {
        return Err(Ending::Usage(format!(
            "{}: not a directory; probe works in own files of a directory (for one file or device \
             use iostrata io --path)",
            dir.display()
        )));
    }
    let precision = args.common.precision.unwrap_or(PRECISION);
    if !(precision > 0.0 && precision < 1.0) {
        return Err(Ending::Usage(format!(
            "--precision {precision}: out of range; use for example 0.03 or 3%"
        )));
    }
    if args.common.max_time.is_some_and(|time| time < Duration::from_secs(5)) {
        return Err(Ending::Usage(
            "--max-time: too short for a probe; use 5s or more (120s is the default)".to_owned(),
        ));
    }
    Ok(ProbeOptions {
        dir,
        read_only: args.read_only,
        write_bytes_max: args.max_write,
        size_bytes: args.size,
        time_max: args.common.max_time,
        point_time: args.common.point_time,
        precision,
        verify: args.verify,
    })
}

/// What it will write and for how long, said before it begins.
fn announced(options: &ProbeOptions, announcement: &Announcement, host: &ProbeHost) -> String {
    let device =
        host.path.devices.first().map_or_else(String::new, |device| format!(" on {}", device.name));
    let file_system = host.path.file_system.as_deref().unwrap_or("an unknown file system");
    let what = format!("Probing {} ({file_system}{device}).", options.dir.display());
    let files = units::bytes(announcement.file_bytes_max as f64);
    let time = units::seconds(announcement.time_max.as_secs_f64());
    let writes = if options.read_only {
        format!("Writes {files} once, to have something to read, and nothing after that;")
    } else {
        let written = units::bytes(announcement.written_bytes_max as f64);
        format!("Writes at most {written} in all, into own files of at most {files};")
    };
    format!(
        "{what} {writes} takes at most {time}. The files are removed at the end; Ctrl-C is safe."
    )
}

fn note_other_users(root: &Root, host: &ProbeHost, display: &Display) {
    let Some(check) = quiet_check(root, &host.path, QUIET) else { return };
    if check.quiet {
        return;
    }
    let others: Vec<String> = check
        .processes
        .iter()
        .take(3)
        .map(|process| format!("{} (pid {})", process.comm, process.pid))
        .collect();
    let who = if others.is_empty() { "unknown".to_owned() } else { others.join(", ") };
    display.note(&format!(
        "Something else is using {}: {who}. Figures will carry foreign_io where it shows.",
        check.device
    ));
}

/// Concludes and keeps the document and the report.
fn conclude(host: ProbeHost, outcome: &ProbeOutcome, run_dir: &mut RunDir) -> ProbeDocument {
    let end = ProbeEnd {
        bytes_written: outcome.written_bytes,
        duration_s: outcome.duration_s,
        interrupted: outcome.interrupted,
        is_full: outcome.is_full,
    };
    let mut document = summarise(host, &outcome.events, end);
    document.report = run_dir.report();
    if let Err(error) = run_dir.keep(&document) {
        run_dir.lose(error);
        document.report = None;
    }
    document
}

fn show(
    args: &ProbeArgs,
    document: &ProbeDocument,
    run_dir: &RunDir,
    outcome: &ProbeOutcome,
) -> Result<(), Ending> {
    if args.common.printing.json {
        return print_json(document);
    }
    let result = RunResult::Probe(Box::new(document.clone()));
    let view = RunView {
        manifest: &run_dir.manifest,
        result: Some(&result),
        events: &outcome.events,
        notes: &[],
    };
    print_text(&iostrata_report::terminal(&view, width(), colour()))?;
    document.report.iter().try_for_each(|report| print_text(&format!("Report: {report}\n")))
}
