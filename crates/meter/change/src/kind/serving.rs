//! Programs that serve a file system.
//!
//! Invariant: only a process with the whole command line of the change, or the one that was noted,
//! is ended; only a FUSE mount at its place is unmounted; whoever has to touch the place first
//! makes sure that nothing there can keep him waiting for ever.

use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

use super::filesystem;
use crate::change::Change;
use crate::effect::{Effect, Prior, Undone};
use crate::error::{ChangeError, system, system_on};
use crate::journal::JournalEntry;
use crate::platform::{self, Platform, RunError};
use crate::seen::{Answer, Owner};
use crate::server::{Ending, ServerCommand, Tie, served_file};
use iostrata_io::Mount;

/// Waits of [`Platform::pause`] for a server to be ready: about ten seconds.
const START_TRIES: u32 = 200;

/// The same for a process that was killed: about a minute. It ends when what it called last has
/// returned, which may be a sync of all that a slow disk has not written yet.
const KILLED_TRIES: u32 = 1200;

const FUSE: &str = "/dev/fuse";

pub(super) fn prior(platform: &dyn Platform, at: &Path) -> Result<Prior, ChangeError> {
    // A dead mount must not be looked at, so this comes first.
    let missing = filesystem::place(platform, at)?;
    let fuse = Path::new(FUSE);
    if platform.look(fuse).map_err(|source| system("look at", fuse, source))?.is_none() {
        return Err(ChangeError::unavailable(
            "a file system served by a program",
            format!("there is no {FUSE}"),
            "load the fuse module (modprobe fuse); in a container, pass /dev/fuse in",
        ));
    }
    Ok(Prior::NoServer { missing, since_ticks: platform.owner().start_ticks })
}

pub(super) fn apply(
    platform: &dyn Platform,
    change: &Change,
    missing: &[PathBuf],
    journal: BorrowedFd<'_>,
) -> Result<Effect, ChangeError> {
    let (Change::FuseServer { at, holds_journal, .. }, Some(server)) = (change, change.server())
    else {
        return Err(ChangeError::Damaged { what: change.describe() });
    };
    filesystem::make_dirs(platform, missing)?;
    let started = platform.start(&server, Tie::None(holds_journal.then_some(journal)));
    let process = started.map_err(|error| not_started(&server, error))?;
    for _ in 0..START_TRIES {
        if is_served(platform, at)? {
            return Ok(Effect::Served { at: at.clone(), process });
        }
        if let Some(said) = platform.said(&process) {
            return Err(not_started(&server, RunError::Failed(said)));
        }
        if platform.is_stopping() {
            return Err(ChangeError::Ending);
        }
        platform.pause();
    }
    let late = RunError::Failed("it showed nothing within ten seconds".to_owned());
    Err(not_started(&server, late))
}

pub(super) fn not_started(server: &ServerCommand, error: RunError) -> ChangeError {
    ChangeError::unavailable(
        format!("the server {}", server.program.display()),
        error,
        "see that it may be run, that mounting is allowed here and that memory is free",
    )
}

/// Whether the place is mounted and the file in it answers.
fn is_served(platform: &dyn Platform, at: &Path) -> Result<bool, ChangeError> {
    Ok(served(platform, at)?.is_some()
        && matches!(platform.ask(&served_file(at)), Answer::There(_)))
}

/// What is mounted at the place, when a program serves it.
fn served(platform: &dyn Platform, at: &Path) -> Result<Option<Mount>, ChangeError> {
    Ok(filesystem::topmost(platform, at)?.filter(Mount::is_fuse))
}

