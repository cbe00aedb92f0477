//! One replicate of one point: load, window, evidence, figures.
//!
//! Invariant: the evidence covers the window of the figures, and the verdicts of both travel with
//! the replicate. It prepares no files, is independent of the kind of load and decides nothing
//! about what comes next.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use iostrata_linux::host::{HostObserver, Observer, ObserverOptions, PauseWatch, Root, Scope};
use iostrata_load::{LiveFigures, Load, StreamDetail, Surroundings, WindowFigures, WindowObserver};
use iostrata_plan::Point;
use iostrata_run::Replicate;
use iostrata_run::host::{Evidence, PathFacts};
use iostrata_stats::{Verdict, Verdicts};

use crate::StudyError;

/// Called when the measured window opens and closes: a profiler, a tracer.
pub trait Watcher {
    /// The window begins now.
    fn opened(&mut self);
    /// The warm-up of transactions is over.
    fn warmed_up(&mut self) {}
    /// What transactions do, once a second.
    fn live(&mut self, _figures: &LiveFigures) {}
    /// The window has ended.
    fn closed(&mut self);
}

/// Measures points on one directory or device.
pub struct Meter<'a> {
    observer: HostObserver,
    scope: Scope,
    interrupted: &'a AtomicBool,
    program: Option<PathBuf>,
    started: Instant,
    written_bytes: u64,
}

/// What measuring a point once brought.
#[derive(Debug)]
pub struct Measurement {
    /// The replicate as it is stored.
    pub replicate: Replicate,
    /// Whether a signal ended it early.
    pub interrupted: bool,
    /// Why it ended early, when a request failed or a file vanished.
    pub error: Option<StudyError>,
    /// What belongs to the figures of each stream, and is not stored.
    pub details: Vec<StreamDetail>,
}

impl<'a> Meter<'a> {
    /// A meter for what lies under a path, where that is known. `program` is this program, for
    /// worker processes.
    pub fn new(
        root: &Root,
        path: Option<&PathFacts>,
        interrupted: &'a AtomicBool,
        program: Option<PathBuf>,
    ) -> Self {
        Self {
            observer: HostObserver::new(root.clone(), ObserverOptions::default()),
            scope: path.map(|path| Scope::of(root, path)).unwrap_or_default(),
            interrupted,
            program,
            started: Instant::now(),
            written_bytes: 0,
        }
    }

    /// Seconds since the meter was made.
    pub fn elapsed_s(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    /// Watches the devices below for pauses from now on, with the clock of the windows.
    pub fn watch_pauses(&self, root: &Root) -> PauseWatch {
        PauseWatch::start(root, &self.scope, self.started)
    }

    /// Bytes that all requests wrote so far.
    pub fn written_bytes(&self) -> u64 {
        self.written_bytes
    }

    /// Observes another part of the host from now on.
    pub fn look_at(&mut self, scope: Scope) {
        self.scope = scope;
    }

    /// Measures a point once by its load. `progress` gets the seconds since the window opened,
    /// watchers when it opens and closes.
    ///
    /// # Errors
    /// When nothing could be measured. An operation that failed half-way is in the measurement.
    pub fn measure(
        &mut self,
        point: &Point,
        replicate: u32,
        load: &dyn Load,
        progress: &mut dyn FnMut(f64),
        watchers: &mut [&mut dyn Watcher],
    ) -> Result<Measurement, StudyError> {
        let (started, opened_s) = (self.started, 0.0);
        let mut probes =
            Probes { observer: None, notes: Vec::new(), progress, watchers, started, opened_s };
        if load.reaches_storage() {
            match self.observer.arm(&self.scope) {
                Ok(()) => probes.observer = Some(&mut self.observer),
                Err(error) => probes.notes.push(error.to_string()),
            }
        }
        let surroundings =
            Surroundings { interrupted: self.interrupted, program: self.program.clone() };
        let figures = load.run(&surroundings, &mut probes)?;
        let (notes, opened_s) = (probes.notes, probes.opened_s);
        self.written_bytes += figures.written_bytes;
        let evidence = load.reaches_storage().then(|| self.evidence(&figures, notes)).flatten();
        Ok(Measurement {
            interrupted: figures.interrupted,
            replicate: Replicate {
                verdicts: verdicts(&figures, evidence.as_ref()),
                point: point.clone(),
                replicate,
                started_s: opened_s + figures.warm_up_s,
                duration_s: figures.duration_s,
                streams: figures.streams,
                evidence,
            },
            error: figures.failure.map(StudyError::from),
            details: figures.details,
        })
    }

    fn evidence(&mut self, figures: &WindowFigures, notes: Vec<String>) -> Option<Evidence> {
        let mut evidence = self.observer.take(figures.own_io.as_ref()).ok()?;
        evidence.notes.extend(notes);
        Some(evidence)
    }
}

/// Everything that speaks against the replicate as a whole.
fn verdicts(figures: &WindowFigures, evidence: Option<&Evidence>) -> Verdicts {
    let mut verdicts = Verdicts::none();
    for stream in &figures.streams {
        verdicts.merge(&stream.verdicts);
    }
    if let Some(evidence) = evidence {
        verdicts.merge(&evidence.verdicts);
    }
    if figures.duration_s <= 0.0 {
        verdicts.add(Verdict::TooFewSamples);
    }
    verdicts
}

/// Passes the window's moments on to the observer and the progress display.
struct Probes<'a, 'w> {
    observer: Option<&'a mut HostObserver>,
    notes: Vec<String>,
    progress: &'a mut dyn FnMut(f64),
    watchers: &'a mut [&'w mut dyn Watcher],
    /// When the meter was made.
    started: Instant,
    /// When the window opened, in seconds since then.
    opened_s: f64,
}

impl Probes<'_, '_> {
    fn look(&mut self, what: fn(&mut HostObserver) -> Result<(), iostrata_linux::host::HostError>) {
        if let Some(observer) = &mut self.observer
            && let Err(error) = what(observer)
        {
            self.notes.push(error.to_string());
        }
    }
}

impl WindowObserver for Probes<'_, '_> {
    fn opened(&mut self) {
        self.look(HostObserver::start);
        self.opened_s = self.started.elapsed().as_secs_f64();
        self.watchers.iter_mut().for_each(|watcher| watcher.opened());
    }

    fn open(&mut self, elapsed_s: f64) {
        (self.progress)(elapsed_s);
    }

    fn warmed_up(&mut self) {
        self.watchers.iter_mut().for_each(|watcher| watcher.warmed_up());
    }

    fn live(&mut self, figures: &LiveFigures) {
        self.watchers.iter_mut().for_each(|watcher| watcher.live(figures));
    }

    fn closed(&mut self) {
        self.watchers.iter_mut().for_each(|watcher| watcher.closed());
        self.look(HostObserver::stop);
    }
}
