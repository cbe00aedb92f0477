//! `run`: from the arguments of each workload to a plan.

use std::time::Duration;

use iostrata_plan::{TransactionPacing, TransactionSpec};
use iostrata_run::RunKind;
use iostrata_target::{Isolation, Target};
use iostrata_workload::compat::{self, CompatSpec, CompatTerminals};
use iostrata_workload::oltp::{Counts, OltpSpec, OltpTerminals};
use iostrata_workload::tpcc::{self, Dataset, Mix, TerminalOptions, Terminals, Waits};

use super::check::TPCC;
use super::loading::without_password;
use super::opened::{Opened, Use, ending};
use super::plan::RunPlan;
use super::prepare::{self, oltp_spec};
use super::private::{self, Tables};
use crate::args::{
    DriveArgs, IsolationWord, MemberWord, OltpRunArgs, OltpTables, PreparedMode, StatementArgs,
    TargetArgs, TpccRunArgs,
};
use crate::display::Display;
use crate::exit_error::ExitError;
use crate::signals::Interruption;

/// How long a run takes at most whose end is a number of transactions.
const TIME_MAX: Duration = Duration::from_secs(24 * 3600);

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
        let load = |target| prepare::tpcc_for_run(&on(target), interruption);
        let run = |target| tpcc(&on(target), interruption);
        return private::with_server(program, &args.private, &tables, load, run);
    }
    match args.compat.is_kit() {
        false => tpcc_terminals(args, interruption),
        true => kit_terminals(args, interruption),
    }
}

fn tpcc_terminals(args: &TpccRunArgs, interruption: &Interruption) -> Result<(), ExitError> {
    let (mix, waits) = (mix(&args.mix)?, waits(args)?);
    let spec = spec("tpcc", &args.target, &args.drive)?;
    let opened = Opened::open(&args.target, &tpcc::schema(), Use::Write, &|_| ())?;
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
        sharing: args.all_warehouses.then(|| fewest_threads(&args.drive)),
    };
    let mut plan = RunPlan {
        kind: RunKind::Tpcc,
        target: &args.target,
        drive: &args.drive,
        common: &args.common,
        spec,
        storage_engine: None,
        growth: None,
        deviations: tpcc::deviations(&options).into_iter().map(str::to_owned).collect(),
        counts_orders: true,
        found_out: None,
    };
    if args.wait {
        let homes = u32::try_from(dataset.warehouses * 10).unwrap_or(u32::MAX);
        plan.spec.pacing = TransactionPacing::Terminals { homes };
        plan.spec.check()?;
    }
    plan.set("warehouses", dataset.warehouses);
    let in_use = match args.wait || args.all_warehouses {
        true => dataset.warehouses,
        false => dataset.warehouses.min(fewest_threads(&args.drive).into()),
    };
    plan.set("warehouses_in_use", in_use);
    let display = Display::new(args.common.printing.quiet);
    display.note(&format!("{in_use} of {} warehouses are in use", dataset.warehouses));
    if in_use < dataset.warehouses {
        let text = format!(
            "{in_use} of {} warehouses are in use: one for each thread",
            dataset.warehouses
        );
        plan.deviations.push(text);
    }
    plan.set("mix", &args.mix);
    plan.set("c_load", dataset.c_load);
    let source = Terminals::new(opened.target(), &dataset, options);
    plan.set("c_run", source.constants().last);
    let skipped = || skipped_deliveries(source.skipped_deliveries());
    plan.found_out = Some(&skipped);
    let mut ended = plan.run(opened.target(), &source, interruption);
    if args.check {
        ended = ended.and_then(|()| TPCC.judge(&opened, args.common.printing.quiet));
    }
    ended.and(opened.close())
}

fn kit_terminals(args: &TpccRunArgs, interruption: &Interruption) -> Result<(), ExitError> {
    let opened =
        Opened::open(&args.target, &compat::schema(args.compat.sets()), Use::Write, &|_| ())?;
    let scale = kit_warehouses(args, opened.target())?;
    let kit = CompatSpec {
        scale,
        tables: args.compat.sets(),
        foreign_keys: args.compat.use_fk,
        seed: args.drive.seed,
        ..CompatSpec::default()
    };
    let spec = spec("tpcc", &args.target, &args.drive)?;
    let mut plan = RunPlan {
        kind: RunKind::Tpcc,
        target: &args.target,
        drive: &args.drive,
        common: &args.common,
        spec,
        storage_engine: None,
        growth: None,
        deviations: compat::DEVIATIONS.iter().map(|text| (*text).to_owned()).collect(),
        counts_orders: false,
        found_out: None,
    };
    plan.set("compat", "sysbench-tpcc");
    plan.set("warehouses", scale);
    plan.set("tables", kit.tables);
    let isolation = isolation(args.drive.isolation);
    let source = CompatTerminals::new(opened.target(), kit, isolation).map_err(ending)?;
    plan.run(opened.target(), &source, interruption)
}

