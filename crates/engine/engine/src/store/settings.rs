//! What a store is opened with.
//!
//! Invariant: settings that `check` accepts make a store that fits its formulas: offsets stay far
//! below 2^63, a doublewrite batch below 64 MiB.
//! Defaults and names of settings belong to the crate `innodb`.

use crate::page::PageSize;
use crate::store::error::StoreError;
use crate::store::layout::{DATA_FILES_MAX, DOUBLEWRITE_PAGES_MAX, EXTEND_PAGES_MAX};
use crate::store::method::FlushMethod;

/// How torn pages are guarded against.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Doublewrite {
    /// A copy of each page is durable before its place is written.
    #[default]
    On,
    /// Not at all: a torn page is found when it is read, and is lost.
    Off,
    /// Page numbers, LSNs and checksums only: after a crash it is known at once which pages are
    /// torn; they are lost all the same.
    DetectOnly,
}

/// What a store is opened with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreSettings {
    /// Bytes of a page. Fixed when the store is created.
    pub page_size: PageSize,
    /// Files that pages are striped over, 1 to 64. Fixed when the store is created.
    pub data_files: u32,
    /// Pages by which each file grows at a time, 1 to 65536.
    pub extend_pages: u32,
    /// How torn pages are guarded against.
    pub doublewrite: Doublewrite,
    /// Pages of a doublewrite batch, 1 to 512.
    pub doublewrite_pages: u32,
    /// How writes reach the device.
    pub flush_method: FlushMethod,
    /// Takes InnoDB's form of the flush method where that trusts the device's cache.
    pub trust_device_cache: bool,
    /// Whether reads check the checksum. Writes always set it, and repair always checks it.
    pub checksum: bool,
    /// Syncs are fdatasync instead of fsync.
    pub use_fdatasync: bool,
}

impl StoreSettings {
    /// A store of these pages, with the defaults.
    pub fn new(page_size: PageSize) -> Self {
        Self {
            page_size,
            data_files: 4,
            extend_pages: 64,
            doublewrite: Doublewrite::On,
            doublewrite_pages: 128,
            flush_method: FlushMethod::default(),
            trust_device_cache: false,
            checksum: true,
            use_fdatasync: true,
        }
    }

    pub(crate) fn check(&self) -> Result<(), StoreError> {
        let ranges = [
            ("data_files", self.data_files, DATA_FILES_MAX),
            ("extend_pages", self.extend_pages, EXTEND_PAGES_MAX),
            ("doublewrite_pages", self.doublewrite_pages, DOUBLEWRITE_PAGES_MAX),
        ];
        for (name, value, max) in ranges {
            if !(1..=max).contains(&value) {
                return Err(StoreError::Setting { name, value, max });
            }
        }
        Ok(())
    }
}
