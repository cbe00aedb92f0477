//! What every part of an open engine stands on: the redo, the data files, the pool, the file that
//! old row versions go to, and the signal between the cleaner and the threads that need it.
//!
//! Invariants: it is independent of the content of pages and of the layers above it; whatever
//! writes to files holds it, and with it the locks of the directories. Nothing is read once the
//! directories were let go: others may own the files by then. The file of old versions, for when
//! there are too many for memory, means nothing after a restart, so it is never synced, and an
//! opening removes it. A wake-up is not lost while the cleaner works; a waiter for progress is
//! woken by the next round or after a short while, whatever happens; once the engine stops no
//! thread waits.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use iostrata_innodb::flush::Outlook;
use iostrata_innodb::{FilePlan, IoMethod, PageNo, Settings};
use iostrata_io::disk::{
    Aligned, BatchKind, DirectoryLock, Disk, DiskError, Durability, FileId, FileMode, RealDisk,
    RealOptions, WriteThrough,
};

use crate::counts::{Common, Counts};
use crate::error::{EngineError, Poison, RequestError};
use crate::lock::LockTable;
use crate::page::PageSize;
use crate::pool::{PageSource, Pin, Pool, PoolSettings, ReadAheadPage, Supply};
use crate::redo::Redo;
use crate::safeguards::Safeguards;
use crate::settings_file::name;
use crate::store::{PageCopy, ReadError, Store};
use crate::sync::{locked, wait_while};
use crate::version::{SpillFile, VersionSettings, Versions};

/// Bytes of a frame beyond its records: header and kind.
pub(crate) const FRAME_OVERHEAD_BYTES: usize = 16;
/// Bytes of the small records in a frame that changes the structure of a tree.
const STRUCTURE_OVERHEAD_BYTES: usize = 512;

/// Old versions are kept, dropped and written to their file in parts of this size.
pub(crate) const VERSION_SEGMENT_BYTES: usize = 256 << 10;

pub(crate) struct Storage {
    pub page_size: PageSize,
    pub data_files: u64,
    pub redo: Redo,
    pub store: Arc<Store>,
    source: Arc<StoreSource>,
    pub pool: Pool,
    /// Old versions of rows, and who may see them.
    pub versions: Versions,
    pub locks: LockTable,
    /// How long purge wants writers to be held back for each row, in microseconds.
    pub purge_lag_us: AtomicU64,
    pub poison: Arc<Poison>,
    pub counts: Arc<Counts>,
    pub signal: CleanerSignal,
    pub settings: ArcSwap<Settings>,
    pub opened: Instant,
    /// Those that no proof has taken away.
    pub safeguards: Safeguards,
    /// Held as long as anything that can write is left, and until a clean close: tables, batches
    /// and tickets may outlive the engine. The last field, so that the files are closed first.
    directories: Mutex<Vec<DirectoryLock>>,
}

impl std::fmt::Debug for Storage {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Storage({} bytes a page)", self.page_size.bytes())
    }
}

impl Storage {
    pub fn new(
        settings: Settings,
        (store, redo): (Store, Redo),
        common: Common,
        spill: Option<Box<dyn SpillFile>>,
        supply: Arc<dyn Supply>,
    ) -> Self {
        let page_size = PageSize::of_settings(&settings);
        let store = Arc::new(store);
        let source = Arc::new(StoreSource::new(Arc::clone(&store)));
        let mut pool = PoolSettings::new(page_size, settings.frames() as usize);
        pool.copies_always = cfg!(any(test, feature = "testing"));
        pool.old_pct = settings.old_blocks_pct;
        pool.bucket_bytes = (redo.limits().capacity / 256).max(1);
        // The numbers of commits go on behind every number in the data.
        let clock = redo.lsn().0;
        let of_versions = VersionSettings {
            segment_bytes: VERSION_SEGMENT_BYTES,
            memory_bytes_max: settings.version_log_memory,
        };
        Self {
            page_size,
            data_files: u64::from(settings.data_files),
            redo,
            store,
            pool: Pool::new(
                pool,
                Arc::clone(&common.counts),
                Arc::clone(&source) as Arc<_>,
                supply,
            ),
            source,
            versions: Versions::new(clock, of_versions, spill),
            locks: LockTable::new(),
            purge_lag_us: AtomicU64::new(0),
            poison: common.poison,
            counts: common.counts,
            signal: CleanerSignal::default(),
            settings: ArcSwap::from_pointee(settings),
            opened: Instant::now(),
            safeguards: Safeguards::default(),
            directories: Mutex::default(),
        }
    }

