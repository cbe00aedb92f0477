//! The available server programs to test with.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use iostrata_change::{Session, StateDir, System};
use iostrata_server::private::ServerProgram;
use tempfile::TempDir;

/// Further programs, separated by `:`.
const PROGRAMS: &str = "IOSTRATA_TEST_PROGRAMS";

/// Servers take memory: one test at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A directory for servers, with the state of its sessions.
pub struct Place {
    dir: TempDir,
    _alone: MutexGuard<'static, ()>,
}

impl Place {
    pub fn new() -> Self {
        let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        // Short, because sockets are in it.
        Self { dir: TempDir::with_prefix("io-").unwrap(), _alone: alone }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }

    pub fn session(&self) -> Session {
        Session::begin(&StateDir::at(self.path("state")), System::new()).unwrap()
    }

    /// Waits until the journals of a child have so many lines: a clock that a slow machine does
    /// not shift.
    pub fn await_lines(&self, lines: usize) {
        let count = || -> usize {
            let entries = std::fs::read_dir(self.path("state")).into_iter().flatten().flatten();
            let texts = entries.filter_map(|entry| std::fs::read_to_string(entry.path()).ok());
            texts.map(|text| text.lines().count()).sum()
        };
        let has_them = |_| {
            std::thread::sleep(Duration::from_millis(1));
            count() >= lines
        };
        assert!((0..60_000).any(has_them), "no journal of {lines} lines");
    }

    /// Only an empty directory of journals is left.
    pub fn assert_empty(&self, when: &str) {
        let entries = std::fs::read_dir(self.dir.path()).unwrap().flatten();
        let left: Vec<PathBuf> =
            entries.map(|entry| entry.path()).filter(|path| !path.ends_with("state")).collect();
        assert!(left.is_empty(), "{when}: {left:?}");
        let journals = std::fs::read_dir(self.path("state")).into_iter().flatten();
        assert_eq!(journals.count(), 0, "{when}");
    }
}

/// Every program that is there; without one the reason is printed.
pub fn programs(test: &str) -> Vec<ServerProgram> {
    let mut found: Vec<ServerProgram> = Vec::new();
    for name in ["mariadbd", "mysqld"] {
        found.extend(ServerProgram::find(name).ok());
    }
    let more = std::env::var(PROGRAMS).unwrap_or_default();
    for path in more.split(':').filter(|path| !path.is_empty()) {
        found.push(ServerProgram::find(path).unwrap());
    }
    let mut paths: Vec<PathBuf> = Vec::new();
    found.retain(|one| {
        let is_new = !paths.contains(&one.path);
        paths.push(one.path.clone());
        is_new
    });
    if found.is_empty() {
        eprintln!("skipped: {test}: mariadbd is not installed");
    }
    found
}

/// What a statement gives, by the command line client; without one the reason is printed.
pub fn ask(socket: &Path, statement: &str) -> Option<String> {
    let answer = try_ask(socket, statement)?;
    Some(answer.unwrap_or_else(|error| panic!("{statement}: {error}")))
}

/// The same of a server that may turn clients away.
pub fn try_ask(socket: &Path, statement: &str) -> Option<Result<String, String>> {
    let mut command = Command::new("mariadb");
    command.args(["--no-defaults", "--user=root", "--batch", "--skip-column-names"]);
    command.arg(format!("--socket={}", socket.display())).arg("--execute").arg(statement);
    let Ok(output) = command.output() else {
        eprintln!("skipped: the client mariadb is not installed");
        return None;
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    Some(match output.status.success() {
        true => Ok(text(&output.stdout)),
        false => Err(text(&output.stderr)),
    })
}
