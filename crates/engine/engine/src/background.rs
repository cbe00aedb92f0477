//! The threads that work as long as an engine is open.
//!
//! Invariant: they run what others have as functions; they end before the engine's parts go.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use iostrata_innodb::Counter;
use iostrata_io::disk::DirectoryLock;

use crate::cleaner::Cleaner;
use crate::counts::thread_cpu_ns;
use crate::error::EngineError;
use crate::lanes::Lanes;
use crate::parts::Parts;
use crate::purge::Purger;
use crate::reentry::is_looking;
use crate::status::Publisher;
use crate::storage::Storage;
use crate::sync::locked;

/// Longest sleep of the cleaner, whatever the policy says.
const CLEANER_SLEEP_MAX: Duration = Duration::from_secs(1);
/// How often the status page is published.
const PUBLISH_EVERY: Duration = Duration::from_secs(1);
/// How long purge sleeps when there was nothing to do, as InnoDB's does.
const PURGE_SLEEP: Duration = Duration::from_millis(10);
/// How long a poisoned cleaner waits before it looks again whether the engine stops.
const POISONED_SLEEP: Duration = Duration::from_millis(100);

/// Who does the work in the background.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Background {
    /// Threads of the engine.
    Threads,
    /// Whoever calls [`Engine::step`](crate::Engine::step), and whoever needs it to be done.
    Manual,
}

/// The directory that an engine holds.
pub(crate) struct HeldDirectory {
    /// Of the data's directory and, where it is another, the redo's.
    pub locks: Vec<DirectoryLock>,
    pub directory: PathBuf,
}

/// The threads of one engine.
#[derive(Default)]
pub(crate) struct Threads {
    running: Mutex<Vec<JoinHandle<()>>>,
    storage: Option<Arc<Storage>>,
    cleaner: Option<Arc<Cleaner>>,
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

    /// Starts the cleaner, the thread that makes commits durable for which nobody waits, and the
    /// status page of an engine in a directory.
    pub fn start(
        &mut self,
        parts: &Parts,
        place: Option<HeldDirectory>,
    ) -> Result<(), EngineError> {
        let Parts { storage, cleaner, purger, .. } = parts;
        storage.signal.set_threads(true);
        self.storage = Some(Arc::clone(storage));
        if let Some(place) = place {
            storage.hold(place.locks);
            self.publisher = Some(Arc::new(Publisher::new(&place.directory)?));
        }
        let (of_cleaner, stepped) = (Arc::clone(storage), Arc::clone(cleaner));
        self.spawn("cleaner", move || clean(&of_cleaner, &stepped))?;
        self.cleaner = Some(Arc::clone(cleaner));
        let settings = storage.settings.load();
        parts.cleaner.lanes.writers.store(settings.page_cleaners, Ordering::Release);
        for _ in 0..settings.page_cleaners {
            let (storage, cleaner) = (Arc::clone(storage), Arc::clone(cleaner));
            self.spawn("page cleaner", move || write_pages(&storage, &cleaner.lanes))?;
        }
        for _ in 0..settings.purge_threads {
            let (storage, purger) = (Arc::clone(storage), Arc::clone(purger));
            self.spawn("purge", move || purge(&storage, &purger))?;
        }
        if settings.purge_threads == 0 {
            // The policy may never ask for a purge; what old versions may take of the memory holds.
            let (storage, purger) = (Arc::clone(storage), Arc::clone(purger));
            self.spawn("old versions", move || spill(&storage, &purger))?;
        }
        let of_flusher = Arc::clone(storage);
        self.spawn("log flusher", move || serve_log(&of_flusher))?;
        // Whoever looks as soon as the engine is open finds a page of it.
        self.publish();
        if let Some(publisher) = self.publisher.clone() {
            let storage = Arc::clone(storage);
            self.spawn("status", move || publish(&storage, &publisher))?;
        }
        Ok(())
    }

    fn spawn(
        &self,
        name: &'static str,
        run: impl FnOnce() + Send + 'static,
    ) -> Result<(), EngineError> {
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(run);
        let thread = thread.map_err(|error| EngineError::system("start a thread", error))?;
        locked(&self.running).push(thread);
        Ok(())
    }