    #[inline]
    pub fn pin(&self, page: PageNo) -> Result<Pin<'_>, EngineError> {
        self.pool.pin(page).map_err(|error| self.not_pinned(error))
    }

    /// Pins a page that is to be started over, without reading it.
    pub fn create(&self, page: PageNo) -> Result<Pin<'_>, EngineError> {
        self.pool.create(page).map_err(|error| self.not_pinned(error))
    }

    #[cold]
    fn not_pinned(&self, error: EngineError) -> EngineError {
        match (error, self.poison.check()) {
            // A stopped engine frees no frames: that is the cause.
            (EngineError::Request(RequestError::PoolExhausted { .. }), Err(poisoned)) => poisoned,
            (error, _) => error,
        }
    }

    /// The clock of the cleaner's thread, in microseconds; without one, when it is called by hand,
    /// a time that is after every wait.
    pub fn cleaner_clock_us(&self) -> u64 {
        if self.signal.has_threads() { self.opened.elapsed().as_micros() as u64 } else { u64::MAX }
    }

    /// Holds a writer back before it writes a row, so that purge keeps up.
    #[inline]
    pub fn delay_for_purge(&self) {
        let delay_us = self.purge_lag_us.load(Ordering::Relaxed);
        if delay_us > 0 {
            std::thread::sleep(Duration::from_micros(delay_us));
        }
    }

    /// Redo that one change of a tree's structure needs at most: the cells of one page, one
    /// separator, links and bits.
    pub fn structure_bytes(&self) -> usize {
        self.page_size.bytes() + 2 * self.page_size.key_bytes_max() + STRUCTURE_OVERHEAD_BYTES
    }

    pub fn frame_bytes_max(&self) -> usize {
        let reserve = self.redo.limits().reserve_bytes() as usize;
        reserve.min(self.redo.body_bytes_max()) - FRAME_OVERHEAD_BYTES
    }

    /// A page that uses fewer bytes is joined with a neighbour.
    pub fn sparse_page_bytes(&self) -> usize {
        self.page_size.bytes() * self.settings.load().merge_threshold as usize / 100
    }

    pub fn lock_wait_timeout(&self) -> Duration {
        Duration::from_secs(self.settings.load().lock_wait_timeout.into())
    }

    pub fn hold(&self, directories: Vec<DirectoryLock>) {
        *locked(&self.directories) = directories;
    }

    /// Lets go of the directories: nothing is read or written any more.
    pub fn let_go(&self) {
        self.source.close();
        self.hold(Vec::new());
    }
}

#[derive(Debug)]
pub(crate) struct StoreSource {
    store: Arc<Store>,
    /// Shared by readers; taken alone to end reading.
    is_closed: RwLock<bool>,
}

impl StoreSource {
    pub fn new(store: Arc<Store>) -> Self {
        Self { store, is_closed: RwLock::new(false) }
    }

    /// When it returns no thread reads any more.
    pub fn close(&self) {
        *self.is_closed.write().unwrap_or_else(PoisonError::into_inner) = true;
    }

    fn stay_open(&self) -> Result<RwLockReadGuard<'_, bool>, EngineError> {
        let is_closed = self.is_closed.read().unwrap_or_else(PoisonError::into_inner);
        if *is_closed { Err(RequestError::Closed.into()) } else { Ok(is_closed) }
    }
}

impl PageSource for StoreSource {
    fn read(&self, page: PageNo, into: &mut Aligned) -> Result<(), EngineError> {
        let _open = self.stay_open()?;
        self.store.read(page, into).map_err(|error| unread(page, error))
    }

    fn read_many(&self, wanted: &mut [ReadAheadPage]) {
        let _open = match self.stay_open() {
            Ok(open) => open,
            Err(closed) => {
                wanted.iter_mut().for_each(|one| one.result = Err(closed.clone()));
                return;
            }
        };
        let mut places = HashMap::with_capacity(wanted.len());
        let mut copies = Vec::with_capacity(wanted.len());
        for (place, one) in wanted.iter_mut().enumerate() {
            places.insert(one.page, place);
            // The smallest buffer there is stands in until its own comes back.
            let bytes = std::mem::replace(&mut one.bytes, Aligned::zeroed(1));
            copies.push(PageCopy { page: one.page, bytes });
        }
        self.store.read_many(&mut copies, |copy, result| {
            let Some(place) = places.get(&copy.page) else {
                panic!("page {} was not asked for", copy.page)
            };
            wanted[*place].bytes = copy.bytes;
            wanted[*place].result = result.map_err(|error| unread(copy.page, error));
        });
    }
}

