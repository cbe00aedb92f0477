//! Runs test binaries the way cargo does.
//!
//! Purpose: keep the output of each process apart, so that it can be counted and shown.
//! Invariant: while a [`Runner`] lives it holds the lock of this machine, so that real-time tests
//! share it with no other suite or benchmark. A process that exceeds its time is ended with all
//! that it started, and its output is shown.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::lanes::Lane;
use super::outcome::TestOutcome;
use super::reaper::{self, Priority};
use super::schedule::TestJob;
use super::targets::{Target, TargetKind};
use super::{Length, SOAK};
use crate::workspace::{self, Workspace};

/// Longest time that a process may take which runs one test, usual form.
const TEST_TIME_MAX: Duration = Duration::from_secs(4 * 60);
/// Longest time that a process may take which runs several, usual form.
const BINARY_TIME_MAX: Duration = Duration::from_secs(12 * 60);
/// Longest time of either, long form.
const SOAK_TIME_MAX: Duration = Duration::from_secs(4 * 60 * 60);

/// How often a suite that waits for another one prints that.
const WAITING: Duration = Duration::from_secs(5 * 60);

/// Runs test binaries under the lock.
pub struct Runner {
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
        let logs = workspace.target.join("xtask/logs");
        let lock = lock()?;
        if logs.exists() {
            fs::remove_dir_all(&logs).context("cannot remove the logs of the last run")?;
        }
        fs::create_dir_all(&logs).with_context(|| format!("cannot make {}", logs.display()))?;
        Ok(Self { environment: Vec::new(), logs, length, _lock: lock })
    }

    /// Runs one job. What cannot be run at all is a failure of it.
    pub fn run(&self, target: &Target, job: &TestJob) -> TestOutcome {
        let examples = ["--workspace", "--doc"].as_slice();
        let schedules =
            ["--package", "iostrata-engine", "--features", "model", "--lib", "--test", "it"];
        let command = match target.kind {
            TargetKind::Examples => cargo_test(target, examples, &[]),
            TargetKind::Schedules => {
                cargo_test(target, &schedules, &["version::model", "lock::schedules"])
            }
            TargetKind::Unit | TargetKind::Integration => self.command(target, job),
        };
        // The processors go to those in which time counts.
        let priority = if job.lane == Lane::Free { Priority::Low } else { Priority::Usual };
        let log = job.name.replace("::", ".").replace([' ', '(', ')', '*'], "_");
        let time_max = match (self.length, job.tests.len()) {
            (Length::Soak, _) => SOAK_TIME_MAX,
            (Length::Usual, 1) => TEST_TIME_MAX,
            (Length::Usual, _) => BINARY_TIME_MAX,
        };
        let only = match &*job.tests {
            [test] => Some(test.as_str()),
            _ => None,
        };
        let ran = self.run_command(command, priority, &target.full_name(), &log, time_max, only);
        ran.unwrap_or_else(|error| TestOutcome::not_run(&target.full_name(), only, &error))
    }

    fn command(&self, target: &Target, job: &TestJob) -> Command {
        let mut command = Command::new(&target.executable);
        match &*job.tests {
            [] => command.arg("--show-output"),
            // What it prints is not lost when it is killed.
            [test] => command.args(["--exact", test, "--nocapture"]),
            tests => command.args(["--show-output", "--exact"]).args(tests),
        };
        command
            .arg(format!("--test-threads={}", job.threads))
            .current_dir(&target.dir)
            .env("CARGO_MANIFEST_DIR", &target.dir)
            .env("CARGO_PKG_NAME", &target.package)
            .env("CARGO_PKG_VERSION", &target.version);
        for (name, place) in &target.programs {
            command.env(format!("CARGO_BIN_EXE_{name}"), place);
        }
        command
    }

    /// Runs any command that prints as libtest does; `only` is its test where it has one.
    fn run_command(
        &self,
        mut command: Command,
        priority: Priority,
        name: &str,
        log: &str,
        time_max: Duration,
        only: Option<&str>,
    ) -> Result<TestOutcome> {
        let path = |stream: &str| self.logs.join(format!("{log}.{stream}"));
        let file = |stream| File::create(path(stream)).context("cannot write the log of a test");
        if self.length == Length::Soak {
            command.env(SOAK, "1");
        }
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        let mut command = reaper::around(&command, priority);
        command.stdout(file("stdout")?).stderr(file("stderr")?);
        let start = Instant::now();
        let child = command.spawn().with_context(|| format!("cannot start {name}"))?;
        let status = wait(child, time_max)?;
        let (stdout, mut stderr) = (read(&path("stdout"))?, read(&path("stderr"))?);
        let processor_s = reaper::take_processor_s(&mut stderr);
        let mut outcome = TestOutcome::of(name, only, start.elapsed(), &stdout, &stderr, status);
        outcome.processor_s = processor_s;
        Ok(outcome)
    }
}

