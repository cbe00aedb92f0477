//! What every part of an open engine stands on: the redo, the data files, the pool.
//!
//! Invariant: it knows no page's content and nobody above it; whatever writes to files holds it,
//! and with it the locks of the directories.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use iostrata_innodb::{PageNo, Settings};
use iostrata_io::disk::DirectoryLock;

use crate::counts::{Common, Counts};
use crate::error::{EngineError, Poison, RequestError};
use crate::hot_settings::HotSettings;
use crate::lock::LockTable;
use crate::page::PageSize;
use crate::pool::{Pin, Pool, PoolSettings, Supply};
use crate::purge_lag::PurgeLag;
use crate::redo::Redo;
use crate::safeguards::Safeguards;
use crate::signal::CleanerSignal;
use crate::source::StoreSource;
use crate::store::Store;
use crate::version::{SpillFile, VersionSettings, Versions};

/// Bytes of a frame beyond its records: header and kind.
pub(crate) const FRAME_OVERHEAD_BYTES: usize = 16;
/// Bytes of the small records in a frame that changes the structure of a tree.
const STRUCTURE_OVERHEAD_BYTES: usize = 512;

/// Old versions are kept, dropped and written to their file in parts of this size.
pub(crate) const VERSION_SEGMENT_BYTES: usize = 256 << 10;

/// The files of an open engine, and what is in memory of them.
pub(crate) struct Storage {
    pub page_size: PageSize,
    pub data_files: u64,
    pub redo: Redo,
    pub store: Arc<Store>,
    source: Arc<StoreSource>,
    pub pool: Pool,
    /// Old versions of rows, and who may see them.
    pub versions: Versions,
    /// Locks of rows.
    pub locks: LockTable,
    pub purge_lag: PurgeLag,
    pub poison: Arc<Poison>,
    pub counts: Arc<Counts>,
    pub signal: CleanerSignal,
    pub hot: HotSettings,
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
    /// Files that are open, and an empty pool over them.
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
        // The numbers of commits go on behind everything that the data can tell of.
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
            purge_lag: PurgeLag::default(),
            poison: common.poison,
            counts: common.counts,
            signal: CleanerSignal::default(),
            hot: HotSettings::new(settings),
            opened: Instant::now(),
            safeguards: Safeguards::default(),
            directories: Mutex::default(),
        }
    }

    /// Pins a page, reading it if it is absent.
    #[inline]
    pub fn pin(&self, page: PageNo) -> Result<Pin<'_>, EngineError> {
        self.pool.pin(page).map_err(|error| self.not_pinned(error))
    }

    /// Pins a page that is to begin anew, without reading it.
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
    /// a time at which nobody waits.
    pub fn cleaner_clock_us(&self) -> u64 {
        if self.signal.has_threads() { self.opened.elapsed().as_micros() as u64 } else { u64::MAX }
    }

    /// Redo that one change of a tree's structure needs at most: the cells of one page, one
    /// separator, links and bits.
    pub fn structure_bytes(&self) -> usize {
        self.page_size.bytes() + 2 * self.page_size.key_bytes_max() + STRUCTURE_OVERHEAD_BYTES
    }

    /// Most bytes of records that one frame may have.
    pub fn frame_bytes_max(&self) -> usize {
        let reserve = self.redo.limits().reserve_bytes() as usize;
        reserve.min(self.redo.body_bytes_max()) - FRAME_OVERHEAD_BYTES
    }

    /// A page that uses fewer bytes is joined with a neighbour.
    pub fn sparse_page_bytes(&self) -> usize {
        self.page_size.bytes() * self.hot.merge_threshold_pct() / 100
    }

    /// Holds directories.
    pub fn hold(&self, directories: Vec<DirectoryLock>) {
        *self.directories.lock().unwrap_or_else(PoisonError::into_inner) = directories;
    }

    /// Lets go of the directories: nothing is read or written any more.
    pub fn let_go(&self) {
        self.source.close();
        self.hold(Vec::new());
    }
}
