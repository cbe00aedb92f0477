//! `iostrata stress`: its actions, from arguments to what is printed.

use iostrata_run::RunKind;
use iostrata_workload::Loaded;
use iostrata_workload::stress::{self, StressMix, StressSpec, StressTerminals};

use super::check::WorkloadCheck;
use super::loading::{Loading, cleanup, for_run, load_into};
use super::opened::{Opened, Use, ending};
use super::plan::RunPlan;
use super::private::{self, Tables};
use super::run::{isolation, spec};
use crate::args::{
    PreparedMode, StressAction, StressArgs, StressPrepareArgs, StressRunArgs, TargetArgs,
};
use crate::display::Display;
use crate::exit_error::ExitError;
use crate::signals::Interruption;

/// About how large a row is.
const ROW_BYTES: u64 = 150;
/// History rows of an object at most: a transaction reads all of them.
const HISTORY_MAX: i64 = 1_000;

const CHECK: WorkloadCheck = WorkloadCheck {
    schema: stress::schema,
    reads: "reading every row",
    size_unit: "objects",
    check: |target, progress| {
        let (objects, _history) = stress::dataset(target)?;
        Ok((stress::check(target, progress)?, objects as u64))
    },
};

/// Runs `stress`.
///
/// # Errors
/// As the contract's exit codes say.
pub fn stress(args: &StressArgs, interruption: &Interruption) -> Result<(), ExitError> {
    match &args.action {
        StressAction::Prepare(args) => prepare(args, interruption),
        StressAction::Run(args) => run(args, interruption),
        StressAction::Check(args) => CHECK.run(args),
        StressAction::Cleanup(args) => {
            cleanup(&args.target, args.printing, &stress::schema(), stress::cleanup)
        }
    }
}

fn tables(objects: i64, history: i64) -> Result<StressSpec, ExitError> {
    let limits = [("objects", objects, i32::MAX.into()), ("history", history, HISTORY_MAX)];
    for (name, found, most) in limits {
        if !(1..=most).contains(&found) {
            return Err(ExitError::Usage(format!("--{name} {found}: use 1 to {most}")));
        }
    }
    Ok(StressSpec { objects, history, ..StressSpec::default() })
}

fn prepare(args: &StressPrepareArgs, interruption: &Interruption) -> Result<(), ExitError> {
    let spec =
        StressSpec { seed: args.load.seed, ..tables(args.objects.into(), args.history.into())? };
    let loading = Loading {
        workload: "stress",
        size: (args.objects.into(), "objects"),
        target: &args.target,
        out: args.load.out.as_deref(),
        printing: args.load.printing,
    };
    let how = (args.threads as usize, args.load.reset);
    loading.run(interruption, |display| load(&args.target, &spec, how, display, interruption))
}

fn load(
    target: &TargetArgs,
    spec: &StressSpec,
    how: (usize, bool),
    display: &Display,
    interruption: &Interruption,
) -> Result<Loaded, ExitError> {
    let progress = |rows: u64, in_all: u64| {
        let share = rows as f64 / in_all.max(1) as f64;
        display.progress(share, &format!("loading {} objects", spec.objects));
    };
    let schema = stress::schema();
    let rows = spec.objects as u64 * (1 + spec.history as u64);
    let target = TargetArgs { data_bytes: Some(rows * ROW_BYTES), ..target.clone() };
    load_into(&target, (&schema, Some(schema.table("stress_history"))), display, |target| {
        stress::prepare(target, spec, how, interruption.flag(), &progress)
    })
}

fn run(args: &StressRunArgs, interruption: &Interruption) -> Result<(), ExitError> {
    let mix = mix(args)?;
    if let Some(program) = &args.private.server {
        return on_own_server(program, args, interruption);
    }
    let transactions = spec("stress", &args.target, &args.drive)?;
    let schema = stress::schema();
    let opened = Opened::open(&args.target, &schema, Use::Write, &|_| ())?;
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
        found_out: None,
    };
    plan.set("objects", stress.objects);
    plan.set("history", stress.history);
    plan.set("mix", stress.mix);
    plan.note_storage_engine();
    let source = StressTerminals::new(opened.target(), stress, opened.blocks()).map_err(ending)?;
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
    args: &StressRunArgs,
    interruption: &Interruption,
) -> Result<(), ExitError> {
    let usual = StressSpec::default();
    let objects = args.objects.map_or(usual.objects, i64::from);
    let history = args.history.map_or(usual.history, i64::from);
    let spec = StressSpec { seed: args.drive.seed, ..tables(objects, history)? };
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
        let args = on(target);
        for_run(args.common.printing, interruption, |display| {
            load(&args.target, &spec, (4, false), display, interruption)
        })
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