/// What cargo builds with these words, and of it the tests of these names.
fn cargo_test(target: &Target, words: &[&str], tests: &[&str]) -> Command {
    let mut command = workspace::cargo(&target.dir);
    command.args(["test", "--quiet", "--no-fail-fast"]).args(words);
    command.args(["--", "--show-output"]).args(tests);
    command
}

/// The tests of a binary, in its own order.
///
/// # Errors
/// When it cannot be started or fails.
pub fn list(target: &Target) -> Result<Vec<String>> {
    let mut command = Command::new(&target.executable);
    command.args(["--list", "--format", "terse"]).current_dir(&target.dir);
    let output = command.output().with_context(|| format!("cannot start {}", target.name))?;
    anyhow::ensure!(output.status.success(), "{} does not list its tests", target.full_name());
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
}

/// Where the lock is: all of this machine share it, whatever their `TMPDIR`.
const LOCK: &str = "/tmp/iostrata-real-time.lock";

/// The lock of this machine for whatever measures time; held until the file is dropped.
///
/// # Errors
/// When the lock cannot be made.
pub fn lock() -> Result<File> {
    lock_at(Path::new(LOCK), WAITING, |line| println!("{line}"))
}

/// Takes this lock; prints at once, and after each of these times, who holds it.
fn lock_at(path: &Path, every: Duration, mut tell: impl FnMut(String)) -> Result<File> {
    let mut lock = open_lock(path).with_context(|| format!("cannot open {}", path.display()))?;
    let (begin, mut told) = (Instant::now(), 0);
    loop {
        match lock.try_lock() {
            Ok(()) => break,
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(error).context("cannot take the lock"),
        }
        if begin.elapsed() >= every * told {
            let holder = fs::read_to_string(path).unwrap_or_default();
            let (path, holder) = (path.display(), holder.trim());
            tell(format!("another suite or benchmark has {path}, waiting: {holder}"));
            told += 1;
        }
        thread::sleep(Duration::from_millis(100));
    }
    // A file of another user may name an earlier holder.
    let place = std::env::current_dir().unwrap_or_default();
    let _ = lock.set_len(0);
    let _ = writeln!(lock, "process {} in {}", std::process::id(), place.display());
    Ok(lock)
}

/// The file of another user can be locked too, but not recreated.
fn open_lock(path: &Path) -> io::Result<File> {
    let made = OpenOptions::new().create(true).truncate(false).write(true).open(path);
    made.or_else(|error| File::open(path).map_err(|_| error))
}

