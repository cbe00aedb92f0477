//! `prepare`, `check` and `cleanup` of every workload: its tables filled, what holds of them,
//! removed.

use std::time::Instant;

use iostrata_run::{
    CheckDocument, ConditionDocument, Event, PrepareDocument, RunKind, TableCountDocument,
};
use iostrata_stats::units;
use iostrata_workload::{Condition, LoadCounts, LoadOptions, TableCount, Workload};

use crate::args::{CheckArgs, PrepareArgs, Printing, TargetArgs};
use crate::display::{Display, print_json, print_text};
use crate::exit_error::{ExitError, exit_error};
use crate::run_sink::RunSink;
use crate::signals::Interruption;
use crate::test_database::{TestDatabase, Use, ending};

/// Loads a workload's tables, keeps what that came to, and prints it.
///
/// # Errors
/// An error of loading; what cannot be written.
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
    let LoadCounts { rows, rows_before } =
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
        false => print_text(&prepared_text(&document)),
    }
}

/// Loads tables into a target that is opened for it. Tables that were there have the requested
/// storage engine, or are refused.
///
/// # Errors
/// An error of opening or loading; a signal.
pub fn load(
    workload: &dyn Workload,
    args: &TargetArgs,
    options: &LoadOptions<'_>,
    display: &Display,
    interruption: &Interruption,
) -> Result<LoadCounts, ExitError> {
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
) -> Result<LoadCounts, ExitError> {
    let opened = TestDatabase::open(args, workload, Use::Make, &|text| display.note(text))?;
    let what = workload.loading();
    let progress = |share| display.progress(share, &what);
    let mut loaded = workload.load(opened.target(), options, &progress).map_err(ending);
    if let Ok(LoadCounts { rows: 0, .. }) = loaded {
        let asked = args.storage_engine.as_deref();
        loaded = opened.storage_engine(asked, workload).and(loaded);
    }
    opened.close().map_err(ending)?;
    loaded
}

/// Removes a workload's tables, and returns whether there were any.
///
/// # Errors
/// An error of the target.
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

/// A size with its unit, which stands for one without its last letter.
fn sized(size: u64, unit: &str) -> String {
    match size == 1 {
        true => format!("1 {}", unit.strip_suffix('s').unwrap_or(unit)),
        false => format!("{size} {unit}"),
    }
}

fn prepared_text(document: &PrepareDocument) -> String {
    let PrepareDocument { size, size_unit, rows, rows_before, duration_s, .. } = document;
    if *rows == 0 && *size > 0 {
        let are = if *size == 1 { "is" } else { "are" };
        return format!("{} {are} there already.\n", sized(*size, size_unit));
    }
    let before = match rows_before {
        0 => String::new(),
        before => format!(", {} were there", units::count(*before as f64)),
    };
    format!(
        "{}: {} rows in {duration_s:.1} s, {} rows/s{before}\n",
        sized(*size, size_unit),
        units::count(*rows as f64),
        units::count(document.rows_per_s),
    )
}

/// The target without a password.
pub fn without_password(target: &str) -> String {
    iostrata_run::scrubbed(&[target.to_owned()]).concat()
}

/// Runs `check`.
///
/// # Errors
/// With the exit codes of the contract; a condition that does not hold is exit code 1.
pub fn check(workload: &dyn Workload, args: &CheckArgs) -> Result<(), ExitError> {
    let opened = TestDatabase::open(&args.target, workload, Use::Read, &|_| ())?;
    let found = document(workload, &opened, args.printing.quiet || args.printing.json);
    opened.close().map_err(ending)?;
    told(&found?, args.printing)
}

/// Checks an open target after a run, without a document of its own: what is wrong is in the error.
///
/// # Errors
/// An error of the target; a condition that does not hold is exit code 1.
pub fn judge(
    workload: &dyn Workload,
    opened: &TestDatabase,
    is_quiet: bool,
) -> Result<(), ExitError> {
    let document = document(workload, opened, is_quiet)?;
    if document.ok {
        return Ok(());
    }
    let rows = document.counts.iter().filter(|count| !count.ok);
    let rows = rows.map(|count| format!("{}: {}", count.table, count.detail));
    let found: Vec<String> =
        rows.chain(broken(&document).map(|broken| broken.detail.clone())).collect();
    Err(ExitError::Judged(format!("{}: {}", not_held(&document), found.join("; "))))
}