    /// Whether they were started.
    pub fn were_started(&self) -> bool {
        self.storage.is_some()
    }

    /// Ends the threads; may be called again.
    pub fn stop(&self) {
        let Some(storage) = &self.storage else { return };
        storage.signal.stop();
        if let Some(cleaner) = &self.cleaner {
            cleaner.lanes.stop();
        }
        storage.redo.stop_serving();
        let mut running = locked(&self.running);
        for thread in running.drain(..) {
            // It may need the page of a row at which this thread looks, and ends by itself.
            if !is_looking() {
                // A thread that broke an invariant has poisoned the engine.
                let _ended = thread.join();
            }
        }
        if let Some(cleaner) = &self.cleaner {
            cleaner.lanes.writers.store(0, Ordering::Release);
        }
    }

    /// Publishes the counters once more.
    pub fn publish(&self) {
        if let (Some(publisher), Some(storage)) = (&self.publisher, &self.storage) {
            publisher.publish(storage);
        }
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.stop();
    }
}

fn clean(storage: &Storage, cleaner: &Cleaner) {
    let _alarm = storage.poison.alarm("the cleaner");
    let Storage { counts, signal, .. } = storage;
    // Its own: others have no clock any more when the engine stops.
    let now_us = || storage.opened.elapsed().as_micros() as u64;
    loop {
        let cpu_before = thread_cpu_ns();
        let began_us = now_us();
        let stepped = cleaner.step(began_us, true);
        counts.add(Counter::CpuNsCleaner, thread_cpu_ns().saturating_sub(cpu_before));
        // Whoever waits is not woken for nothing: batches report by themselves.
        if stepped.as_ref().map_or(true, |next_us| *next_us <= began_us) {
            signal.round_done();
        }
        let sleep = match stepped {
            Ok(next_us) => {
                Duration::from_micros(next_us.saturating_sub(now_us())).min(CLEANER_SLEEP_MAX)
            }
            Err(_poisoned) => POISONED_SLEEP,
        };
        if sleep.is_zero() {
            if signal.is_stopping() {
                return;
            }
            continue;
        }
        if !signal.wait_wake(sleep) {
            return;
        }
    }
}

fn write_pages(storage: &Storage, lanes: &Lanes) {
    let _alarm = storage.poison.alarm("a page cleaner");
    while lanes.wait_work() {
        let cpu_before = thread_cpu_ns();
        let worked = lanes.work();
        storage.counts.add(Counter::CpuNsCleaner, thread_cpu_ns().saturating_sub(cpu_before));
        if worked.is_err() && !storage.signal.wait_stop(POISONED_SLEEP) {
            return;
        }
    }
}

fn purge(storage: &Storage, purger: &Purger) {
    let _alarm = storage.poison.alarm("purge");
    loop {
        let cpu_before = thread_cpu_ns();
        let stepped = purger.step();
        storage.counts.add(Counter::CpuNsPurge, thread_cpu_ns().saturating_sub(cpu_before));
        let sleep = match stepped {
            Ok(true) => Duration::ZERO,
            Ok(false) => PURGE_SLEEP,
            // Tried again: a full disk may have room then.
            Err(_kept_for_later) => POISONED_SLEEP,
        };
        if !storage.signal.wait_stop(sleep) {
            return;
        }
    }
}

fn spill(storage: &Storage, purger: &Purger) {
    let _alarm = storage.poison.alarm("the writer of old versions");
    while storage.signal.wait_stop(PURGE_SLEEP) {
        purger.spill();
    }
}

fn serve_log(storage: &Storage) {
    let _alarm = storage.poison.alarm("the log's flusher");
    let _kept_as_poison = storage.redo.serve_requests();
}

fn publish(storage: &Storage, publisher: &Publisher) {
    publisher.publish(storage);
    while storage.signal.wait_stop(PUBLISH_EVERY) {
        publisher.publish(storage);
    }
}
