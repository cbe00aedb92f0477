//! `iostrata insert`: its actions, from arguments to what is printed.

use std::time::Instant;

use iostrata_run::{CheckDocument, PrepareDocument, RunKind};
use iostrata_workload::insert::{self, InsertPrepared, InsertSpec, InsertTerminals, TABLE};

use super::check;
use super::growth::Growth;
use super::opened::{Opened, ending};
use super::plan::RunPlan;
use super::prepare::{self, shown};
use super::private::{self, Tables};
use super::run::{isolation, spec};
use crate::args::{
    CheckArgs, InsertAction, InsertArgs, InsertPrepareArgs, InsertRunArgs, PreparedMode, Printing,
    TargetArgs,
};
use crate::display::Display;
use crate::exit_error::ExitError;
use crate::signals::Interruption;

/// Rows of a commit at most: one transaction has to hold them.
const ROWS_PER_COMMIT_MAX: u32 = 100_000;

/// Runs `insert`.
///
/// # Errors
/// As the contract's exit codes say.
pub fn insert(args: &InsertArgs, interruption: &Interruption) -> Result<(), ExitError> {
    match &args.action {
        InsertAction::Prepare(args) => prepare(args, interruption),
        InsertAction::Run(args) => run(args, interruption),
        InsertAction::Check(args) => checked(args),
        InsertAction::Cleanup(args) => cleanup(args),
    }
}

fn rows(rows: u32) -> Result<i64, ExitError> {
    match i32::try_from(rows) {
        Ok(rows) => Ok(rows.into()),
        Err(_) => Err(ExitError::Usage(format!("--rows {rows}: use 0 to {}", i32::MAX))),
    }
}

fn prepare(args: &InsertPrepareArgs, interruption: &Interruption) -> Result<(), ExitError> {
    let spec = InsertSpec { rows: rows(args.rows)?, seed: args.seed, ..InsertSpec::default() };
    let started = Instant::now();
    let display = Display::new(args.printing.quiet);
    let mut kept = prepare::KeptLoad::begin("insert", args.out.as_deref(), &display)?;
    let loaded = load(&args.target, &spec, args.reset, &display, interruption);
    let InsertPrepared { rows, rows_before } = loaded?;
    let duration_s = started.elapsed().as_secs_f64();
    let document = PrepareDocument {
        target: shown(&args.target.target),
        workload: "insert".to_owned(),
        size: args.rows.into(),
        size_unit: "rows".to_owned(),
        rows,
        rows_before,
        rows_per_s: rows as f64 / duration_s.max(f64::MIN_POSITIVE),
        duration_s,
    };
    kept.end(&document)?;
    prepare::say(&document, args.printing)
}

fn load(
    target: &TargetArgs,
    spec: &InsertSpec,
    resets: bool,
    display: &Display,
    interruption: &Interruption,
) -> Result<InsertPrepared, ExitError> {
    let schema = insert::schema();
    let opened = Opened::open(target, &schema, true)?;
    let progress = |rows: u64| {
        let share = rows as f64 / spec.rows.max(1) as f64;
        display.progress(share, &format!("loading {} rows, then making indexes", spec.rows));
    };
    let loaded = insert::prepare(opened.target(), spec, resets, interruption.flag(), &progress);
    display.finish();
    let mut loaded = loaded.map_err(|error| prepare::stopped(ending(error), interruption));
    if loaded.as_ref().is_ok_and(|loaded| loaded.rows == 0) {
        let asked = target.storage_engine.as_deref();
        loaded = opened.storage_engine(asked, &schema, TABLE).and(loaded);
    }
    opened.close()?;
    loaded
}

