//! Runs test binaries the way cargo does, one at a time.
//!
//! Purpose: keep the output of each apart, so that it can be counted and shown.
//! Invariant: while a [`Runner`] lives it holds the lock of this clone, so that real-time tests
//! share the machine with no other suite of it. A binary that exceeds its time is killed.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::Length;
use super::outcome::TestOutcome;
use super::targets::{Target, TargetKind};
use crate::workspace::Workspace;

/// Longest time one binary may take, usual form.
const TIME_MAX_USUAL: Duration = Duration::from_secs(25 * 60);
/// Longest time one binary may take, long form.
const TIME_MAX_SOAK: Duration = Duration::from_secs(4 * 60 * 60);

/// Packages whose integration tests need no time of their own: all their tests run side by side.
const SIDE_BY_SIDE: [&str; 1] = ["iostrata-engine"];

/// Runs binaries under the lock.
pub struct Runner {
    /// Top directory of the workspace.
    pub root: PathBuf,
    /// Variables that every binary gets.
    pub environment: Vec<(&'static str, String)>,
    logs: PathBuf,
    length: Length,
    _lock: File,
}

impl Runner {
    /// Takes the lock, waiting for another suite or benchmark to end.
    ///
    /// # Errors
    /// When the directory for logs or the lock cannot be made.
    pub fn new(workspace: &Workspace, length: Length) -> Result<Self> {
        let logs = workspace.target.join("xtask");
        let lock = lock(&logs)?;
        let (root, environment) = (workspace.root.clone(), Vec::new());
        Ok(Self { root, environment, logs, length, _lock: lock })
    }

    /// Runs one test binary. Integration tests that fail are run once more: they may be real-time,
    /// and on a machine that is shared a second may be lost.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn run(&self, target: &Target) -> Result<TestOutcome> {
        let outcome = self.run_tests(target, &[])?;
        match outcome.to_run_again() {
            Some(failed) if target.kind == TargetKind::Integration => {
                let second = self.run_tests(target, failed)?;
                Ok(outcome.run_again(second))
            }
            _ => Ok(outcome),
        }
    }

    /// Runs these tests of a binary, or all of them.
    fn run_tests(&self, target: &Target, only: &[String]) -> Result<TestOutcome> {
        let mut command = Command::new(&target.executable);
        if !only.is_empty() {
            command.arg("--exact").args(only);
        }
        command.arg("--show-output").current_dir(&target.dir);
        if target.kind == TargetKind::Integration && !SIDE_BY_SIDE.contains(&&*target.package) {
            command.arg("--test-threads=1");
        }
        command
            .env("CARGO_MANIFEST_DIR", &target.dir)
            .env("CARGO_PKG_NAME", &target.package)
            .env("CARGO_PKG_VERSION", &target.version);
        for (name, place) in &target.programs {
            command.env(format!("CARGO_BIN_EXE_{name}"), place);
        }
        let kind = match target.kind {
            TargetKind::Unit => "unit",
            TargetKind::Integration => "integration",
        };
        let name = format!("{} {}", target.package, target.name);
        let again = if only.is_empty() { "" } else { "-again" };
        let log = format!("{}-{}-{kind}{again}", target.package, target.name);
        self.run_command(command, &format!("{name} ({kind})"), &log)
    }

    /// Runs any command that prints as libtest does.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn run_command(&self, mut command: Command, name: &str, log: &str) -> Result<TestOutcome> {
        let path = |stream: &str| self.logs.join(format!("{log}.{stream}"));
        let file = |stream| File::create(path(stream)).context("cannot write the log of a test");
        command.stdin(Stdio::null()).stdout(file("stdout")?).stderr(file("stderr")?);
        if self.length == Length::Soak {
            command.env("IOSTRATA_SOAK", "1");
        }
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        let start = Instant::now();
        let child = command.spawn().with_context(|| format!("cannot start {name}"))?;
        let status = wait(child, self.time_max())?;
        let (stdout, stderr) = (read(&path("stdout"))?, read(&path("stderr"))?);
        Ok(TestOutcome::of(name, start.elapsed(), &stdout, &stderr, status))
    }

    fn time_max(&self) -> Duration {
        match self.length {
            Length::Usual => TIME_MAX_USUAL,
            Length::Soak => TIME_MAX_SOAK,
        }
    }
}

/// The lock of this clone for whatever measures time; held until the file is dropped.
///
/// # Errors
/// When `dir` cannot be written.
pub fn lock(dir: &Path) -> Result<File> {
    fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
    let lock = File::create(dir.join("real-time.lock")).context("cannot create the lock")?;
    lock.lock().context("cannot take the lock")?;
    Ok(lock)
}

/// The status, or `None` when the time was over and the child was killed.
fn wait(mut child: Child, time_max: Duration) -> Result<Option<ExitStatus>> {
    let start = Instant::now();
    while start.elapsed() < time_max {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        thread::sleep(Duration::from_millis(10));
    }
    child.kill()?;
    child.wait()?;
    Ok(None)
}

fn read(path: &Path) -> Result<String> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_that_exceeds_its_time_is_killed() {
        let child = Command::new("sleep").arg("600").spawn().unwrap();
        assert!(wait(child, Duration::from_millis(20)).unwrap().is_none());
        let child = Command::new("true").spawn().unwrap();
        assert!(wait(child, Duration::from_secs(60)).unwrap().unwrap().success());
    }
}