/// The status, or `None` when the time was over and everything was ended.
fn wait(mut child: Child, time_max: Duration) -> Result<Option<ExitStatus>> {
    let start = Instant::now();
    while start.elapsed() < time_max {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        thread::sleep(Duration::from_millis(10));
    }
    // When this closes, the process ends everything below it, and then itself.
    drop(child.stdin.take());
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
    use std::process::Stdio;

    #[test]
    fn long_forms_are_asked_for_by_the_soak_alone() {
        let logs = std::env::temp_dir().join(format!("iostrata-logs-{}", std::process::id()));
        fs::create_dir_all(&logs).unwrap();
        let is_asked = |length: Length| {
            let lock = File::open(&logs).unwrap();
            let runner =
                Runner { environment: Vec::new(), logs: logs.clone(), length, _lock: lock };
            let mut command = Command::new("sh");
            command.args(["-c", "test \"$IOSTRATA_SOAK\" = 1"]).env_remove(SOAK);
            let time_max = Duration::from_secs(60);
            let outcome =
                runner.run_command(command, Priority::Usual, "sh", "sh", time_max, None).unwrap();
            outcome.failures().is_empty()
        };
        assert!(is_asked(Length::Soak) && !is_asked(Length::Usual));
        fs::remove_dir_all(&logs).unwrap();
    }

    #[test]
    fn who_waits_for_another_suite_names_it() {
        let path = std::env::temp_dir().join(format!("iostrata-lock-{}", std::process::id()));
        let quiet = |line| panic!("{line}");
        let first = lock_at(&path, WAITING, quiet).unwrap();
        let mut first = Some(first);
        let mut said = Vec::new();
        let second = lock_at(&path, Duration::from_millis(1), |line| {
            said.push(line);
            first.take_if(|_| said.len() == 2);
        });
        drop(second.unwrap());
        let own = format!("waiting: process {} in ", std::process::id());
        assert!(said.len() >= 2 && said[0].contains(&own), "{said:?}");
        fs::remove_file(&path).unwrap();
    }

    /// Files below a directory that name the variable of the long forms.
    fn with_long_forms(dir: &Path, found: &mut Vec<PathBuf>) {
        for path in fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
            let is_source = path.extension().is_some_and(|end| end == "rs");
            let is_built = path.ends_with("target") && dir.join("Cargo.toml").is_file();
            if path.is_dir() && !is_built {
                with_long_forms(&path, found);
            } else if is_source && fs::read_to_string(&path).unwrap().contains(SOAK) {
                found.push(path);
            }
        }
    }

    #[test]
    fn every_long_form_is_in_a_test_that_the_soak_runs() {
        let workspace = Workspace::read().unwrap();
        let mut found = Vec::new();
        with_long_forms(&workspace.root.join("crates"), &mut found);
        with_long_forms(&workspace.root.join("fuzz"), &mut found);
        // The whole suite runs what cargo builds as tests: of each member these two directories.
        let mut sources = vec![workspace.root.join("crates/show/iostrata")];
        sources.extend(workspace.packages.iter().map(|package| package.dir.clone()));
        let is_built = |file: &PathBuf| {
            let is_in = |dir: &PathBuf| {
                *dir != workspace.root
                    && ["src", "tests"].iter().any(|part| file.starts_with(dir.join(part)))
            };
            sources.iter().any(is_in)
        };
        let missed: Vec<&PathBuf> = found.iter().filter(|file| !is_built(file)).collect();
        assert!(missed.is_empty(), "the soak does not run what these hold: {missed:?}");
        assert!(found.len() > 20, "{found:?}");
    }

    #[test]
    fn a_child_that_exceeds_its_time_is_ended_with_what_it_started() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "sleep 603 & sleep 603"]);
        let child = reaper::around(&shell, Priority::Usual).stdout(Stdio::null()).spawn().unwrap();
        let mut started = Vec::new();
        while started.len() < 3 {
            started = reaper::descendants(child.id());
        }
        assert!(wait(child, Duration::from_millis(20)).unwrap().is_none());
        assert!(started.iter().all(|pid| !Path::new(&format!("/proc/{pid}")).exists()));
        let mut done = reaper::around(&Command::new("true"), Priority::Usual);
        let child = done.stdout(Stdio::null()).spawn().unwrap();
        assert!(wait(child, Duration::from_secs(60)).unwrap().unwrap().success());
    }
}
