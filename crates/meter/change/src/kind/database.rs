//! Private database servers.
//!
//! Invariant: a server is started only on a data directory that the same session made or that the
//! user named, and that no server has open; only the process that was noted, or before that one
//! with all arguments of the change, is ended. One that has nothing to keep is killed; any other
//! one is asked to end. The data directory itself is another change's.
//!
//! The kernel kills the server when this process ends, whatever thread started it: threads may come
//! and go. It does not do so for a program that changes its user by itself or has file
//! capabilities; then [`crate::restore`] ends it.

use std::path::{Path, PathBuf};

use super::{group, serving};
use crate::change::Change;
use crate::effect::{Effect, Prior, Undone};
use crate::error::{ChangeError, system};
use crate::journal::JournalEntry;
use crate::platform::{Platform, RunError};
use crate::seen::SeenKind;
use crate::server::{Greeting, ServerCommand, Tie};

/// Waits of [`Platform::pause`] for a server to greet: about five minutes, because recovery and the
/// making of redo files take their time.
const START_TRIES: u32 = 6000;
/// The same for one that was asked to end and may have many pages to write: about half a minute.
const END_TRIES: u32 = 600;
/// Bytes of a socket's path that the kernel takes.
const SOCKET_BYTES_MAX: usize = 107;
/// Files that a running server has open, of any flavour.
const OPEN_FILES: [&str; 3] = ["ibdata1", "aria_log_control", "mysql.ibd"];

pub(super) fn prior(
    platform: &dyn Platform,
    change: &Change,
    active: &[JournalEntry],
) -> Result<Prior, ChangeError> {
    let Change::DatabaseServer { data_dir, is_named, socket, arguments, group, .. } = change else {
        return Err(ChangeError::Damaged { what: change.describe() });
    };
    let directory = data_dir.to_string_lossy();
    if !arguments.iter().any(|word| word.ends_with(&*directory)) {
        let found = format!("no argument of the server names it: {}", arguments.join(" "));
        return Err(refused(data_dir, found, "name it by --datadir"));
    }
    let is_above = |change: &Change| match change {
        Change::ServerDirectory { path } => data_dir.starts_with(path),
        _ => false,
    };
    if !is_named && !active.iter().any(|entry| is_above(&entry.change)) {
        let found = "this run did not make it".to_owned();
        return Err(refused(data_dir, found, "name it explicitly, or let a fresh one be made"));
    }
    let seen = platform.look(data_dir).map_err(|source| system("look at", data_dir, source))?;
    if !seen.is_some_and(|seen| seen.kind == SeenKind::Directory) {
        let found = "there is no such directory".to_owned();
        return Err(refused(data_dir, found, "prepare a data directory there first"));
    }
    let users = OPEN_FILES.iter().flat_map(|name| platform.openers(&data_dir.join(name)));
    if let Some(user) = users.into_iter().next() {
        let fix = "stop that server, or use a copy of its data directory made while it is stopped";
        return Err(refused(data_dir, format!("{user} runs on it"), fix));
    }
    check_socket(platform, socket)?;
    let groups = match group {
        Some(name) => group::groups(name, active)?,
        None => Vec::new(),
    };
    let groups = groups.into_iter().map(|group| group.dir.clone()).collect();
    Ok(Prior::NoDatabaseServer { since_ticks: platform.owner().start_ticks, groups })
}

fn check_socket(platform: &dyn Platform, socket: &Path) -> Result<(), ChangeError> {
    let bytes = socket.as_os_str().len();
    if bytes > SOCKET_BYTES_MAX {
        return Err(ChangeError::unavailable(
            format!("the socket {}", socket.display()),
            format!("its path has {bytes} bytes, the kernel takes {SOCKET_BYTES_MAX}"),
            "choose a directory with a shorter path",
        ));
    }
    let seen = platform.look(socket).map_err(|source| system("look at", socket, source))?;
    match seen {
        None => Ok(()),
        Some(_) => Err(ChangeError::Taken {
            path: socket.to_owned(),
            found: "exists".to_owned(),
            fix: "choose another path for the socket, or remove it if no server listens there",
        }),
    }
}

fn refused(data_dir: &Path, found: String, fix: &str) -> ChangeError {
    ChangeError::Refused { device: data_dir.display().to_string(), found, fix: fix.to_owned() }
}

pub(super) fn apply(
    platform: &dyn Platform,
    change: &Change,
    groups: &[PathBuf],
) -> Result<Effect, ChangeError> {
    let (Change::DatabaseServer { socket, run_as, .. }, Some(server)) = (change, change.server())
    else {
        return Err(ChangeError::Damaged { what: change.describe() });
    };
    let started = platform.start(&server, Tie::Life { groups, run_as: *run_as });
    let process = started.map_err(|error| not_started(&server, error))?;
    for _ in 0..START_TRIES {
        match platform.greeting(socket) {
            Greeting::Ready { version } => return Ok(Effect::DatabaseServer { process, version }),
            Greeting::Refused(said) => return Err(not_started(&server, RunError::Failed(said))),
            Greeting::Silent => {}
        }
        if let Some(said) = platform.said(&process) {
            return Err(not_started(&server, RunError::Failed(said)));
        }
        if platform.is_stopping() {
            return Err(ChangeError::Ending);
        }
        platform.pause();
    }
    let late = format!("it did not answer on {} within five minutes", socket.display());
    Err(not_started(&server, RunError::Failed(late)))
}

fn not_started(server: &ServerCommand, error: RunError) -> ChangeError {
    ChangeError::unavailable(
        format!("the database server {}", server.program.display()),
        error,
        "see that its options are known to it, and that memory and disk space are free",
    )
}

pub(super) fn undo(
    platform: &dyn Platform,
    entry: &JournalEntry,
    next: &[JournalEntry],
    since_ticks: u64,
) -> Result<Undone, ChangeError> {
    let processes = match entry.effect.as_ref().and_then(Effect::process) {
        // A later run may have started another one on the same place by now.
        Some(noted) if platform.is_alive(noted) => vec![noted.clone()],
        Some(noted) => {
            // Its number stays taken until then: MySQL refuses a socket whose lock names it.
            let _reaped = platform.said(noted);
            Vec::new()
        }
        None => serving::processes(platform, entry, since_ticks)?,
    };
    let is_forced = keeps_nothing(platform, entry, next);
    for process in &processes {
        match is_forced {
            true => serving::force(platform, process)?,
            false => serving::end_patiently(platform, process, END_TRIES)?,
        }
    }
    Ok(if processes.is_empty() { Undone::as_before() } else { Undone::put_back() })
}

/// Whether nothing that a server would write at its end is read again: its directory is removed
/// next, or it is of this session and not ready yet, when some do not obey SIGTERM at all.
fn keeps_nothing(platform: &dyn Platform, entry: &JournalEntry, next: &[JournalEntry]) -> bool {
    let Change::DatabaseServer { data_dir, is_named: false, socket, .. } = &entry.change else {
        return false;
    };
    let goes = |path: &Path| {
        let above = |one: &JournalEntry| match &one.change {
            Change::ServerDirectory { path: dir } => path.starts_with(dir),
            _ => false,
        };
        next.iter().any(above)
    };
    let is_ready = entry.effect.is_some() || !matches!(platform.look(socket), Ok(None));
    !is_ready || (goes(data_dir) && goes(socket))
}
