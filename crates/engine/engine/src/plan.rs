//! From settings to what each room is told.
//!
//! Invariant: pure; every setting that a room needs is passed on here and nowhere else.

use iostrata_flush::{FlushPolicy, FlushSettings, PurgeDelay, Steady, WriteLimit, history};
use iostrata_page::PageSize;
use iostrata_redo::{RedoSettings, RedoSync};
use iostrata_settings::{
    ChecksumAlgorithm, Doublewrite, FlushMethod, FlushWriteLimit, MaxPurgeLagVersion, PolicyName,
    Settings,
};
use iostrata_store::{FlushPlan, StoreSettings};

/// The page size of checked settings.
pub(crate) fn page_size(settings: &Settings) -> PageSize {
    match PageSize::new(settings.page_size) {
        Ok(size) => size,
        Err(error) => panic!("settings were checked, yet {error}"),
    }
}

/// The policy of that name, as it begins.
pub(crate) fn policy(name: PolicyName) -> Box<dyn FlushPolicy> {
    match name {
        PolicyName::Fixed100 => history::fixed_100(),
        PolicyName::IoCapacity => history::io_capacity(),
        PolicyName::Reflex => history::reflex(),
        PolicyName::Estimate => history::estimate(),
        PolicyName::KeepAverage => history::keep_average(),
        PolicyName::Adaptive => history::adaptive(),
        PolicyName::LsnAge => history::lsn_age(),
        PolicyName::PageCleaner56 => history::page_cleaner_56(),
        PolicyName::PageCleaner57 => history::page_cleaner_57(),
        PolicyName::PageCleaner84 => history::page_cleaner_84(),
        PolicyName::Mariadb => history::mariadb(),
        PolicyName::PerconaHighCheckpoint => history::percona_high_checkpoint(),
        PolicyName::Steady => Box::new(Steady::default()),
    }
}

/// What policies follow.
pub(crate) fn flush(settings: &Settings) -> FlushSettings {
    FlushSettings {
        io_capacity: settings.io_capacity,
        io_capacity_max: settings.io_capacity_max,
        max_dirty_pages_pct: settings.max_dirty_pages_pct,
        max_dirty_pages_pct_lwm: settings.max_dirty_pages_pct_lwm,
        adaptive_flushing: settings.adaptive_flushing,
        adaptive_flushing_lwm: settings.adaptive_flushing_lwm,
        flushing_avg_loops: settings.flushing_avg_loops,
        idle_flush_pct: settings.idle_flush_pct,
        flush_sync: settings.flush_sync,
        lru_scan_depth: settings.lru_scan_depth,
        flush_log_at_timeout_us: u64::from(settings.flush_log_at_timeout) * 1_000_000,
        purge_threads: settings.purge_threads,
        doublewrite: settings.doublewrite != Doublewrite::Off,
        write_limit: match settings.flush_write_limit {
            FlushWriteLimit::Policy => WriteLimit::Policy,
            FlushWriteLimit::Capped => WriteLimit::Capped,
            FlushWriteLimit::Free => WriteLimit::Free,
            FlushWriteLimit::AutoRaised => WriteLimit::AutoRaised,
        },
    }
}

/// Whose rule holds writers back for purge.
pub(crate) fn purge_delay(version: MaxPurgeLagVersion) -> PurgeDelay {
    match version {
        MaxPurgeLagVersion::Mysql55 => PurgeDelay::Mysql55,
        MaxPurgeLagVersion::Mysql56 => PurgeDelay::Mysql56,
        MaxPurgeLagVersion::Mysql80 => PurgeDelay::Mysql80,
        MaxPurgeLagVersion::Mysql84 => PurgeDelay::Mysql84,
    }
}

/// The store's form of a flush method.
fn method(method: FlushMethod) -> iostrata_store::FlushMethod {
    match method {
        FlushMethod::Fsync => iostrata_store::FlushMethod::Fsync,
        FlushMethod::Dsync => iostrata_store::FlushMethod::ODsync,
        FlushMethod::Direct => iostrata_store::FlushMethod::ODirect,
        FlushMethod::DirectNoFsync => iostrata_store::FlushMethod::ODirectNoFsync,
        FlushMethod::AllDirect => iostrata_store::FlushMethod::AllODirect,
    }
}

/// The store's form of the doublewrite setting.
pub(crate) fn doublewrite(doublewrite: Doublewrite) -> iostrata_store::Doublewrite {
    match doublewrite {
        Doublewrite::On => iostrata_store::Doublewrite::On,
        Doublewrite::Off => iostrata_store::Doublewrite::Off,
        Doublewrite::DetectOnly => iostrata_store::Doublewrite::DetectOnly,
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
        (false, iostrata_store::SyncRule::GrowthOnly, _) => RedoSync::None,
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
