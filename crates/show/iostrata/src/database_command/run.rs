//! `run`: every level measured, one document of all of them.
//!
//! Invariant: what was measured is kept and printed before any failure is told.

use std::path::Path;

use iostrata_host::Root;
use iostrata_load::{TransactionLoad, TransactionSource};
use iostrata_run::{Event, Replicate, RunKind, RunResult, TransactionDocument, TransactionTarget};
use iostrata_spec::{TransactionPacing, TransactionSpec};
use iostrata_study::{
    FileSetCache, Measurement, Meter, Pipeline, TransactionFacts, transaction_document,
    transaction_point,
};
use iostrata_target::{Isolation, Target};
use iostrata_workload::compat::{self, CompatSpec, CompatTerminals};
use iostrata_workload::oltp::{self, OltpSpec, OltpTerminals};
use iostrata_workload::tpcc::{self, Dataset, Mix, TerminalOptions, Terminals, Waits};

use super::live::LiveLines;
use super::opened::{Opened, ending};
use super::prepare;
use super::prepare::{oltp_spec, shown};
use super::private::{self, Tables};
use crate::args::{
    Common, DriveArgs, IsolationWord, MemberWord, OltpRunArgs, OltpTables, PreparedMode,
    TargetArgs, TpccRunArgs,
};
use crate::display::Display;
use crate::exit_error::{ExitError, exit_error};
use crate::io_parts::path_facts;
use crate::run_sink::RunSink;
use crate::signals::Interruption;

/// A run as it was plan for.
struct RunPlan<'a> {
    kind: RunKind,
    target: &'a TargetArgs,
    drive: &'a DriveArgs,
    common: &'a Common,
    /// With its first level's threads.
    spec: TransactionSpec,
    deviations: Vec<String>,
}

/// Runs `tpcc run`.
///
/// # Errors
/// As the contract's exit codes say.
pub fn tpcc(args: &TpccRunArgs, interruption: &Interruption) -> Result<(), ExitError> {
    if let Some(program) = &args.private.server {
        let on = |target: String| {
            let mut args = args.clone();
            (args.target.target, args.private.server) = (target, None);
            args.warehouses.get_or_insert(4);
            args
        };
        let tables = Tables { database: "tpcc", contents: prepare::contents(args) };
        let load = |target| prepare::for_run(&on(target), interruption);
        let run = |target| tpcc(&on(target), interruption);
        return private::with_server(program, &args.private, &tables, load, run);
    }
    match args.compat.compat {
        None => tpcc_terminals(args, interruption),
        Some(_) => kit_terminals(args, interruption),
    }
}

fn tpcc_terminals(args: &TpccRunArgs, interruption: &Interruption) -> Result<(), ExitError> {
    let (mix, waits) = (mix(&args.mix)?, waits(args)?);
    let spec = spec("tpcc", &args.target, &args.drive)?;
    let opened = Opened::open(&args.target, &tpcc::schema(), false)?;
    let mut dataset = Dataset::ready(opened.target()).map_err(ending)?;
    if let Some(warehouses) = args.warehouses
        && i64::from(warehouses) != dataset.warehouses
    {
        return Err(ExitError::Usage(format!(
            "--warehouses {warehouses}: {} are loaded; leave it out, or load them with `prepare \
             --reset`",
            dataset.warehouses
        )));
    }
    dataset.mark_used(opened.target()).map_err(ending)?;
    let options = TerminalOptions {
        mix,
        waits,
        isolation: isolation(args.drive.isolation),
        seed: args.drive.seed,
        as_text: args.drive.db_ps_mode == PreparedMode::Disable,
        blocks: opened.blocks(),
    };
    let mut plan = RunPlan {
        kind: RunKind::Tpcc,
        target: &args.target,
        drive: &args.drive,
        common: &args.common,
        spec,
        deviations: tpcc::deviations(&options).into_iter().map(str::to_owned).collect(),
    };
    if args.wait {
        let homes = u32::try_from(dataset.warehouses * 10).unwrap_or(u32::MAX);
        plan.spec.pacing = TransactionPacing::Terminals { homes };
        plan.spec.check()?;
    }
    plan.set("warehouses", dataset.warehouses);
    plan.set("mix", &args.mix);
    plan.set("c_load", dataset.c_load);
    let source = Terminals::new(opened.target(), &dataset, options);
    plan.set("c_run", source.constants().last);
    let ended = plan.run(opened.target(), &source, interruption);
    drop(source);
    ended.and(opened.close())
}

