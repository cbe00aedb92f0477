//! `iostrata probe`: announces, runs, concludes, reports.

use std::path::PathBuf;
use std::time::Duration;

use iostrata_diagnose::{ProbeEnd, summarise};
use iostrata_host::{Root, describe_host, describe_path, quiet_check};
use iostrata_run::{ProbeDocument, ProbeHost, RunKind, RunResult, Rung, Unavailable};
use iostrata_study::RunOutcome;
use iostrata_study::probe::{self, Announcement, ProbeOptions, TooSmall};
use iostrata_units as units;

use crate::args::ProbeArgs;
use crate::display::{Display, print_text};
use crate::exit_error::{ExitError, exit_error};
use crate::run_sink::RunSink;
use crate::signals::Interruption;
use iostrata_spec::rung;

/// How long the device is watched for other users before the probe begins.
const QUIET: Duration = Duration::from_millis(600);
const PRECISION: f64 = 0.03;

/// Runs the command.
///
/// # Errors
/// As the contract's exit codes say.
pub fn run(args: &ProbeArgs, interruption: &Interruption) -> Result<(), ExitError> {
    let options = options(args)?;
    let display = Display::new(args.common.printing.quiet);
    let root = Root::system();
    let path = describe_path(&root, &options.dir)
        .map_err(|error| ExitError::Usage(format!("{}: {error}", options.dir.display())))?;
    let announcement = probe::announce(&options, &path).map_err(|error| match error {
        TooSmall::Asked(why) => ExitError::Usage(why),
        TooSmall::Room(why) => ExitError::NotHere(why),
    })?;
    let host = ProbeHost { machine: describe_host(&root), path };
    display.note(&announced(&options, &announcement, &host));
    note_other_users(&root, &host, &display);
    let out = args.common.out.as_deref();
    let mut sink = RunSink::begin(RunKind::Probe, "probe", out, &display)?;
    sink.amend(|manifest| manifest.host = Some(host.clone()))?;
    sink.say_whether_kept();
    let outcome = probe::run(&options, &announcement, &host, interruption.flag(), &mut sink);
    display.finish();
    let outcome = match outcome {
        Err(_) if interruption.is_set() => {
            return Err(ExitError::Interrupted(interruption.exit_code()));
        }
        outcome => outcome.map_err(exit_error)?,
    };
    let mut document = summarise(host, &outcome.events, ProbeEnd::of(&outcome.events));
    document.report = sink.report();
    if !sink.keep_with_report(&document) {
        document.report = None;
    }
    show(args, &document, &sink, &outcome)?;
    let of_storage = |rung: &Rung| rung.name != rung::METER_NULL && rung.name != "clock_read";
    sink.end(if outcome.interrupted {
        Err(ExitError::Interrupted(interruption.exit_code()))
    } else if !document.rungs.iter().any(of_storage) {
        Err(ExitError::NotHere(format!(
            "nothing could be measured in {}: {}",
            options.dir.display(),
            why_nothing(&document.unavailable)
        )))
    } else {
        Ok(())
    })
}

/// Why nothing was measured: what was planned says more than what this place lacks.
fn why_nothing(unavailable: &[Unavailable]) -> &str {
    let planned = unavailable.iter().find(|one| one.was_planned());
    planned.or(unavailable.first()).map_or("no reason is known", |one| one.why.as_str())
}

/// The directory: DIR, or where the data of `--target` lies.
fn place(args: &ProbeArgs) -> Result<PathBuf, ExitError> {
    match &args.target {
        None => Ok(args.dir.clone()),
        // The target may hold a password and is not repeated.
        Some(target) if target.contains("://") => Err(ExitError::Usage(
            "--target: the probe measures storage and connects to no server; name the directory \
             of the server's data instead, for example iostrata probe /var/lib/mysql"
                .to_owned(),
        )),
        Some(target) => Ok(PathBuf::from(target.strip_prefix("engine:").unwrap_or(target))),
    }
}

fn options(args: &ProbeArgs) -> Result<ProbeOptions, ExitError> {
    let named = place(args)?;
    let dir = std::fs::canonicalize(&named).map_err(|error| {
        ExitError::Usage(format!("{}: {error}; name an existing directory", named.display()))
    })?;
    if !dir.is_dir() {
        return Err(ExitError::Usage(format!(
            "{}: not a directory; probe works in own files of a directory (for one file or device \
             use iostrata io --path)",
            dir.display()
        )));
    }
    let precision = args.common.precision.unwrap_or(PRECISION);
    if !(precision > 0.0 && precision < 1.0) {
        return Err(ExitError::Usage(format!(
            "--precision {precision}: out of range; use for example 0.03 or 3%"
        )));
    }
    if args.common.max_time.is_some_and(|time| time < Duration::from_secs(5)) {
        return Err(ExitError::Usage(
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

fn show(
    args: &ProbeArgs,
    document: &ProbeDocument,
    sink: &RunSink<'_>,
    outcome: &RunOutcome,
) -> Result<(), ExitError> {
    let json = args.common.printing.json;
    sink.print(&RunResult::Probe(Box::new(document.clone())), &outcome.events, json)?;
    let report = document.report.iter().filter(|_| !json);
    report.into_iter().try_for_each(|report| print_text(&format!("Report: {report}\n")))
}
