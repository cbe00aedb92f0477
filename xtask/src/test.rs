//! `cargo xtask test` and `cargo xtask soak`: the whole suite, built once in the one profile.
//!
//! Order: what is missing is fetched while the tests are built; two servers are started; then all
//! tests, with the examples of the documentation, run in lanes (`lanes.rs`), several at a time, the
//! longest first. A file lock keeps a second suite or benchmark on the same machine waiting.
//! Invariant: every test is counted once, as passed, failed or skipped. A process that dies or
//! exceeds its time counts as one failed test.
//! An integration test that fails is run once more, alone, and named when it passes then.
//! A test skips by printing a line `skipped: <reason>` to stderr and returning.

pub mod changed;
pub mod execute;
pub mod lanes;
pub mod outcome;
mod packages;
pub mod reaper;
pub mod schedule;
pub mod targets;

use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};

use crate::args::Args;
use crate::servers::suite::{self, RunningServers, SuiteServers};
use crate::workspace::Workspace;
use changed::Concern;
use execute::Runner;
use outcome::{Omission, TestOutcome, TestTally, by_reason};
use schedule::{Queue, TestJob, Times};
use targets::{Target, TargetKind, Which};

/// So many of the slowest tests are named at the end.
const SLOWEST: usize = 5;

/// A test that takes so many seconds and has no recorded time is pointed out: it begins too late.
const LONG_S: f64 = 5.0;

/// The variable that tests look at for their long forms.
const SOAK: &str = "IOSTRATA_SOAK";

/// Tests that are not built with this package use no server.
const SERVER: &str = "iostrata-server";

/// Which forms of the tests run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// What every machine runs.
    Usual,
    /// `IOSTRATA_SOAK=1`: the long forms, and the schedules of the model checker.
    Soak,
}

impl Length {
    /// As the environment requests: tests would see its variable, whatever their time limit is.
    pub fn of_environment() -> Self {
        if std::env::var_os(SOAK).is_some() { Self::Soak } else { Self::Usual }
    }
}

