//! The commands of all workloads of transactions: `iostrata tpcc`, `oltp`, `stress`, `insert`; and
//! their `run`: every level measured, one document of all of them.
//!
//! Invariants: the same words and the same steps for every workload and every target; what a target
//! cannot do is its own answer. What was measured is kept and printed before any failure is
//! reported.

mod levels;
mod prepare;
mod private;

use std::path::Path;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use iostrata_database::target::{Isolation, Target};
use iostrata_linux::host::Root;
use iostrata_plan::{TransactionPacing, TransactionSpec};
use iostrata_run::{DatasetGrowth, RunKind, RunResult, TransactionDurability};
use iostrata_study::{FileSetCache, Meter, Pipeline, TransactionFacts, transaction_document};
use iostrata_workload::{
    LoadOptions, RunnableWorkload, SourceOptions, Workload, WorkloadError, WorkloadKind,
};
use levels::{Growth, Levels};
use prepare::{load, without_password};
use private::Tables;

use super::args::{
    DriveArgs, IsolationWord, PreparedMode, TargetArgs, TransactionArgs, WorkloadAction,
    WorkloadCommand,
};
use super::display::Display;
use super::exit_error::{ExitError, exit_error};
use super::io_parts::path_facts;
use super::run_sink::RunSink;
use super::signals::Interruption;
use super::simulate_command::is_recorded;
use super::test_database::{TestDatabase, Use, ending};

/// Runs a command of a workload.
///
/// # Errors
/// With the exit codes of the contract.
pub fn run(command: &WorkloadCommand, interruption: &Interruption) -> Result<(), ExitError> {
    let workload = command.workload().map_err(refused)?;
    match &command.action {
        WorkloadAction::Prepare(args) => prepare::prepare(&*workload, args, interruption),
        WorkloadAction::Run(args) => drive(command.kind, &*workload, args, interruption),
        WorkloadAction::Check(args) => prepare::check(&*workload, args),
        WorkloadAction::Cleanup(args) => prepare::cleanup(&*workload, args),
    }
}

/// How a command ends whose workload is none, or does not run on these tables.
fn refused(error: WorkloadError) -> ExitError {
    match error {
        WorkloadError::Setting(text) => ExitError::Usage(text),
        WorkloadError::Target(error) => ending(error),
    }
}

/// How long a run takes at most whose end is a number of transactions.
const TIME_MAX: Duration = Duration::from_secs(24 * 3600);
/// Loaders of a server that is started for a run.
const LOADERS: usize = 4;

/// Runs a workload on the target, or on a server that is started for it.
///
/// # Errors
/// With the exit codes of the contract.
pub fn drive(
    kind: &WorkloadKind,
    workload: &dyn Workload,
    args: &TransactionArgs,
    interruption: &Interruption,
) -> Result<(), ExitError> {
    let Some(program) = &args.private.server else {
        return measure(kind, workload, args, interruption);
    };
    let on = |target: String| TargetArgs { target, ..args.target.clone() };
    let storage_engine = workload.storage_table().and(args.target.storage_engine.as_deref());
    let contents = workload.contents() + &private::in_engine(storage_engine);
    let tables = Tables { database: kind.name, contents };
    let fill = |target| {
        let options = LoadOptions {
            threads: LOADERS,
            seed: args.drive.seed,
            resets: false,
            stop: interruption.flag(),
        };
        let display = Display::new(args.common.printing.quiet);
        load(workload, &on(target), &options, &display, interruption).map(drop)
    };
    let run = |target| {
        let args = TransactionArgs { target: on(target), ..args.clone() };
        measure(kind, workload, &args, interruption)
    };
    private::with_server(program, &args.private, &tables, fill, run)
}