fn unread(page: PageNo, error: ReadError) -> EngineError {
    match error {
        ReadError::Disk(error) => EngineError::disk("read a page")(error),
        damage => EngineError::corrupt(page, damage.to_string()),
    }
}

/// The disks of an engine: clones of one, or two.
#[derive(Clone)]
pub struct Disks {
    /// Data, doublewrite and settings.
    pub data: Arc<dyn Disk>,
    /// The redo log.
    pub redo: Arc<dyn Disk>,
}

impl Disks {
    /// Everything on one disk.
    pub fn one(disk: impl Disk + Clone + 'static) -> Self {
        Self { data: Arc::new(disk.clone()), redo: Arc::new(disk) }
    }
}

/// The disk of a directory, for files of one plan.
///
/// # Errors
/// A directory that is none, or cannot be used so.
pub(crate) fn real_disk(
    directory: &Path,
    settings: &Settings,
    plan: FilePlan,
    write_through: WriteThrough,
) -> Result<RealDisk, EngineError> {
    let batch = match settings.io_method {
        IoMethod::Sync => BatchKind::Sync,
        IoMethod::Libaio => BatchKind::Libaio,
        IoMethod::IoUring => BatchKind::IoUring,
    };
    let direct = plan.direct;
    // Where the device promises not to tear pages, the store leaves the doublewrite copy out.
    let options =
        RealOptions { direct, write_through, batch, atomic: direct, ..RealOptions::default() };
    Ok(RealDisk::with(directory, options)?)
}

const SPILL_NAME: &str = "engine.versions";

/// Slots of equal size in a file of the data's disk, which is made when the first one is written.
pub(crate) struct DiskSpill {
    disk: Arc<dyn Disk>,
    file: OnceLock<FileId>,
    slot_bytes: u64,
}