/// What a run came to.
pub struct Report {
    /// Whether nothing failed.
    pub is_passed: bool,
    /// Seconds of each phase.
    pub phases: Vec<(&'static str, f64)>,
    /// Seconds of each job.
    pub times: Times,
}

/// The whole suite, or what a change or a package needs. True when nothing failed.
///
/// # Errors
/// When cargo cannot be run, a package is named that is not there, or packages were requested that
/// cannot be installed.
pub fn run(mut args: Args, length: Length) -> Result<bool> {
    let install = args.flag("--install");
    let package = args.option("--package", String::new())?;
    let changed = args.flag_with_option("--changed");
    args.finish()?;
    if changed.is_some() && !package.is_empty() {
        bail!("--changed and --package choose both; name one of them");
    }
    run_suite(&Choice { install, package, changed, length }).map(|report| report.is_passed)
}

/// What is to run.
pub struct Choice {
    /// Whether missing packages are installed.
    pub install: bool,
    /// The package whose tests run; empty for all.
    pub package: String,
    /// Only what a change since a commit needs.
    pub changed: Option<Option<String>>,
    /// Usual or long forms.
    pub length: Length,
}

/// Builds and runs what was chosen, and prints how it went.
///
/// # Errors
/// As [`run`].
pub fn run_suite(choice: &Choice) -> Result<Report> {
    let mut phases = Phases::new();
    let workspace = Workspace::read()?;
    if !choice.package.is_empty() {
        workspace.package(&choice.package)?;
    }
    let concern = choice.changed.as_ref();
    let concern = concern.map(|base| Concern::since(&workspace, base.as_deref())).transpose()?;
    let mut runner = Runner::new(&workspace, choice.length)?;
    phases.end("waiting for the machine");
    let room = packages::without_room(&[std::env::temp_dir(), workspace.target.clone()]);
    room.iter().for_each(|line| println!("{line}"));
    println!("building every test");
    let (built, servers) = thread::scope(|scope| {
        let fetched = scope.spawn(|| prepare(&workspace, choice.install));
        let built = targets::build(&workspace, Which::All, &choice.package);
        let servers = fetched.join().map_err(|_| anyhow!("fetching broke off"));
        (built, servers.and_then(|servers| servers))
    });
    let (built, servers) = (built?, servers?);
    phases.end("build");
    let Some(built) = built else {
        println!("the tests do not build; nothing was run");
        let is_passed = conclude(&TestTally { failed: 1, ..TestTally::default() });
        return Ok(Report { is_passed, phases: phases.ended, times: Times::default() });
    };
    let needs_servers =
        choice.package.is_empty() || workspace.tests_stand_on(&choice.package, SERVER);
    let running = match needs_servers {
        true => servers.start(&workspace, built.helper.as_deref())?,
        false => RunningServers::default(),
    };
    runner.environment.clone_from(&running.environment);
    phases.end("servers");
    let mut targets = built.targets;
    if choice.package.is_empty() && concern.is_none() {
        targets.push(Target::of_cargo(&workspace, TargetKind::Examples));
        if choice.length == Length::Soak {
            targets.push(Target::of_cargo(&workspace, TargetKind::Schedules));
        }
    }
    let (mut tally, times) = run_all(&runner, &workspace, &targets, concern.as_ref())?;
    drop(running.homes);
    phases.end("tests");
    tally.skips.extend(servers.missing.into_iter().chain(running.missing));
    phases.print(&times);
    let is_passed = conclude(&tally);
    if !is_passed {
        room.iter().for_each(|line| println!("{line}"));
    }
    Ok(Report { is_passed, phases: phases.ended, times: times.elapsed })
}

fn prepare(workspace: &Workspace, install: bool) -> Result<SuiteServers> {
    packages::prepare(install)?;
    let dir = std::env::var_os("IOSTRATA_FLEET").map(PathBuf::from);
    let dir = dir.unwrap_or_else(|| workspace.target.join("fleet"));
    suite::prepare(&dir, install || packages::is_ci())
}

/// What each job took.
#[derive(Default)]
pub struct JobTimes {
    elapsed: Times,
    /// Processor time, with what it started.
    processor: Times,
}

/// Runs the binaries in lanes, prints how each went, and keeps the times.
///
/// # Errors
/// When a binary does not list its tests.
pub fn run_all(
    runner: &Runner,
    workspace: &Workspace,
    targets: &[Target],
    concern: Option<&Concern>,
) -> Result<(TestTally, JobTimes)> {
    let kept = workspace.target.join("xtask/times");
    let known = Times::known(&kept);
    let mut jobs = Vec::new();
    for (number, target) in targets.iter().enumerate() {
        if concern.is_some_and(|concern| !concern.holds(target)) {
            continue;
        }
        let is_divided = schedule::is_divided(target);
        let mut tests = if is_divided { execute::list(target)? } else { Vec::new() };
        tests.retain(|test| concern.is_none_or(|concern| concern.chooses(target, test)));
        jobs.extend(schedule::jobs_of(target, number, &tests, &known));
    }
    let (outcomes, times) = run_jobs(runner, targets, jobs);
    let mut tally = TestTally::default();
    for (number, outcome) in outcomes {
        tally.add(run_again(runner, &targets[number], outcome));
    }
    let mut kept_times = known;
    let elapsed = times.elapsed.longest().into_iter();
    elapsed.for_each(|(name, seconds)| kept_times.set(name, seconds));
    if let Err(error) = kept_times.write(&kept, 0.0) {
        println!("{error:#}; the next run begins with the longest of an older one");
    }
    let path = workspace.target.join("xtask/processor_times");
    if let Err(error) = times.processor.write(&path, 0.0) {
        println!("{error:#}; the processor time of each test is lost");
    }
    Ok((tally, times))
}

/// Runs jobs in lanes; what each target came to, in the order in which they were done.
fn run_jobs(
    runner: &Runner,
    targets: &[Target],
    jobs: Vec<TestJob>,
) -> (Vec<(usize, TestOutcome)>, JobTimes) {
    let (count, begin) = (jobs.len(), Instant::now());
    let mut left = vec![0_usize; targets.len()];
    jobs.iter().for_each(|job| left[job.target] += 1);
    let mut sums: Vec<TestOutcome> = targets.iter().map(|_| TestOutcome::default()).collect();
    let (mut done, mut times) = (Vec::new(), JobTimes::default());
    let mut queue = Queue::new(jobs, slots());
    let (sender, receiver) = mpsc::channel::<(TestJob, TestOutcome)>();
    let (mut ended, mut minutes) = (0, 0);
    thread::scope(|scope| {
        while !queue.is_done() {
            while let Some(job) = queue.start_next() {
                let sender = sender.clone();
                scope.spawn(move || {
                    let outcome = runner.run(&targets[job.target], &job);
                    // The receiver is there as long as a job is.
                    let _ = sender.send((job, outcome));
                });
            }
            let Ok((job, mut outcome)) = receiver.recv() else { break };
            queue.end(job.lane);
            times.elapsed.set(&job.name, outcome.seconds());
            times.processor.set(&job.name, outcome.processor_s);
            print!("{}", outcome.take_details());
            sums[job.target].join(outcome);
            left[job.target] -= 1;
            ended += 1;
            if left[job.target] == 0 {
                let sum = std::mem::take(&mut sums[job.target]);
                println!("{sum}");
                done.push((job.target, sum));
            }
            if begin.elapsed() > Duration::from_secs(60 * (minutes + 1)) {
                minutes += 1;
                println!("{minutes} min: {ended} of {count} processes have ended");
            }
        }
    });
    (done, times)
}

/// A test that is real-time may lose a second on a shared machine: a few that failed are run once
/// more, with nothing else running.
fn run_again(runner: &Runner, target: &Target, outcome: TestOutcome) -> TestOutcome {
    let Some(failed) = outcome.to_run_again() else { return outcome };
    if target.kind != TargetKind::Integration {
        return outcome;
    }
    println!("again, alone: {} {}", target.full_name(), failed.join(" "));
    let (tests, lane) = (failed.to_vec(), lanes::Lane::Alone);
    let job = TestJob { target: 0, tests, threads: 1, lane, name: "again".into(), seconds: 0.0 };
    let mut second = runner.run(target, &job);
    print!("{}", second.take_details());
    outcome.run_again(second)
}

/// So many processes run at a time: most of them wait.
fn slots() -> usize {
    thread::available_parallelism().map_or(1, |cores| cores.get()) + 3
}

/// The phases of a run and how long each took.
struct Phases {
    ended: Vec<(&'static str, f64)>,
    begin: Instant,
}

impl Phases {
    fn new() -> Self {
        Self { ended: Vec::new(), begin: Instant::now() }
    }

