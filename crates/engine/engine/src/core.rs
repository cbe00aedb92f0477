//! What every part of an open engine shares.
//!
//! Invariant: everything that waits for the disk, for frames or for room in the redo is asked here
//! before the first latch is taken.
//! It has no threads: who runs the cleaner is `background`'s business.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Instant;

use iostrata_flush::Cause;
use iostrata_io::disk::DirectoryLock;
use iostrata_knobs::Settings;
use iostrata_page::PageSize;
use iostrata_pool::Pool;
use iostrata_redo::Redo;
use iostrata_store::Store;

use crate::admission::{Admission, Room};
use crate::bell::Bell;
use crate::catalogue::Catalogue;
use crate::cleaner::Cleaner;
use crate::counts::Counts;
use crate::error::EngineError;
use crate::live::Live;
use crate::poison::Poison;
use crate::space::Space;

/// Bytes of a frame beyond its records: header and kind.
pub(crate) const FRAME_OVERHEAD_BYTES: usize = 16;
/// Bytes of the small records in a frame that changes the structure of a tree.
const STRUCTURE_OVERHEAD_BYTES: usize = 512;

/// An open engine without its threads.
pub(crate) struct Core {
    pub page_size: PageSize,
    pub redo: Redo,
    pub store: Arc<Store>,
    pub pool: Pool,
    pub space: Space,
    pub catalogue: Catalogue,
    pub poison: Poison,
    pub counts: Counts,
    pub admission: Admission,
    pub bell: Bell,
    pub live: Live,
    pub data_files: u64,
    pub settings: RwLock<Settings>,
    /// Held while a setting is changed.
    pub setting: Mutex<()>,
    pub cleaner: Mutex<Cleaner>,
    /// Set until recovery has applied everything.
    pub holds_checkpoints: AtomicBool,
    pub opened: Instant,
    /// Held as long as anything that can write is left, and until a clean close: tables, batches
    /// and tickets may outlive the engine. The last field, so that the files are closed first.
    pub directories: Mutex<Vec<DirectoryLock>>,
}

impl std::fmt::Debug for Core {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Core({} bytes a page)", self.page_size.bytes())
    }
}

impl Core {
    /// Waits until a frame of so many bytes of records may be appended. No latch is held.
    ///
    /// # Errors
    /// A poisoned engine, or what flushing said.
    pub fn admit(&self, bytes: usize) -> Result<Room<'_>, EngineError> {
        self.admission.admit(self, (bytes + FRAME_OVERHEAD_BYTES) as u64)
    }

    /// As [`Core::admit`], for a change of a tree's structure.
    pub fn admit_structure(&self) -> Result<Room<'_>, EngineError> {
        self.admit(self.structure_bytes())
    }

    /// Makes room for so many pages in the data files.
    ///
    /// # Errors
    /// [`EngineError::NoSpace`], after which everything goes on; any other failure poisons.
    pub fn ensure_pages(&self, pages: u64) -> Result<(), EngineError> {
        if pages <= self.store.pages() {
            return Ok(());
        }
        self.store.ensure(pages).map_err(|error| match EngineError::from(error) {
            full @ EngineError::NoSpace { .. } => full,
            error => self.poison.keep(error),
        })
    }

    /// Redo that one change of a tree's structure needs at most: the cells of one page, one
    /// separator, links and bits.
    fn structure_bytes(&self) -> usize {
        self.page_size.bytes() + 2 * self.page_size.key_bytes_max() + STRUCTURE_OVERHEAD_BYTES
    }

    /// Most bytes of records that one frame may have.
    pub fn frame_bytes_max(&self) -> usize {
        let reserve = self.redo.limits().reserve_bytes() as usize;
        reserve.min(self.redo.body_bytes_max()) - FRAME_OVERHEAD_BYTES
    }

    /// A page that uses fewer bytes is joined with a neighbour.
    pub fn sparse_page_bytes(&self) -> usize {
        self.page_size.bytes() * self.live.merge_threshold_pct() / 100
    }

    /// The cleaner, for whoever runs a step of it.
    pub fn cleaner(&self) -> MutexGuard<'_, Cleaner> {
        self.cleaner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Everything in the redo is in the pool: checkpoints may be taken.
    pub fn allow_checkpoints(&self) {
        self.holds_checkpoints.store(false, Ordering::Release);
    }

    /// Whether a checkpoint would forget redo that was not applied yet.
    pub fn holds_checkpoints(&self) -> bool {
        self.holds_checkpoints.load(Ordering::Acquire)
    }

    /// Writes every dirty page and takes a checkpoint; `clean` when nobody writes any more.
    pub fn sharp_checkpoint(&self, clean: bool) -> Result<(), EngineError> {
        loop {
            let end = self.redo.lsn();
            let mut cleaner = self.cleaner();
            let all = self.pool.dirty_pages();
            cleaner.flush(self, all.max(1), end, Cause::Background)?;
            let is_done = self.pool.oldest().is_none_or(|oldest| oldest >= end);
            if is_done {
                return cleaner.checkpoint(self, clean);
            }
            drop(cleaner);
            std::thread::yield_now();
        }
    }

    /// Lets the doublewrite copies go, now that every page is durable in its place: the next
    /// opening then reads none, and what is damaged until then is not covered up by an old copy.
    pub fn forget_copies(&self) -> Result<(), EngineError> {
        let forgotten = self.store.set_doublewrite(self.store.doublewrite());
        forgotten.map_err(|error| self.poison.keep(EngineError::Store(error)))
    }

    /// Changes a setting and everything that follows it.
    pub fn set(&self, name: &str, value: &str) -> Result<(), EngineError> {
        // One at a time; the cleaner goes on reading the old ones, because a change may wait for
        // it.
        let _alone = self.setting.lock().unwrap_or_else(PoisonError::into_inner);
        self.admission.check_open()?;
        let kept = self.settings();
        let mut settings = kept.clone();
        settings.set_live(name, value)?;
        if settings.redo_log_capacity != kept.redo_log_capacity {
            let set = || self.redo.set_capacity(settings.redo_log_capacity);
            // What was promised room in the larger log must be appended before it shrinks.
            let shrinks = settings.redo_log_capacity < kept.redo_log_capacity;
            if shrinks { self.admission.paused(set) } else { set() }?;
        }
        if settings.doublewrite != kept.doublewrite {
            let to = crate::plan::doublewrite(settings.doublewrite);
            self.store.set_doublewrite(to).map_err(|error| {
                let error = EngineError::Store(error);
                if self.store.poisoned().is_some() { self.poison.keep(error) } else { error }
            })?;
        }
        self.pool.set_old_pct(settings.old_blocks_pct);
        self.live.follow(&settings);
        *self.settings.write().unwrap_or_else(PoisonError::into_inner) = settings;
        Ok(())
    }

    /// Holds directories, or with none lets go of them.
    pub fn hold(&self, directories: Vec<DirectoryLock>) {
        *self.directories.lock().unwrap_or_else(PoisonError::into_inner) = directories;
    }

    /// The settings as they are now.
    pub fn settings(&self) -> Settings {
        self.settings.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
