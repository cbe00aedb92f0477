//! What a store is opened with.
//!
//! Invariant: settings that `check` accepts make a store that fits its formulas: offsets stay far
//! below 2^63, a doublewrite batch below 64 MiB.
//! Defaults and names of settings belong to the crate `innodb`.

use iostrata_innodb::{ChecksumAlgorithm, Doublewrite, FilePlan, FlushMethod, Settings};
use iostrata_io::SyncKind;
use iostrata_io::disk::Durability;

use crate::page::PageSize;
use crate::store::layout::EXTEND_PAGES_MAX;

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
    /// What checked settings of an engine say of its store.
    pub fn of(settings: &Settings) -> Self {
        let step = settings.autoextend_increment
            / (u64::from(settings.data_files) * u64::from(settings.page_size));
        Self {
            page_size: PageSize::of_settings(settings),
            data_files: settings.data_files,
            extend_pages: step.clamp(1, EXTEND_PAGES_MAX.into()) as u32,
            doublewrite: settings.doublewrite,
            doublewrite_pages: settings.doublewrite_pages,
            flush_method: settings.flush_method,
            trust_device_cache: settings.trust_device_cache,
            checksum: settings.checksum_algorithm == ChecksumAlgorithm::Crc32,
            use_fdatasync: settings.use_fdatasync,
        }
    }

    /// A store of these pages, with the defaults of the engine.
    pub fn new(page_size: PageSize) -> Self {
        Self { page_size, ..Self::of(&Settings::default()) }
    }
}

/// What writes to a file promise.
pub(crate) const fn durability(plan: FilePlan) -> Durability {
    if plan.write_through { Durability::WriteThrough } else { Durability::Volatile }
}

/// The call that a sync makes.
pub(crate) const fn sync_kind(use_fdatasync: bool) -> SyncKind {
    if use_fdatasync { SyncKind::Fdatasync } else { SyncKind::Fsync }
}
