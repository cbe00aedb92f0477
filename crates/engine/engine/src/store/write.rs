//! Pages into their places.
//!
//! Invariant: copy durable, then in place, then in place durable, then the copy may be overwritten.

use iostrata_innodb::{Counter, Doublewrite, SyncRule};

use crate::error::EngineError;
use crate::page::PageEdit;
use crate::store::Store;
use crate::store::data::PageCopy;
use crate::store::doublewrite::{BatchKind, DoublewriteFile, Numbers};

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
        // Whoever had the file before may have failed: its copies are needed then.
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