pub(super) fn undo(
    platform: &dyn Platform,
    entry: &JournalEntry,
    at: &Path,
    missing: &[PathBuf],
    since_ticks: u64,
) -> Result<Undone, ChangeError> {
    let processes = processes(platform, entry, since_ticks)?;
    let mut undone = Undone::as_before();
    match filesystem::topmost(platform, at)? {
        Some(mount) if mount.is_fuse() => {
            // A server that answers is told by unmounting; one that does not must not be waited on.
            let answers = matches!(platform.ask(&served_file(at)), Answer::There(_));
            undone = Undone::put_back();
            if answers && !processes.is_empty() {
                undone = filesystem::unmount(platform, at)?;
            }
        }
        Some(mount) => {
            let found = format!("a mount of {}", mount.source);
            undone = Undone::left_alone(at.display().to_string(), found, "no mount point");
        }
        None if !processes.is_empty() => undone = Undone::put_back(),
        None => {}
    }
    for process in &processes {
        end(platform, process)?;
    }
    // It may have mounted until its end, and is dead now.
    while served(platform, at)?.is_some() {
        platform.unmount(at, true).map_err(|source| system("unmount", at, source))?;
    }
    filesystem::remove_dirs(platform, missing)?;
    Ok(undone)
}

/// The processes that serve for this change, as far as they live.
pub(super) fn processes(
    platform: &dyn Platform,
    entry: &JournalEntry,
    since_ticks: u64,
) -> Result<Vec<Owner>, ChangeError> {
    let Some(server) = entry.change.server() else { return Ok(Vec::new()) };
    let found = platform.servers(&server);
    let mut found =
        found.map_err(|source| system("look for processes of", &server.program, source))?;
    found.retain(|process| process.start_ticks >= since_ticks);
    if let Some(process) = entry.effect.as_ref().and_then(Effect::process)
        && platform.is_alive(process)
        && !found.contains(process)
    {
        found.push(process.clone());
    }
    Ok(found)
}

/// Ends a process: asks, waits, forces, waits.
pub(crate) fn end(platform: &dyn Platform, process: &Owner) -> Result<(), ChangeError> {
    end_patiently(platform, process, platform::TRIES)
}

/// The same with as many waits of [`Platform::pause`] for one that was asked.
pub(super) fn end_patiently(
    platform: &dyn Platform,
    process: &Owner,
    asked_tries: u32,
) -> Result<(), ChangeError> {
    let fail = |source| system_on("end", format!("process {}", process.pid), source);
    for (how, tries) in [(Ending::Asked, asked_tries), (Ending::Forced, KILLED_TRIES)] {
        platform.end(process, how).map_err(fail)?;
        let is_gone = || {
            let _reaped = platform.said(process);
            Ok(!platform.is_alive(process))
        };
        if platform::until(platform, tries, is_gone).map_err(fail)? {
            return Ok(());
        }
    }
    Err(ChangeError::unavailable(
        format!("the end of process {}", process.pid),
        "it was killed and still lives",
        "wait until the kernel lets go of it, then run iostrata restore",
    ))
}

/// Ends a process that does not answer.
pub(crate) fn force(platform: &dyn Platform, process: &Owner) -> Result<(), ChangeError> {
    let fail = |source| system_on("end", format!("process {}", process.pid), source);
    platform.end(process, Ending::Forced).map_err(fail)?;
    end(platform, process)
}

/// Ends servers that do not answer, before what stands on them is undone: whoever touches that
/// would wait for ever. Nothing happens where all answer.
pub(crate) fn end_stuck(
    platform: &dyn Platform,
    entries: &[JournalEntry],
) -> Result<(), ChangeError> {
    for entry in entries {
        let (Change::FuseServer { at, .. }, Prior::NoServer { since_ticks, .. }) =
            (&entry.change, &entry.prior)
        else {
            continue;
        };
        if served(platform, at)?.is_some() && platform.ask(&served_file(at)) == Answer::Stuck {
            for process in processes(platform, entry, *since_ticks)? {
                force(platform, &process)?;
            }
        }
    }
    Ok(())
}

/// Ends the servers of a dead process that hold its journal.
pub(crate) fn end_holders(
    platform: &dyn Platform,
    entries: &[JournalEntry],
) -> Result<(), ChangeError> {
    for entry in entries {
        if let (
            Change::FuseServer { holds_journal: true, .. },
            Prior::NoServer { since_ticks, .. },
        ) = (&entry.change, &entry.prior)
        {
            for process in processes(platform, entry, *since_ticks)? {
                // Asked, it would unmount itself and leave a loop device over a file out of sight.
                force(platform, &process)?;
            }
        }
    }
    Ok(())
}
