//! The only file with threads.
//!
//! Invariant: threads run what others have as functions; they end before the engine's parts go.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use iostrata_io::disk::DirectoryLock;
use iostrata_knobs::Counter;

use crate::core::Core;
use crate::error::EngineError;
use crate::status::Publisher;

/// Longest sleep of the cleaner, whatever the policy says.
const CLEANER_SLEEP_MAX: Duration = Duration::from_secs(1);
/// How often the status page is published.
const PUBLISH_EVERY: Duration = Duration::from_secs(1);
/// How long a poisoned cleaner waits before it looks again whether the engine stops.
const POISONED_SLEEP: Duration = Duration::from_millis(100);

/// The directory that an engine holds.
pub(crate) struct Place {
    /// Of the data's directory and, where it is another, the redo's.
    pub locks: Vec<DirectoryLock>,
    pub directory: PathBuf,
}

/// The threads of one engine.
#[derive(Default)]
pub(crate) struct Threads {
    running: Mutex<Vec<JoinHandle<()>>>,
    core: Option<Arc<Core>>,
    publisher: Option<Arc<Publisher>>,
}

impl std::fmt::Debug for Threads {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Threads")
    }
}

impl Threads {
    /// An engine without threads.
    pub fn none() -> Self {
        Self::default()
    }

    /// Starts the cleaner, and the status page of an engine in a directory.
    ///
    /// # Errors
    /// When the system gives no thread, or the status file cannot be made.
    pub fn start(&mut self, core: &Arc<Core>, place: Option<Place>) -> Result<(), EngineError> {
        core.bell.set_threads(true);
        self.core = Some(Arc::clone(core));
        if let Some(place) = place {
            core.hold(place.locks);
            self.publisher = Some(Arc::new(Publisher::new(&place.directory)?));
        }
        let cleaner = Arc::clone(core);
        self.spawn("cleaner", move || clean(&cleaner))?;
        if let Some(publisher) = self.publisher.clone() {
            let core = Arc::clone(core);
            self.spawn("status", move || publish(&core, &publisher))?;
        }
        Ok(())
    }

    fn spawn(
        &self,
        name: &'static str,
        run: impl FnOnce() + Send + 'static,
    ) -> Result<(), EngineError> {
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(run);
        let thread = thread.map_err(|error| EngineError::System {
            doing: "start a thread",
            problem: error.to_string(),
        })?;
        self.running.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
        Ok(())
    }

    /// Ends the threads; may be called again.
    pub fn stop(&self) {
        let Some(core) = &self.core else { return };
        core.bell.stop();
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        for thread in running.drain(..) {
            // A thread that broke an invariant has poisoned the engine.
            let _ended = thread.join();
        }
        core.bell.set_threads(false);
    }

    /// Publishes the counters once more.
    pub fn publish(&self, core: &Core) {
        if let Some(publisher) = &self.publisher {
            publisher.publish(core);
        }
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Tells those who count on the cleaner when it ends by a panic: they would wait for ever.
struct Alarm<'c>(&'c Core);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _kept = self.0.poison.broken("the cleaner ended by a panic".to_owned());
        }
    }
}

fn clean(core: &Core) {
    let _alarm = Alarm(core);
    let start = Instant::now();
    let now_us = || start.elapsed().as_micros() as u64;
    loop {
        let cpu_before = crate::status::thread_cpu_ns();
        let stepped = core.cleaner().step(core, now_us());
        core.counts
            .cpu(Counter::CpuNsCleaner, crate::status::thread_cpu_ns().saturating_sub(cpu_before));
        core.bell.round_done();
        let sleep = match stepped {
            Ok(stepped) => {
                let us = stepped.next_us.saturating_sub(now_us());
                Duration::from_micros(us).min(CLEANER_SLEEP_MAX)
            }
            Err(_poisoned) => POISONED_SLEEP,
        };
        if sleep.is_zero() {
            if core.bell.is_stopping() {
                return;
            }
            continue;
        }
        if !core.bell.wait_ring(sleep) {
            return;
        }
    }
}

fn publish(core: &Core, publisher: &Publisher) {
    publisher.publish(core);
    while core.bell.wait_stop(PUBLISH_EVERY) {
        publisher.publish(core);
    }
}

/// Runs `work` for each part of so many, side by side; gives the first error.
pub(crate) fn in_parallel<E: Send>(
    parts: usize,
    work: impl Fn(usize) -> Result<(), E> + Sync,
) -> Result<(), E> {
    if parts <= 1 {
        return work(0);
    }
    let results: Vec<Result<(), E>> = std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (1..parts).map(|part| scope.spawn(move || work(part))).collect();
        let mut results = vec![work(0)];
        for thread in threads {
            match thread.join() {
                Ok(result) => results.push(result),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        results
    });
    results.into_iter().collect()
}
