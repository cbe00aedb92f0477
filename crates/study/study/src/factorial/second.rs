//! What else is at work on the volume of the measured database: a second database under load, and
//! readers of a file of their own.
//!
//! Invariant: the second load runs from before the warm-up of the measured one to after its window,
//! and what is reported of it is of that window; readers read while that window is open, and no
//! longer. It names no database.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::Builder;
use std::time::{Duration, Instant};

use iostrata_change::Platform;
use iostrata_io::FileSpec;
use iostrata_load::{
    IoLoad, Load, LoadError, NoObserver, Surroundings, TransactionLoad, WindowFigures,
    WindowObserver,
};
use iostrata_plan::study::pacing::WARM_UP_WINDOWS_MAX;
use iostrata_plan::{IoSpec, OpKind, Stream, TransactionSpec};
use iostrata_run::{ReaderFigures, SecondDatabase, Series, StreamFigures};

use super::database::StudiedDatabase;
use crate::sampling::UseWatch;
use crate::{StudyError, Watcher};

/// Its load is prepared for so many windows beyond the longest warm-up, and so much time to open
/// and close them: it is ended, and never ends by itself.
const WINDOWS_BEYOND: f64 = 2.0;
const BEYOND: Duration = Duration::from_secs(60);

/// A second database that is open.
pub(super) struct Second<W: Platform> {
    pub database: Box<dyn StudiedDatabase<W>>,
    pub load: TransactionSpec,
}

impl<W: Platform> Second<W> {
    /// Keeps it under load while the other is measured for a window. `measure` gets the watcher to
    /// notify of that window.
    ///
    /// # Errors
    /// What `measure` gives; what went wrong with the second.
    pub fn beside<T>(
        &self,
        window: Duration,
        measure: impl FnOnce(&mut dyn Watcher) -> Result<T, StudyError>,
    ) -> Result<(T, SecondDatabase), StudyError> {
        let target = self.database.target()?;
        let used = || target.used().unwrap_or_default();
        let mut watch = SecondWatch { used: UseWatch::new(&used), opened: None, closed: None };
        let (measured, begun, streams) = self.under_load(window, || measure(&mut watch))?;
        let tps = streams
            .first()
            .zip(watch.window(begun))
            .map_or(0.0, |(stream, (from_s, to_s))| rate_between(&stream.series, from_s, to_s));
        Ok((measured, SecondDatabase { tps, used: watch.used.used() }))
    }

    /// Runs the load on a thread of its own as long as `during` takes. Gives when it began, too.
    fn under_load<T>(
        &self,
        window: Duration,
        during: impl FnOnce() -> Result<T, StudyError>,
    ) -> Result<(T, Option<Instant>, Vec<StreamFigures>), StudyError> {
        let of_second = |error: StudyError| StudyError::Second(Box::new(error));
        let source = self.database.source(&self.load).map_err(of_second)?;
        let runtime = window.mul_f64(WARM_UP_WINDOWS_MAX + WINDOWS_BEYOND) + BEYOND;
        let load = TransactionSpec { runtime: Some(runtime), ..self.load.clone() };
        let (over, begun) = (AtomicBool::new(false), OnceLock::new());
        let run = || {
            let surroundings = Surroundings { interrupted: &over, program: None };
            TransactionLoad::new(&*source, &load, true).run(&surroundings, &mut Begin(&begun))
        };
        let (measured, ran) = std::thread::scope(|scope| {
            let ends = EndsLoad(&over);
            let started = Builder::new().name("second".to_owned()).spawn_scoped(scope, run);
            let running = started
                .map_err(|source| LoadError::Spawn { worker: 0, workers: 1, source })
                .map_err(|error| of_second(error.into()))?;
            let measured = during()?;
            drop(ends);
            let ran = running.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            Ok::<_, StudyError>((measured, ran))
        })?;
        let figures = ran.map_err(|error| of_second(error.into()))?;
        match figures.failure {
            Some(failure) => Err(of_second(failure.into())),
            None => Ok((measured, begun.get().copied(), figures.streams)),
        }
    }
}

