//! Round after round: start the writer, copy its files again and again while it goes on, cut it
//! off, look for what it acknowledged.
//!
//! Invariants: a commit is lost when its thread's mark has an earlier one as the last; rows must be
//! what the marks allow. Moments are random from before the engine is open to seconds after.
//! Everything that the writing process printed before it ended is read.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use iostrata_engine::{Direction, Engine, EngineError, Settings};
use iostrata_run::CrashTestDocument;
use iostrata_stats::Random;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use super::oracle::{ExpectedRows, Load, THREADS};
use super::place::{CrashTarget, copy_files};
use super::worker::{CLOSED, MARKS, ROWS, last};
use crate::engine_command::ending;
use crate::exit_error::ExitError;

/// The latest moment of a cut after the writer's start is so late, but so many writers must fit
/// into the time.
const LIFE_MAX: Duration = Duration::from_secs(6);
const LIVES_MIN: u32 = 10;
/// Longest time between two copies of a writer's files.
const COPY_MS_MAX: u64 = 1000;
/// Of so many rounds one ends by a close under load instead of a cut.
const CLOSED_OF: u64 = 4;
/// Longest that a close under load may take.
const CLOSE_S_MAX: f64 = 10.0;
/// How long a writer may take to end by a close, its opening and its last check with it.
const END_PATIENCE: Duration = Duration::from_secs(60);
/// Failures that are kept in words.
const FAILURES_MAX: usize = 100;
/// Problems of a check that are reported per round.
const PROBLEMS_TOLD: usize = 3;

/// The rounds in one place.
pub struct Rounds<'r> {
    settings: &'r Settings,
    seed: u64,
    expected: ExpectedRows,
    /// The last commit of each thread that was acknowledged.
    acknowledged: [u64; THREADS as usize],
    random: Random,
    life_ms_max: u64,
}

/// Shows the progress; false ends the test.
type Show<'s> = dyn FnMut(&CrashTestDocument) -> bool + 's;

impl<'r> Rounds<'r> {
    /// Rounds with these settings of the engine, for so long.
    pub fn new(settings: &'r Settings, seed: u64, time: Duration) -> Self {
        let load = Load { seed, page_size: u64::from(settings.page_size) };
        let life_ms_max = LIFE_MAX.min(time / LIVES_MIN).as_millis() as u64;
        Self {
            settings,
            seed,
            expected: ExpectedRows::new(load),
            acknowledged: [0; THREADS as usize],
            random: Random::new(seed),
            life_ms_max: life_ms_max.max(1),
        }
    }

    /// Runs until the time is over, something is lost, or `show` returns false. At least one round.
    ///
    /// # Errors
    /// What keeps the test itself from going on.
    pub fn run(
        &mut self,
        place: &mut dyn CrashTarget,
        until: Instant,
        document: &mut CrashTestDocument,
        show: &mut Show<'_>,
    ) -> Result<(), ExitError> {
        self.make(&place.directory())?;
        loop {
            self.round(place, document, show)?;
            if !show(document) || !is_sound(document) || Instant::now() >= until {
                return Ok(());
            }
        }
    }

    fn make(&self, directory: &Path) -> Result<(), ExitError> {
        let engine = Engine::open(directory, self.settings.clone()).map_err(ending)?;
        engine.create_table(MARKS).map_err(ending)?;
        engine.create_table(ROWS).map_err(ending)?;
        engine.close().map_err(ending)
    }

    fn round(
        &mut self,
        place: &mut dyn CrashTarget,
        document: &mut CrashTestDocument,
        show: &mut Show<'_>,
    ) -> Result<(), ExitError> {
        if self.random.below(CLOSED_OF) == 0 {
            return self.closed_round(place, document);
        }
        let mut reported = WriterReport::default();
        if place.is_power() && self.random.below(2) == 0 {
            // What the killed one left is in the page cache, and the next one recovers from it.
            reported = self.write(place, document, show)?.kill();
            document.restarts += 1;
        }
        let writer = self.write(place, document, show)?;
        place.cut(self.random.below(u64::MAX))?;
        reported.go_on(writer.kill());
        document.kills += 1;
        document.power_cuts += u64::from(place.is_power());
        // Under a power cut it may see the disk fail.
        if let Some(why) = reported.ended.take().filter(|_| !place.is_power()) {
            fail(document, format!("the writer exited by itself: {why}"));
        }
        place.mend()?;
        count_closes(&reported, document);
        self.look(&place.directory(), reported, document)
    }

