//! `prepare` and `cleanup` of TPC-C and of the OLTP family.

use iostrata_server::TableWords;
use iostrata_workload::compat::CompatSpec;
use iostrata_workload::oltp::{Distribution, Member, OltpSpec, RandParameters};
use iostrata_workload::{Loaded, compat, oltp, tpcc};

use super::loading::{Loading, cleanup, for_run, load_into};
use crate::args::{
    LoadArgs, MemberWord, OltpPrepareArgs, OltpRunArgs, OltpTables, RandType, TargetArgs,
    TpccCleanupArgs, TpccPrepareArgs, TpccRunArgs,
};
use crate::display::Display;
use crate::exit_error::ExitError;
use crate::signals::Interruption;

/// About how large the data are: of a warehouse, and of a row of `sbtest`.
const WAREHOUSE_BYTES: u64 = 100 << 20;
const ROW_BYTES: u64 = 230;

/// Runs `tpcc prepare`.
///
/// # Errors
/// As the contract's exit codes say.
pub fn tpcc(args: &TpccPrepareArgs, interruption: &Interruption) -> Result<(), ExitError> {
    if args.warehouses == 0 {
        return Err(ExitError::Usage("--warehouses 0: load at least one".to_owned()));
    }
    let loading = Loading {
        workload: "tpcc",
        size: (args.warehouses.into(), "warehouses"),
        target: &args.target,
        out: args.load.out.as_deref(),
        printing: args.load.printing,
    };
    loading.run(interruption, |display| load(args, display, interruption))
}

fn load(
    args: &TpccPrepareArgs,
    display: &Display,
    interruption: &Interruption,
) -> Result<Loaded, ExitError> {
    if args.compat.is_kit() {
        return load_kit(args, display, interruption);
    }
    let options = tpcc::PrepareOptions {
        warehouses: args.warehouses.into(),
        threads: args.threads as usize,
        seed: args.load.seed,
        now_s: tpcc::now_s(),
        reset: args.load.reset,
    };
    let progress = |progress: tpcc::Progress| {
        let share = progress.rows as f64 / progress.rows_in_all.max(1) as f64;
        display.progress(share, &format!("loading {} warehouses", args.warehouses));
    };
    let bytes = u64::from(args.warehouses) * WAREHOUSE_BYTES;
    let target = TargetArgs { data_bytes: Some(bytes), ..args.target.clone() };
    load_into(&target, (&tpcc::schema(), None), display, |target| {
        let prepared = tpcc::prepare(target, &options, interruption.flag(), &progress)?;
        Ok(prepared.loaded)
    })
}

fn load_kit(
    args: &TpccPrepareArgs,
    display: &Display,
    interruption: &Interruption,
) -> Result<Loaded, ExitError> {
    let spec = CompatSpec {
        scale: args.warehouses.into(),
        tables: args.compat.sets(),
        foreign_keys: args.compat.use_fk,
        seed: args.load.seed,
        ..CompatSpec::default()
    };
    let progress = |rows: u64, in_all: u64| {
        let share = rows as f64 / in_all.max(1) as f64;
        display.progress(share, &format!("loading {} warehouses", spec.scale));
    };
    load_into(&args.target, (&compat::schema(spec.tables), None), display, |target| {
        if args.load.reset {
            compat::cleanup(target, spec.tables)?;
        }
        let how = (args.threads as usize, tpcc::now_s());
        compat::prepare(target, &spec, how, interruption.flag(), &progress)
    })
}

/// What the tables of a run on a private server are, in one line.
pub fn contents(args: &TpccRunArgs) -> String {
    let warehouses = args.warehouses.unwrap_or(4);
    match args.compat.is_kit() {
        false => format!("tpcc, {warehouses} warehouses"),
        true => format!(
            "sysbench-tpcc, {} sets of {warehouses} warehouses, foreign keys {}",
            args.compat.sets(),
            args.compat.use_fk
        ),
    }
}

/// Loads the tables of a run on a private server.
///
/// # Errors
/// As `prepare`.
pub fn tpcc_for_run(args: &TpccRunArgs, interruption: &Interruption) -> Result<(), ExitError> {
    let printing = args.common.printing;
    let prepare = TpccPrepareArgs {
        target: args.target.clone(),
        compat: args.compat,
        warehouses: args.warehouses.unwrap_or(4),
        threads: 4,
        load: LoadArgs { reset: false, seed: args.drive.seed, out: None, printing },
    };
    for_run(printing, interruption, |display| load(&prepare, display, interruption))
}

/// Runs `oltp ... prepare`.
///
/// # Errors
/// As the contract's exit codes say.
pub fn oltp(
    member: MemberWord,
    args: &OltpPrepareArgs,
    interruption: &Interruption,
) -> Result<(), ExitError> {
    let spec = with_own_tables(oltp_spec(member, &args.tables)?, args.threads);
    let loading = Loading {
        workload: &format!("oltp_{}", spec.member.name()),
        size: (spec.tables.into(), "tables"),
        target: &args.target,
        out: None,
        printing: args.printing,
    };
    loading.run(interruption, |display| fill(&spec, args, display, interruption))
}

