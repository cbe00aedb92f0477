//! `iostrata disk`: emulated disks, started and left behind, looked at, hurt, stopped.
//!
//! Invariant: a disk is known by the journal of whoever started it, never by its number alone; a
//! server that hangs keeps no command waiting for ever.

mod fault;
mod list;
pub mod measured;
mod room;
mod serve;
mod start;
mod stop;
mod words;

use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use iostrata_change::{ServedDisk, StateDir, System, served_disks};
use iostrata_sim::emudisk::{Client, DiskStats, ServeArguments};

use crate::args::{DiskAction, DiskArgs};
use crate::exit_error::ExitError;
use crate::signals::Interruption;

/// How long a server may take to say what arrived; one that answers at all does so at once.
const PATIENCE: Duration = Duration::from_secs(5);

/// Runs the command.
///
/// # Errors
/// As the contract's exit codes say.
pub fn run(args: &DiskArgs, interruption: &Interruption) -> Result<(), ExitError> {
    match &args.action {
        DiskAction::Start(args) => start::run(args, interruption),
        DiskAction::List(args) => list::run(args),
        DiskAction::Fault(args) => fault::run(args),
        DiskAction::Stop(args) => stop::run(args),
        DiskAction::Serve(args) => serve::run(&args.words, interruption),
    }
}

/// A disk with what it was asked to be.
struct Found {
    disk: ServedDisk,
    asked: ServeArguments,
}

/// The disks of this user, those whose server was killed too.
fn found() -> Vec<Found> {
    let disks = served_disks(&StateDir::of_user(), &System::new());
    disks.into_iter().filter_map(asked).collect()
}

fn asked(disk: ServedDisk) -> Option<Found> {
    let mut words = disk.arguments.get(iostrata_sim::emudisk::COMMAND.len()..)?.to_vec();
    words.push(disk.at.to_str()?.to_owned());
    Some(Found { asked: ServeArguments::parse(&words).ok()?, disk })
}

/// The disk of this device.
///
/// # Errors
/// When there is none: then those that there are are named.
fn of_device(device: &Path) -> Result<Found, ExitError> {
    let node = node(device);
    let mut all = found();
    if let Some(at) = all.iter().position(|one| one.disk.device == node) {
        return Ok(all.swap_remove(at));
    }
    let names: Vec<String> = all.iter().map(|one| one.disk.device.display().to_string()).collect();
    let there = match names.as_slice() {
        [] => "there is none; iostrata disk start makes one".to_owned(),
        names => format!("there are: {}", names.join(", ")),
    };
    Err(ExitError::Usage(format!("{} is no emulated disk; {there}", device.display())))
}

/// `loop3` is `/dev/loop3`, and links of udev lead to the node.
fn node(device: &Path) -> PathBuf {
    let node = Path::new("/dev").join(device);
    std::fs::canonicalize(&node).unwrap_or(node)
}

/// What arrived at a disk; `None` when its server does not answer.
fn stats(disk: &ServedDisk) -> Option<DiskStats> {
    let client = Client::at(&disk.at);
    within(move || client.stats().ok()).flatten()
}

/// What a call comes to, unless a server that hangs keeps it waiting.
fn within<T: Send + 'static>(act: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (tell, told) = mpsc::channel();
    let asking = std::thread::Builder::new().name("asking".to_owned());
    asking.spawn(move || tell.send(act())).ok()?;
    told.recv_timeout(PATIENCE).ok()
}
