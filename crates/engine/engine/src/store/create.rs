//! Making a store.
//!
//! Invariant: the identity of the last doublewrite file is written when all else is durable, and
//! nothing is written into a store without it. While it is missing everything is made anew, because
//! what an earlier try left behind may be in a cache only, where a failed sync forgot it.

use std::sync::Arc;
use std::sync::atomic::Ordering::Acquire;

use iostrata_io::disk::{Disk, FileMode};

use crate::store::data::DataFile;
use crate::store::error::StoreError;
use crate::store::layout::{BATCH_AT, DOUBLEWRITE_FILES, doublewrite_file_bytes};
use crate::store::settings::{StoreSettings, sync_kind};
use crate::store::store::Store;

impl Store {
    /// Makes a store durably, with one step of growth; one that is complete stays as it is. It can
    /// be called again after a failure or a crash in the middle.
    ///
    /// # Errors
    /// Settings out of range, a store of another form, no room, data files with pages in them but
    /// no doublewrite files, or what the disk says.
    pub fn create(disk: Arc<dyn Disk>, settings: &StoreSettings) -> Result<(), StoreError> {
        let store = Self::on(&disk, settings, FileMode::Create)?;
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

    /// Bytes of the files that [`Store::create`] makes.
    pub fn bytes_to_make(settings: &StoreSettings) -> u64 {
        let page_bytes = settings.page_size.bytes();
        let copies = doublewrite_file_bytes(settings.doublewrite_pages, page_bytes);
        let pages = u64::from(settings.data_files) * u64::from(settings.extend_pages);
        DOUBLEWRITE_FILES as u64 * copies + pages * page_bytes as u64
    }

    /// Refuses to write over pages.
    fn check_blank(&self, file: &DataFile) -> Result<(), StoreError> {
        let mut page = self.data.zeros(1);
        for at in 0..file.pages.load(Acquire) {
            self.data.disk.read(file.id, at * page.len() as u64, &mut page)?;
            if page.iter().any(|byte| *byte != 0) {
                let found = "pages, but the doublewrite files are not those of a store";
                return Err(StoreError::NotAStore { file: file.name.clone(), found });
            }
        }
        Ok(())
    }
}