fn measure(
    kind: &WorkloadKind,
    workload: &dyn Workload,
    args: &TransactionArgs,
    interruption: &Interruption,
) -> Result<(), ExitError> {
    let mut spec = spec(&workload.name(), &args.target, &args.drive)?;
    let to = if workload.only_reads() { Use::Read } else { Use::Write };
    let opened = TestDatabase::open(&args.target, workload, to, &|_| ())?;
    let options = SourceOptions {
        seed: args.drive.seed,
        isolation: isolation(args.drive.isolation),
        as_text: args.drive.db_ps_mode == PreparedMode::Disable,
        blocks: opened.blocks(),
        terminals: args.drive.threads.iter().copied().min().unwrap_or(1).max(1),
    };
    let runnable = workload.source(opened.target(), &options).map_err(refused)?;
    let asked = args.target.storage_engine.as_deref();
    let storage_engine = opened.storage_engine(asked, workload)?;
    if let Some(homes) = runnable.homes {
        spec.pacing = TransactionPacing::Terminals { homes };
        spec.check()?;
    }
    let set = |(name, value): &(&str, String)| ((*name).to_owned(), value.clone());
    spec.settings.extend(runnable.settings.iter().map(set));
    let engine = storage_engine.iter().map(|name| ("storage_engine".to_owned(), name.clone()));
    spec.settings.extend(engine);
    let quiet = args.common.printing.quiet;
    runnable.note.iter().for_each(|note| Display::new(quiet).note(note));
    let kind = RunKind::of_workload(kind.name);
    let run = Run { kind, workload, args, spec, storage_engine, runnable };
    let mut ended = run.measure(opened.target(), interruption);
    drop(run);
    if args.checks {
        ended = ended.and_then(|()| prepare::judge(workload, &opened, quiet));
    }
    ended.and(opened.close().map_err(ending))
}

/// A run as it was planned.
struct Run<'a> {
    /// What it is kept as.
    kind: RunKind,
    workload: &'a dyn Workload,
    args: &'a TransactionArgs,
    /// With its first level's threads.
    spec: TransactionSpec,
    /// The storage engine of the tables, where a server reported it.
    storage_engine: Option<String>,
    runnable: RunnableWorkload<'a>,
}

impl Run<'_> {
    /// Measures every level, keeps and prints what came of it.
    fn measure(&self, target: &dyn Target, interruption: &Interruption) -> Result<(), ExitError> {
        let mut facts = self.facts(target)?;
        let (args, printing) = (self.args, self.args.common.printing);
        let display = Display::new(printing.quiet);
        let name = &self.spec.workload;
        let mut sink = RunSink::begin(self.kind, name, args.common.out.as_deref(), &display)?;
        let path = args.target.target.strip_prefix("engine:");
        let path = path.and_then(|dir| path_facts(Path::new(dir)));
        sink.amend_host(path.as_ref());
        let meter = Meter::new(&Root::system(), path.as_ref(), interruption.flag(), None);
        let (files, flag) = (FileSetCache::default(), interruption.flag());
        let mut pipeline = Pipeline::new(&mut sink, meter, files, flag);
        let (before, measuring) = (self.size(target), AtomicU32::new(0));
        let mut levels = Levels {
            pipeline: &mut pipeline,
            spec: &self.spec,
            drive: &args.drive,
            max_time: args.common.max_time,
            target,
            source: &*self.runnable.source,
            reaches_storage: path.is_some(),
            measuring: &measuring,
            display: &display,
            replicates: Vec::new(),
            failure: None,
        };
        let measure = || match args.drive.latency_target {
            Some(objective) => levels.search(objective),
            None => levels.staircase().map(|()| None),
        };
        let schema = self.workload.schema();
        let growing = self.runnable.growing.as_ref();
        let growth = growing.map(|of| Growth { schema: &schema, of });
        let (measured, grown) = levels::beside(growth.as_ref(), target, &measuring, measure);
        let Levels { replicates, failure, .. } = levels;
        display.finish();
        facts.latency_target = measured?;
        // A target that ended the run is not queried again.
        let after = if failure.is_none() { self.size(target) } else { Size::default() };
        facts.dataset = before.growth(after);
        let is_over = failure.is_none() && interruption.is_set();
        let outcome = pipeline.finish(&[], is_over).map_err(exit_error)?;
        let ended = match failure {
            Some(error) => Err(error),
            None if is_over => Err(ExitError::Interrupted(interruption.exit_code())),
            None => Ok(()),
        };
        let Some(mut document) = transaction_document(&replicates, &facts) else {
            return sink.end(ended);
        };
        document.deviations.extend(self.runnable.found_out.as_ref().and_then(|found| found()));
        let storage_engine = || self.storage_engine.clone();
        document.insert = growth
            .zip(grown)
            .map(|(growth, grown)| growth.figures(&document, storage_engine(), grown));
        document.run = sink.shown();
        if !sink.keep_with_report(&document) {
            document.run = None;
        }
        sink.say_whether_kept();
        let result = RunResult::Transactions(Box::new(document));
        sink.print(&result, &outcome.events, printing.json)?;
        sink.end(ended)
    }

    /// How much the tables hold; what the target does not report is left out.
    fn size(&self, target: &dyn Target) -> Size {
        Size { orders: self.workload.orders(target), bytes: target.data_bytes().ok().flatten() }
    }

    fn facts(&self, target: &dyn Target) -> Result<TransactionFacts, ExitError> {
        let facts = target.facts().map_err(ending)?;
        let isolation = match self.args.drive.isolation {
            IsolationWord::ReadCommitted => "read committed",
            IsolationWord::RepeatableRead => "repeatable read",
            IsolationWord::Serializable => "serializable",
        };
        let is_innodb = |engine: &String| engine.eq_ignore_ascii_case("InnoDB");
        let durability = match &self.storage_engine {
            // The server's settings of commits apply to InnoDB.
            Some(engine) if !is_innodb(engine) => TransactionDurability {
                flush_log_at_commit: None,
                doublewrite: None,
                flush_method: None,
                ..facts.durability.clone()
            },
            _ => facts.durability.clone(),
        };
        Ok(TransactionFacts {
            target: facts.identity(is_recorded),
            durability,
            isolation: isolation.to_owned(),
            deviations: self.runnable.deviations.clone(),
            ..TransactionFacts::default()
        })
    }
}