fn run(args: &InsertRunArgs, interruption: &Interruption) -> Result<(), ExitError> {
    if !(1..=ROWS_PER_COMMIT_MAX).contains(&args.rows_per_commit) {
        let found = args.rows_per_commit;
        let text = format!("--rows-per-commit {found}: use 1 to {ROWS_PER_COMMIT_MAX}");
        return Err(ExitError::Usage(text));
    }
    if let Some(program) = &args.private.server {
        return on_own_server(program, args, interruption);
    }
    if let Some(rows) = args.rows {
        return Err(ExitError::Usage(format!(
            "--rows {rows}: only the tables of --server are loaded by `run`; load others with \
             `insert prepare --rows {rows}`"
        )));
    }
    let transactions = spec("insert", &args.target, &args.drive)?;
    let schema = insert::schema();
    let opened = Opened::open(&args.target, &schema, false)?;
    let insert = InsertSpec {
        rows: insert::rows_loaded(opened.target()).map_err(ending)?,
        rows_per_commit: args.rows_per_commit,
        seed: args.drive.seed,
        isolation: isolation(args.drive.isolation),
        as_text: args.drive.db_ps_mode == PreparedMode::Disable,
    };
    let rows_before = insert::rows(opened.target()).map_err(ending)?;
    let asked = args.target.storage_engine.as_deref();
    let storage_engine = opened.storage_engine(asked, &schema, TABLE)?;
    let source = InsertTerminals::new(opened.target(), insert, opened.blocks()).map_err(ending)?;
    let committed = || source.rows();
    let growth = Growth {
        table: (&schema, TABLE),
        rows_before,
        committed: &committed,
        rows_per_commit: args.rows_per_commit,
    };
    let mut plan = RunPlan {
        kind: RunKind::Insert,
        target: &args.target,
        drive: &args.drive,
        common: &args.common,
        spec: transactions,
        storage_engine,
        growth: Some(growth),
        deviations: insert::DEVIATIONS.iter().map(|text| (*text).to_owned()).collect(),
        counts_orders: false,
    };
    plan.set("rows_per_commit", args.rows_per_commit);
    plan.set("rows_before", rows_before);
    plan.note_storage_engine();
    let mut ended = plan.run(opened.target(), &source, interruption);
    drop(source);
    if args.check {
        let judge = || check::verdict(&found(&opened, args.common.printing.quiet)?);
        ended = ended.and_then(|()| judge());
    }
    ended.and(opened.close())
}

/// Runs it on a server that is started for it.
fn on_own_server(
    program: &str,
    args: &InsertRunArgs,
    interruption: &Interruption,
) -> Result<(), ExitError> {
    let rows = rows(args.rows.unwrap_or(1_000_000))?;
    let spec = InsertSpec { rows, seed: args.drive.seed, ..InsertSpec::default() };
    let on = |target: String| {
        let mut args = args.clone();
        (args.target.target, args.private.server, args.rows) = (target, None, None);
        args
    };
    let engine = args.target.storage_engine.as_deref();
    let contents = format!("insert, {rows} rows{}", private::in_engine(engine));
    let tables = Tables { database: "insert", contents };
    let load = |target| {
        let display = Display::new(args.common.printing.quiet);
        load(&on(target).target, &spec, false, &display, interruption).map(drop)
    };
    let run = |target| run(&on(target), interruption);
    private::with_server(program, &args.private, &tables, load, run)
}

fn checked(args: &CheckArgs) -> Result<(), ExitError> {
    let Printing { json, quiet } = args.printing;
    let opened = Opened::open(&args.target, &insert::schema(), false)?;
    let found = found(&opened, quiet || json);
    opened.close()?;
    check::told(&found?, args.printing)
}

fn found(opened: &Opened, is_quiet: bool) -> Result<CheckDocument, ExitError> {
    let display = Display::new(is_quiet);
    let mut progress = |share| display.progress(share, "reading every row and every index");
    let checked = insert::check(opened.target(), &mut progress);
    display.finish();
    let checked = checked.map_err(ending)?;
    Ok(check::document_of(&checked, checked.rows, "rows"))
}

fn cleanup(args: &CheckArgs) -> Result<(), ExitError> {
    let opened = Opened::open(&args.target, &insert::schema(), false)?;
    let removed = insert::cleanup(opened.target());
    prepare::removed_tables(removed, opened, args.printing)
}
