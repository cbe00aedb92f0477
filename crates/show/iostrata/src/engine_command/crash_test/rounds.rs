//! Round after round: start the writer, copy its files again and again while it goes on, cut it
//! off, look for what it acknowledged.
//!
//! Invariant: a commit is lost when its thread's mark says an earlier one is the last; rows must be
//! what the marks allow. Moments are random from before the engine is open to seconds after.

use std::path::Path;
use std::time::{Duration, Instant};

use iostrata_engine::{Direction, Engine, EngineError, Settings};
use iostrata_run::CrashTestDocument;
use iostrata_stats::Random;

use super::oracle::{Expected, Load, THREADS};
use super::place::{CrashTarget, copy_files};
use super::worker::{MARKS, ROWS, last};
use super::writer::{Heard, Writer};
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
/// Problems of a check that are told per round.
const PROBLEMS_TOLD: usize = 3;

/// The rounds in one place.
pub struct Rounds<'r> {
    settings: &'r Settings,
    seed: u64,
    expected: Expected,
    /// The last commit of each thread that was acknowledged.
    acknowledged: [u64; THREADS as usize],
    random: Random,
    life_ms_max: u64,
}

/// Says how it goes; false when it is enough.
type Show<'s> = dyn FnMut(&CrashTestDocument) -> bool + 's;

impl<'r> Rounds<'r> {
    /// Rounds with these settings of the engine, for so long.
    pub fn new(settings: &'r Settings, seed: u64, time: Duration) -> Self {
        let load = Load { seed, page_size: u64::from(settings.page_size) };
        let life_ms_max = LIFE_MAX.min(time / LIVES_MIN).as_millis() as u64;
        Self {
            settings,
            seed,
            expected: Expected::new(load),
            acknowledged: [0; THREADS as usize],
            random: Random::new(seed),
            life_ms_max: life_ms_max.max(1),
        }
    }

    /// Runs until the time is over, something is lost, or `show` says that it is enough. At least
    /// one round.
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
        let mut heard = Heard::default();
        if place.is_power() && self.random.below(2) == 0 {
            // What the killed one left is in the page cache, and the next one recovers from it.
            heard = self.write(place, document, show)?.kill();
            document.restarts += 1;
        }
        let writer = self.write(place, document, show)?;
        place.cut(self.random.below(u64::MAX))?;
        heard.go_on(writer.kill());
        document.kills += 1;
        document.power_cuts += u64::from(place.is_power());
        // Under a power cut it may see the disk fail.
        if let Some(why) = heard.ended.take().filter(|_| !place.is_power()) {
            fail(document, format!("the writer ended by itself: {why}"));
        }
        place.mend()?;
        count_closes(&heard, document);
        self.look(&place.directory(), heard, document)
    }

    /// Lets the writer close the engine under its own load.
    fn closed_round(
        &mut self,
        place: &dyn CrashTarget,
        document: &mut CrashTestDocument,
    ) -> Result<(), ExitError> {
        let after_ms = self.random.below(self.life_ms_max);
        let mut heard =
            Writer::start(&place.directory(), self.seed, Some(after_ms))?.end(END_PATIENCE);
        if let Some(why) = heard.ended.take() {
            fail(document, format!("the writer did not end by a close under load: {why}"));
        }
        count_closes(&heard, document);
        self.look(&place.directory(), heard, document)
    }

    /// A writer that has written for a random while. What kills would have left meanwhile is copied
    /// from under it and looked at.
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
            let heard = writer.paused(|| {
                copy_files(&directory, &copy).map_err(|error| {
                    ExitError::NotHere(format!("cannot copy {}: {error}", directory.display()))
                })
            })?;
            let Some(heard) = heard else { return Ok(writer) };
            document.copies += 1;
            self.look(&copy, heard, document)?;
        }
    }

    /// Opens the engine and compares.
    fn look(
        &mut self,
        directory: &Path,
        heard: Heard,
        document: &mut CrashTestDocument,
    ) -> Result<(), ExitError> {
        for (known, said) in self.acknowledged.iter_mut().zip(heard.last) {
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
        if let Err(error) = self.compare(&engine, heard, document) {
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
        heard: Heard,
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
            let (found, said) = (last(&marks, thread)?, heard.last[usize::from(thread)]);
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

fn count_closes(heard: &Heard, document: &mut CrashTestDocument) {
    for &close_s in &heard.closes_s {
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