fn kit_terminals(args: &TpccRunArgs, interruption: &Interruption) -> Result<(), ExitError> {
    let Some(scale) = args.warehouses.filter(|warehouses| *warehouses > 0) else {
        return Err(ExitError::Usage(
            "--compat sysbench-tpcc: say how many warehouses were loaded, by --warehouses N"
                .to_owned(),
        ));
    };
    let kit = CompatSpec {
        scale: scale.into(),
        tables: args.compat.tables,
        foreign_keys: args.compat.use_fk,
        seed: args.drive.seed,
    };
    let spec = spec("tpcc", &args.target, &args.drive)?;
    let opened = Opened::open(&args.target, &compat::schema(kit.tables), false)?;
    let mut plan = RunPlan {
        kind: RunKind::Tpcc,
        target: &args.target,
        drive: &args.drive,
        common: &args.common,
        spec,
        deviations: compat::DEVIATIONS.iter().map(|text| (*text).to_owned()).collect(),
    };
    plan.set("compat", "sysbench-tpcc");
    plan.set("warehouses", scale);
    plan.set("tables", kit.tables);
    let isolation = isolation(args.drive.isolation);
    let source = CompatTerminals::new(opened.target(), kit, isolation).map_err(ending)?;
    plan.run(opened.target(), &source, interruption)
}

/// Runs `oltp ... run`.
///
/// # Errors
/// As the contract's exit codes say.
pub fn oltp(
    member: MemberWord,
    args: &OltpRunArgs,
    interruption: &Interruption,
) -> Result<(), ExitError> {
    if let Some(program) = &args.private.server {
        let on = |target: String| {
            let mut args = args.clone();
            (args.target.target, args.private.server) = (target, None);
            args
        };
        let OltpTables { tables, table_size, .. } = args.tables;
        let contents = format!("oltp, {tables} tables of {table_size} rows");
        let tables = Tables { database: "oltp", contents };
        let load = |target| prepare::oltp_for_run(member, &on(target), interruption);
        let run = |target| oltp(member, &on(target), interruption);
        return private::with_server(program, &args.private, &tables, load, run);
    }
    let base = oltp_spec(member, args.tables)?;
    let oltp = OltpSpec {
        range_size: i64::from(args.range_size.max(1)),
        skip_trx: args.skip_trx.unwrap_or(base.skip_trx),
        seed: args.drive.seed,
        isolation: isolation(args.drive.isolation),
        as_text: args.drive.db_ps_mode == PreparedMode::Disable,
        ..base
    };
    let spec = spec(&format!("oltp_{}", oltp.member.name()), &args.target, &args.drive)?;
    let opened = Opened::open(&args.target, &oltp::schema(oltp.tables), false)?;
    let mut plan = RunPlan {
        kind: RunKind::Oltp,
        target: &args.target,
        drive: &args.drive,
        common: &args.common,
        spec,
        deviations: Vec::new(),
    };
    plan.set("tables", oltp.tables);
    plan.set("table_size", oltp.table_size);
    plan.set("range_size", oltp.range_size);
    plan.set("rand_type", oltp.distribution.name());
    plan.set("skip_trx", oltp.skip_trx);
    let source = OltpTerminals::new(opened.target(), oltp, opened.blocks()).map_err(ending)?;
    let ended = plan.run(opened.target(), &source, interruption);
    drop(source);
    ended.and(opened.close())
}

fn isolation(word: IsolationWord) -> Isolation {
    match word {
        IsolationWord::ReadCommitted => Isolation::ReadCommitted,
        IsolationWord::RepeatableRead => Isolation::RepeatableRead,
        IsolationWord::Serializable => Isolation::Serializable,
    }
}

fn waits(args: &TpccRunArgs) -> Result<Waits, ExitError> {
    let factors = [("keying", args.keying_multiplier), ("think", args.think_multiplier)];
    for (name, factor) in factors {
        if !(0.0..=1_000.0).contains(&factor) {
            let text = format!("--{name}-multiplier {factor}: use 0 to 1000");
            return Err(ExitError::Usage(text));
        }
    }
    Ok(match args.wait {
        true => Waits { keying: args.keying_multiplier, think: args.think_multiplier },
        false => Waits::NONE,
    })
}

/// Five weights, or a deck.
fn mix(text: &str) -> Result<Mix, ExitError> {
    if text == "deck" {
        return Ok(Mix::Deck);
    }
    let weights: Option<Vec<u64>> = text.split(',').map(|one| one.trim().parse().ok()).collect();
    let weights = weights.and_then(|weights| <[u64; 5]>::try_from(weights).ok());
    match weights.filter(|weights| weights.iter().sum::<u64>() > 0) {
        Some(weights) => Ok(Mix::Weights(weights)),
        None => Err(ExitError::Usage(format!(
            "--mix {text}: write five shares such as 45,43,4,4,4 (new orders, payments, order \
             statuses, deliveries, stock levels), or deck"
        ))),
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
        warm_up: drive.warmup_time,
        runtime: Some(drive.time),
        seed: drive.seed,
        ..TransactionSpec::new(workload, shown(&target.target))
    };
    for threads in &drive.threads {
        TransactionSpec { threads: *threads, ..spec.clone() }.check()?;
    }
    Ok(spec)
}

