//! A private server around one run.
//!
//! Invariant: it is journaled before it is started and gone when the run has ended, however it
//! ended; what a kill leaves, `restore` removes. Limits hold while the run is measured, not while
//! the tables are loaded.

use std::fmt::Display;
use std::path::Path;

use iostrata_change::{
    Change, CpuGroup, DeviceRef, IoGroup, MemoryGroup, Session, StateDir, System,
};
use iostrata_plan::study::IoLimits;
use iostrata_server::private::{
    DataSource, PrivatePlan, PrivateServer, ServerProgram, find_prepared, keep_prepared, scratch_of,
};
use iostrata_server::{Credentials, ServerTarget};

use crate::args::PrivateArgs;
use crate::exit_error::ExitError;
use crate::io_parts::path_facts;
use crate::test_database::server_address;

/// The groups of the server's limits.
const GROUP: &str = "server";

/// What the tables of a run are.
pub struct Tables<'a> {
    /// In which database they are.
    pub database: &'a str,
    /// What distinguishes them from others, in one line.
    pub contents: String,
}

/// The part of [`Tables::contents`] for a storage engine, so that others are not taken for them.
pub fn in_engine(storage_engine: Option<&str>) -> String {
    storage_engine.map_or(String::new(), |engine| format!(", {}", engine.to_ascii_lowercase()))
}

/// Runs `run` on a server that is started for it, once `load` has filled its tables; both get the
/// address of their database there.
///
/// # Errors
/// An error of starting, of the load, or of the run.
pub fn with_server(
    program: &str,
    args: &PrivateArgs,
    tables: &Tables<'_>,
    load: impl FnOnce(String) -> Result<(), ExitError>,
    run: impl FnOnce(String) -> Result<(), ExitError>,
) -> Result<(), ExitError> {
    let program = ServerProgram::find(program).map_err(|error| here(&error))?;
    let mut session =
        Session::begin(&StateDir::of_user(), System::new()).map_err(|error| here(&error))?;
    let dir = std::path::absolute(&args.server_dir).map_err(|error| here(&error))?;
    // First, so that nothing is loaded for a run that cannot be.
    let is_limited = limit(&mut session, args, &dir)?;
    let mut plan = PrivatePlan { options: options(args), ..PrivatePlan::new(program, dir) };
    let mut load = Some(load);
    if let Some(kept) = &args.prepared {
        let find = || find_prepared(kept, &plan.program, &tables.contents);
        let mut found = find().map_err(|error| ExitError::Usage(format!("--prepared: {error}")))?;
        if let (None, Some(load)) = (&found, load.take()) {
            prepare(&mut session, &plan, kept, tables, load)?;
            found = find().map_err(|error| here(&error))?;
        }
        plan.data = found.unwrap_or(DataSource::Fresh);
        load = None;
    }
    let mut server = PrivateServer::prepare(&mut session, &plan).map_err(|error| here(&error))?;
    if let Some(load) = load {
        server.run(&mut session, &[]).map_err(|error| here(&error))?;
        load(with_database(&server, tables)?)?;
    }
    if is_limited {
        server.stop(&mut session).map_err(|error| here(&error))?;
        server.enter(Some(GROUP));
    }
    if server.process().is_none() {
        server.run(&mut session, &[]).map_err(|error| here(&error))?;
    }
    let ended = run(address(&server, tables));
    ended.and(server.remove(&mut session).map_err(|error| here(&error)))
}

/// Loads the tables on a server of its own and keeps its data.
fn prepare(
    session: &mut Session<System>,
    plan: &PrivatePlan,
    kept: &Path,
    tables: &Tables<'_>,
    load: impl FnOnce(String) -> Result<(), ExitError>,
) -> Result<(), ExitError> {
    let kept = std::path::absolute(kept).map_err(|error| here(&error))?;
    let plan = PrivatePlan { dir: scratch_of(&kept), ..plan.clone() };
    let server = PrivateServer::start(session, &plan).map_err(|error| here(&error))?;
    load(with_database(&server, tables)?)?;
    keep_prepared(session, server, &kept, &tables.contents).map_err(|error| here(&error))
}

fn here(error: &dyn Display) -> ExitError {
    ExitError::NotHere(format!("--server: {error}"))
}

/// The address of the database, which is made.
fn with_database(server: &PrivateServer, tables: &Tables<'_>) -> Result<String, ExitError> {
    let address = address(server, tables);
    let parsed = server_address(&address, &Credentials::default(), "--server: ")?;
    ServerTarget::create_database(parsed).map_err(|error| here(&error))?;
    Ok(address)
}

fn address(server: &PrivateServer, tables: &Tables<'_>) -> String {
    server.address().replacen("/?", &format!("/{}?", tables.database), 1)
}

/// Makes the groups of the limits; false when there are none.
fn limit(session: &mut Session<System>, args: &PrivateArgs, dir: &Path) -> Result<bool, ExitError> {
    let name = || GROUP.to_owned();
    let mut wanted: Vec<(_, Change)> = Vec::new();
    if let Some(limit_bytes) = args.server_memory {
        wanted.push(("memory", MemoryGroup { name: name(), limit_bytes }.into()));
    }
    if let Some(milli_cpus) = args.server_cpus {
        wanted.push(("cpus", CpuGroup { name: name(), milli_cpus }.into()));
    }
    if let Some(limits) = args.server_io {
        wanted.push(("io", io_group(limits, dir)?.into()));
    }
    let is_limited = !wanted.is_empty();
    for (option, change) in wanted {
        let made = session.apply(change);
        made.map_err(|error| ExitError::NotHere(format!("--server-{option}: {error}")))?;
    }
    Ok(is_limited)
}

fn io_group(limits: IoLimits, dir: &Path) -> Result<IoGroup, ExitError> {
    let device =
        path_facts(dir).and_then(|facts| facts.devices.first().map(|one| one.name.clone()));
    let Some(device) = device else {
        let text = format!(
            "--server-io: no block device is known below {}; use a directory on a disk",
            dir.display()
        );
        return Err(ExitError::NotHere(text));
    };
    let device = DeviceRef::Named { path: Path::new("/dev").join(device), overwrite: false };
    Ok(IoGroup { name: GROUP.to_owned(), device, limits })
}

/// The server's options with the dashes that it wants.
fn options(args: &PrivateArgs) -> Vec<String> {
    let with_dashes = |option: &String| match option.starts_with("--") {
        true => option.clone(),
        false => format!("--{option}"),
    };
    args.server_options.iter().map(with_dashes).collect()
}