    /// Lets the writer close the engine under its own load.
    fn closed_round(
        &mut self,
        place: &dyn CrashTarget,
        document: &mut CrashTestDocument,
    ) -> Result<(), ExitError> {
        let after_ms = self.random.below(self.life_ms_max);
        let mut reported =
            Writer::start(&place.directory(), self.seed, Some(after_ms))?.end(END_PATIENCE);
        if let Some(why) = reported.ended.take() {
            fail(document, format!("the writer did not end by a close under load: {why}"));
        }
        count_closes(&reported, document);
        self.look(&place.directory(), reported, document)
    }

    /// A writer that has written for a random while. What kills would have left meanwhile is copied
    /// while it writes, and checked.
    fn write(
        &mut self,
        place: &dyn CrashTarget,
        document: &mut CrashTestDocument,
        show: &mut Show<'_>,
    ) -> Result<Writer, ExitError> {
        let directory = place.directory();
        let writer = Writer::start(&directory, self.seed, None)?;
        let until = Instant::now() + Duration::from_millis(self.random.below(self.life_ms_max));
        loop {
            let pause = Duration::from_millis(self.random.below(COPY_MS_MAX));
            let left = until.saturating_duration_since(Instant::now());
            std::thread::sleep(pause.min(left));
            if pause >= left || !show(document) || !is_sound(document) {
                return Ok(writer);
            }
            let Some(copy) = place.copy() else { continue };
            let reported = writer.paused(|| {
                copy_files(&directory, &copy).map_err(|error| {
                    ExitError::NotHere(format!("cannot copy {}: {error}", directory.display()))
                })
            })?;
            let Some(reported) = reported else { return Ok(writer) };
            document.copies += 1;
            self.look(&copy, reported, document)?;
        }
    }

    /// Opens the engine and compares.
    fn look(
        &mut self,
        directory: &Path,
        reported: WriterReport,
        document: &mut CrashTestDocument,
    ) -> Result<(), ExitError> {
        for (known, said) in self.acknowledged.iter_mut().zip(reported.last) {
            document.acknowledged += said.saturating_sub(*known);
            *known = said.max(*known);
        }
        let engine = match Engine::open(directory, self.settings.clone()) {
            Ok(engine) => engine,
            Err(error) => {
                fail(document, format!("it does not open: {error}"));
                return Ok(());
            }
        };
        document.recoveries += 1;
        let took_s = engine.recovery().took.as_secs_f64();
        document.recovery_s_max = document.recovery_s_max.max(took_s);
        if let Err(error) = self.compare(&engine, reported, document) {
            fail(document, format!("it cannot be read: {error}"));
        }
        // Every other time it is left as a killed one would leave it.
        if self.random.below(2) == 0 {
            engine.abandon();
        } else if let Err(error) = engine.close() {
            fail(document, format!("it does not close: {error}"));
        }
        Ok(())
    }

    fn compare(
        &mut self,
        engine: &Engine,
        reported: WriterReport,
        document: &mut CrashTestDocument,
    ) -> Result<(), EngineError> {
        let report = engine.check()?;
        for problem in report.problems.iter().take(PROBLEMS_TOLD) {
            fail(document, problem.to_string());
        }
        let (Some(marks), Some(rows)) = (engine.table(MARKS)?, engine.table(ROWS)?) else {
            fail(document, "a table is gone".to_owned());
            return Ok(());
        };
        for thread in 0..THREADS {
            let (found, said) = (last(&marks, thread)?, reported.last[usize::from(thread)]);
            let least = said.max(self.expected.commits(thread));
            document.lost += least.saturating_sub(found);
            if found < least {
                let what = format!("thread {thread}: commit {least} was acknowledged, {found} is");
                fail_lost(document, what + " the last there");
            }
            self.expected.advance(thread, found);
        }
        let mut found = rows.cursor(.., Direction::Forward);
        let next_row = || Ok(found.next_row()?.map(|(key, value)| (key.to_vec(), value.to_vec())));
        if let Some(key) = self.expected.first_difference::<EngineError>(next_row)? {
            fail(document, format!("the row {key:?} is not what its commits left"));
        }
        Ok(())
    }
}

fn is_sound(document: &CrashTestDocument) -> bool {
    document.lost == 0 && document.check_failures == 0
}

fn count_closes(reported: &WriterReport, document: &mut CrashTestDocument) {
    for &close_s in &reported.closes_s {
        document.closes += 1;
        document.close_s_max = document.close_s_max.max(close_s);
        if close_s > CLOSE_S_MAX {
            fail(document, format!("a close under load took {close_s:.1} s"));
        }
    }
}

fn fail(document: &mut CrashTestDocument, what: String) {
    document.check_failures += 1;
    fail_lost(document, what);
}

fn fail_lost(document: &mut CrashTestDocument, what: String) {
    if document.failures.len() < FAILURES_MAX {
        document.failures.push(what);
    }
}

/// How often its end is polled.
const POLL: Duration = Duration::from_millis(5);