/// Ends the load however the measurement ends: the thread is waited for.
struct EndsLoad<'a>(&'a AtomicBool);

impl Drop for EndsLoad<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Keeps when the load of the second began.
struct Begin<'a>(&'a OnceLock<Instant>);

impl WindowObserver for Begin<'_> {
    fn opened(&mut self) {
        self.0.get_or_init(Instant::now);
    }

    fn open(&mut self, _elapsed_s: f64) {}

    fn closed(&mut self) {}
}

/// Samples the second when the window of the first opens and closes.
struct SecondWatch<'a> {
    used: UseWatch<'a>,
    opened: Option<Instant>,
    closed: Option<Instant>,
}

impl SecondWatch<'_> {
    /// The window in seconds since the load of the second began.
    fn window(&self, begun: Option<Instant>) -> Option<(f64, f64)> {
        let since_s =
            |at: Option<Instant>| Some(at?.saturating_duration_since(begun?).as_secs_f64());
        Some((since_s(self.opened)?, since_s(self.closed)?))
    }
}

impl Watcher for SecondWatch<'_> {
    fn opened(&mut self) {
        self.opened = Some(Instant::now());
        self.used.opened();
    }

    fn closed(&mut self) {
        self.closed = Some(Instant::now());
        self.used.closed();
    }
}

/// The mean rate of the slices that begin in a stretch of a series; 0 where none does.
fn rate_between(series: &Series, from_s: f64, to_s: f64) -> f64 {
    let begins = |(slice, _): &(usize, f64)| {
        let at_s = *slice as f64 * series.width_s;
        (from_s..to_s).contains(&at_s)
    };
    let within: Vec<f64> =
        series.totals().into_iter().enumerate().filter(begins).map(|(_, count)| count).collect();
    let length_s = within.len() as f64 * series.width_s;
    if length_s > 0.0 { within.iter().sum::<f64>() / length_s } else { 0.0 }
}

// Readers of a file of their own on the volume of a measured database.
//
// Invariant: they read while the window of the measured load is open, and no longer.

/// They are prepared for so much more than a window: they are ended, and never end by themselves.
const READERS_BEYOND: Duration = Duration::from_secs(60);

/// Readers with their files.
pub(super) struct Readers {
    load: IoLoad<'static>,
    threads: u32,
}

impl Readers {
    /// For a window of this length.
    pub fn new(spec: &IoSpec, files: Vec<FileSpec>, window: Duration) -> Self {
        let spec = IoSpec { runtime: Some(window + READERS_BEYOND), ..spec.clone() };
        let threads = spec.jobs;
        let stream = Stream { name: "readers".to_owned(), spec };
        Self { load: IoLoad::new(&[stream], vec![files]), threads }
    }

    /// Reads while the window of something else is open. `measure` gets the watcher to notify of
    /// that window.
    ///
    /// # Errors
    /// What `measure` gives; when files could not be read.
    pub fn beside<T>(
        &self,
        measure: impl FnOnce(&mut dyn Watcher) -> Result<T, StudyError>,
    ) -> Result<(T, ReaderFigures), StudyError> {
        let (over, (open, opened)) = (AtomicBool::new(false), channel());
        let (load, interrupted) = (&self.load, &over);
        let run = move || {
            // No window opens where measuring ended before.
            opened.recv().ok()?;
            let surroundings = Surroundings { interrupted, program: None };
            Some(load.run(&surroundings, &mut NoObserver))
        };
        std::thread::scope(|scope| {
            let mut window = ReadWindow { open: Some(open), over: &over };
            let workers = self.threads;
            let started = Builder::new().name("readers".to_owned()).spawn_scoped(scope, run);
            let running =
                started.map_err(|source| LoadError::Spawn { worker: 0, workers, source })?;
            let measured = measure(&mut window)?;
            drop(window);
            let ran = running.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            let figures = match ran.transpose()? {
                Some(WindowFigures { failure: Some(failure), .. }) => return Err(failure.into()),
                Some(figures) => figures_of(&figures),
                None => ReaderFigures::default(),
            };
            Ok((measured, figures))
        })
    }
}