impl DiskSpill {
    pub fn new(disk: Arc<dyn Disk>, slot_bytes: usize) -> Result<Self, EngineError> {
        match disk.remove(&name(SPILL_NAME)) {
            Ok(()) | Err(DiskError::NotFound { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(Self { disk, file: OnceLock::new(), slot_bytes: slot_bytes as u64 })
    }

    fn file(&self) -> io::Result<FileId> {
        if let Some(file) = self.file.get() {
            return Ok(*file);
        }
        let opened =
            self.disk.open(&name(SPILL_NAME), FileMode::Create).map_err(io::Error::other)?;
        let file = *self.file.get_or_init(|| opened);
        if file != opened {
            self.disk.close(opened);
        }
        Ok(file)
    }
}

impl SpillFile for DiskSpill {
    fn write(&self, slot: u64, bytes: &[u8]) -> io::Result<()> {
        let file = self.file()?;
        let block = self.disk.facts(file).block_bytes as usize;
        let mut whole = Aligned::zeroed(bytes.len().next_multiple_of(block));
        whole[..bytes.len()].copy_from_slice(bytes);
        let at = slot * self.slot_bytes;
        self.disk.write(file, at, &whole, Durability::Volatile).map_err(io::Error::other)
    }

    fn read(&self, slot: u64, at: usize, into: &mut [u8]) -> io::Result<()> {
        let file = self.file()?;
        let block = self.disk.facts(file).block_bytes as usize;
        let first = at / block * block;
        let end = (at + into.len()).next_multiple_of(block);
        let mut whole = Aligned::zeroed(end - first);
        let place = slot * self.slot_bytes + first as u64;
        self.disk.read(file, place, &mut whole).map_err(io::Error::other)?;
        into.copy_from_slice(&whole[at - first..][..into.len()]);
        Ok(())
    }
}

impl Drop for DiskSpill {
    fn drop(&mut self) {
        if let Some(file) = self.file.get() {
            self.disk.close(*file);
            let _found_at_the_next_opening = self.disk.remove(&name(SPILL_NAME));
        }
    }
}

/// Longest wait for a round, in case it brings nothing.
const ROUND_WAIT: Duration = Duration::from_millis(10);

#[derive(Debug, Default)]
struct State {
    woken: bool,
    rounds: u64,
    stopping: bool,
    /// Wakes end no sleep, until someone recalls the cleaner.
    is_firm: bool,
}

/// What the policy last decided for others than the cleaner.
#[derive(Debug, Default)]
pub(crate) struct PolicyState {
    /// Whether threads free frames by themselves, instead of waiting for the cleaner.
    pub users_free_frames: bool,
    /// The max checkpoint age; none before the first decision.
    pub wait_age: Option<u64>,
    pub outlook: Outlook,
}

#[derive(Debug, Default)]
pub(crate) struct CleanerSignal {
    /// Whether threads run the cleaner. Otherwise the thread that needs it runs it.
    has_threads: AtomicBool,
    pub policy: Mutex<PolicyState>,
    state: Mutex<State>,
    to_cleaner: Condvar,
    from_cleaner: Condvar,
    /// For waits for nothing but the end.
    at_end: Condvar,
}

impl CleanerSignal {
    pub fn set_threads(&self, threads: bool) {
        self.has_threads.store(threads, Ordering::Release);
    }

    /// Whether there is a cleaner thread to wait for.
    pub fn has_threads(&self) -> bool {
        self.has_threads.load(Ordering::Acquire)
    }

    /// The cleaner's side: whether its next sleep goes on when someone wakes it.
    pub fn set_firm(&self, is_firm: bool) {
        locked(&self.state).is_firm = is_firm;
    }

    /// Wakes the cleaner out of a firm sleep, too.
    pub fn recall(&self) {
        let mut state = locked(&self.state);
        (state.is_firm, state.woken) = (false, true);
        self.to_cleaner.notify_one();
    }

    pub fn wake(&self) {
        let mut state = locked(&self.state);
        if !state.woken {
            state.woken = true;
            self.to_cleaner.notify_one();
        }
    }

    /// Wakes the cleaner and waits for its next round, a moment at most.
    pub fn wait_round(&self) {
        let mut state = locked(&self.state);
        state.woken = true;
        self.to_cleaner.notify_one();
        self.wait_next(state, ROUND_WAIT);
    }

    /// Waits for the cleaner's next round and lets it sleep; at most so long, and a moment at most.
    pub fn wait_round_for(&self, longest: Duration) {
        self.wait_next(locked(&self.state), longest.min(ROUND_WAIT));
    }

    fn wait_next(&self, state: MutexGuard<'_, State>, longest: Duration) {
        let seen = state.rounds;
        let must_wait = |state: &mut State| state.rounds == seen && !state.stopping;
        drop(wait_while(&self.from_cleaner, state, longest, must_wait));
    }

    pub fn round_done(&self) {
        locked(&self.state).rounds += 1;
        self.from_cleaner.notify_all();
    }

    /// The cleaner's side: waits to be woken; false when the engine stops.
    pub fn wait_wake(&self, longest: Duration) -> bool {
        let sleeps = |state: &mut State| (state.is_firm || !state.woken) && !state.stopping;
        let mut state = wait_while(&self.to_cleaner, locked(&self.state), longest, sleeps);
        state.woken = false;
        !state.stopping
    }

    pub fn is_stopping(&self) -> bool {
        locked(&self.state).stopping
    }

    /// Waits so long, or until the engine stops: false then.
    pub fn wait_stop(&self, longest: Duration) -> bool {
        let state = locked(&self.state);
        !wait_while(&self.at_end, state, longest, |state| !state.stopping).stopping
    }

    /// Ends the cleaner's loop. From now on a thread that needs the cleaner does its work itself,
    /// the engine's own threads, whose end is awaited, included.
    pub fn stop(&self) {
        locked(&self.state).stopping = true;
        self.set_threads(false);
        self.to_cleaner.notify_all();
        self.from_cleaner.notify_all();
        self.at_end.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(600);

    #[test]
    fn a_firm_sleep_is_ended_by_a_recall_and_not_by_a_wake() {
        let signal = CleanerSignal::default();
        signal.wake();
        assert!(signal.wait_wake(LONG), "another sleep is ended by a wake");
        signal.set_firm(true);
        std::thread::scope(|scope| {
            let asleep = scope.spawn(|| signal.wait_wake(LONG));
            for _ in 0..20 {
                signal.wake();
                std::thread::sleep(Duration::from_millis(1));
            }
            assert!(!asleep.is_finished());
            signal.recall();
            assert!(asleep.join().unwrap());
            signal.set_firm(true);
            let asleep = scope.spawn(|| signal.wait_wake(LONG));
            signal.stop();
            assert!(!asleep.join().unwrap(), "the engine stops");
        });
    }
}