impl RunPlan<'_> {
    /// Notes a setting of the workload.
    fn set(&mut self, name: &str, value: impl ToString) {
        self.spec.settings.insert(name.to_owned(), value.to_string());
    }

    fn run(
        &self,
        target: &dyn Target,
        source: &dyn TransactionSource,
        interruption: &Interruption,
    ) -> Result<(), ExitError> {
        let facts = self.facts(target)?;
        let printing = self.common.printing;
        let display = Display::new(printing.quiet);
        let name = &self.spec.workload;
        let mut sink = RunSink::begin(self.kind, name, self.common.out.as_deref(), &display)?;
        let path = self.target.target.strip_prefix("engine:");
        let path = path.and_then(|dir| path_facts(Path::new(dir)));
        sink.amend_host(path.as_ref());
        let meter = Meter::new(&Root::system(), path.as_ref(), interruption.flag(), None);
        let (files, flag) = (FileSetCache::default(), interruption.flag());
        let mut pipeline = Pipeline::new(&mut sink, meter, files, flag);
        let measured = self.levels(&mut pipeline, source, path.is_some(), &display);
        display.finish();
        let (replicates, failure) = measured?;
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
        document.run = sink.shown();
        if !sink.keep_with_report(&document) {
            document.run = None;
        }
        sink.say_whether_kept();
        sink.print(&self.result(document), &outcome.events, printing.json)?;
        sink.end(ended)
    }

    fn result(&self, document: TransactionDocument) -> RunResult {
        match self.kind {
            RunKind::Tpcc => RunResult::Tpcc(Box::new(document)),
            _ => RunResult::Oltp(Box::new(document)),
        }
    }

    /// Measures every level until one fails or a signal comes.
    fn levels(
        &self,
        pipeline: &mut Pipeline<'_>,
        source: &dyn TransactionSource,
        reaches_storage: bool,
        display: &Display,
    ) -> Result<(Vec<Replicate>, Option<ExitError>), ExitError> {
        let levels = self.drive.threads.len();
        let mut replicates = Vec::new();
        for (at, threads) in self.drive.threads.iter().enumerate() {
            let spec = self.level(*threads, levels);
            let longest_s = spec.runtime.unwrap_or(spec.point_time).as_secs_f64() * 1.25;
            let share = |elapsed_s: f64| (at as f64 + elapsed_s / longest_s) / levels as f64;
            let (point, load) =
                (transaction_point(&spec), TransactionLoad::new(source, &spec, reaches_storage));
            let mut lines = LiveLines::new(display, *threads, self.interval_s());
            let title = point.title.clone();
            let watchers: &mut [&mut dyn iostrata_study::Watcher] = &mut [&mut lines];
            let measured = pipeline.measure(&point, at as u32, &load, &share, &title, watchers);
            let Measurement { replicate, interrupted, error } = measured.map_err(exit_error)?;
            let event = Event::Replicate(Box::new(replicate.clone()));
            pipeline.store(event).map_err(exit_error)?;
            replicates.push(replicate);
            if interrupted || error.is_some() {
                return Ok((replicates, error.map(exit_error)));
            }
        }
        Ok((replicates, None))
    }

    /// The spec of a level, within the bound on the whole.
    fn level(&self, threads: u32, levels: usize) -> TransactionSpec {
        let mut spec = TransactionSpec { threads, ..self.spec.clone() };
        if let Some(bound) = self.common.max_time {
            let most = bound / levels as u32;
            spec.runtime = spec.runtime.map(|runtime| runtime.min(most));
        }
        spec
    }

    fn interval_s(&self) -> u32 {
        use std::io::IsTerminal;
        let by_default = u32::from(std::io::stderr().is_terminal());
        self.drive.report_interval.unwrap_or(by_default)
    }

    fn facts(&self, target: &dyn Target) -> Result<TransactionFacts, ExitError> {
        let facts = target.facts().map_err(ending)?;
        let isolation = match self.drive.isolation {
            IsolationWord::ReadCommitted => "read committed",
            IsolationWord::RepeatableRead => "repeatable read",
            IsolationWord::Serializable => "serializable",
        };
        Ok(TransactionFacts {
            target: TransactionTarget {
                name: facts.name,
                flavour: facts.flavour,
                version: facts.version,
            },
            durability: facts.durability,
            isolation: isolation.to_owned(),
            deviations: self.deviations.clone(),
        })
    }
}
