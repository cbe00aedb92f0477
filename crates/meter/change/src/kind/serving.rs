//! Programs that serve a file system.
//!
//! Invariant: only a process with the whole command line of the change, or the one that was noted,
//! is ended; only a FUSE mount at its place is unmounted; before the place is touched, what could
//! block there for ever is ended.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use iostrata_io::Mount;
use serde::{Deserialize, Serialize};

use super::{Change, Entry, JournalEntry, Kind, Site, Uses, filesystem};
use crate::error::{ChangeError, system, system_on};
use crate::platform::{self, Platform, RunError};
use crate::seen::{Answer, Owner};
use crate::server::{Ending, ServerCommand, Tie, served_file};
use crate::undone::Undone;

/// Waits of [`Platform::pause`] for a server to be ready: about half a minute, for
/// machines whose disk or processors others use.
const START_TRIES: u32 = 600;

/// The same for a process that was killed: about a minute. It ends when what it called last has
/// returned, which may be a sync of all that a slow disk has not written yet.
const KILLED_TRIES: u32 = 1200;

const FUSE: &str = "/dev/fuse";

/// Starts a program that serves a file system through FUSE, in a session of its own and with
/// `/` as its directory, and waits until `at` is mounted and the file `disk` in it answers.
/// Undone: the program ended, unmounted, and directories that were made for it removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FuseServer {
    /// Where: an empty directory, or one that is made with all above it. It is the program's
    /// last argument, by which the process is found again.
    pub at: PathBuf,
    /// The program; absolute.
    pub program: PathBuf,
    /// Its arguments before `at`; paths in them are absolute.
    pub arguments: Vec<String>,
    /// Whether it keeps the session's journal locked, so that [`crate::Session::hand_over`] can
    /// leave it behind.
    pub holds_journal: bool,
}

/// Nothing mounted there, these directories missing, the outermost first; a server of this
/// session starts no earlier than this.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NoServer {
    missing: Vec<PathBuf>,
    since_ticks: u64,
}

/// A file system is served.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerEffect {
    /// Where.
    pub at: PathBuf,
    /// By which process.
    pub process: Owner,
}

impl FuseServer {
    fn command(&self) -> ServerCommand {
        let place = OsString::from(&self.at);
        let arguments = self.arguments.iter().map(OsString::from).chain([place]).collect();
        ServerCommand { program: self.program.clone(), arguments, may_be_wrapped: false }
    }
}

impl Kind for FuseServer {
    type Prior = NoServer;
    type Effect = ServerEffect;

    fn describe(&self) -> String {
        let Self { at, program, arguments, .. } = self;
        let name = program.file_name().unwrap_or(program.as_os_str()).to_string_lossy();
        format!("serve a file system at {} by {name} {}", at.display(), arguments.join(" "))
    }

