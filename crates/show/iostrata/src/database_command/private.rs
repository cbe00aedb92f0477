//! A private server around one run.
//!
//! Invariant: it is journaled before it is started and gone when the run has ended, however it
//! ended; what a kill leaves, `restore` removes.

use iostrata_change::{Session, StateDir, System};
use iostrata_server::private::{PrivateError, PrivatePlan, PrivateServer, ServerProgram};

use crate::args::PrivateArgs;
use crate::exit_error::ExitError;

/// Runs `run` on a server that is started for it; it gets the address of a database there.
///
/// # Errors
/// What starting said, or the run.
pub fn with_server(
    program: &str,
    args: &PrivateArgs,
    database: &str,
    run: impl FnOnce(String) -> Result<(), ExitError>,
) -> Result<(), ExitError> {
    let here = |error: &dyn std::fmt::Display| ExitError::NotHere(format!("--server: {error}"));
    let program = ServerProgram::find(program).map_err(|error| here(&error))?;
    let mut session =
        Session::begin(&StateDir::of_user(), System::new()).map_err(|error| here(&error))?;
    let dir = std::path::absolute(&args.server_dir).map_err(|error| here(&error))?;
    let plan = PrivatePlan { options: options(args), ..PrivatePlan::new(program, dir) };
    let server = PrivateServer::start(&mut session, &plan).map_err(|error| here(&error))?;
    let address = server.address().replacen("/?", &format!("/{database}?"), 1);
    let ended = run(address);
    let removed: Result<(), PrivateError> = server.remove(&mut session);
    ended.and(removed.map_err(|error| here(&error)))
}

/// The server's options with the dashes that it wants.
fn options(args: &PrivateArgs) -> Vec<String> {
    let with_dashes = |option: &String| match option.starts_with("--") {
        true => option.clone(),
        false => format!("--{option}"),
    };
    args.server_options.iter().map(with_dashes).collect()
}
