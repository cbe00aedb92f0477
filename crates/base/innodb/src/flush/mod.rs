//! Decides what the embedded engine flushes, and when.
//!
//! Purpose: a policy sees one sample of the engine and answers with one action; it also decides
//! what a committing thread does at a given checkpoint age. Invariant: pure; the same samples give
//! the same actions. It writes no page, waits for nothing and reads no clock: the engine's cleaner
//! does. Every name of a policy, and every setting that policies follow, is read here and nowhere
//! else, so that the engine and its model in virtual time run the same.
//!
//! How a cleaner uses it: take a sample, call `next`, publish `admit`, do the action, and begin
//! again. A thread that has to wait wakes the cleaner.

mod action;
mod admit;
mod average;
mod batch_cost;
mod depth;
pub mod history;
mod ladder;
mod page_rate;
mod sample;
mod steady;

use crate::{Doublewrite, PolicyName, Settings};

pub use action::{
    Action, ActionOutcome, BATCH_PAGES, Bound, Cause, DelayedRate, FlushPolicy, Outlook, Round,
    WritePace, batch_share, batches_at_once,
};
pub use admit::{ADMIT_WORDS, Admit, AdmitRule, Lag, RedoPace, UserWork};
pub use average::{Average, RedoRate};
pub use batch_cost::BatchCost;
pub use depth::Depth;
pub use ladder::Ladder;
pub use sample::{
    AgeLimits, Ages, FlushSample, FlushSettings, LanesUse, RESERVE_BYTES_MAX, STALLED_REDO_WRITE,
    frames_of_user,
};
pub use steady::{DrainRate, FrameDemand, Steady};

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
