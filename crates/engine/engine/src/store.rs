//! Data files and doublewrite of the embedded engine.
//!
//! Purpose: pages on a [`Disk`](iostrata_io::disk::Disk), striped over data files, written so that
//! a crash leaves each page old or new and never torn. Invariant: [`Store::write`] returns when its
//! pages are durable in place; every byte of the data files was written before it is used; after a
//! failed write or sync nothing is written any more.
//! It caches no page, knows no redo (the caller has made that durable before) and has no thread.

mod data;
mod doublewrite;
pub mod layout;
mod read;
mod repair;
mod write;

pub use data::{CutFile, PageCopy, StoreSettings};
pub use read::ReadError;
pub use repair::Repair;

use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

use iostrata_innodb::{Counter, Doublewrite};
use iostrata_io::disk::{Disk, DiskError, FileMode};

use self::data::{DataFile, DataFiles, durability, sync_kind};
use self::doublewrite::{DoublewriteFile, DoublewriteFiles};
use self::layout::{BATCH_AT, DOUBLEWRITE_FILES, doublewrite_file_bytes, no_room, not_a_store};
use crate::counts::{Common, Counts};
use crate::error::{EngineError, Poison};
use crate::page::PageSize;
use crate::sync::locked;

pub struct Store {
    pub(crate) data: DataFiles,
    pub(crate) doublewrite: DoublewriteFiles,
    pub(crate) data_files: u32,
    pub(crate) extend_pages: u32,
    pub counts: Arc<Counts>,
    pub poison: Arc<Poison>,
    /// Shared by writes under way: all of one write is guarded in one way.
    mode: RwLock<Doublewrite>,
    pub(crate) checksum: bool,
    pub(crate) repaired: AtomicBool,
    pub(crate) growth: Mutex<()>,
}

impl fmt::Debug for Store {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Store({} files, {} pages)", self.data_files, self.pages())
    }
}

impl Store {
    /// The data files that do not reach as far as when the store had so many pages.
    pub fn cut_files(&self, pages: u64) -> Result<Vec<CutFile>, EngineError> {
        self.data.cut(pages)
    }

    /// Opens a store. It can be read at once, and written after [`repair`](Self::repair).
    pub fn open(
        disk: Arc<dyn Disk>,
        settings: &StoreSettings,
        common: &Common,
    ) -> Result<Self, EngineError> {
        Self::on(&disk, settings, FileMode::Existing, common)
    }

    pub(crate) fn on(
        disk: &Arc<dyn Disk>,
        settings: &StoreSettings,
        mode: FileMode,
        common: &Common,
    ) -> Result<Self, EngineError> {
        let file = |at| DoublewriteFile::open(disk, settings, at, mode, &common.counts);
        let files = (0..DOUBLEWRITE_FILES).map(file).collect::<Result<Vec<_>, _>>()?;
        // Before a data file too many is made.
        for file in &files {
            let identified = file.check(settings.data_files)?;
            if !identified && mode == FileMode::Existing {
                return Err(file.not_a_store("nothing"));
            }
        }
        let data = DataFiles::open(disk, settings, mode, common)?;
        let Common { counts, poison } = common.clone();
        Ok(Self {
            doublewrite: DoublewriteFiles::new(files),
            data,
            data_files: settings.data_files,
            extend_pages: settings.extend_pages,
            counts,
            poison,
            mode: RwLock::new(settings.doublewrite),
            checksum: settings.checksum,
            repaired: AtomicBool::new(false),
            growth: Mutex::new(()),
        })
    }

    #[inline]
    pub fn page_size(&self) -> PageSize {
        self.data.page_size
    }

    /// Pages that can be read and written: 0 to below this.
    #[inline]
    pub fn pages(&self) -> u64 {
        self.data.pages()
    }

    pub fn doublewrite(&self) -> Doublewrite {
        *self.hold_mode()
    }

    /// As [`Store::doublewrite`], and it stays so as long as this is held.
    pub(crate) fn hold_mode(&self) -> RwLockReadGuard<'_, Doublewrite> {
        self.mode.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes how torn pages are guarded against, once the writes under way are finished, guarded
    /// or not: when it returns no page is being written in the old way. Copies that are kept are
    /// forgotten durably: with the guard off, newer contents pass them by.
    ///
    /// # Errors
    /// When the store is not repaired or poisoned, or the disk fails; nothing has changed then.
    pub fn set_doublewrite(&self, to: Doublewrite) -> Result<(), EngineError> {
        self.check_writable()?;
        let mut mode = self.mode.write().unwrap_or_else(PoisonError::into_inner);
        // A write that was waited for may have failed: its copies are needed then.
        self.data.poison.check()?;
        self.forget_copies(&mut self.doublewrite.all())?;
        *mode = to;
        Ok(())
    }

    pub(crate) fn check_writable(&self) -> Result<(), EngineError> {
        self.poison.check()?;
        if self.repaired.load(Acquire) {
            return Ok(());
        }
        Err(self.poison.broken("the store is to be written before it was repaired".to_owned()))
    }