/// Lets readers begin and end with a window, and end however measuring it ends.
struct ReadWindow<'a> {
    open: Option<Sender<()>>,
    over: &'a AtomicBool,
}

impl Watcher for ReadWindow<'_> {
    fn opened(&mut self) {
        if let Some(open) = self.open.take() {
            // A receiver that is gone reports why.
            let _ = open.send(());
        }
    }

    fn closed(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

impl Drop for ReadWindow<'_> {
    fn drop(&mut self) {
        self.closed();
    }
}

fn figures_of(window: &WindowFigures) -> ReaderFigures {
    let reads = window.streams.iter().flat_map(|stream| stream.ops.iter());
    let mut reads = reads.filter(|(kind, _)| *kind == OpKind::Read).map(|(_, reads)| reads);
    reads.next().map_or_else(ReaderFigures::default, |reads| ReaderFigures {
        reads_per_s: reads.iops.value,
        latency_mean_us: reads.latency_us.mean,
        latency_p99_us: reads.latency_us.p99,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use iostrata_plan::OpKind;

    #[test]
    fn only_what_lies_in_the_window_counts() {
        let counts = [(OpKind::Transaction, vec![9, 10, 20, 30, 9])].into_iter().collect();
        let series = Series { width_s: 0.5, counts, latency_mean_us: Vec::new() };
        assert_eq!(rate_between(&series, 0.5, 2.0), 40.0, "60 in 1.5 s");
        assert_eq!(rate_between(&series, 0.6, 1.4), 40.0, "20 in the only slice that begins then");
        assert_eq!(rate_between(&series, 9.0, 10.0), 0.0);
    }
}

#[cfg(test)]
mod readers_tests {
    use super::*;
    use iostrata_io::{FileSet, FileSetPlan, Place};

    const BYTES: u64 = 1 << 20;

    fn readers(dir: &tempfile::TempDir) -> (Readers, FileSet) {
        let place = Place::Directory(dir.path().to_owned());
        let never = AtomicBool::new(false);
        let plan = FileSetPlan::new(place, BYTES, 65_536);
        let set = FileSet::prepare(&plan, &never, &mut |_| ()).unwrap();
        let spec = IoSpec { jobs: 2, size_bytes: BYTES, ..IoSpec::new(dir.path()) };
        (Readers::new(&spec, set.specs().to_vec(), Duration::from_secs(1)), set)
    }

    #[test]
    fn they_read_while_the_window_is_open() {
        let dir = tempfile::tempdir().unwrap();
        let (readers, _set) = readers(&dir);
        let (number, figures) = readers
            .beside(|window| {
                window.opened();
                std::thread::sleep(Duration::from_millis(300));
                window.closed();
                Ok(7)
            })
            .unwrap();
        assert_eq!(number, 7);
        assert!(figures.reads_per_s > 0.0 && figures.latency_mean_us > 0.0, "{figures:?}");
        assert!(figures.latency_p99_us >= figures.latency_mean_us / 100.0, "{figures:?}");
    }

    #[test]
    fn they_end_where_no_window_opens_and_where_measuring_fails() {
        let dir = tempfile::tempdir().unwrap();
        let (readers, _set) = readers(&dir);
        let ((), figures) = readers.beside(|_| Ok(())).unwrap();
        assert_eq!(figures, ReaderFigures::default());
        let failed = readers.beside(|window| {
            window.opened();
            Err::<(), _>(StudyError::Overloaded { queue_max: 1 })
        });
        assert!(matches!(failed, Err(StudyError::Overloaded { .. })));
    }

    #[test]
    fn files_that_cannot_be_read_are_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let (readers, set) = readers(&dir);
        drop(set);
        let found = readers.beside(|window| {
            window.opened();
            Ok(())
        });
        assert!(found.is_err());
    }
}
