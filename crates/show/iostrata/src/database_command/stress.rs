//! `iostrata stress`: its actions, from arguments to what is printed.

use std::time::Instant;

use iostrata_run::{CheckDocument, PrepareDocument, RunKind};
use iostrata_workload::stress::{self, StressMix, StressPrepared, StressSpec, StressTerminals};

use super::check;
use super::opened::{Opened, ending};
use super::plan::RunPlan;
use super::prepare::{self, shown};
use super::private::{self, Tables};
use super::run::{isolation, spec};
use crate::args::{
    CheckArgs, PreparedMode, Printing, StressAction, StressArgs, StressPrepareArgs, StressRunArgs,
    TargetArgs,
};
use crate::display::Display;
use crate::exit_error::ExitError;
use crate::signals::Interruption;

/// History rows of an object at most: a transaction reads all of them.
const HISTORY_MAX: u32 = 1_000;

/// Runs `stress`.
///
/// # Errors
/// As the contract's exit codes say.
pub fn stress(args: &StressArgs, interruption: &Interruption) -> Result<(), ExitError> {
    match &args.action {
        StressAction::Prepare(args) => prepare(args, interruption),
        StressAction::Run(args) => run(args, interruption),
        StressAction::Check(args) => checked(args),
        StressAction::Cleanup(args) => cleanup(args),
    }
}

fn tables(objects: u32, history: u32) -> Result<StressSpec, ExitError> {
    if objects == 0 || i32::try_from(objects).is_err() {
        return Err(ExitError::Usage(format!("--objects {objects}: use 1 to {}", i32::MAX)));
    }
    if !(1..=HISTORY_MAX).contains(&history) {
        return Err(ExitError::Usage(format!("--history {history}: use 1 to {HISTORY_MAX}")));
    }
    let (objects, history) = (objects.into(), history.into());
    Ok(StressSpec { objects, history, ..StressSpec::default() })
}

fn prepare(args: &StressPrepareArgs, interruption: &Interruption) -> Result<(), ExitError> {
    let spec = StressSpec { seed: args.seed, ..tables(args.objects, args.history)? };
    let started = Instant::now();
    let display = Display::new(args.printing.quiet);
    let mut kept = prepare::KeptLoad::begin("stress", args.out.as_deref(), &display)?;
    let how = (args.threads as usize, args.reset);
    let StressPrepared { rows, rows_before } =
        load(&args.target, &spec, how, &display, interruption)?;
    let duration_s = started.elapsed().as_secs_f64();
    let document = PrepareDocument {
        target: shown(&args.target.target),
        workload: "stress".to_owned(),
        size: args.objects.into(),
        size_unit: "objects".to_owned(),
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
    spec: &StressSpec,
    how: (usize, bool),
    display: &Display,
    interruption: &Interruption,
) -> Result<StressPrepared, ExitError> {
    let schema = stress::schema();
    let opened = Opened::open(target, &schema, true)?;
    let progress = |rows: u64, in_all: u64| {
        let share = rows as f64 / in_all.max(1) as f64;
        display.progress(share, &format!("loading {} objects", spec.objects));
    };
    let loaded = stress::prepare(opened.target(), spec, how, interruption.flag(), &progress);
    display.finish();
    let mut loaded = loaded.map_err(|error| prepare::stopped(ending(error), interruption));
    if loaded.as_ref().is_ok_and(|loaded| loaded.rows == 0) {
        let asked = target.storage_engine.as_deref();
        let engine = opened.storage_engine(asked, &schema, schema.table("stress_history"));
        loaded = engine.and(loaded);
    }
    opened.close()?;
    loaded
}

fn run(args: &StressRunArgs, interruption: &Interruption) -> Result<(), ExitError> {
    let mix = mix(args)?;
    if let Some(program) = &args.private.server {
        return on_own_server(program, args, interruption);
    }
    let transactions = spec("stress", &args.target, &args.drive)?;
    let schema = stress::schema();
    let opened = Opened::open(&args.target, &schema, false)?;
    let (objects, history) = stress::dataset(opened.target()).map_err(ending)?;
    let stress = StressSpec {
        objects: args.objects.map_or(objects, Into::into),
        history: args.history.map_or(history, Into::into),
        mix,
        seed: args.drive.seed,
        isolation: isolation(args.drive.isolation),
        as_text: args.drive.db_ps_mode == PreparedMode::Disable,
    };
    let asked = args.target.storage_engine.as_deref();
    let mut plan = RunPlan {
        kind: RunKind::Stress,
        target: &args.target,
        drive: &args.drive,
        common: &args.common,
        spec: transactions,
        storage_engine: opened.storage_engine(asked, &schema, schema.table("stress_history"))?,
        growth: None,
        deviations: stress::DEVIATIONS.iter().map(|text| (*text).to_owned()).collect(),
        counts_orders: false,
    };
    plan.set("objects", stress.objects);
    plan.set("history", stress.history);
    plan.set("mix", stress.mix);
    plan.note_storage_engine();
    let source = StressTerminals::new(opened.target(), stress, opened.blocks()).map_err(ending)?;
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
    args: &StressRunArgs,
    interruption: &Interruption,
) -> Result<(), ExitError> {
    let spec = tables(args.objects.unwrap_or(100_000), args.history.unwrap_or(20))?;
    let spec = StressSpec { seed: args.drive.seed, ..spec };
    let on = |target: String| {
        let mut args = args.clone();
        (args.target.target, args.private.server) = (target, None);
        args
    };
    let engine = args.target.storage_engine.as_deref();
    let contents = format!(
        "stress, {} objects with {} history rows{}",
        spec.objects,
        spec.history,
        private::in_engine(engine)
    );
    let tables = Tables { database: "stress", contents };
    let load = |target| {
        let display = Display::new(args.common.printing.quiet);
        load(&on(target).target, &spec, (4, false), &display, interruption).map(drop)
    };
    let run = |target| run(&on(target), interruption);
    private::with_server(program, &args.private, &tables, load, run)
}

/// Three shares, or a percentage of reads.
fn mix(args: &StressRunArgs) -> Result<StressMix, ExitError> {
    if let Some(reads) = args.read_pct {
        return Ok(StressMix::reads_pct(reads));
    }
    let text = &args.mix;
    let shares: Option<Vec<u64>> = text.split(',').map(|one| one.trim().parse().ok()).collect();
    let shares = shares.and_then(|shares| <[u64; 3]>::try_from(shares).ok());
    shares.and_then(StressMix::new).ok_or_else(|| {
        ExitError::Usage(format!(
            "--mix {text}: write three shares such as 50,0,50 (reads, read-writes, writes)"
        ))
    })
}

fn checked(args: &CheckArgs) -> Result<(), ExitError> {
    let Printing { json, quiet } = args.printing;
    let opened = Opened::open(&args.target, &stress::schema(), false)?;
    let found = found(&opened, quiet || json);
    opened.close()?;
    check::told(&found?, args.printing)
}

fn found(opened: &Opened, is_quiet: bool) -> Result<CheckDocument, ExitError> {
    let display = Display::new(is_quiet);
    let mut progress = |share| display.progress(share, "reading every row");
    let objects = stress::dataset(opened.target()).map_err(ending)?.0 as u64;
    let checked = stress::check(opened.target(), &mut progress);
    display.finish();
    Ok(check::document_of(&checked.map_err(ending)?, objects, "objects"))
}

fn cleanup(args: &CheckArgs) -> Result<(), ExitError> {
    let opened = Opened::open(&args.target, &stress::schema(), false)?;
    let removed = stress::cleanup(opened.target());
    prepare::removed_tables(removed, opened, args.printing)
}
