//! `iostrata disk start`.
//!
//! Invariant: what is wrong with the request is said before anything happens; whatever ends the
//! start before the disk is left behind, nothing of it stays.

use std::path::PathBuf;

use iostrata_change::{Change, ChangeError, Effect, Owner, Session, StateDir, System};
use iostrata_run::DiskStartDocument;
use iostrata_sim::emudisk::{ServeArguments, ServeOptions, changes};
use iostrata_sim::model;
use iostrata_stats::units;

use super::{measured, room};
use crate::args::StartArgs;
use crate::display::{print_json, print_text};
use crate::exit_error::ExitError;
use crate::signals::Interruption;

/// Runs the command.
///
/// # Errors
/// As the contract's exit codes say.
pub fn run(args: &StartArgs, interruption: &Interruption) -> Result<(), ExitError> {
    let state = StateDir::of_user();
    let asked = asked(args, &state)?;
    if !rustix::process::geteuid().is_root() {
        return Err(ExitError::NotHere(
            "an emulated disk needs root: it mounts a file system and attaches a loop device; run \
             it with sudo"
                .to_owned(),
        ));
    }
    let program = std::env::current_exe()
        .map_err(|error| ExitError::NotHere(format!("cannot find this program: {error}")))?;
    let changes = changes(&program, &asked, true).map_err(|e| ExitError::Usage(e.to_string()))?;
    let system = System::new().stopping_on(interruption.flag().clone());
    let session =
        Session::begin(&state, system).map_err(|error| ExitError::NotHere(error.to_string()))?;
    let (device, server) = start(session, changes, interruption)?;
    let document = DiskStartDocument {
        device: device.display().to_string(),
        model: asked.disk.to_string(),
        size_bytes: asked.size_bytes,
        pid: server.pid,
    };
    match args.common.json {
        true => print_json(&document),
        false => print_text(&text(&document, &asked)),
    }
}

/// What the server is told, checked as far as the request itself goes.
fn asked(args: &StartArgs, state: &StateDir) -> Result<ServeArguments, ExitError> {
    let measured = measured::of(&args.model)?;
    let bad =
        |error: String| ExitError::Usage(format!("disk start --model {}: {error}", args.model));
    let options = ServeOptions {
        disk: args.model.clone(),
        size_bytes: args.size,
        store: iostrata_sim::emudisk::Store::Memory,
        store_limit_bytes: args.store_limit,
        seed: args.seed,
        measured,
    };
    options.check().map_err(|error| bad(error.to_string()))?;
    model::drive(&args.model, args.size, options.measured.as_ref(), args.seed)
        .map_err(|error| bad(error.to_string()))?;
    let this = Owner::this();
    // Beside the journals and not in a directory of their own, so that the last disk to go leaves
    // nothing that another one is about to use.
    let at = state.path().join(format!("disk-{}-{}", this.pid, this.start_ticks));
    Ok(ServeArguments {
        at,
        disk: args.model.clone(),
        size_bytes: args.size,
        store: room::store(args)?,
        store_limit_bytes: args.store_limit,
        seed: args.seed,
    })
}

/// Makes both changes and leaves them behind. Dropping the session undoes what was made.
fn start(
    mut session: Session,
    changes: [Change; 2],
    interruption: &Interruption,
) -> Result<(PathBuf, Owner), ExitError> {
    let mut device = None;
    for change in changes {
        let applied = session.apply(change);
        if interruption.is_set() {
            drop(session);
            return Err(ExitError::Interrupted(interruption.exit_code()));
        }
        if let Effect::Loop { device: node, .. } = applied.map_err(ending)?.effect {
            device = Some(node);
        }
    }
    let Some(device) = device else {
        return Err(ExitError::Bug("the changes of a disk hold no loop device".to_owned()));
    };
    let server = session.hand_over().map_err(ending)?;
    Ok((device, server))
}

fn ending(error: ChangeError) -> ExitError {
    ExitError::NotHere(error.to_string())
}

fn text(document: &DiskStartDocument, asked: &ServeArguments) -> String {
    let DiskStartDocument { device, model, size_bytes, pid } = document;
    let size = units::bytes(*size_bytes as f64);
    let place = match &asked.store {
        iostrata_sim::emudisk::Store::Memory => "in memory".to_owned(),
        iostrata_sim::emudisk::Store::File { dir } => format!("in {}", dir.display()),
    };
    format!(
        "{device}: {size} that behave like {}\n  model {model}, contents {place}, served by process \
         {pid}\nTo take it away, with all it holds: iostrata disk stop {device}\n",
        super::words::of(&asked.disk)
    )
}
