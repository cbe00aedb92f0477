//! `iostrata probe`: announces, runs, concludes, reports.

mod database;
mod place;

use std::path::PathBuf;
use std::time::Duration;

use iostrata_diagnose::{ProbeEnd, summarise};
use iostrata_linux::host::{Root, describe_host, describe_path, quiet_check};
use iostrata_run::host::PathFacts;
use iostrata_run::{ProbeDocument, ProbeHost, RunKind, RunResult, Rung, Unavailable};
use iostrata_server::OWN_DATABASE;
use iostrata_stats::units;
use iostrata_study::RunOutcome;
use iostrata_study::probe::{
    self, Announcement, ProbeOptions, ProbedDatabase, TooSmall, Transactions,
};

use self::database::OwnTables;
use self::place::ProbedPlace;
use crate::args::ProbeArgs;
use crate::display::{Display, print_text};
use crate::exit_error::{ExitError, exit_error};
use crate::run_sink::RunSink;
use crate::signals::Interruption;
use iostrata_plan::rung;

/// How long the device is watched for other users before the probe begins.
const QUIET: Duration = Duration::from_millis(600);
const PRECISION: f64 = 0.03;

/// Runs the command.
///
/// # Errors
/// As the contract's exit codes say.
pub fn run(args: &ProbeArgs, interruption: &Interruption) -> Result<(), ExitError> {
    let mut place = ProbedPlace::of(args)?;
    let options = options_of(args, &place)?;
    let display = Display::new(args.common.printing.quiet);
    let root = Root::system();
    let path = path_of(&root, &options)?;
    let announcement = announcement_of(&options, &path)?;
    let host = ProbeHost { machine: describe_host(&root), path };
    display.note(&announced(&options, &announcement, &host, place.database().as_deref()));
    if options.transactions != Transactions::Measured {
        return measure(args, (&options, &announcement, host), None, interruption);
    }
    let mut own = place.make_own(interruption)?;
    // Only now it is known whether the directory is the server's.
    let ended = options_of(args, &place).and_then(|checked| match checked == options {
        true => measure(args, (&options, &announcement, host), Some(&mut own), interruption),
        false => {
            let path = path_of(&root, &checked)?;
            let announcement = announcement_of(&checked, &path)?;
            display.note(place.directory().err().unwrap_or_default());
            let host = ProbeHost { machine: host.machine, path };
            measure(args, (&checked, &announcement, host), Some(&mut own), interruption)
        }
    });
    let removed = own.remove();
    ended.and(removed)
}

/// What lies under the directory, where there is one.
fn path_of(root: &Root, options: &ProbeOptions) -> Result<PathFacts, ExitError> {
    match &options.below_is_unknown {
        Some(missing) => {
            Ok(PathFacts { notes: vec![missing.why.clone()], ..PathFacts::unknown("") })
        }
        None => describe_path(root, &options.dir)
            .map_err(|error| ExitError::Usage(format!("{}: {error}", options.dir.display()))),
    }
}

fn announcement_of(options: &ProbeOptions, path: &PathFacts) -> Result<Announcement, ExitError> {
    probe::announce(options, path).map_err(|error| match error {
        TooSmall::Asked(why) => ExitError::Usage(why),
        TooSmall::Room(why) => ExitError::NotHere(why),
    })
}

/// Runs what was announced, and shows it.
fn measure(
    args: &ProbeArgs,
    (options, announcement, host): (&ProbeOptions, &Announcement, ProbeHost),
    database: Option<&mut OwnTables>,
    interruption: &Interruption,
) -> Result<(), ExitError> {
    let display = Display::new(args.common.printing.quiet);
    note_other_users(&Root::system(), &host, &display);
    let out = args.common.out.as_deref();
    let mut sink = RunSink::begin(RunKind::Probe, "probe", out, &display)?;
    sink.amend(|manifest| manifest.host = Some(host.clone()))?;
    sink.say_whether_kept();
    let database = database.map(|own| own as &mut dyn ProbedDatabase);
    let flag = interruption.flag();
    let outcome = probe::run(options, announcement, &host, flag, &mut sink, database);
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
    let ended_it = document.unavailable.iter().find(|one| one.ended_it());
    sink.end(if outcome.interrupted {
        Err(ExitError::Interrupted(interruption.exit_code()))
    } else if let Some(ended_it) = ended_it {
        Err(ExitError::NotHere(format!("{}: {}", ended_it.what, ended_it.why)))
    } else if !document.rungs.iter().any(of_storage) {
        let place = match &options.below_is_unknown {
            Some(_) => String::new(),
            None => format!(" in {}", options.dir.display()),
        };
        let why = why_nothing(&document.unavailable);
        Err(ExitError::NotHere(format!("nothing could be measured{place}: {why}")))
    } else {
        Ok(())
    })
}

