//! From the engine's settings to what a policy is told.
//!
//! Invariant: every name of a policy, and every setting that policies follow, is read here and
//! nowhere else, so that the engine and its model in virtual time run the same.

use crate::{Doublewrite, PolicyName, Settings};

use crate::flush::{FlushPolicy, FlushSettings, Steady, history};

/// The policy of that name, as it begins.
#[must_use]
pub fn policy(name: PolicyName) -> Box<dyn FlushPolicy> {
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

impl FlushSettings {
    /// What policies follow of the engine's settings.
    #[must_use]
    pub fn of(settings: &Settings) -> FlushSettings {
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
            write_limit: settings.flush_write_limit,
        }
    }
}
