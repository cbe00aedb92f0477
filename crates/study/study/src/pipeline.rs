//! What every command that measures goes through: files from one cache, windows, events, the end.
//!
//! Invariant: an event is stored before whatever comes after it begins, and the last one holds how
//! the run ended and what it wrote in all.

use std::sync::atomic::{AtomicBool, Ordering};

use iostrata_load::{Load, clock_facts};
use iostrata_plan::Point;
use iostrata_run::{Event, Unavailable};

use crate::{FileSetCache, Measurement, Meter, StudyError, Watcher};

/// Receives the progress of a run, and keeps its events.
pub trait Listener {
    /// How far it has come: a share from 0 to 1, and what is being done.
    fn progress(&mut self, share: f64, text: &str);
    /// Shows a note that a reader shall see whatever the display does.
    fn note(&mut self, _text: &str) {}
    /// Stores an event, a replicate with its histograms.
    ///
    /// # Errors
    /// When the run directory cannot be written.
    fn store(&mut self, event: &Event) -> Result<(), StudyError>;
}

/// What a run brought back.
#[derive(Debug)]
pub struct RunOutcome {
    /// Everything that was stored, by earlier parts of the run as well.
    pub events: Vec<Event>,
    /// Whether a signal ended it.
    pub interrupted: bool,
}

/// A run that is being measured.
pub struct Pipeline<'a> {
    /// Gets the progress.
    pub listener: &'a mut dyn Listener,
    /// What measures.
    pub meter: Meter<'a>,
    /// The files at hand.
    pub files: FileSetCache,
    /// Everything that was stored by this part.
    pub events: Vec<Event>,
    /// Seconds that earlier parts of the run took.
    pub before_s: f64,
    /// Bytes that databases, and filling files that are gone by now, wrote.
    pub(crate) filled_bytes: u64,
    interrupted: &'a AtomicBool,
}

impl<'a> Pipeline<'a> {
    /// A run that begins, or goes on, with these files.
    pub fn new(
        listener: &'a mut dyn Listener,
        meter: Meter<'a>,
        files: FileSetCache,
        interrupted: &'a AtomicBool,
    ) -> Self {
        Self {
            listener,
            meter,
            files,
            events: Vec::new(),
            before_s: 0.0,
            filled_bytes: 0,
            interrupted,
        }
    }

    /// Set by a signal.
    pub(crate) fn stop(&self) -> &'a AtomicBool {
        self.interrupted
    }

    /// Whether a signal came.
    pub fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// Seconds of the run, earlier parts included.
    pub fn elapsed_s(&self) -> f64 {
        self.before_s + self.meter.elapsed_s()
    }

    /// Bytes that requests and filling wrote.
    pub fn written_bytes(&self) -> u64 {
        self.meter.written_bytes() + self.files.filled_bytes() + self.filled_bytes
    }

    /// Stores an event.
    ///
    /// # Errors
    /// When the run directory cannot be written.
    pub fn store(&mut self, event: Event) -> Result<(), StudyError> {
        self.listener.store(&event)?;
        self.events.push(event);
        Ok(())
    }

    /// Stores the clock that every latency is taken with.
    pub(crate) fn store_clock(&mut self) -> Result<(), StudyError> {
        let facts = clock_facts();
        self.store(Event::Clock {
            name: facts.name().to_owned(),
            read_ns: facts.read_ns.clone(),
            fallback: facts.fallback.clone(),
        })
    }

    /// Stores what is not possible here.
    pub(crate) fn store_missing(
        &mut self,
        missing: impl IntoIterator<Item = Unavailable>,
    ) -> Result<(), StudyError> {
        missing.into_iter().try_for_each(|one| self.store(Event::Unavailable(one)))
    }

    /// Measures a point once; `share` returns how far the run has come when a window is open for so
    /// many seconds.
    ///
    /// # Errors
    /// As [`Meter::measure`].
    pub fn measure(
        &mut self,
        point: &Point,
        replicate: u32,
        load: &dyn Load,
        share: &dyn Fn(f64) -> f64,
        text: &str,
        watchers: &mut [&mut dyn Watcher],
    ) -> Result<Measurement, StudyError> {
        let listener = &mut *self.listener;
        let mut progress = |elapsed_s: f64| listener.progress(share(elapsed_s), text);
        let mut measured = self.meter.measure(point, replicate, load, &mut progress, watchers)?;
        measured.replicate.started_s += self.before_s;
        Ok(measured)
    }

    /// Stores how the run ended.
    ///
    /// # Errors
    /// When the run directory cannot be written.
    pub fn finish(mut self, done: &[Event], interrupted: bool) -> Result<RunOutcome, StudyError> {
        let (at_s, bytes_written) = (self.elapsed_s(), self.written_bytes());
        self.store(if interrupted {
            Event::Interrupted { at_s, bytes_written }
        } else {
            Event::Finished { at_s, bytes_written }
        })?;
        Ok(RunOutcome { events: done.iter().cloned().chain(self.events).collect(), interrupted })
    }
}