    fn end(&mut self, name: &'static str) {
        self.ended.push((name, self.begin.elapsed().as_secs_f64()));
        self.begin = Instant::now();
    }

    fn print(&self, times: &JobTimes) {
        let titles = [("most processor time", &times.processor), ("slowest", &times.elapsed)];
        for (title, times) in titles {
            println!("\n{title}:");
            for (name, seconds) in times.longest().into_iter().take(SLOWEST) {
                println!("  {seconds:>7.1} s  {name}");
            }
        }
        let unknown = times.elapsed.unknown_to(&Times::committed(), LONG_S);
        if unknown > 0 {
            println!(
                "  {unknown} of {LONG_S:.0} s or more have no recorded time and begin last on a clean \
                 clone; record it with cargo xtask bench suite --keep"
            );
        }
        let sum: f64 = self.ended.iter().map(|(_, seconds)| seconds).sum();
        let phases = self.ended.iter().filter(|(_, seconds)| *seconds >= 0.5);
        let words: Vec<String> =
            phases.map(|(name, seconds)| format!("{name} {:.1}", seconds / 60.0)).collect();
        println!("\nminutes: {} (sum {:.1})", words.join(", "), sum / 60.0);
    }
}

/// Prints the reasons and, last, the closing line.
fn conclude(tally: &TestTally) -> bool {
    let is_needless =
        |skip: &&Omission| packages::is_needless(&skip.reason, packages::is_installed);
    let needless: Vec<Omission> = tally.skips.iter().filter(is_needless).cloned().collect();
    for (title, lines) in [
        ("failed:", &tally.failures),
        ("passed only when run again:", &tally.unsteady),
        ("skipped:", &by_reason(&tally.skips)),
        (
            "skipped although what they need is installed, which counts as failing:",
            &by_reason(&needless),
        ),
    ] {
        if !lines.is_empty() {
            println!("\n{title}");
            lines.iter().for_each(|line| println!("  {line}"));
        }
    }
    println!("\n{tally}");
    tally.failed == 0 && needless.is_empty()
}
