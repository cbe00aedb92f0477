//! Which job runs next, and how long tests take.
//!
//! Purpose: from targets to jobs by the table of lanes, and from jobs to an order that keeps every
//! lane's promise and ends soonest: the lane with the most work left goes first, in it the longest
//! job.
//! Invariant: at most one job of [`Lane::Machine`] and [`LOADS_MAX`] of [`Lane::Load`] run at a
//! time, one more load once no job of [`Lane::Free`] is left to run beside them; a job of
//! [`Lane::Alone`] runs by itself, after all others.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::lanes::{self, Lane, Process};
use super::targets::{Target, TargetKind};

/// So many jobs of [`Lane::Load`] run at a time while free ones run beside them.
const LOADS_MAX: usize = 2;

/// Threads of a binary that runs whole: others run at the same time.
const WHOLE_THREADS: usize = 2;

/// One process of a test binary.
#[derive(Clone, Debug)]
pub struct TestJob {
    /// Number of its target.
    pub target: usize,
    /// The tests to run; empty for the whole binary.
    pub tests: Vec<String>,
    /// In so many threads.
    pub threads: usize,
    /// What may run at the same time.
    pub lane: Lane,
    /// Under which its time is kept.
    pub name: String,
    /// How long it takes, as far as is known.
    pub seconds: f64,
}

/// Whether the tests of a target run in several processes, for which their names are needed.
pub fn is_divided(target: &Target) -> bool {
    match target.kind {
        TargetKind::Unit => lanes::unit_processes(target.short_name()).next().is_some(),
        TargetKind::Integration => lanes::is_listed(target.short_name()),
        TargetKind::Examples | TargetKind::Schedules => false,
    }
}

/// The jobs of a target, given its tests where it [`is_divided`].
pub fn jobs_of(target: &Target, number: usize, tests: &[String], times: &Times) -> Vec<TestJob> {
    let job = |tests: Vec<String>, threads, lane, name: String| {
        let seconds = times.of(&name);
        TestJob { target: number, tests, threads, lane, name, seconds }
    };
    let binary = target.short_name();
    if target.kind == TargetKind::Unit && is_divided(target) {
        let mut rest = tests.to_vec();
        let own = lanes::unit_processes(binary).map(|beginning| {
            let is_own = |test: &mut String| test.starts_with(beginning);
            (rest.extract_if(.., is_own).collect(), format!("{binary} {beginning}* (unit)"))
        });
        let mut processes: Vec<(Vec<String>, String)> = own.collect();
        processes.push((rest, format!("{binary} (unit)")));
        processes.retain(|(tests, _)| !tests.is_empty());
        let job = |(tests, name)| job(tests, WHOLE_THREADS, Lane::Free, name);
        return processes.into_iter().map(job).collect();
    }
    if let Some(kind) = match target.kind {
        TargetKind::Unit => Some("unit"),
        TargetKind::Examples => Some("examples"),
        TargetKind::Schedules => Some("schedules"),
        TargetKind::Integration => None,
    } {
        return vec![job(Vec::new(), WHOLE_THREADS, Lane::Free, format!("{binary} ({kind})"))];
    }
    if !lanes::is_listed(binary) {
        return vec![job(Vec::new(), WHOLE_THREADS, Lane::Free, format!("{binary} (integration)"))];
    }
    let mut jobs: Vec<TestJob> = Vec::new();
    for test in tests {
        let row = lanes::row_of(binary, test);
        if !row.is_some_and(|row| matches!(row.process, Process::Shared { .. })) {
            let lane = row.map_or(Lane::Load, |row| row.lane);
            jobs.push(job(vec![test.clone()], 1, lane, format!("{binary} {test}")));
        }
    }
    for row in lanes::ROWS.iter().filter(|row| row.binary == binary) {
        let Process::Shared { processes, threads } = row.process else { continue };
        let is_of_row = |test: &str| lanes::row_of(binary, test).is_some_and(|one| one == row);
        let tests: Vec<String> = tests.iter().filter(|test| is_of_row(test)).cloned().collect();
        for (part, tests) in shares(&tests, processes).into_iter().enumerate() {
            let name = format!("{binary} {}* {}", row.tests, part + 1);
            jobs.push(job(tests, threads, row.lane, name));
        }
    }
    jobs
}

/// Shares out tests in turn: those of a module stand together and are alike.
fn shares(tests: &[String], parts: usize) -> Vec<Vec<String>> {
    let share = |part| tests.iter().skip(part).step_by(parts).cloned().collect::<Vec<_>>();
    (0..parts).map(share).filter(|share| !share.is_empty()).collect()
}

