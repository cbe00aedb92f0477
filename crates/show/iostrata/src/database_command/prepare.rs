//! `prepare` and `cleanup` of TPC-C and of the OLTP family.

use iostrata_workload::compat::CompatSpec;
use iostrata_workload::oltp::{Distribution, Member, OltpSpec};
use iostrata_workload::{Loaded, compat, oltp, tpcc};

use super::loading::{Loading, cleanup, for_run, load_into};
use crate::args::{
    LoadArgs, MemberWord, OltpPrepareArgs, OltpRunArgs, OltpTables, RandType, TpccCleanupArgs,
    TpccPrepareArgs, TpccRunArgs,
};
use crate::display::Display;
use crate::exit_error::ExitError;
use crate::signals::Interruption;

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
    if args.compat.compat.is_some() {
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
    load_into(&args.target, &tpcc::schema(), None, |target| {
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
        tables: args.compat.tables,
        foreign_keys: args.compat.use_fk,
        seed: args.load.seed,
        ..CompatSpec::default()
    };
    let progress = |rows: u64, in_all: u64| {
        let share = rows as f64 / in_all.max(1) as f64;
        display.progress(share, &format!("loading {} warehouses", spec.scale));
    };
    load_into(&args.target, &compat::schema(spec.tables), None, |target| {
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
    match args.compat.compat {
        None => format!("tpcc, {warehouses} warehouses"),
        Some(_) => format!(
            "sysbench-tpcc, {} sets of {warehouses} warehouses, foreign keys {}",
            args.compat.tables, args.compat.use_fk
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
    let spec = oltp_spec(member, args.tables)?;
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
    load_into(&args.target, &oltp::schema(spec.tables), None, |target| {
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
    let prepare =
        OltpPrepareArgs { target: args.target.clone(), tables: args.tables, threads: 4, printing };
    let spec = oltp_spec(member, args.tables)?;
    for_run(printing, interruption, |display| fill(&spec, &prepare, display, interruption))
}

/// A member of the family with the tables of the arguments.
///
/// # Errors
/// No tables, or no rows.
pub fn oltp_spec(member: MemberWord, tables: OltpTables) -> Result<OltpSpec, ExitError> {
    for (name, number) in [("tables", tables.tables), ("table-size", tables.table_size)] {
        if number == 0 {
            return Err(ExitError::Usage(format!("--{name} 0: at least 1 is needed")));
        }
    }
    let member = match member {
        MemberWord::ReadWrite => Member::ReadWrite,
        MemberWord::ReadOnly => Member::ReadOnly,
        MemberWord::WriteOnly => Member::WriteOnly,
        MemberWord::PointSelect => Member::PointSelect,
        MemberWord::UpdateIndex => Member::UpdateIndex,
    };
    let distribution = match tables.rand_type {
        RandType::Uniform => Distribution::Uniform,
        RandType::Gaussian => Distribution::Gaussian,
        RandType::Special => Distribution::Special,
        RandType::Pareto => Distribution::Pareto,
        RandType::Zipfian => Distribution::Zipfian,
    };
    let table_size = i64::from(tables.table_size);
    Ok(OltpSpec { tables: tables.tables, table_size, distribution, ..OltpSpec::new(member) })
}

/// Runs `tpcc cleanup`.
///
/// # Errors
/// As the contract's exit codes say.
pub fn tpcc_cleanup(args: &TpccCleanupArgs) -> Result<(), ExitError> {
    let kit = args.compat.compat.map(|_| args.compat.tables);
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
pub fn oltp_cleanup(args: &OltpPrepareArgs) -> Result<(), ExitError> {
    let tables = args.tables.tables;
    cleanup(&args.target, args.printing, &oltp::schema(tables), |target| {
        oltp::cleanup(target, tables).map(|count| count > 0)
    })
}
