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

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Change, Entry, JournalEntry, Kind, Site, Uses, group, serving};
use crate::error::{ChangeError, system};
use crate::platform::{Platform, RunError};
use crate::seen::{Owner, SeenKind};
use crate::server::{Greeting, RunAs, ServerCommand, Tie};
use crate::undone::Undone;

/// Waits of [`Platform::pause`] for a server to greet: about five minutes, because recovery and the
/// making of redo files take their time.
const START_TRIES: u32 = 6000;
/// The same for one that shuts down in the regular way and may have many pages to write: about half
/// a minute.
const END_TRIES: u32 = 600;
/// Bytes of a socket's path that the kernel takes.
const SOCKET_BYTES_MAX: usize = 107;
/// Files that a running server has open, of any flavour.
const OPEN_FILES: [&str; 3] = ["ibdata1", "aria_log_control", "mysql.ibd"];

/// Starts a database server in a session of its own and waits until it greets on its socket. It
/// dies with this process. Undone: ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatabaseServer {
    /// Its data directory: in one that the same session made, unless `is_named`. An argument
    /// names it, by which the process is found again.
    pub data_dir: PathBuf,
    /// The user named this very directory as one that a server may be started on.
    pub is_named: bool,
    /// Where it listens.
    pub socket: PathBuf,
    /// The program, absolute, or a script that ends by executing it with the same arguments.
    pub program: PathBuf,
    /// All its arguments; paths in them are absolute and free of links.
    pub arguments: Vec<String>,
    /// The groups of this name, made by the same session, in which it runs.
    pub group: Option<String>,
    /// As whom it runs; absent: as this process.
    pub run_as: Option<RunAs>,
}

/// A server of this session starts no earlier than this; directories of the groups in which it is
/// to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NoDatabaseServer {
    since_ticks: u64,
    groups: Vec<PathBuf>,
}

/// A database server runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatabaseServerEffect {
    /// As which process.
    pub process: Owner,
    /// Its version, as it greets.
    pub version: String,
}

impl DatabaseServer {
    pub(crate) fn command(&self) -> ServerCommand {
        let arguments = self.arguments.iter().map(OsString::from).collect();
        ServerCommand { program: self.program.clone(), arguments, may_be_wrapped: true }
    }
}

impl Kind for DatabaseServer {
    type Prior = NoDatabaseServer;
    type Effect = DatabaseServerEffect;

    fn describe(&self) -> String {
        let group = self.group.as_ref().map(|name| format!(" in the group {name}"));
        let (data_dir, program) = (self.data_dir.display(), self.program.display());
        let group = group.unwrap_or_default();
        format!("start a database server on {data_dir} by {program}{group}")
    }

    fn uses(&mut self) -> Uses<'_> {
        Uses {
            places: vec![&mut self.data_dir, &mut self.socket],
            group: self.group.as_deref(),
            ..Uses::default()
        }
    }

    fn carries(&self, later: &Change) -> bool {
        let socket = self.socket.to_string_lossy();
        matches!(later, Change::ServerSettings(group) if group.server.contains(&*socket))
    }

    fn prior(&self, site: &Site<'_>) -> Result<NoDatabaseServer, ChangeError> {
        let Self { data_dir, is_named, socket, arguments, group, .. } = self;
        let (platform, active) = (site.platform, site.active);
        let directory = data_dir.to_string_lossy();
        if !arguments.iter().any(|word| word.ends_with(&*directory)) {
            let found = format!("no argument of the server names it: {}", arguments.join(" "));
            return Err(refused(data_dir, found, "name it by --datadir"));
        }
        if !is_named && !is_in_one_of(data_dir, active) {
            let found = "this run did not make it".to_owned();
            return Err(refused(data_dir, found, "name it explicitly, or let a fresh one be made"));
        }
        let seen = platform.look(data_dir).map_err(|source| system("look at", data_dir, source))?;
        if !seen.is_some_and(|seen| seen.kind == SeenKind::Directory) {
            let found = "there is no such directory".to_owned();
            return Err(refused(data_dir, found, "prepare a data directory there first"));
        }
        let users = OPEN_FILES.iter().flat_map(|name| platform.writers(&data_dir.join(name)));
        if let Some(user) = users.into_iter().next() {
            let fix =
                "stop that server, or use a copy of its data directory made while it is stopped";
            return Err(refused(data_dir, format!("{user} runs on it"), fix));
        }
        check_socket(platform, socket)?;
        let groups = match group {
            Some(name) => group::groups(name, active)?,
            None => Vec::new(),
        };
        let groups = groups.into_iter().map(|group| group.dir.clone()).collect();
        Ok(NoDatabaseServer { since_ticks: platform.owner().start_ticks, groups })
    }

    fn apply(
        &self,
        site: &Site<'_>,
        prior: &NoDatabaseServer,
    ) -> Result<DatabaseServerEffect, ChangeError> {
        let (platform, socket, server) = (site.platform, &self.socket, self.command());
        let tie = Tie::Life { groups: &prior.groups, run_as: self.run_as };
        let started = platform.start(&server, tie);
        let process = started.map_err(|error| not_started(&server, error))?;
        for _ in 0..START_TRIES {
            match platform.greeting(socket) {
                Greeting::Ready { version } => {
                    return Ok(DatabaseServerEffect { process, version });
                }
                Greeting::Refused(said) => {
                    return Err(not_started(&server, RunError::Failed(said)));
                }
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

    fn undo(entry: &Entry<'_, Self>, platform: &dyn Platform) -> Result<Undone, ChangeError> {
        let processes = match entry.effect.map(|effect| &effect.process) {
            // A later run may have started another one on the same place by now.
            Some(noted) if platform.is_alive(noted) => vec![noted.clone()],
            Some(noted) => {
                // Its number stays taken until then: MySQL refuses a socket whose lock names it.
                let _reaped = platform.said(noted);
                Vec::new()
            }
            None => {
                let since_ticks = entry.prior.since_ticks;
                serving::processes(platform, &entry.change.command(), since_ticks)?
            }
        };
        let is_forced = keeps_nothing(platform, entry);
        for process in &processes {
            match is_forced {
                true => serving::force(platform, process)?,
                false => serving::end_patiently(platform, process, END_TRIES)?,
            }
        }
        Ok(if processes.is_empty() { Undone::as_before() } else { Undone::put_back() })
    }
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

fn not_started(server: &ServerCommand, error: RunError) -> ChangeError {
    ChangeError::unavailable(
        format!("the database server {}", server.program.display()),
        error,
        "see that its options are known to it, and that memory and disk space are free",
    )
}

/// Whether it is below a directory that one of these made.
fn is_in_one_of(path: &Path, entries: &[JournalEntry]) -> bool {
    entries.iter().any(|entry| match &entry.change {
        Change::ServerDirectory(made) => path.starts_with(&made.path),
        _ => false,
    })
}

/// Whether nothing that a server would write at its end is read again: its directory is removed
/// next, or it is of this session and not ready yet, when some do not obey SIGTERM at all.
fn keeps_nothing(platform: &dyn Platform, entry: &Entry<'_, DatabaseServer>) -> bool {
    let DatabaseServer { data_dir, is_named: false, socket, .. } = entry.change else {
        return false;
    };
    let is_ready = entry.effect.is_some() || !matches!(platform.look(socket), Ok(None));
    !is_ready || (is_in_one_of(data_dir, entry.next) && is_in_one_of(socket, entry.next))
}