/// Jobs that wait, and how many run.
pub struct Queue {
    /// From the shortest to the longest.
    waiting: Vec<TestJob>,
    running: Vec<Lane>,
    slots: usize,
}

impl Queue {
    /// A queue that lets so many jobs run at a time.
    pub fn new(mut jobs: Vec<TestJob>, slots: usize) -> Self {
        jobs.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        Self { waiting: jobs, running: Vec::new(), slots }
    }

    /// Takes the job that may start now, if any.
    pub fn start_next(&mut self) -> Option<TestJob> {
        let weight = |lane: Lane| {
            let jobs = self.waiting.iter().filter(|job| job.lane == lane);
            let (sum, longest) = jobs
                .fold((0.0, 0.0_f64), |(sum, max), job| (sum + job.seconds, max.max(job.seconds)));
            longest.max(sum / self.places(lane) as f64)
        };
        let lanes = [Lane::Free, Lane::Machine, Lane::Load, Lane::Alone];
        let lane = lanes
            .into_iter()
            .filter(|&lane| self.admits(lane))
            .max_by(|&a, &b| weight(a).total_cmp(&weight(b)))?;
        let at = self.waiting.iter().rposition(|job| job.lane == lane)?;
        self.running.push(lane);
        Some(self.waiting.remove(at))
    }

    /// Takes note that a job has ended.
    pub fn end(&mut self, lane: Lane) {
        let at = self.running.iter().position(|one| *one == lane);
        assert!(at.is_some(), "a job ended that did not run");
        at.map(|at| self.running.swap_remove(at));
    }

    /// Whether every job was run.
    pub fn is_done(&self) -> bool {
        self.waiting.is_empty() && self.running.is_empty()
    }

    /// How many jobs of a lane may run at a time.
    fn places(&self, lane: Lane) -> usize {
        match lane {
            Lane::Free => self.slots,
            Lane::Machine | Lane::Alone => 1,
            Lane::Load if self.has_free() => LOADS_MAX.min(self.slots),
            Lane::Load => (LOADS_MAX + 1).min(self.slots),
        }
    }

    fn has_free(&self) -> bool {
        self.running.contains(&Lane::Free) || self.waiting.iter().any(|job| job.lane == Lane::Free)
    }

    fn admits(&self, lane: Lane) -> bool {
        let is_waiting = |lane: Lane| self.waiting.iter().any(|job| job.lane == lane);
        let count = self.running.iter().filter(|one| **one == lane).count();
        let is_free = match lane {
            Lane::Alone => self.waiting.iter().all(|job| job.lane == Lane::Alone),
            _ => !self.running.contains(&Lane::Alone),
        };
        let is_room = match lane {
            Lane::Alone => self.running.is_empty(),
            _ => self.running.len() < self.slots && count < self.places(lane),
        };
        is_waiting(lane) && is_free && is_room
    }
}

// How long tests take: kept from run to run, so that the longest begin first.
//
// Invariant: a test that was never run counts as [`UNKNOWN_S`]; times order the tests and are
// shown, and no test fails by them.

/// What a test counts that was never run.
const UNKNOWN_S: f64 = 1.0;

/// Times of a whole run on two cores, for a clean clone.
const COMMITTED: &str = include_str!("times.txt");

/// Seconds by the name of a job.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Times(BTreeMap<String, f64>);

impl Times {
    /// Those that the repository has.
    pub fn committed() -> Self {
        Self::parse(COMMITTED)
    }

    /// The committed ones, and over them those of the last runs on this clone.
    pub fn known(path: &Path) -> Self {
        let mut times = Self::committed();
        times.0.extend(Self::parse(&fs::read_to_string(path).unwrap_or_default()).0);
        times
    }

    fn parse(text: &str) -> Self {
        let line = |line: &str| {
            let (seconds, name) = line.trim().split_once(' ')?;
            Some((name.to_owned(), seconds.parse().ok()?))
        };
        Self(text.lines().filter_map(line).collect())
    }

    /// Seconds of a job.
    pub fn of(&self, name: &str) -> f64 {
        self.0.get(name).copied().unwrap_or(UNKNOWN_S)
    }

