//! `prepare` and `cleanup`.

use std::path::Path;
use std::time::Instant;

use iostrata_run::{Event, PrepareDocument, RunKind};
use iostrata_target::TargetError;
use iostrata_units as units;
use iostrata_workload::compat::CompatSpec;
use iostrata_workload::oltp::{Distribution, Member, OltpPrepared, OltpSpec};
use iostrata_workload::{compat, oltp, tpcc};

use super::opened::{Opened, ending};
use crate::args::{
    MemberWord, OltpPrepareArgs, OltpRunArgs, OltpTables, Printing, RandType, TpccCleanupArgs,
    TpccPrepareArgs, TpccRunArgs,
};
use crate::display::{Display, print_json, print_text};
use crate::exit_error::ExitError;
use crate::run_sink::RunSink;
use crate::signals::Interruption;

/// Runs `tpcc prepare`.
///
/// # Errors
/// As the contract's exit codes say.
pub fn tpcc(args: &TpccPrepareArgs, interruption: &Interruption) -> Result<(), ExitError> {
    if args.warehouses == 0 {
        return Err(ExitError::Usage("--warehouses 0: load at least one".to_owned()));
    }
    let display = Display::new(args.printing.quiet);
    let mut kept = KeptLoad::begin("tpcc", args.out.as_deref(), &display)?;
    let started = Instant::now();
    let loaded = match args.compat.compat {
        None => load(args, &display, interruption),
        Some(_) => load_kit(args, &display, interruption),
    };
    display.finish();
    let (rows, rows_before) = loaded.map_err(|error| stopped(error, interruption))?;
    let duration_s = started.elapsed().as_secs_f64();
    let document = PrepareDocument {
        target: shown(&args.target.target),
        workload: "tpcc".to_owned(),
        size: u64::from(args.warehouses),
        size_unit: "warehouses".to_owned(),
        rows,
        rows_before,
        rows_per_s: rows as f64 / duration_s.max(f64::MIN_POSITIVE),
        duration_s,
    };
    kept.end(&document)?;
    say(&document, args.printing)
}

/// The run directory of a load, if one is wanted.
pub struct KeptLoad<'a>(Option<RunSink<'a>>);

impl<'a> KeptLoad<'a> {
    /// Begins it.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn begin(
        workload: &str,
        out: Option<&Path>,
        display: &'a Display,
    ) -> Result<Self, ExitError> {
        let name = format!("{workload}-prepare");
        let begin = |out| RunSink::begin(RunKind::Prepare, &name, Some(out), display);
        out.map(begin).transpose().map(Self)
    }

    /// Keeps what the load came to.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn end(&mut self, document: &PrepareDocument) -> Result<(), ExitError> {
        let Some(sink) = &mut self.0 else { return Ok(()) };
        let finished = Event::Finished { at_s: document.duration_s, bytes_written: 0 };
        iostrata_study::Listener::store(sink, &finished).map_err(crate::exit_error::exit_error)?;
        sink.keep(document);
        Ok(())
    }
}