/// What a writer acknowledged: the last commit of each thread stands for all before it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WriterReport {
    pub last: [u64; THREADS as usize],
    /// Why the last one ended before it was killed.
    pub ended: Option<String>,
    /// Seconds of its closes under load, one after the other.
    pub closes_s: Vec<f64>,
}

impl WriterReport {
    /// Adds what a later writer reported.
    pub fn go_on(&mut self, later: WriterReport) {
        self.ended = later.ended;
        self.closes_s.extend(later.closes_s);
        for (last, later) in self.last.iter_mut().zip(later.last) {
            // One that was cut off early has reported nothing.
            *last = later.max(*last);
        }
    }
}

/// A running writer.
pub struct Writer {
    child: Child,
    listener: JoinHandle<()>,
    reported: Arc<Mutex<WriterReport>>,
}

impl Writer {
    /// Starts it on a directory. It ends only where it has to close the engine after a while.
    ///
    /// # Errors
    /// When the program cannot be started.
    pub fn start(
        directory: &Path,
        seed: u64,
        close_after_ms: Option<u64>,
    ) -> Result<Self, ExitError> {
        let failed =
            |error: std::io::Error| ExitError::NotHere(format!("cannot start it: {error}"));
        let program = std::env::current_exe().map_err(failed)?;
        let mut child = Command::new(program)
            .args(["engine", "crash-worker"])
            .arg(directory)
            .args(["--seed", &seed.to_string()])
            .args(close_after_ms.map(|ms| format!("--close-after-ms={ms}")))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let Some(out) = child.stdout.take() else {
            return Err(ExitError::Bug("a piped stdout is missing".to_owned()));
        };
        let reported = Arc::default();
        let shared = Arc::clone(&reported);
        let listener = std::thread::spawn(move || listen(BufReader::new(out), &shared));
        Ok(Self { child, listener, reported })
    }

    /// Does something while the whole process stands still. Gives what it had acknowledged by then;
    /// nothing is done when it has ended.
    ///
    /// # Errors
    /// When it cannot be stopped, and those of what is done.
    pub fn paused(
        &self,
        during: impl FnOnce() -> Result<(), ExitError>,
    ) -> Result<Option<WriterReport>, ExitError> {
        let failed =
            |error: rustix::io::Errno| ExitError::NotHere(format!("cannot stop it: {error}"));
        let process = Pid::from_child(&self.child);
        kill_process(process, Signal::STOP).map_err(failed)?;
        // Its exit status is left to the later `wait`.
        let until = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        let status = waitid(WaitId::Pid(process), until).map_err(failed)?;
        if !status.is_some_and(|status| status.stopped()) {
            return Ok(None);
        }
        let done = during();
        let reported = lock(&self.reported).clone();
        kill_process(process, Signal::CONT).map_err(failed)?;
        done.map(|()| Some(reported))
    }

    /// Lets it end by itself. What keeps it from that within the patience stands in `ended`; it is
    /// killed then.
    pub fn end(mut self, patience: Duration) -> WriterReport {
        let until = Instant::now() + patience;
        let mut status = None;
        while status.is_none() && Instant::now() < until {
            std::thread::sleep(POLL);
            status = self.child.try_wait().ok().flatten();
        }
        let mut reported = self.kill();
        match status {
            None => reported.ended = Some(format!("not within {} s", patience.as_secs())),
            Some(status) if status.success() => reported.ended = None,
            Some(_failed) => {}
        }
        reported
    }

    /// Kills it at once and gives what it had acknowledged.
    pub fn kill(mut self) -> WriterReport {
        let is_ended = matches!(self.child.try_wait(), Ok(Some(_)));
        let _ended_before = self.child.kill();
        let _reaped = self.child.wait();
        let _listened = self.listener.join();
        let mut reported = std::mem::take(&mut *lock(&self.reported));
        if is_ended {
            let mut why = String::new();
            let _unreadable =
                self.child.stderr.take().map(|mut said| said.read_to_string(&mut why));
            reported.ended = Some(why.trim().to_owned());
        }
        reported
    }
}

fn lock(reported: &Mutex<WriterReport>) -> std::sync::MutexGuard<'_, WriterReport> {
    reported.lock().unwrap_or_else(PoisonError::into_inner)
}

fn listen(out: impl BufRead, reported: &Mutex<WriterReport>) {
    for line in out.lines().map_while(Result::ok) {
        let Some((thread, commit)) = line.split_once(' ') else { continue };
        let mut reported = lock(reported);
        if thread == CLOSED {
            reported.closes_s.extend(commit.parse::<f64>());
            continue;
        }
        let (Ok(thread), Ok(commit)) = (thread.parse::<usize>(), commit.parse()) else { continue };
        if let Some(last) = reported.last.get_mut(thread) {
            *last = commit;
        }
    }
}