/// Why nothing was measured: what was planned says more than what this place lacks.
fn why_nothing(unavailable: &[Unavailable]) -> &str {
    let planned = unavailable.iter().find(|one| one.was_planned());
    planned.or(unavailable.first()).map_or("no reason is known", |one| one.why.as_str())
}

/// The directory that is measured, if there is one.
fn directory(place: &ProbedPlace) -> Result<Result<PathBuf, Unavailable>, ExitError> {
    let named = match place.directory() {
        Ok(named) => named,
        Err(why) => return Ok(Err(place::below_is_unknown(why))),
    };
    let dir = std::fs::canonicalize(named).map_err(|error| {
        ExitError::Usage(format!("{}: {error}; name an existing directory", named.display()))
    })?;
    if !dir.is_dir() {
        return Err(ExitError::Usage(format!(
            "{}: not a directory; probe works in own files of a directory (for one file or device \
             use iostrata io --path)",
            dir.display()
        )));
    }
    Ok(Ok(dir))
}

fn options_of(args: &ProbeArgs, place: &ProbedPlace) -> Result<ProbeOptions, ExitError> {
    let (dir, below_is_unknown) = match directory(place)? {
        Ok(dir) => (dir, None),
        Err(missing) => (PathBuf::new(), Some(missing)),
    };
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
    if args.read_only && (args.precondition || args.lasting.is_some()) {
        return Err(ExitError::Usage(
            "--read-only: --precondition and --lasting write; leave them out".to_owned(),
        ));
    }
    check_lasting(args)?;
    Ok(ProbeOptions {
        dir,
        read_only: args.read_only,
        write_bytes_max: args.max_write,
        size_bytes: args.size,
        time_max: args.common.max_time,
        point_time: args.common.point_time,
        precision,
        verify: args.verify,
        precondition: args.precondition,
        lasting: args.lasting,
        below_is_unknown,
        transactions: place.transactions(args),
    })
}

/// The least time that is left for everything but lasting writes.
const BESIDE_LASTING: Duration = Duration::from_secs(30);

fn check_lasting(args: &ProbeArgs) -> Result<(), ExitError> {
    let Some(lasting) = args.lasting else { return Ok(()) };
    let shown = |time: Duration| units::seconds(time.as_secs_f64());
    if lasting < Duration::from_secs(1) {
        return Err(ExitError::Usage(format!(
            "--lasting {}: too short to last; use 1s or more (12s is the default)",
            shown(lasting)
        )));
    }
    match args.common.max_time {
        Some(all) if all < lasting + BESIDE_LASTING => Err(ExitError::Usage(format!(
            "--lasting {}: does not fit into --max-time {}; use at least {}",
            shown(lasting),
            shown(all),
            shown(lasting + BESIDE_LASTING)
        ))),
        _ => Ok(()),
    }
}

/// What it will write and for how long, said before it begins.
fn announced(
    options: &ProbeOptions,
    announcement: &Announcement,
    host: &ProbeHost,
    database: Option<&str>,
) -> String {
    let end = "Everything is removed at the end; Ctrl-C is safe.";
    let below = match &options.below_is_unknown {
        Some(missing) => format!("The storage below is not measured: {}.", missing.why),
        None => announced_below(options, announcement, host),
    };
    let top = database.filter(|_| options.transactions == Transactions::Measured);
    let Some(database) = top else { return format!("{below} {end}") };
    format!(
        "{below} Then transactions on {database}, in {}: about 150 MiB of tables and what is \
         changed in them, at most {}. {end}",
        match database.starts_with("engine:") {
            true => "an engine of their own with its settings".to_owned(),
            false => format!("a database of their own ({OWN_DATABASE}; its replicas see it)"),
        },
        units::seconds(announcement.top_time_max.as_secs_f64())
    )
}

fn announced_below(
    options: &ProbeOptions,
    announcement: &Announcement,
    host: &ProbeHost,
) -> String {
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
    let first = match announcement.precondition_bytes_max {
        0 => String::new(),
        most => format!(
            " Overwrites them first, with at most {} in {}.",
            units::bytes(most as f64),
            units::seconds(announcement.precondition_time_max.as_secs_f64())
        ),
    };
    let lasting = options.lasting.map_or_else(String::new, |lasting| {
        format!(
            " Sustained writes last {}, with at most {}.",
            units::seconds(lasting.as_secs_f64()),
            units::bytes(announcement.sustained_write_bytes_max as f64)
        )
    });
    format!("{what} {writes} takes at most {time}.{first}{lasting}")
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