fn document(
    workload: &dyn Workload,
    opened: &TestDatabase,
    is_quiet: bool,
) -> Result<CheckDocument, ExitError> {
    let display = Display::new(is_quiet);
    let mut progress = |share| display.progress(share, workload.checking());
    let checked = workload.check(opened.target(), &mut progress);
    display.finish();
    let (checked, size) = checked.map_err(ending)?;
    Ok(CheckDocument {
        ok: checked.is_ok(),
        conditions: conditions(&checked.conditions),
        counts: checked.counts.iter().map(count).collect(),
        size,
        size_unit: workload.size().1.to_owned(),
        rows: checked.rows,
    })
}

fn told(document: &CheckDocument, printing: Printing) -> Result<(), ExitError> {
    match printing.json {
        true => print_json(document)?,
        false => print_text(&text(document))?,
    }
    document.ok.then_some(()).ok_or_else(|| ExitError::Judged(not_held(document)))
}

fn broken(document: &CheckDocument) -> impl Iterator<Item = &ConditionDocument> {
    document.conditions.iter().filter(|condition| !condition.ok)
}

/// What does not hold, in one line.
fn not_held(document: &CheckDocument) -> String {
    let tables: Vec<&str> = document
        .counts
        .iter()
        .filter(|count| !count.ok)
        .map(|count| count.table.as_str())
        .collect();
    let (broken, all) = (broken(document).count(), document.conditions.len());
    match (tables.is_empty(), broken) {
        (true, _) => format!("{broken} of the {all} conditions do not hold"),
        (false, 0) => format!("the number of rows is wrong in {}", tables.join(", ")),
        (false, _) => format!(
            "the number of rows is wrong in {}, and {broken} of the {all} conditions do not hold",
            tables.join(", ")
        ),
    }
}

fn count(count: &TableCount) -> TableCountDocument {
    let more = count.wrong - count.told.len() as u64;
    let more = if more > 0 { format!(", and in {more} more places") } else { String::new() };
    TableCountDocument {
        table: count.table.clone(),
        ok: count.is_ok(),
        rows: count.rows,
        expected: count.expected,
        detail: format!("{}{more}", count.told.join(", ")),
    }
}

fn conditions(all: &[Condition]) -> Vec<ConditionDocument> {
    let condition = |(condition, id): (&Condition, u32)| {
        let ok = condition.violations == 0;
        let found = match (ok, &condition.instead) {
            (true, None) => "holds".to_owned(),
            (true, Some(instead)) => format!("holds; {instead}"),
            (false, _) => {
                let told = condition.told.join("; ");
                format!("{} violations: {told}", condition.violations)
            }
        };
        let detail = match condition.says.as_str() {
            "" => found,
            says => format!("{says}: {found}"),
        };
        ConditionDocument { id, ok, detail }
    };
    all.iter().zip(1..).map(condition).collect()
}

fn text(document: &CheckDocument) -> String {
    let CheckDocument { conditions, counts, size, size_unit, rows, .. } = document;
    let held = match broken(document).count() {
        0 => format!("All {} conditions hold", conditions.len()),
        1 => "One condition does not hold".to_owned(),
        n => format!("{n} conditions do not hold"),
    };
    let verdict = match counts.iter().filter(|count| !count.ok).count() {
        0 => held,
        1 => format!("One table has a wrong number of rows. {held}"),
        n => format!("{n} tables have a wrong number of rows. {held}"),
    };
    let mut text = format!("{verdict}: {}, {rows} rows read.\n", sized(*size, size_unit));
    for TableCountDocument { table, rows, expected, detail, .. } in
        counts.iter().filter(|count| !count.ok)
    {
        text += &format!("      NO  {table}: {rows} rows, {expected} must be there: {detail}\n");
    }
    for ConditionDocument { id, ok, detail } in conditions {
        let mark = if *ok { "ok" } else { "NO" };
        text += &format!("  {id:>2}  {mark}  {detail}\n");
    }
    text
}
