//! `prepare` and `cleanup` of every workload.

use std::time::Instant;

use iostrata_run::{Event, PrepareDocument, RunKind};
use iostrata_stats::units;
use iostrata_workload::{LoadOptions, Loaded, Workload};

use crate::args::{CheckArgs, PrepareArgs, TargetArgs};
use crate::display::{Display, print_json, print_text};
use crate::exit_error::{ExitError, exit_error};
use crate::run_sink::RunSink;
use crate::signals::Interruption;
use crate::test_database::{TestDatabase, Use, ending};

/// Loads a workload's tables, keeps what that came to, and prints it.
///
/// # Errors
/// What loading said; what cannot be written.
pub fn prepare(
    workload: &dyn Workload,
    args: &PrepareArgs,
    interruption: &Interruption,
) -> Result<(), ExitError> {
    let (name, (size, size_unit)) = (workload.name(), workload.size());
    let display = Display::new(args.load.printing.quiet);
    let run = format!("{name}-prepare");
    let begin = |out| RunSink::begin(RunKind::Prepare, &run, Some(out), &display);
    let mut sink = args.load.out.as_deref().map(begin).transpose()?;
    let options = LoadOptions {
        threads: args.loaders as usize,
        seed: args.load.seed,
        resets: args.load.reset,
        stop: interruption.flag(),
    };
    let started = Instant::now();
    let Loaded { rows, rows_before } =
        load(workload, &args.target, &options, &display, interruption)?;
    let duration_s = started.elapsed().as_secs_f64();
    let document = PrepareDocument {
        target: without_password(&args.target.target),
        workload: name,
        size,
        size_unit: size_unit.to_owned(),
        rows,
        rows_before,
        rows_per_s: rows as f64 / duration_s.max(f64::MIN_POSITIVE),
        duration_s,
    };
    if let Some(sink) = &mut sink {
        let finished = Event::Finished { at_s: duration_s, bytes_written: 0 };
        iostrata_study::Listener::store(sink, &finished).map_err(exit_error)?;
        sink.keep(&document);
    }
    match args.load.printing.json {
        true => print_json(&document),
        false => print_text(&text(&document)),
    }
}

/// Loads tables into a target that is opened for it. Tables that were there are of the storage
/// engine that was asked for, or refused.
///
/// # Errors
/// What opening or loading said; a signal.
pub fn load(
    workload: &dyn Workload,
    args: &TargetArgs,
    options: &LoadOptions<'_>,
    display: &Display,
    interruption: &Interruption,
) -> Result<Loaded, ExitError> {
    let loaded = load_into(workload, args, options, display);
    display.finish();
    loaded.map_err(|error| match interruption.is_set() {
        true => ExitError::Interrupted(interruption.exit_code()),
        false => error,
    })
}

fn load_into(
    workload: &dyn Workload,
    args: &TargetArgs,
    options: &LoadOptions<'_>,
    display: &Display,
) -> Result<Loaded, ExitError> {
    let opened = TestDatabase::open(args, workload, Use::Make, &|text| display.note(text))?;
    let what = workload.loading();
    let progress = |share| display.progress(share, &what);
    let mut loaded = workload.load(opened.target(), options, &progress).map_err(ending);
    if let Ok(Loaded { rows: 0, .. }) = loaded {
        let asked = args.storage_engine.as_deref();
        loaded = opened.storage_engine(asked, workload).and(loaded);
    }
    opened.close().map_err(ending)?;
    loaded
}

/// Removes a workload's tables, and says whether there were any.
///
/// # Errors
/// What the target said.
pub fn cleanup(workload: &dyn Workload, args: &CheckArgs) -> Result<(), ExitError> {
    let opened = TestDatabase::open(&args.target, workload, Use::Write, &|_| ())?;
    let removed = workload.cleanup(opened.target()).map_err(ending);
    opened.close().map_err(ending)?;
    match (removed?, args.printing.json) {
        (removed, true) => print_json(&serde_json::json!({ "removed": removed })),
        (true, false) => print_text("The tables are removed.\n"),
        (false, false) => print_text("There was nothing to remove.\n"),
    }
}

fn text(document: &PrepareDocument) -> String {
    let PrepareDocument { size, size_unit, rows, rows_before, duration_s, .. } = document;
    if *rows == 0 && *size > 0 {
        return format!("{size} {size_unit} are there already.\n");
    }
    let before = match rows_before {
        0 => String::new(),
        before => format!(", {} were there", units::count(*before as f64)),
    };
    format!(
        "{size} {size_unit}: {} rows in {duration_s:.1} s, {} rows/s{before}\n",
        units::count(*rows as f64),
        units::count(document.rows_per_s),
    )
}

/// The target without a password.
pub fn without_password(target: &str) -> String {
    iostrata_run::scrubbed(&[target.to_owned()]).concat()
}