fn fill(
    spec: &OltpSpec,
    args: &OltpPrepareArgs,
    display: &Display,
    interruption: &Interruption,
) -> Result<Loaded, ExitError> {
    let in_all = u64::from(spec.tables) * spec.table_size as u64;
    let progress = |rows: u64| {
        let share = rows as f64 / in_all.max(1) as f64;
        display.progress(share, &format!("filling {} tables", spec.tables));
    };
    let mut target = args.target.clone();
    target.data_bytes = Some(in_all * ROW_BYTES);
    target.table_words = TableWords {
        options: args.tables.create_table_options.clone(),
        key_is_secondary: args.tables.secondary,
    };
    load_into(&target, (&spec.schema(), None), display, |target| {
        oltp::prepare(target, spec, args.threads as usize, interruption.flag(), &progress)
    })
}

/// Fills the tables of a run on a private server.
///
/// # Errors
/// As `prepare`.
pub fn oltp_for_run(
    member: MemberWord,
    args: &OltpRunArgs,
    interruption: &Interruption,
) -> Result<(), ExitError> {
    let printing = args.common.printing;
    let (target, tables) = (args.target.clone(), args.tables.clone());
    let prepare = OltpPrepareArgs { target, tables, threads: 4, printing };
    let most = args.drive.threads.iter().copied().max().unwrap_or(1);
    let spec = with_own_tables(oltp_spec(member, &args.tables)?, most);
    for_run(printing, interruption, |display| fill(&spec, &prepare, display, interruption))
}

/// Bulk inserts have a table for each session, as many as sessions.
pub fn with_own_tables(spec: OltpSpec, sessions: u32) -> OltpSpec {
    match spec.member {
        Member::BulkInsert => OltpSpec { tables: sessions.max(1), threads: sessions, ..spec },
        _ => OltpSpec { threads: sessions, ..spec },
    }
}

/// A member of the family with the tables of the arguments.
///
/// # Errors
/// No tables, or no rows; a parameter of a distribution that it cannot be drawn with.
pub fn oltp_spec(member: MemberWord, tables: &OltpTables) -> Result<OltpSpec, ExitError> {
    for (name, number) in [("tables", tables.tables), ("table-size", tables.table_size)] {
        if number == 0 {
            return Err(ExitError::Usage(format!("--{name} 0: at least 1 is needed")));
        }
    }
    let MemberWord(member) = member;
    let distribution = match tables.rand_type {
        RandType::Uniform => Distribution::Uniform,
        RandType::Gaussian => Distribution::Gaussian,
        RandType::Special => Distribution::Special,
        RandType::Pareto => Distribution::Pareto,
        RandType::Zipfian => Distribution::Zipfian,
    };
    Ok(OltpSpec {
        tables: tables.tables,
        table_size: i64::from(tables.table_size),
        distribution,
        rand: rand_parameters(tables)?,
        auto_inc: tables.auto_inc,
        ..OltpSpec::new(member)
    })
}

fn rand_parameters(tables: &OltpTables) -> Result<RandParameters, ExitError> {
    let refuse = |option: &str, found: &dyn std::fmt::Display, fix: &str| {
        Err(ExitError::Usage(format!("--{option} {found}: use {fix}")))
    };
    let OltpTables { rand_spec_iter, rand_spec_res, rand_pareto_h, rand_zipfian_exp, .. } = tables;
    if *rand_spec_iter == 0 {
        return refuse("rand-spec-iter", rand_spec_iter, "1 or more");
    }
    if *rand_spec_res >= 100 {
        return refuse("rand-spec-res", rand_spec_res, "0 to 99");
    }
    if !(*rand_pareto_h > 0.0 && *rand_pareto_h < 1.0) {
        return refuse("rand-pareto-h", rand_pareto_h, "a number between 0 and 1");
    }
    if !(0.0..=10.0).contains(rand_zipfian_exp) {
        return refuse("rand-zipfian-exp", rand_zipfian_exp, "0 to 10");
    }
    Ok(RandParameters {
        iterations: *rand_spec_iter,
        special_rows_pct: tables.rand_spec_pct.into(),
        special_draws_pct: (*rand_spec_res).into(),
        pareto_h: *rand_pareto_h,
        zipf_exponent: *rand_zipfian_exp,
    })
}

/// Runs `tpcc cleanup`.
///
/// # Errors
/// As the contract's exit codes say.
pub fn tpcc_cleanup(args: &TpccCleanupArgs) -> Result<(), ExitError> {
    let kit = args.compat.is_kit().then(|| args.compat.sets());
    let schema = kit.map_or_else(tpcc::schema, compat::schema);
    cleanup(&args.target, args.printing, &schema, |target| match kit {
        None => tpcc::cleanup(target),
        Some(tables) => compat::cleanup(target, tables).map(|count| count > 0),
    })
}

/// Runs `oltp ... cleanup`.
///
/// # Errors
/// As the contract's exit codes say.
pub fn oltp_cleanup(member: MemberWord, args: &OltpPrepareArgs) -> Result<(), ExitError> {
    let spec = with_own_tables(oltp_spec(member, &args.tables)?, args.threads);
    cleanup(&args.target, args.printing, &spec.schema(), |target| {
        oltp::cleanup(target, &spec).map(|count| count > 0)
    })
}
