//! From settings to what each room is told.
//!
//! Invariant: pure; every setting that a room needs is passed on here and nowhere else.

use iostrata_innodb::{ChecksumAlgorithm, Doublewrite, FlushMethod, Settings};

use crate::page::PageSize;
use crate::redo::{RedoSettings, RedoSync};
use crate::store::{FlushPlan, StoreSettings};

/// The page size of checked settings.
pub(crate) fn page_size(settings: &Settings) -> PageSize {
    match PageSize::new(settings.page_size) {
        Ok(size) => size,
        Err(error) => panic!("settings were checked, yet {error}"),
    }
}

/// The store's form of a flush method.
fn method(method: FlushMethod) -> crate::store::FlushMethod {
    match method {
        FlushMethod::Fsync => crate::store::FlushMethod::Fsync,
        FlushMethod::Dsync => crate::store::FlushMethod::ODsync,
        FlushMethod::Direct => crate::store::FlushMethod::ODirect,
        FlushMethod::DirectNoFsync => crate::store::FlushMethod::ODirectNoFsync,
        FlushMethod::AllDirect => crate::store::FlushMethod::AllODirect,
    }
}

/// The store's form of the doublewrite setting.
pub(crate) fn doublewrite(doublewrite: Doublewrite) -> crate::store::Doublewrite {
    match doublewrite {
        Doublewrite::On => crate::store::Doublewrite::On,
        Doublewrite::Off => crate::store::Doublewrite::Off,
        Doublewrite::DetectOnly => crate::store::Doublewrite::DetectOnly,
    }
}

/// How each kind of file is opened and synced.
pub(crate) fn of(settings: &Settings) -> FlushPlan {
    method(settings.flush_method).plan(settings.trust_device_cache)
}

/// What the store is told.
pub(crate) fn store(settings: &Settings) -> StoreSettings {
    let step = settings.autoextend_increment
        / (u64::from(settings.data_files) * u64::from(settings.page_size));
    StoreSettings {
        data_files: settings.data_files,
        extend_pages: step.clamp(1, 65536) as u32,
        doublewrite: doublewrite(settings.doublewrite),
        doublewrite_pages: settings.doublewrite_pages,
        flush_method: method(settings.flush_method),
        trust_device_cache: settings.trust_device_cache,
        checksum: settings.checksum_algorithm == ChecksumAlgorithm::Crc32,
        use_fdatasync: settings.use_fdatasync,
        ..StoreSettings::new(page_size(settings))
    }
}

/// What the log is told.
pub(crate) fn redo(settings: &Settings) -> RedoSettings {
    let plan = of(settings).redo;
    let sync = match (plan.write_through, plan.sync, settings.use_fdatasync) {
        (true, ..) => RedoSync::WriteThrough,
        (false, crate::store::SyncRule::GrowthOnly, _) => RedoSync::None,
        (false, _, true) => RedoSync::Fdatasync,
        (false, _, false) => RedoSync::Fsync,
    };
    RedoSettings {
        capacity_bytes: settings.redo_log_capacity,
        log_buffer_bytes: settings.log_buffer_size,
        write_ahead_bytes: settings.log_write_ahead_size,
        sync,
    }
}