/// How many warehouses the kit's tables have, which is what was asked for, if anything was.
fn kit_warehouses(args: &TpccRunArgs, target: &dyn Target) -> Result<i64, ExitError> {
    let found = compat::warehouses(target).map_err(ending)?.filter(|warehouses| *warehouses > 0);
    let Some(found) = found else {
        return Err(ExitError::Usage(format!(
            "{}: no tables of sysbench-tpcc are there; load them with `tpcc prepare --compat \
             sysbench-tpcc`",
            target.name()
        )));
    };
    match args.warehouses {
        Some(asked) if i64::from(asked) != found => Err(ExitError::Usage(format!(
            "--warehouses {asked}: the tables of sysbench-tpcc hold {found}; leave it out, or load \
             others"
        ))),
        _ => Ok(found),
    }
}

/// Clause 2.7.4.2 asks for their number.
fn skipped_deliveries(skipped: u64) -> Option<String> {
    (skipped > 0).then(|| {
        format!("deliveries found no new order in a district, and skipped it, {} times", skipped)
    })
}

/// The threads of the level that has fewest.
fn fewest_threads(drive: &DriveArgs) -> u32 {
    drive.threads.iter().copied().min().unwrap_or(1).max(1)
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
        let OltpTables { tables, table_size, .. } = &args.tables;
        let contents = format!("oltp, {tables} tables of {table_size} rows");
        let tables = Tables { database: "oltp", contents };
        let load = |target| prepare::oltp_for_run(member, &on(target), interruption);
        let run = |target| oltp(member, &on(target), interruption);
        return private::with_server(program, &args.private, &tables, load, run);
    }
    let most = args.drive.threads.iter().copied().max().unwrap_or(1);
    let base = prepare::with_own_tables(oltp_spec(member, &args.tables)?, most);
    let oltp = OltpSpec {
        range_size: i64::from(args.statements.range_size.max(1)),
        counts: counts(base.counts, args.statements),
        points: args.statements.random_points.max(1),
        ranges: args.statements.number_of_ranges.max(1),
        range_delta: args.statements.delta.into(),
        skip_trx: args.skip_trx.unwrap_or(base.skip_trx),
        seed: args.drive.seed,
        isolation: isolation(args.drive.isolation),
        as_text: args.drive.db_ps_mode == PreparedMode::Disable,
        ..base
    };
    let spec = spec(&format!("oltp_{}", oltp.member.name()), &args.target, &args.drive)?;
    let to = if oltp.member.only_reads() { Use::Read } else { Use::Write };
    let opened = Opened::open(&args.target, &oltp.schema(), to, &|_| ())?;
    let mut plan = RunPlan {
        kind: RunKind::Oltp,
        target: &args.target,
        drive: &args.drive,
        common: &args.common,
        spec,
        storage_engine: None,
        growth: None,
        deviations: Vec::new(),
        counts_orders: false,
        found_out: None,
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

/// How often each statement comes, where that was asked for.
fn counts(of: Counts, asked: StatementArgs) -> Counts {
    let range = |asked_for: Option<u32>, usual: u32| match asked.range_selects {
        true => asked_for.unwrap_or(usual),
        false => 0,
    };
    Counts {
        point_selects: asked.point_selects.unwrap_or(of.point_selects),
        simple_ranges: range(asked.simple_ranges, of.simple_ranges),
        sum_ranges: range(asked.sum_ranges, of.sum_ranges),
        order_ranges: range(asked.order_ranges, of.order_ranges),
        distinct_ranges: range(asked.distinct_ranges, of.distinct_ranges),
        index_updates: asked.index_updates.unwrap_or(of.index_updates),
        non_index_updates: asked.non_index_updates.unwrap_or(of.non_index_updates),
        delete_inserts: asked.delete_inserts.unwrap_or(of.delete_inserts),
        ..of
    }
}

/// What sessions see of each other.
pub fn isolation(word: IsolationWord) -> Isolation {
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
///
/// # Errors
/// What cannot be run.
pub fn spec(
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
            "--time 0: say how long, or after how many transactions by --events".to_owned(),
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