    pub(crate) fn lock_growth(&self) -> MutexGuard<'_, ()> {
        locked(&self.growth)
    }

    /// Makes it durable that no copy is restored any more.
    pub(crate) fn forget_copies(
        &self,
        files: &mut [MutexGuard<'_, DoublewriteFile>],
    ) -> Result<(), EngineError> {
        for file in files {
            let numbers = self.doublewrite.order.begin();
            let cleared = file.clear(numbers, self.data.sync_kind());
            cleared.map_err(|error| self.data.poison.keep(error))?;
            self.doublewrite.order.settle(numbers.0);
        }
        Ok(())
    }
}

impl Store {
    /// Makes a store durably, with one step of growth; one that is complete stays as it is. It can
    /// be called again after a failure or a crash in the middle.
    pub fn create(disk: Arc<dyn Disk>, settings: &StoreSettings) -> Result<(), EngineError> {
        let store = Self::on(&disk, settings, FileMode::Create, &Common::default())?;
        let files = store.doublewrite.all();
        let kind = sync_kind(settings.use_fdatasync);
        let is_complete = files[DOUBLEWRITE_FILES - 1].check(settings.data_files)?;
        if !is_complete {
            for file in &files {
                file.fill(BATCH_AT, kind)?;
            }
            for (at, file) in store.data.files.iter().enumerate() {
                store.check_blank(file)?;
                store.write_zeros(file, 0, u64::from(settings.extend_pages))?;
                store.data.sync(at)?;
            }
            disk.sync_dir()?;
        }
        for file in &files {
            file.identify(settings.data_files, kind)?;
        }
        Ok(disk.sync_dir()?)
    }

    pub fn bytes_to_make(settings: &StoreSettings) -> u64 {
        let page_bytes = settings.page_size.bytes();
        let copies = doublewrite_file_bytes(settings.doublewrite_pages, page_bytes);
        let pages = u64::from(settings.data_files) * u64::from(settings.extend_pages);
        DOUBLEWRITE_FILES as u64 * copies + pages * page_bytes as u64
    }

    fn check_blank(&self, file: &DataFile) -> Result<(), EngineError> {
        let mut page = self.data.zeros(1);
        for at in 0..file.pages.load(Acquire) {
            self.data.disk.read(file.id, at * page.len() as u64, &mut page)?;
            if page.iter().any(|byte| *byte != 0) {
                let found = "pages, but the doublewrite files are not those of a store";
                return Err(not_a_store(&file.name, found));
            }
        }
        Ok(())
    }
}

const WRITE_BYTES_MAX: usize = 1 << 20;

impl Store {
    /// Makes at least so many pages usable. Files grow by whole steps of `extend_pages`.
    ///
    /// # Errors
    /// [`EngineError::NoSpace`] when the disk is full: nothing has changed and the store is usable.
    /// Any other failure poisons it.
    pub fn ensure(&self, pages: u64) -> Result<(), EngineError> {
        if pages <= self.pages() {
            return self.data.poison.check();
        }
        let _growing = self.lock_growth();
        self.check_writable()?;
        self.grow(pages)
    }

    /// As `ensure`, for who holds the growth lock.
    pub(crate) fn grow(&self, pages: u64) -> Result<(), EngineError> {
        let step = u64::from(self.extend_pages);
        let wanted = pages.div_ceil(u64::from(self.data_files)).next_multiple_of(step);
        for (at, file) in self.data.files.iter().enumerate() {
            let had = file.pages.load(Acquire);
            if had < wanted {
                self.write_zeros(file, had, wanted)?;
                self.data.sync(at)?;
                file.pages.store(wanted, Release);
            }
        }
        Ok(())
    }

    /// Writes zeros over the pages of a file from `had` to below `wanted`.
    pub(crate) fn write_zeros(
        &self,
        file: &DataFile,
        had: u64,
        wanted: u64,
    ) -> Result<(), EngineError> {
        let page_bytes = self.page_size().bytes();
        let at_once = ((WRITE_BYTES_MAX / page_bytes) as u64).min(wanted - had);
        let mut zeros = self.data.zeros(at_once);
        let mut at = had;
        while at < wanted {
            let pages = at_once.min(wanted - at);
            zeros.set_len(pages as usize * page_bytes);
            self.data.counts.add(Counter::DataWrites, 1);
            self.data.counts.add(Counter::DataWritten, zeros.len() as u64);
            let durability = durability(self.data.plan);
            let byte = at * page_bytes as u64;
            if let Err(error) = self.data.disk.write(file.id, byte, &zeros, durability) {
                return Err(self.failed_to_grow(file, had, wanted, error));
            }
            at += pages;
        }
        Ok(())
    }

    fn failed_to_grow(
        &self,
        file: &DataFile,
        file_pages: u64,
        wanted_pages: u64,
        error: DiskError,
    ) -> EngineError {
        if !error.is_full() {
            return self.data.poison.keep(error);
        }
        // Gives back what little was taken. If that fails too, the next opening counts more whole
        // pages of zeros, which does no harm, and the next growth writes them again.
        let _ = self.data.disk.set_len(file.id, file_pages * self.page_size().bytes() as u64);
        no_room(&file.name, file_pages, wanted_pages)
    }
}