fn load(
    args: &TpccPrepareArgs,
    display: &Display,
    interruption: &Interruption,
) -> Result<(u64, u64), ExitError> {
    let opened = Opened::open(&args.target, &tpcc::schema(), true)?;
    let options = tpcc::PrepareOptions {
        warehouses: args.warehouses.into(),
        threads: args.threads as usize,
        seed: args.seed,
        now_s: tpcc::now_s(),
        reset: args.reset,
    };
    let progress = |progress: tpcc::Progress| {
        let share = progress.rows as f64 / progress.rows_in_all.max(1) as f64;
        display.progress(share, &format!("loading {} warehouses", args.warehouses));
    };
    let prepared = tpcc::prepare(opened.target(), &options, interruption.flag(), &progress);
    let prepared = prepared.map_err(ending);
    opened.close()?;
    prepared.map(|prepared| (prepared.rows, prepared.rows_before))
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
pub fn for_run(args: &TpccRunArgs, interruption: &Interruption) -> Result<(), ExitError> {
    let prepare = TpccPrepareArgs {
        target: args.target.clone(),
        compat: args.compat,
        warehouses: args.warehouses.unwrap_or(4),
        threads: 4,
        reset: false,
        seed: args.drive.seed,
        out: None,
        printing: args.common.printing,
    };
    let display = Display::new(args.common.printing.quiet);
    let loaded = match prepare.compat.compat {
        None => load(&prepare, &display, interruption),
        Some(_) => load_kit(&prepare, &display, interruption),
    };
    display.finish();
    loaded.map(drop).map_err(|error| stopped(error, interruption))
}

fn load_kit(
    args: &TpccPrepareArgs,
    display: &Display,
    interruption: &Interruption,
) -> Result<(u64, u64), ExitError> {
    let spec = CompatSpec {
        scale: args.warehouses.into(),
        tables: args.compat.tables,
        foreign_keys: args.compat.use_fk,
        seed: args.seed,
    };
    let opened = Opened::open(&args.target, &compat::schema(spec.tables), true)?;
    let target = opened.target();
    if args.reset {
        compat::cleanup(target, spec.tables).map_err(ending)?;
    }
    let progress = |rows: u64, in_all: u64| {
        let share = rows as f64 / in_all.max(1) as f64;
        display.progress(share, &format!("loading {} warehouses", spec.scale));
    };
    let how = (args.threads as usize, tpcc::now_s());
    let rows = compat::prepare(target, &spec, how, interruption.flag(), &progress);
    rows.map(|rows| (rows, 0)).map_err(ending)
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
    let started = Instant::now();
    let prepared = fill(&spec, args, interruption)?;
    let duration_s = started.elapsed().as_secs_f64();
    let document = PrepareDocument {
        target: shown(&args.target.target),
        workload: format!("oltp_{}", spec.member.name()),
        size: u64::from(prepared.tables),
        size_unit: "tables".to_owned(),
        rows: prepared.rows,
        rows_before: 0,
        rows_per_s: prepared.rows as f64 / duration_s.max(f64::MIN_POSITIVE),
        duration_s,
    };
    say(&document, args.printing)
}

fn fill(
    spec: &OltpSpec,
    args: &OltpPrepareArgs,
    interruption: &Interruption,
) -> Result<OltpPrepared, ExitError> {
    let display = Display::new(args.printing.quiet);
    let opened = Opened::open(&args.target, &oltp::schema(spec.tables), true)?;
    let in_all = u64::from(spec.tables) * spec.table_size as u64;
    let progress = |rows: u64| {
        let share = rows as f64 / in_all.max(1) as f64;
        display.progress(share, &format!("filling {} tables", spec.tables));
    };
    let (threads, flag) = (args.threads as usize, interruption.flag());
    let prepared = oltp::prepare(opened.target(), spec, threads, flag, &progress).map_err(ending);
    display.finish();
    opened.close()?;
    prepared.map_err(|error| stopped(error, interruption))
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
    let prepare = OltpPrepareArgs {
        target: args.target.clone(),
        tables: args.tables,
        threads: 4,
        printing: args.common.printing,
    };
    fill(&oltp_spec(member, args.tables)?, &prepare, interruption).map(drop)
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
    let opened = Opened::open(&args.target, &schema, false)?;
    let removed = match kit {
        None => tpcc::cleanup(opened.target()),
        Some(tables) => compat::cleanup(opened.target(), tables).map(|count| count > 0),
    };
    removed_tables(removed, opened, args.printing)
}

/// Runs `oltp ... cleanup`.
///
/// # Errors
/// As the contract's exit codes say.
pub fn oltp_cleanup(args: &OltpPrepareArgs) -> Result<(), ExitError> {
    let opened = Opened::open(&args.target, &oltp::schema(args.tables.tables), false)?;
    let removed = oltp::cleanup(opened.target(), args.tables.tables).map(|count| count > 0);
    removed_tables(removed, opened, args.printing)
}

/// Says whether tables were removed, and closes the target.
///
/// # Errors
/// What the target said.
pub fn removed_tables(
    removed: Result<bool, TargetError>,
    opened: Opened,
    printing: Printing,
) -> Result<(), ExitError> {
    let removed = removed.map_err(ending);
    opened.close()?;
    match (removed?, printing.json) {
        (removed, true) => print_json(&serde_json::json!({ "removed": removed })),
        (true, false) => print_text("The tables are removed.\n"),
        (false, false) => print_text("There was nothing to remove.\n"),
    }
}

/// Prints what was loaded.
///
/// # Errors
/// When nothing can be printed.
pub fn say(document: &PrepareDocument, printing: Printing) -> Result<(), ExitError> {
    if printing.json {
        return print_json(document);
    }
    let PrepareDocument { size, size_unit, rows, rows_before, duration_s, .. } = document;
    if *rows == 0 && *size > 0 {
        return print_text(&format!("{size} {size_unit} are there already.\n"));
    }
    let before = match rows_before {
        0 => String::new(),
        before => format!(", {} were there", units::count(*before as f64)),
    };
    print_text(&format!(
        "{size} {size_unit}: {} rows in {duration_s:.1} s, {} rows/s{before}\n",
        units::count(*rows as f64),
        units::count(document.rows_per_s),
    ))
}

/// A load that a signal stopped ends as one.
pub fn stopped(error: ExitError, interruption: &Interruption) -> ExitError {
    match interruption.is_set() {
        true => ExitError::Interrupted(interruption.exit_code()),
        false => error,
    }
}

/// The target without a password.
pub fn shown(target: &str) -> String {
    iostrata_run::scrubbed(&[target.to_owned()]).concat()
}