    fn uses(&mut self) -> Uses<'_> {
        Uses { places: vec![&mut self.at], ..Uses::default() }
    }

    fn carries(&self, later: &Change) -> bool {
        later.is_below(&self.at)
    }

    fn prior(&self, site: &Site<'_>) -> Result<NoServer, ChangeError> {
        let platform = site.platform;
        // A dead mount must not be accessed, so this comes first.
        let missing = filesystem::place(platform, &self.at)?;
        let fuse = Path::new(FUSE);
        if platform.look(fuse).map_err(|source| system("look at", fuse, source))?.is_none() {
            return Err(ChangeError::unavailable(
                "a file system served by a program",
                format!("there is no {FUSE}"),
                "load the fuse module (modprobe fuse); in a container, pass /dev/fuse in",
            ));
        }
        Ok(NoServer { missing, since_ticks: platform.owner().start_ticks })
    }

    fn apply(&self, site: &Site<'_>, prior: &NoServer) -> Result<ServerEffect, ChangeError> {
        let (platform, server, at) = (site.platform, self.command(), &self.at);
        filesystem::make_dirs(platform, &prior.missing)?;
        let journal = site.journal.filter(|_| self.holds_journal);
        let started = platform.start(&server, Tie::None(journal));
        let process = started.map_err(|error| not_started(&server, error))?;
        for _ in 0..START_TRIES {
            if is_served(platform, at)? {
                return Ok(ServerEffect { at: at.clone(), process });
            }
            if let Some(said) = platform.said(&process) {
                return Err(not_started(&server, RunError::Failed(said)));
            }
            if platform.is_stopping() {
                return Err(ChangeError::Ending);
            }
            platform.pause();
        }
        let late = RunError::Failed("it was not ready within half a minute".to_owned());
        Err(not_started(&server, late))
    }

    fn undo(entry: &Entry<'_, Self>, platform: &dyn Platform) -> Result<Undone, ChangeError> {
        let at = &entry.change.at;
        let processes = processes_of(platform, entry)?;
        let mut undone = Undone::as_before();
        match filesystem::topmost(platform, at)? {
            Some(mount) if mount.is_fuse() => {
                // A server that answers is ended by unmounting; for another no wait is allowed.
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
        filesystem::remove_dirs(platform, &entry.prior.missing)?;
        Ok(undone)
    }

    fn made_dirs(prior: &NoServer) -> &[PathBuf] {
        &prior.missing
    }
}

fn not_started(server: &ServerCommand, error: RunError) -> ChangeError {
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

/// The processes that serve for this change, as far as they live.
fn processes_of(
    platform: &dyn Platform,
    entry: &Entry<'_, FuseServer>,
) -> Result<Vec<Owner>, ChangeError> {
    let mut found = processes(platform, &entry.change.command(), entry.prior.since_ticks)?;
    if let Some(ServerEffect { process, .. }) = entry.effect
        && platform.is_alive(process)
        && !found.contains(process)
    {
        found.push(process.clone());
    }
    Ok(found)
}

/// The processes of a command line that started no earlier.
pub(super) fn processes(
    platform: &dyn Platform,
    server: &ServerCommand,
    since_ticks: u64,
) -> Result<Vec<Owner>, ChangeError> {
    let found = platform.servers(server);
    let mut found =
        found.map_err(|source| system("look for processes of", &server.program, source))?;
    found.retain(|process| process.start_ticks >= since_ticks);
    Ok(found)
}

/// Ends a process: SIGTERM, a wait, SIGKILL, a wait.
pub(crate) fn end(platform: &dyn Platform, process: &Owner) -> Result<(), ChangeError> {
    end_patiently(platform, process, platform::TRIES)
}

/// The same with as many waits of [`Platform::pause`] after SIGTERM.
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

/// Ends servers that do not answer, before what stands on them is undone: touching that would block
/// for ever. Nothing happens where all answer.
pub(crate) fn end_stuck(
    platform: &dyn Platform,
    entries: &[JournalEntry],
) -> Result<(), ChangeError> {
    for entry in entries.iter().filter_map(JournalEntry::of::<FuseServer>) {
        let at = &entry.change.at;
        if served(platform, at)?.is_some() && platform.ask(&served_file(at)) == Answer::Stuck {
            force_all(platform, &entry)?;
        }
    }
    Ok(())
}

/// Ends the servers of a dead process that hold its journal.
pub(crate) fn end_holders(
    platform: &dyn Platform,
    entries: &[JournalEntry],
) -> Result<(), ChangeError> {
    for entry in entries.iter().filter_map(holder) {
        // On SIGTERM it would unmount itself and leave a loop device over a file out of sight.
        force_all(platform, &entry)?;
    }
    Ok(())
}

fn force_all(platform: &dyn Platform, entry: &Entry<'_, FuseServer>) -> Result<(), ChangeError> {
    processes_of(platform, entry)?.iter().try_for_each(|process| force(platform, process))
}

/// It as a server that holds the journal.
pub(crate) fn holder(entry: &JournalEntry) -> Option<Entry<'_, FuseServer>> {
    entry.of().filter(|entry: &Entry<'_, FuseServer>| entry.change.holds_journal)
}

/// Whether it is a server that holds the journal.
pub(crate) fn holds_journal(entry: &JournalEntry) -> bool {
    holder(entry).is_some()
}
