//! Data files and doublewrite of the embedded engine.
//!
//! Purpose: pages on a [`Disk`](iostrata_io::disk::Disk), striped over data files, written so that
//! a crash leaves each page old or new and never torn.
//! Invariants: [`Store::write`] returns when its pages are durable in place: copy durable, then in
//! place, then in place durable, then the copy may be overwritten. Every byte of the data files was
//! written before it is used; after a failed write or sync nothing is written any more. Bytes
//! handed out as good are those of the page that was requested: its number is checked always, its
//! checksum unless that is turned off. It caches no page, is independent of the redo (the caller
//! has made that durable before) and has no thread.

mod data;
mod doublewrite;
pub mod layout;
mod repair;

use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

use iostrata_innodb::{Counter, Doublewrite, PageNo, SyncRule};
use iostrata_io::disk::{Aligned, Batch, BatchCompletion, Disk, DiskError, FileMode};

pub use data::{CutFile, PageCopy, StoreSettings};
pub use repair::Repair;

use crate::counts::{Common, Counts};
use crate::error::{EngineError, Poison};
use crate::page::{PageEdit, PageFault, PageSize, PageView};
use crate::sync::locked;
use data::{DataFile, DataFiles, durability, sync_kind};
use doublewrite::{BatchKind, DoublewriteFile, DoublewriteFiles, Numbers};
use layout::{BATCH_AT, DOUBLEWRITE_FILES, doublewrite_file_bytes, no_room, not_a_store};

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

    fn on(
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
    fn hold_mode(&self) -> RwLockReadGuard<'_, Doublewrite> {
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

    fn check_writable(&self) -> Result<(), EngineError> {
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

    /// As `ensure`, for the holder of the growth lock.
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
    fn write_zeros(&self, file: &DataFile, had: u64, wanted: u64) -> Result<(), EngineError> {
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

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ReadError {
    #[error("page {page} lies beyond the end: the store has {pages} pages")]
    BeyondEnd { page: PageNo, pages: u64 },
    /// All bytes are zero: the page was never written.
    #[error("page {page} was never written")]
    Zero { page: PageNo },
    /// The bytes are not those of a page of that number.
    #[error("{fault}")]
    Torn { page: PageNo, fault: PageFault },
    #[error(transparent)]
    Disk(#[from] DiskError),
}

/// Most reads in flight of one call.
const DEPTH: usize = 128;

impl Store {
    /// Reads a page.
    ///
    /// # Panics
    /// When `into` is not as long as a page.
    pub fn read(&self, page: PageNo, into: &mut Aligned) -> Result<(), ReadError> {
        let place = self.place_to_read(page, into)?;
        self.count_read();
        let _pending = self.data.counts.pending(Counter::DataPendingReads, 1);
        let read = self.data.disk.read(self.data.files[place.0].id, place.1, into);
        self.judge(page, into, read)
    }

    /// Reads many pages, in any order, with many reads in flight. `wanted` is emptied; each of its
    /// buffers comes back through `done` with what became of it.
    ///
    /// # Panics
    /// When a buffer is not as long as a page.
    pub fn read_many(
        &self,
        wanted: &mut Vec<PageCopy>,
        mut done: impl FnMut(PageCopy, Result<(), ReadError>),
    ) {
        let in_flight = wanted.len() as u64;
        let _pending = self.data.counts.pending(Counter::DataPendingReads, in_flight);
        let mut batch = self.data.batches.take();
        let mut hand_out = |page, bytes, result| done(PageCopy { page, bytes }, result);
        let mut queued = 0;
        for PageCopy { page, bytes } in wanted.drain(..) {
            match self.place_to_read(page, &bytes) {
                Ok((file, at)) => {
                    self.count_read();
                    batch.read(self.data.files[file].id, at, bytes, page.0);
                    queued += 1;
                }
                Err(error) => hand_out(page, bytes, Err(error)),
            }
            if queued + batch.in_flight() >= DEPTH {
                batch.submit();
                queued = 0;
                self.complete(batch.as_mut(), DEPTH / 2, &mut hand_out);
            }
        }
        batch.submit();
        while batch.in_flight() > 0 {
            self.complete(batch.as_mut(), 1, &mut hand_out);
        }
        self.data.batches.give_back(batch);
    }

    fn complete(
        &self,
        batch: &mut dyn Batch,
        min: usize,
        hand_out: &mut impl FnMut(PageNo, Aligned, Result<(), ReadError>),
    ) {
        batch.complete(min, &mut |BatchCompletion { tag, buffer, result }| {
            let page = PageNo(tag);
            let result = self.judge(page, &buffer, result);
            hand_out(page, buffer, result);
        });
    }

    fn count_read(&self) {
        self.data.counts.add(Counter::DataReads, 1);
        self.data.counts.add(Counter::DataRead, self.page_size().bytes() as u64);
    }

    fn place_to_read(&self, page: PageNo, into: &Aligned) -> Result<(usize, u64), ReadError> {
        let page_bytes = self.page_size().bytes();
        assert!(into.len() == page_bytes, "a page has {page_bytes} bytes, not {}", into.len());
        let pages = self.pages();
        if page.0 >= pages {
            return Err(ReadError::BeyondEnd { page, pages });
        }
        Ok(self.data.place(page))
    }

    fn judge(
        &self,
        page: PageNo,
        bytes: &[u8],
        read: Result<(), DiskError>,
    ) -> Result<(), ReadError> {
        match read {
            Err(DiskError::PastEnd { .. }) => {
                return Err(ReadError::BeyondEnd { page, pages: self.pages() });
            }
            read => read?,
        }
        check(page, bytes, self.checksum)?;
        self.data.counts.add(Counter::PagesRead, 1);
        Ok(())
    }
}

pub(crate) fn check(page: PageNo, bytes: &[u8], checksum: bool) -> Result<(), ReadError> {
    if is_zero(bytes) {
        return Err(ReadError::Zero { page });
    }
    let view = PageView::new(bytes);
    let verified = if checksum {
        view.verify(page)
    } else if view.page_no() == page {
        Ok(())
    } else {
        Err(PageFault::OtherPage { page, found: view.page_no() })
    };
    verified.map_err(|fault| ReadError::Torn { page, fault })
}

/// All bytes are zero. The first few decide for nearly every page in use.
fn is_zero(bytes: &[u8]) -> bool {
    let (head, rest) = bytes.split_at(64);
    head.iter().all(|byte| *byte == 0) && rest.iter().all(|byte| *byte == 0)
}

impl Store {
    /// [`Store::write_paced`] with all pages in flight at once.
    ///
    /// # Panics
    /// As there.
    pub fn write(&self, pages: &mut Vec<PageCopy>) -> Result<(), EngineError> {
        self.write_paced(pages, usize::MAX)
    }

    /// Writes pages: seals them, guards them against tearing, and puts them into their places. When
    /// it returns they are durable there. The redo that leads to them must be durable before.
    /// All buffers are in `pages` again afterwards, in another order, also after a failure.
    /// A page must not be in two calls at once. At most `in_flight` pages, one at least, are on
    /// their way to their places at a time.
    ///
    /// # Errors
    /// A page beyond the end, before anything is written; a failure of the disk, which poisons
    /// the store; its poison.
    ///
    /// # Panics
    /// When a page comes twice, or its bytes are of another page or size: the caller is broken.
    pub fn write_paced(
        &self,
        pages: &mut Vec<PageCopy>,
        in_flight: usize,
    ) -> Result<(), EngineError> {
        self.check_writable()?;
        let end = self.pages();
        if let Some(beyond) = pages.iter().find(|copy| copy.page.0 >= end) {
            let page = beyond.page;
            let what =
                format!("page {page} lies beyond the end of the store, which has {end} pages");
            return Err(self.poison.broken(what));
        }
        self.seal(pages);
        pages.sort_unstable_by_key(|copy| self.data.place(copy.page));
        for pair in pages.windows(2) {
            assert!(pair[0].page != pair[1].page, "page {} comes twice", pair[0].page);
        }
        let count = pages.len() as u64;
        let _pending = self.data.counts.pending(Counter::DataPendingWrites, count);
        let mode = self.hold_mode();
        self.write_batches(pages, *mode, in_flight)
    }

    /// From now on [`Store::write_paced`] begins at most so many pages per second.
    pub fn pace_writes(&self, pages_per_s: f64) {
        self.data.slots.set_per_s(pages_per_s);
    }

    fn seal(&self, pages: &mut [PageCopy]) {
        let page_bytes = self.page_size().bytes();
        for PageCopy { page, bytes } in pages {
            assert!(bytes.len() == page_bytes, "page {page} has {} bytes", bytes.len());
            let mut edit = PageEdit::new(bytes);
            assert!(edit.page_no() == *page, "page {page} says it is {}", edit.page_no());
            edit.seal();
        }
    }

    fn write_batches(
        &self,
        pages: &mut Vec<PageCopy>,
        mode: Doublewrite,
        in_flight: usize,
    ) -> Result<(), EngineError> {
        let most = self.doublewrite.batch_pages();
        let kind = match mode {
            Doublewrite::On => BatchKind::Copies,
            Doublewrite::DetectOnly => BatchKind::EntriesOnly,
            Doublewrite::Off => return self.write_unguarded(pages, in_flight),
        };
        if pages.len() <= most {
            return self.write_batch(pages, kind, in_flight);
        }
        let mut rest = std::mem::take(pages);
        let mut chunk = Vec::with_capacity(most);
        let mut result = Ok(());
        while result.is_ok() && !rest.is_empty() {
            chunk.extend(rest.drain(..most.min(rest.len())));
            result = self.write_batch(&mut chunk, kind, in_flight);
            pages.append(&mut chunk);
        }
        pages.append(&mut rest);
        result
    }

    fn write_batch(
        &self,
        pages: &mut Vec<PageCopy>,
        kind: BatchKind,
        in_flight: usize,
    ) -> Result<(), EngineError> {
        let mut file = self.doublewrite.any();
        // The previous user of the file may have failed: its copies are needed then.
        self.data.poison.check()?;
        let numbers = self.doublewrite.order.begin();
        self.write_copies(&mut file, numbers, kind, pages)?;
        let touched = self.data.write_in_place(pages, in_flight)?;
        if self.data.plan.sync != SyncRule::GrowthOnly {
            self.data.sync_touched(touched)?;
        }
        self.doublewrite.order.settle(numbers.0);
        self.data.counts.add(Counter::PagesWritten, pages.len() as u64);
        Ok(())
    }

    /// Copies of all pages, except those that the device writes in one piece.
    fn write_copies(
        &self,
        file: &mut DoublewriteFile,
        numbers: Numbers,
        kind: BatchKind,
        pages: &[PageCopy],
    ) -> Result<(), EngineError> {
        let guarded = pages.iter().filter(|copy| !self.data.is_atomic(copy.page));
        let count = guarded.clone().count() as u64;
        if count == 0 {
            return Ok(());
        }
        let written = file.write(numbers, kind, guarded, self.data.sync_kind());
        written.map_err(|error| self.data.poison.keep(error))?;
        self.data.counts.add(Counter::DblwrWrites, 1);
        self.data.counts.add(Counter::DataWrites, 1);
        if kind == BatchKind::Copies {
            self.data.counts.add(Counter::DblwrPagesWritten, count);
        }
        Ok(())
    }

    fn write_unguarded(
        &self,
        pages: &mut Vec<PageCopy>,
        in_flight: usize,
    ) -> Result<(), EngineError> {
        let touched = self.data.write_in_place(pages, in_flight)?;
        if self.data.plan.sync == SyncRule::EachBatch {
            self.data.sync_touched(touched)?;
        }
        self.data.counts.add(Counter::PagesWritten, pages.len() as u64);
        Ok(())
    }
}
