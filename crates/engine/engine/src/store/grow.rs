//! Growth of the data files.
//!
//! Invariant: new pages are written with zeros and synced before they count, so that a later write
//! into them changes no length and finds its room. When there is no room, the file is cut back and
//! all that was there stays usable.

use std::sync::atomic::Ordering::{Acquire, Release};

use iostrata_innodb::Counter;
use iostrata_io::disk::DiskError;

use crate::error::EngineError;
use crate::store::data::DataFile;
use crate::store::layout::no_room;
use crate::store::settings::durability;
use crate::store::store::Store;

/// Largest write of zeros, in bytes.
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
