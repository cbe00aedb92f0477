//! One replicate of one point: files, window, evidence, figures.
//!
//! Invariant: the evidence covers the window of the figures, and the verdicts of both travel with
//! the replicate. It prepares no files and decides nothing about what comes next.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use iostrata_host::{HostObserver, Observer, ObserverOptions, Root, Scope};
use iostrata_io::{FileSet, FileSpec};
use iostrata_load::{
    Histograms, Outcome, StreamOutcome, StreamPlan, Surroundings, WindowFigures, WindowObserver,
    measure,
};
use iostrata_run::Replicate;
use iostrata_run::host::{Evidence, OwnIo, PathFacts};
use iostrata_spec::{IoApi, Point, SyncWrites};
use iostrata_stats::{Verdict, Verdicts};

use crate::StudyError;

/// Files for the streams of a point, in their order; `None` for a stream that touches none.
pub type Prepared<'a> = [Option<&'a FileSet>];

/// Told when the measured window opens and closes: a profiler, a tracer.
pub trait Watcher {
    /// The window begins now.
    fn opened(&mut self);
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
    /// The latency histograms behind it, by stream.
    pub histograms: Vec<Histograms>,
    /// Whether a signal ended it early.
    pub interrupted: bool,
    /// Why it ended early, when a request failed or a file vanished.
    pub error: Option<StudyError>,
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

    /// Bytes that all requests wrote so far.
    pub fn written_bytes(&self) -> u64 {
        self.written_bytes
    }

    /// Looks at another part of the host from now on.
    pub fn look_at(&mut self, scope: Scope) {
        self.scope = scope;
    }

    /// Measures a point once. `progress` is told the seconds since the window opened.
    ///
    /// # Errors
    /// When nothing could be measured. A request that failed half-way is in the measurement.
    pub fn measure(
        &mut self,
        point: &Point,
        replicate: u32,
        files: &Prepared<'_>,
        progress: &mut dyn FnMut(f64),
    ) -> Result<Measurement, StudyError> {
        let specs = |files: &Option<&FileSet>| {
            files.map(|files| files.specs().to_vec()).unwrap_or_default()
        };
        let files: Vec<Vec<FileSpec>> = files.iter().map(specs).collect();
        self.measure_watched(point, replicate, files, progress, &mut [])
    }

    /// Measures a point once on the given files of each stream, with watchers of the window.
    ///
    /// # Errors
    /// As [`Meter::measure`].
    pub fn measure_watched(
        &mut self,
        point: &Point,
        replicate: u32,
        files: Vec<Vec<FileSpec>>,
        progress: &mut dyn FnMut(f64),
        watchers: &mut [&mut dyn Watcher],
    ) -> Result<Measurement, StudyError> {
        assert_eq!(point.streams.len(), files.len(), "files for every stream of {}", point.id);
        let plans: Vec<StreamPlan> = point
            .streams
            .iter()
            .zip(files)
            .map(|(stream, files)| StreamPlan {
                name: stream.name.clone(),
                spec: stream.spec.clone(),
                files,
            })
            .collect();
        let touches_files = plans.iter().any(|plan| plan.spec.api != IoApi::Null);
        let (started, opened_s) = (self.started, 0.0);
        let mut eyes =
            Eyes { observer: None, notes: Vec::new(), progress, watchers, started, opened_s };
        if touches_files {
            match self.observer.arm(&self.scope) {
                Ok(()) => eyes.observer = Some(&mut self.observer),
                Err(error) => eyes.notes.push(error.to_string()),
            }
        }
        let surroundings =
            Surroundings { interrupted: self.interrupted, program: self.program.clone() };
        let outcome = measure(&plans, &surroundings, &mut eyes)?;
        let (notes, opened_s) = (eyes.notes, eyes.opened_s);
        self.written_bytes += touching(&outcome).map(|stream| stream.written_bytes).sum::<u64>();
        let evidence = touches_files.then(|| self.evidence(&outcome, notes)).flatten();
        let figures = WindowFigures::of(&outcome);
        Ok(Measurement {
            interrupted: outcome.interrupted,
            error: failure(&outcome),
            replicate: Replicate {
                verdicts: verdicts(&figures, evidence.as_ref()),
                point: point.clone(),
                replicate,
                started_s: opened_s + figures.warm_up_s,
                duration_s: figures.duration_s,
                streams: figures.streams,
                evidence,
            },
            histograms: figures.histograms,
        })
    }

    fn evidence(&mut self, outcome: &Outcome, notes: Vec<String>) -> Option<Evidence> {
        let mut evidence = self.observer.take(Some(&own_io(outcome))).ok()?;
        evidence.notes.extend(notes);
        Some(evidence)
    }
}

/// Streams that touch files.
fn touching(outcome: &Outcome) -> impl Iterator<Item = &StreamOutcome> {
    outcome.streams.iter().filter(|stream| stream.plan.spec.api != IoApi::Null)
}

/// What the window's own requests were, for telling foreign ones from them.
fn own_io(outcome: &Outcome) -> OwnIo {
    let mut own = OwnIo { direct: true, ..OwnIo::default() };
    for stream in touching(outcome) {
        let spec = &stream.plan.spec;
        own.direct &= spec.direct;
        let [reads, writes, syncs] = std::array::from_fn(|kind| {
            stream.slices.iter().map(|slice| slice[kind].count).sum::<u64>()
        });
        let [read_bytes, written_bytes, _] = stream.moved_bytes();
        own.reads += reads;
        own.writes += writes;
        own.read_bytes += read_bytes;
        own.written_bytes += written_bytes;
        own.flushes += syncs;
        if spec.sync != SyncWrites::None {
            own.flushes += writes;
        }
    }
    own
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

fn failure(outcome: &Outcome) -> Option<StudyError> {
    for stream in &outcome.streams {
        let path = |file: u32| {
            stream
                .plan
                .files
                .get(file as usize)
                .map_or_else(|| "a file".to_owned(), |file| file.path.display().to_string())
        };
        if let Some(failed) = &stream.failure.first {
            return Some(StudyError::request(failed, path(failed.file)));
        }
        let gone = stream.plan.files.iter().find(|file| !file.path.exists());
        if let Some(gone) = gone {
            return Some(StudyError::Removed { path: gone.path.display().to_string() });
        }
    }
    None
}

/// Passes the window's moments on to the observer and the progress display.
struct Eyes<'a, 'w> {
    observer: Option<&'a mut HostObserver>,
    notes: Vec<String>,
    progress: &'a mut dyn FnMut(f64),
    watchers: &'a mut [&'w mut dyn Watcher],
    /// When the meter was made.
    started: Instant,
    /// When the window opened, in seconds since then.
    opened_s: f64,
}

impl Eyes<'_, '_> {
    fn look(&mut self, what: fn(&mut HostObserver) -> Result<(), iostrata_host::HostError>) {
        if let Some(observer) = &mut self.observer
            && let Err(error) = what(observer)
        {
            self.notes.push(error.to_string());
        }
    }
}

impl WindowObserver for Eyes<'_, '_> {
    fn opened(&mut self) {
        self.look(HostObserver::start);
        self.opened_s = self.started.elapsed().as_secs_f64();
        self.watchers.iter_mut().for_each(|watcher| watcher.opened());
    }

    fn open(&mut self, elapsed_s: f64) {
        (self.progress)(elapsed_s);
    }

    fn closed(&mut self) {
        self.watchers.iter_mut().for_each(|watcher| watcher.closed());
        self.look(HostObserver::stop);
    }
}