    /// Seconds of a job that was run.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.0.get(name).copied()
    }

    /// Takes what a job took.
    pub fn set(&mut self, name: &str, seconds: f64) {
        self.0.insert(name.to_owned(), seconds);
    }

    /// Jobs from the longest to the shortest.
    pub fn longest(&self) -> Vec<(&str, f64)> {
        let mut all: Vec<(&str, f64)> =
            self.0.iter().map(|(name, seconds)| (name.as_str(), *seconds)).collect();
        all.sort_by(|a, b| b.1.total_cmp(&a.1));
        all
    }

    /// How many take at least so many seconds and have no time in others.
    pub fn unknown_to(&self, others: &Self, seconds_min: f64) -> usize {
        let is_unknown = |(name, seconds): &(&String, &f64)| {
            **seconds >= seconds_min && others.get(name).is_none()
        };
        self.0.iter().filter(is_unknown).count()
    }

    /// Writes those of at least so many seconds, in the order of their names.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, path: &Path, seconds_min: f64) -> Result<()> {
        let mut text = String::new();
        for (name, seconds) in self.0.iter().filter(|(_, seconds)| **seconds >= seconds_min) {
            writeln!(text, "{seconds:.1} {name}").context("a line is text")?;
        }
        fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(lane: Lane, seconds: f64) -> TestJob {
        TestJob {
            target: 0,
            tests: Vec::new(),
            threads: 1,
            lane,
            name: format!("{lane:?} {seconds}"),
            seconds,
        }
    }

    /// Runs all jobs in virtual time; the moments at which each began and ended.
    fn run(jobs: Vec<TestJob>, slots: usize) -> Vec<(TestJob, f64, f64)> {
        let mut queue = Queue::new(jobs, slots);
        let (mut now, mut running, mut ended) =
            (0.0, Vec::<(TestJob, f64, f64)>::new(), Vec::new());
        while !queue.is_done() {
            while let Some(job) = queue.start_next() {
                let end = now + job.seconds;
                running.push((job, now, end));
            }
            running.sort_by(|a, b| b.2.total_cmp(&a.2));
            let first = running.pop().unwrap();
            now = first.2;
            queue.end(first.0.lane);
            ended.push(first);
        }
        ended
    }

    fn most_at_once(ran: &[(TestJob, f64, f64)], is_meant: impl Fn(Lane) -> bool) -> usize {
        let at = |moment: f64| {
            let runs = |(job, begin, end): &&(TestJob, f64, f64)| {
                is_meant(job.lane) && *begin <= moment && moment < *end
            };
            ran.iter().filter(runs).count()
        };
        ran.iter().map(|(_, begin, _)| at(*begin)).max().unwrap_or(0)
    }

    #[test]
    fn lanes_keep_their_promises() {
        let lanes = [Lane::Free, Lane::Machine, Lane::Load, Lane::Alone];
        let jobs: Vec<TestJob> =
            (0..80_u32).map(|n| job(lanes[n as usize % 4], f64::from(1 + n * 7 % 13))).collect();
        let ran = run(jobs, 4);
        assert_eq!(ran.len(), 80);
        assert_eq!(most_at_once(&ran, |_| true), 4);
        assert_eq!(most_at_once(&ran, |lane| lane == Lane::Machine), 1);
        let free_s = ran.iter().filter(|(job, ..)| job.lane == Lane::Free);
        let free_s = free_s.map(|(_, _, end)| *end).fold(0.0, f64::max);
        let (beside, after): (Vec<_>, Vec<_>) =
            ran.iter().cloned().partition(|(_, begin, _)| *begin < free_s);
        assert_eq!(most_at_once(&beside, |lane| lane == Lane::Load), LOADS_MAX);
        assert!(most_at_once(&after, |lane| lane == Lane::Load) <= LOADS_MAX + 1);
        for (alone, begin, end) in ran.iter().filter(|(job, _, _)| job.lane == Lane::Alone) {
            let others = ran.iter().filter(|(job, _, _)| job.name != alone.name);
            assert!(others.into_iter().all(|(_, b, e)| e <= begin || b >= end), "{}", alone.name);
        }
    }

    #[test]
    fn what_free_jobs_leave_is_for_one_more_load() {
        let mut jobs = vec![job(Lane::Free, 3.0)];
        jobs.extend((0..8).map(|_| job(Lane::Load, 3.0)));
        let ran = run(jobs, 4);
        // Two beside the free one, then three and three.
        assert_eq!(ran.iter().map(|(_, _, end)| *end).fold(0.0, f64::max), 9.0);
    }

    #[test]
    fn the_longest_chain_begins_first() {
        let mut jobs = vec![job(Lane::Free, 9.0)];
        jobs.extend((0..10).map(|_| job(Lane::Machine, 2.0)));
        let ran = run(jobs, 2);
        let end = ran.iter().map(|(_, _, end)| *end).fold(0.0, f64::max);
        assert_eq!(end, 20.0);
    }

    fn target(kind: TargetKind, package: &str, name: &str) -> Target {
        let (package, name) = (package.into(), name.into());
        let (version, executable, dir, programs) = Default::default();
        Target { package, version, name, kind, executable, dir, programs }
    }

    fn names(of: &str, count: usize) -> Vec<String> {
        (0..count).map(|n| format!("{of}{n}")).collect()
    }

    #[test]
    fn long_unit_tests_run_in_a_process_of_their_own() {
        let times = Times::default();
        let tests = [names("drive::a", 3), names("flush::a", 2), names("insert::a", 1)].concat();
        let unit = |name: &str| target(TargetKind::Unit, &format!("iostrata-{name}"), name);
        assert!(is_divided(&unit("sim")) && !is_divided(&unit("run")));
        let jobs = jobs_of(&unit("sim"), 0, &tests, &times);
        let of = |job: &TestJob| (job.name.clone(), job.tests.clone());
        let found: Vec<(String, Vec<String>)> = jobs.iter().map(of).collect();
        let expected = [
            ("sim flush::* (unit)".to_owned(), tests[3..5].to_vec()),
            ("sim insert::* (unit)".to_owned(), tests[5..].to_vec()),
            ("sim (unit)".to_owned(), tests[..3].to_vec()),
        ];
        assert_eq!(found, expected);
        assert_eq!(jobs_of(&unit("sim"), 0, &tests[..3], &times).len(), 1);
        let whole = jobs_of(&unit("run"), 0, &[], &times);
        assert_eq!((whole.len(), &*whole[0].name), (1, "run (unit)"));
    }

    #[test]
    fn tests_that_share_something_dear_are_shared_out() {
        let cli = target(TargetKind::Integration, "iostrata", "cli");
        let tests = [names("tune_shared::a", 5), names("tune::a", 1)].concat();
        let mut jobs = jobs_of(&cli, 0, &tests, &Times::default());
        assert_eq!(jobs.remove(0).tests, tests[5..]);
        let found: Vec<(&str, usize)> =
            jobs.iter().map(|job| (&*job.name, job.tests.len())).collect();
        assert_eq!(found, [("cli tune_shared::* 1", 3), ("cli tune_shared::* 2", 2)]);
        assert!(jobs.iter().all(|job| job.threads == 2 && job.lane == Lane::Load));
        let mut run: Vec<String> = jobs.iter().flat_map(|job| job.tests.clone()).collect();
        run.sort();
        assert_eq!(run, tests[..5]);
    }

    #[test]
    fn a_binary_that_is_divided_ends_with_the_others() {
        let others = (0..10).map(|_| job(Lane::Free, 8.0));
        let end =
            |jobs: Vec<TestJob>| run(jobs, 4).iter().map(|(_, _, end)| *end).fold(0.0, f64::max);
        let whole = others.clone().chain([job(Lane::Free, 48.0)]).collect();
        let parts = others.chain((0..3).map(|_| job(Lane::Free, 16.0))).collect();
        assert_eq!((end(whole), end(parts)), (48.0, 32.0));
    }

    #[test]
    fn one_slot_runs_everything() {
        let jobs = vec![job(Lane::Alone, 1.0), job(Lane::Load, 1.0), job(Lane::Free, 1.0)];
        let ran = run(jobs, 1);
        assert_eq!(most_at_once(&ran, |_| true), 1);
        assert_eq!(ran.last().map(|(job, _, _)| job.lane), Some(Lane::Alone));
    }
}

