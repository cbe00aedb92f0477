//! The parts of an open engine, put together, and the threads that work as long as it is open.
//!
//! Invariant: the threads run what others have as functions; they end before the engine's parts go.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use iostrata_innodb::{Counter, PageNo, Settings};
use iostrata_io::disk::{DirectoryLock, Disk};

use crate::catalogue::Catalogue;
use crate::cleaner::Cleaner;
use crate::counts::{Common, thread_cpu_ns};
use crate::error::EngineError;
use crate::flusher::{Flusher, FrameSupply};
use crate::lanes::Lanes;
use crate::mtr::Mtr;
use crate::pages::{Pages, SuperField, SuperPage, set_walk};
use crate::purge::Purger;
use crate::redo::Redo;
use crate::reentry::{check_outside, is_looking};
use crate::settings_file;
use crate::status::Publisher;
use crate::storage::Storage;
use crate::store::Store;
use crate::sync::locked;
use crate::version::SpillFile;

/// The parts of one engine, from the lowest to the highest.
#[derive(Debug)]
pub(crate) struct Parts {
    pub storage: Arc<Storage>,
    pub flusher: Arc<Flusher>,
    pub pages: Arc<Pages>,
    pub cleaner: Arc<Cleaner>,
    pub catalogue: Arc<Catalogue>,
    pub purger: Arc<Purger>,
    /// Held while a setting is changed and kept, and while the engine is closed.
    changing: Mutex<()>,
}

impl Parts {
    /// An engine whose redo is still to be applied and whose tables are still to be read.
    pub fn assemble(
        settings: Settings,
        files: (Store, Redo),
        common: Common,
        spill: Box<dyn SpillFile>,
    ) -> Self {
        let policy = iostrata_innodb::flush::policy(settings.policy);
        let supply = Arc::new(FrameSupply::default());
        let storage =
            Storage::new(settings, files, common, Some(spill), Arc::clone(&supply) as Arc<_>);
        let storage = Arc::new(storage);
        let flusher = Arc::new(Flusher::new(Arc::clone(&storage)));
        supply.is_met_by(&flusher);
        let pages = Arc::new(Pages::new(&flusher));
        let admission = Arc::clone(&pages.admission);
        let catalogue = Arc::new(Catalogue::new(Arc::clone(&pages)));
        let purger = Arc::new(Purger::new(Arc::clone(&pages), Arc::clone(&catalogue)));
        let of_cleaner = Arc::clone(&purger);
        let purge = Box::new(move || of_cleaner.step());
        let cleaner = Arc::new(Cleaner::new(Arc::clone(&flusher), (admission, purge), policy));
        let changing = Mutex::default();
        Self { storage, flusher, pages, cleaner, catalogue, purger, changing }
    }

    /// Excludes changes of settings.
    pub fn keep_settings(&self) -> MutexGuard<'_, ()> {
        locked(&self.changing)
    }

    /// Changes a setting and everything that follows it, and keeps it on the disk.
    pub fn set(&self, name: &str, value: &str, disk: &dyn Disk) -> Result<(), EngineError> {
        check_outside(&self.storage)?;
        // One at a time; the cleaner goes on reading the old ones, because a change may wait for
        // it.
        let _alone = self.keep_settings();
        let admission = &self.pages.admission;
        admission.check_open()?;
        let Storage { redo, store, pool, settings, poison, .. } = &*self.storage;
        poison.check()?;
        let old = settings.load_full();
        let mut new = Settings::clone(&old);
        new.set_live(name, value)?;
        if new.redo_log_capacity != old.redo_log_capacity {
            let set = || redo.set_capacity(new.redo_log_capacity);
            // What was promised room in the larger log must be appended before it shrinks.
            let shrinks = redo.would_shrink(new.redo_log_capacity)?;
            if shrinks { admission.paused(set) } else { set() }?;
        }
        if new.doublewrite != old.doublewrite {
            store.set_doublewrite(new.doublewrite)?;
        }
        if new.policy != old.policy {
            self.cleaner.set_policy(iostrata_innodb::flush::policy(new.policy));
        }
        pool.queues.set_old_pct(new.old_blocks_pct);
        settings.store(Arc::new(new.clone()));
        // What was waited for may have failed: then nothing more is written.
        poison.check()?;
        settings_file::write(disk, &new)
    }

    /// Writes down where the walk of purge stands, how many pages there are and which engine's they
    /// are, if page 0 does not hold that already.
    pub fn keep_front(&self) -> Result<(), EngineError> {
        let (place, pages) = (self.purger.walk_place(), self.storage.store.pages());
        let _room = self.pages.admit_structure()?;
        let pin = self.pages.pin(PageNo(0))?;
        let mut mtr = Mtr::begin(&self.storage);
        let front = mtr.latch(pin);
        let kept = SuperPage::read(&mtr.page(front))?;
        if kept.walk != place {
            set_walk(&mut mtr, front, place.as_ref())?;
        }
        if kept.identity == 0 {
            let identity = self.storage.redo.identity();
            mtr.change(front, &SuperField::Identity.set(&identity.to_le_bytes()))?;
        }
        // Never fewer: what was cut off stays known until the files are as long again.
        if kept.data_pages < pages {
            mtr.change(front, &SuperField::DataPages.set(&pages.to_le_bytes()))?;
        }
        mtr.commit();
        Ok(())
    }

    /// Lets the doublewrite copies go, now that every page is durable in its place: the next
    /// opening then reads none, and what is damaged until then is not covered up by an old copy.
    pub fn forget_copies(&self) -> Result<(), EngineError> {
        let store = &self.storage.store;
        store.set_doublewrite(store.doublewrite())
    }
}

/// Longest sleep of the cleaner, whatever the policy returns.
const CLEANER_SLEEP_MAX: Duration = Duration::from_secs(1);
/// How often the status page is published.
const PUBLISH_EVERY: Duration = Duration::from_secs(1);
/// How long purge sleeps when there was nothing to do, as InnoDB's does.
const PURGE_SLEEP: Duration = Duration::from_millis(10);
/// How long a poisoned cleaner waits before it looks again whether the engine stops.
const POISONED_SLEEP: Duration = Duration::from_millis(100);

/// What does the work in the background.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Background {
    /// Threads of the engine.
    Threads,
    /// The caller of [`Engine::step`](crate::Engine::step), and any thread that needs the work
    /// done.
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

    /// Starts the cleaner, the thread that makes commits durable for which no thread waits, and the
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
            // The policy may never request a purge; the memory limit of old versions holds
            // nevertheless.
            let (storage, purger) = (Arc::clone(storage), Arc::clone(purger));
            self.spawn("old versions", move || spill(&storage, &purger))?;
        }
        let of_flusher = Arc::clone(storage);
        self.spawn("log flusher", move || serve_log(&of_flusher))?;
        // An open engine always has a status page.
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
        // No needless wake-up of waiters: batches report by themselves.
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
