//! `iostrata insert`: its actions, from arguments to what is printed.

use iostrata_run::RunKind;
use iostrata_workload::Loaded;
use iostrata_workload::insert::{self, InsertSpec, InsertTerminals, TABLE};

use super::check::WorkloadCheck;
use super::growth::Growth;
use super::loading::{Loading, cleanup, for_run, load_into};
use super::opened::{Opened, Use, ending};
use super::plan::RunPlan;
use super::private::{self, Tables};
use super::run::{isolation, spec};
use crate::args::{
    InsertAction, InsertArgs, InsertPrepareArgs, InsertRunArgs, PreparedMode, TargetArgs,
};
use crate::display::Display;
use crate::exit_error::ExitError;
use crate::signals::Interruption;

/// About how large a row is, its places in three indexes included.
const ROW_BYTES: u64 = 160;
/// Rows of a commit at most: one transaction has to hold them.
const ROWS_PER_COMMIT_MAX: u32 = 100_000;

const CHECK: WorkloadCheck = WorkloadCheck {
    schema: insert::schema,
    reads: "reading every row and every index",
    size_unit: "rows",
    check: |target, progress| {
        let checked = insert::check(target, progress)?;
        let rows = checked.rows;
        Ok((checked, rows))
    },
};

/// Runs `insert`.
///
/// # Errors
/// As the contract's exit codes say.
pub fn insert(args: &InsertArgs, interruption: &Interruption) -> Result<(), ExitError> {
    match &args.action {
        InsertAction::Prepare(args) => prepare(args, interruption),
        InsertAction::Run(args) => run(args, interruption),
        InsertAction::Check(args) => CHECK.run(args),
        InsertAction::Cleanup(args) => {
            cleanup(&args.target, args.printing, &insert::schema(), insert::cleanup)
        }
    }
}

fn rows(rows: u32) -> Result<i64, ExitError> {
    match i32::try_from(rows) {
        Ok(rows) => Ok(rows.into()),
        Err(_) => Err(ExitError::Usage(format!("--rows {rows}: use 0 to {}", i32::MAX))),
    }
}

fn prepare(args: &InsertPrepareArgs, interruption: &Interruption) -> Result<(), ExitError> {
    let spec = InsertSpec { rows: rows(args.rows)?, seed: args.load.seed, ..InsertSpec::default() };
    let loading = Loading {
        workload: "insert",
        size: (args.rows.into(), "rows"),
        target: &args.target,
        out: args.load.out.as_deref(),
        printing: args.load.printing,
    };
    let resets = args.load.reset;
    loading.run(interruption, |display| load(&args.target, &spec, resets, display, interruption))
}

fn load(
    target: &TargetArgs,
    spec: &InsertSpec,
    resets: bool,
    display: &Display,
    interruption: &Interruption,
) -> Result<Loaded, ExitError> {
    let progress = |rows: u64| {
        let share = rows as f64 / spec.rows.max(1) as f64;
        display.progress(share, &format!("loading {} rows, then making indexes", spec.rows));
    };
    let bytes = spec.rows as u64 * ROW_BYTES;
    let target = TargetArgs { data_bytes: Some(bytes), ..target.clone() };
    load_into(&target, (&insert::schema(), Some(TABLE)), display, |target| {
        insert::prepare(target, spec, resets, interruption.flag(), &progress)
    })
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
    let opened = Opened::open(&args.target, &schema, Use::Write, &|_| ())?;
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
    let source = InsertTerminals::new(opened.target(), &insert, opened.blocks()).map_err(ending)?;
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
        found_out: None,
    };
    plan.set("rows_per_commit", args.rows_per_commit);
    plan.set("rows_before", rows_before);
    plan.note_storage_engine();
    let mut ended = plan.run(opened.target(), &source, interruption);
    drop(source);
    if args.check {
        ended = ended.and_then(|()| CHECK.judge(&opened, args.common.printing.quiet));
    }
    ended.and(opened.close())
}

/// Runs it on a server that is started for it.
fn on_own_server(
    program: &str,
    args: &InsertRunArgs,
    interruption: &Interruption,
) -> Result<(), ExitError> {
    let mut spec = InsertSpec { seed: args.drive.seed, ..InsertSpec::default() };
    if let Some(asked) = args.rows {
        spec.rows = rows(asked)?;
    }
    let on = |target: String| {
        let mut args = args.clone();
        (args.target.target, args.private.server, args.rows) = (target, None, None);
        args
    };
    let engine = args.target.storage_engine.as_deref();
    let contents = format!("insert, {} rows{}", spec.rows, private::in_engine(engine));
    let tables = Tables { database: "insert", contents };
    let load = |target| {
        let args = on(target);
        for_run(args.common.printing, interruption, |display| {
            load(&args.target, &spec, false, display, interruption)
        })
    };
    let run = |target| run(&on(target), interruption);
    private::with_server(program, &args.private, &tables, load, run)
}
