//! Databases that points of a study run transactions on.
//!
//! Purpose: what a study needs of databases, and the warm-up before a window. This file names no
//! database. Invariant: a window begins with the redo gone round, or is marked as one where it has
//! not.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use iostrata_change::{Platform, Session};
use iostrata_database::target::{Sampler, Target};
use iostrata_load::{Load, Surroundings, TransactionLoad, TransactionSource, WindowObserver};
use iostrata_plan::TransactionSpec;
use iostrata_plan::study::pacing::WARM_UP_WINDOWS_MAX;

use crate::StudyError;

/// A warm-up lasts at least this share of a window, at most so long: a small redo goes round at
/// once, and a policy that finds out what its device bears needs some seconds for that.
const WARM_UP_SHARE_MIN: f64 = 0.25;
const WARM_UP_S_MIN: f64 = 15.0;
/// One that makes no redo lasts this share of a window.
const READ_ONLY_SHARE: f64 = 0.25;
/// From one look at the redo to the next, in seconds.
const LOOK_S: f64 = 0.1;

/// Who makes databases.
pub trait Databases<W: Platform> {
    /// Opens a database in directories of the study's own, with the tables and settings of a load
    /// and nothing to be purged. Tables are loaded where they are not there yet; otherwise they are
    /// used as the last load left them. `progress` gets what is being done.
    ///
    /// # Errors
    /// [`StudyError::NotHere`] where there is no such database or it has no such setting; an error
    /// of the database; `stop` was set.
    fn open(
        &mut self,
        session: &mut Session<W>,
        load: &TransactionSpec,
        place: &DatabasePlace,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Box<dyn StudiedDatabase<W>>, StudyError>;

    /// Lets go of every database in a directory, which is removed next.
    ///
    /// # Errors
    /// What is still there of one.
    fn forget(&mut self, session: &mut Session<W>, dir: &Path) -> Result<(), StudyError>;
}

/// Where a database lies on the volumes of a study.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabasePlace {
    /// The directory of its data.
    pub data: PathBuf,
    /// The directory of its redo, where that has a volume of its own.
    pub redo: Option<PathBuf>,
}

/// A database that is open: between [`StudiedDatabase::begin`] and [`StudiedDatabase::end`] the
/// conditions of its point hold.
pub trait StudiedDatabase<W: Platform> {
    /// The conditions hold from now on; those of control groups in the groups of this name, which
    /// this process is in. A server is started in them.
    ///
    /// # Errors
    /// As [`Databases::open`].
    fn begin(
        &mut self,
        session: &mut Session<W>,
        group: Option<&str>,
        progress: &mut dyn FnMut(&str),
    ) -> Result<(), StudyError>;

    /// The conditions are taken back next. A server is shut down.
    ///
    /// # Errors
    /// When it cannot be ended.
    fn end(&mut self, session: &mut Session<W>) -> Result<(), StudyError>;

    /// The database.
    ///
    /// # Errors
    /// When it does not run.
    fn target(&self) -> Result<&dyn Target, StudyError>;

    /// The transactions of a load.
    ///
    /// # Errors
    /// An error of the database.
    fn source(&self, load: &TransactionSpec)
    -> Result<Box<dyn TransactionSource + '_>, StudyError>;

    /// The last output of a database that has ended by itself; nothing while it runs.
    fn last_words(&self, session: &Session<W>) -> Option<String>;

    /// Closes it, with everything written that has to be.
    ///
    /// # Errors
    /// An error of the database.
    fn close(self: Box<Self>) -> Result<(), StudyError>;
}

/// How a warm-up ended.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct WarmedUp {
    /// How long it took.
    pub took_s: f64,
    /// Whether as much redo was made as the checkpoint age may reach.
    pub went_round: bool,
    /// Whether any was made.
    pub makes_redo: bool,
}

/// Runs a load until its redo has gone round, at most for some windows. `progress` gets how far it
/// has come, from 0 to 1.
///
/// # Errors
/// When it cannot be run.
pub(super) fn warm_up(
    target: &dyn Target,
    source: &dyn TransactionSource,
    load: &TransactionSpec,
    window: Duration,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(f64),
) -> Result<WarmedUp, StudyError> {
    let most = window.mul_f64(WARM_UP_WINDOWS_MAX);
    // Another seed: what was drawn here is not drawn again.
    let seed = load.seed.wrapping_mul(0x9e37_79b9).wrapping_add(1);
    let load = TransactionSpec { runtime: Some(most), seed, ..load.clone() };
    let over = AtomicBool::new(false);
    let sampler = target.sampler()?;
    let (first_bytes, done) = (None, WarmedUp::default());
    let (window_s, next_s) = (window.as_secs_f64(), 0.0);
    let mut watch =
        RedoWatch { sampler, first_bytes, window_s, next_s, done, over: &over, stop, progress };
    let surroundings = Surroundings { interrupted: &over, program: None };
    let figures = TransactionLoad::new(source, &load, true).run(&surroundings, &mut watch)?;
    match figures.failure {
        Some(failure) => Err(failure.into()),
        None => Ok(watch.done),
    }
}

/// Ends a warm-up when the redo has gone round.
struct RedoWatch<'a> {
    sampler: Option<Box<dyn Sampler>>,
    /// End of the redo when it began.
    first_bytes: Option<u64>,
    window_s: f64,
    next_s: f64,
    done: WarmedUp,
    over: &'a AtomicBool,
    /// Set by a signal.
    stop: &'a AtomicBool,
    progress: &'a mut dyn FnMut(f64),
}

impl WindowObserver for RedoWatch<'_> {
    fn opened(&mut self) {}

    fn open(&mut self, elapsed_s: f64) {
        self.done.took_s = elapsed_s;
        if self.stop.load(Ordering::Relaxed) {
            self.over.store(true, Ordering::Relaxed);
        }
        if elapsed_s < self.next_s {
            return;
        }
        self.next_s = elapsed_s + LOOK_S;
        // A database that does not report it is warmed up by time alone.
        let sample = self.sampler.as_mut().and_then(|sampler| sampler.sample().ok());
        let told =
            sample.and_then(|one| Some((one.redo_end_bytes?, one.checkpoint_age_limit_bytes?)));
        if let Some((end, limit)) = told {
            let first = *self.first_bytes.get_or_insert(end);
            let made = end.saturating_sub(first);
            self.done.makes_redo = made > 0;
            self.done.went_round = limit > 0 && made >= limit;
            (self.progress)((made as f64 / limit.max(1) as f64).min(1.0));
        }
        let is_quiet = !self.done.makes_redo && elapsed_s >= READ_ONLY_SHARE * self.window_s;
        let least_s = WARM_UP_S_MIN.min(WARM_UP_SHARE_MIN * self.window_s);
        if is_quiet || (self.done.went_round && elapsed_s >= least_s) {
            self.over.store(true, Ordering::Relaxed);
        }
    }

    fn closed(&mut self) {}
}