/// How much the tables hold at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Size {
    orders: Option<u64>,
    bytes: Option<u64>,
}

impl Size {
    fn growth(self, after: Self) -> Option<DatasetGrowth> {
        let growth = DatasetGrowth {
            orders_before: self.orders,
            orders_after: after.orders,
            bytes_before: self.bytes,
            bytes_after: after.bytes,
        };
        (growth != DatasetGrowth::default()).then_some(growth)
    }
}

/// What sessions see of each other.
fn isolation(word: IsolationWord) -> Isolation {
    match word {
        IsolationWord::ReadCommitted => Isolation::ReadCommitted,
        IsolationWord::RepeatableRead => Isolation::RepeatableRead,
        IsolationWord::Serializable => Isolation::Serializable,
    }
}

/// What every load of transactions has.
fn spec(
    workload: &str,
    target: &TargetArgs,
    drive: &DriveArgs,
) -> Result<TransactionSpec, ExitError> {
    let pacing = match drive.rate {
        // As sysbench has it: no limit.
        None | Some(0.0) => TransactionPacing::Closed,
        Some(rate_per_s) => TransactionPacing::Open {
            rate_per_s,
            process: drive.arrival,
            queue_max: drive.max_queue,
            overload: drive.on_overload,
        },
    };
    let spec = TransactionSpec {
        threads: drive.threads.first().copied().unwrap_or(1),
        pacing,
        // Transactions that are counted out are all of them.
        warm_up: drive.warmup_time.or((drive.events > 0).then_some(Duration::ZERO)),
        runtime: Some(if drive.time.is_zero() { TIME_MAX } else { drive.time }),
        events_max: (drive.events > 0).then_some(drive.events),
        ignored_errors: drive.mysql_ignore_errors.clone(),
        live_percentile: drive.percentile,
        seed: drive.seed,
        ..TransactionSpec::new(workload, without_password(&target.target))
    };
    if drive.time.is_zero() && drive.events == 0 {
        return Err(ExitError::Usage(
            "--time 0: give a time, or a number of transactions by --events".to_owned(),
        ));
    }
    if drive.latency_target.is_some() && drive.threads.len() > 1 {
        return Err(ExitError::Usage(
            "--latency-target: a search has one number of threads; leave the list out of --threads"
                .to_owned(),
        ));
    }
    for threads in &drive.threads {
        TransactionSpec { threads: *threads, ..spec.clone() }.check()?;
    }
    Ok(spec)
}
