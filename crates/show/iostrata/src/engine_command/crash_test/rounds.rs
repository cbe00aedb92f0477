//! Round after round: start the writer, cut it off, look for what it acknowledged.
//!
//! Invariant: a commit is lost when its thread's mark says an earlier one is the last; rows must be
//! exactly what the marks say. Moments are random from before the engine is open to a while after.

use std::path::Path;
use std::time::{Duration, Instant};

use iostrata_engine::{Direction, Engine, EngineError, Settings};
use iostrata_run::CrashTestDocument;
use iostrata_stats::Random;

use super::oracle::{Expected, Load, THREADS};
use super::place::CrashTarget;
use super::worker::{MARKS, ROWS, last};
use super::writer::{Heard, Writer};
use crate::engine_command::ending;
use crate::exit_error::ExitError;

/// Latest moment of a cut after the writer's start.
const CUT_MS_MAX: u64 = 700;
/// Of so many rounds one ends by a close under load instead of a cut.
const CLOSED_OF: u64 = 4;
/// Longest that a close under load may take.
const CLOSE_S_MAX: f64 = 10.0;
/// How long a writer may take to end by a close, its opening and its last check with it.
const END_PATIENCE: Duration = Duration::from_secs(60);
/// Failures that are kept in words.
const FAILURES_MAX: usize = 100;
/// Rows that do not fit, told per round.
const ROWS_TOLD: usize = 3;

/// The rounds in one place.
pub struct Rounds<'r> {
    settings: &'r Settings,
    seed: u64,
    expected: Expected,
    random: Random,
}

impl<'r> Rounds<'r> {
    /// Rounds with these settings of the engine.
    pub fn new(settings: &'r Settings, seed: u64) -> Self {
        let load = Load { seed, page_size: u64::from(settings.page_size) };
        Self { settings, seed, expected: Expected::new(load), random: Random::new(seed) }
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
        show: &mut dyn FnMut(&CrashTestDocument) -> bool,
    ) -> Result<(), ExitError> {
        self.make(&place.directory())?;
        loop {
            self.round(place, document)?;
            let is_sound = document.lost == 0 && document.check_failures == 0;
            if !show(document) || !is_sound || Instant::now() >= until {
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
    ) -> Result<(), ExitError> {
        if self.random.below(CLOSED_OF) == 0 {
            return self.closed_round(place, document);
        }
        let mut heard = Heard::default();
        if place.is_power() && self.random.below(2) == 0 {
            // What the killed one left is in the page cache, and the next one recovers from it.
            heard = self.write(place)?.kill();
            document.restarts += 1;
        }
        let writer = self.write(place)?;
        place.cut(self.random.below(u64::MAX))?;
        heard.go_on(writer.kill());
        document.kills += 1;
        document.power_cuts += u64::from(place.is_power());
        // Under a power cut it may see the disk fail.
        if let Some(why) = heard.ended.take().filter(|_| !place.is_power()) {
            fail(document, format!("the writer ended by itself: {why}"));
        }
        place.mend()?;
        self.look(&place.directory(), heard, document)
    }

    /// Lets the writer close the engine under its own load.
    fn closed_round(
        &mut self,
        place: &dyn CrashTarget,
        document: &mut CrashTestDocument,
    ) -> Result<(), ExitError> {
        let after_ms = self.random.below(CUT_MS_MAX);
        let mut heard =
            Writer::start(&place.directory(), self.seed, Some(after_ms))?.end(END_PATIENCE);
        if let Some(why) = heard.ended.take() {
            fail(document, format!("the writer did not end by a close under load: {why}"));
        }
        self.look(&place.directory(), heard, document)
    }

    /// A writer that has written for a random while.
    fn write(&mut self, place: &dyn CrashTarget) -> Result<Writer, ExitError> {
        let writer = Writer::start(&place.directory(), self.seed, None)?;
        std::thread::sleep(Duration::from_millis(self.random.below(CUT_MS_MAX)));
        Ok(writer)
    }

    /// Opens the engine and compares.
    fn look(
        &mut self,
        directory: &Path,
        heard: Heard,
        document: &mut CrashTestDocument,
    ) -> Result<(), ExitError> {
        let new = |thread: u8| {
            heard.last[usize::from(thread)].saturating_sub(self.expected.commits(thread))
        };
        document.acknowledged += (0..THREADS).map(new).sum::<u64>();
        for &close_s in &heard.closes_s {
            document.closes += 1;
            document.close_s_max = document.close_s_max.max(close_s);
            if close_s > CLOSE_S_MAX {
                fail(document, format!("a close under load took {close_s:.1} s"));
            }
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
        if self.random.below(2) == 0
            && let Err(error) = engine.close()
        {
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
        for problem in report.problems.iter().take(ROWS_TOLD) {
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
        let mut expected = self.expected.rows();
        let (mut found, mut differing) = (rows.cursor(.., Direction::Forward), 0);
        loop {
            let (wanted, there) = (expected.next(), found.next_row()?);
            if wanted.is_none() && there.is_none() {
                break;
            }
            let wanted = wanted.map(|(key, value)| (&key[..], &value[..]));
            if wanted != there {
                differing += 1;
                if differing <= ROWS_TOLD {
                    let key = wanted.or(there).map(|(key, _)| key.to_vec());
                    fail(document, format!("the row {key:?} is not what its commits left"));
                }
                break;
            }
        }
        Ok(())
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