#[cfg(test)]
mod times_tests {
    use super::*;

    /// The longest that unit tests in one process should take, in seconds.
    const UNIT_S_MAX: f64 = 40.0;

    #[test]
    fn unit_tests_that_take_long_are_divided() {
        let committed = Times::committed();
        let long = |(name, seconds): &(&str, f64)| name.contains("(unit") && *seconds > UNIT_S_MAX;
        let long: Vec<(&str, f64)> = committed.longest().into_iter().filter(long).collect();
        assert!(long.is_empty(), "give some of them a row in lanes::UNITS: {long:?}");
    }

    #[test]
    fn long_tests_without_a_recorded_time_are_counted() {
        let (mut now, mut recorded) = (Times::default(), Times::default());
        for (name, seconds) in [("new", 30.0), ("known", 40.0), ("short", 2.0)] {
            now.set(name, seconds);
        }
        recorded.set("known", 8.0);
        assert_eq!(now.unknown_to(&recorded, 5.0), 1);
    }

    #[test]
    fn times_are_read_back_as_written() {
        let dir = std::env::temp_dir().join(format!("iostrata-times-{}", std::process::id()));
        let mut times = Times::default();
        times.set("cli tune::a", 12.34);
        times.set("run (unit)", 0.2);
        times.write(&dir, 1.0).unwrap();
        let read = Times::parse(&fs::read_to_string(&dir).unwrap());
        fs::remove_file(&dir).unwrap();
        assert_eq!(read.longest(), [("cli tune::a", 12.3)]);
        assert_eq!((read.of("cli tune::a"), read.of("unknown")), (12.3, UNKNOWN_S));
    }
}
