//! Readers of a file of their own on the volume of a measured database.
//!
//! Invariant: they read while the window of the measured load is open, and no longer.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::Builder;
use std::time::Duration;

use iostrata_io::FileSpec;
use iostrata_load::{IoLoad, Load, LoadError, NoObserver, Surroundings, WindowFigures};
use iostrata_plan::{IoSpec, OpKind, Stream};
use iostrata_run::ReaderFigures;

use crate::{StudyError, Watcher};

/// They are prepared for so much more than a window: they are ended, and never end by themselves.
const BEYOND: Duration = Duration::from_secs(60);

/// Readers with their files.
pub(super) struct Readers {
    load: IoLoad<'static>,
    threads: u32,
}

impl Readers {
    /// For a window of this length.
    pub fn new(spec: &IoSpec, files: Vec<FileSpec>, window: Duration) -> Self {
        let spec = IoSpec { runtime: Some(window + BEYOND), ..spec.clone() };
        let threads = spec.jobs;
        let stream = Stream { name: "readers".to_owned(), spec };
        Self { load: IoLoad::new(&[stream], vec![files]), threads }
    }

    /// Reads while the window of something else is open. `measure` gets who has to hear of that
    /// window.
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
            // Nobody opens a window where measuring ended before.
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
            // Whoever does not listen any more says why.
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
