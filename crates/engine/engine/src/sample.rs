//! What the policy gets to see.

use iostrata_flush::{AgeLimits, FlushSample, FlushSettings};
use iostrata_knobs::Settings;

use crate::core::Core;

/// The engine as it is now; the caller adds its clock, its own counts and the histogram.
pub(crate) fn take(core: &Core) -> FlushSample<'static> {
    let limits = core.redo.limits();
    // The redo's end first: a page that becomes dirty later changes nothing before it.
    let lsn = core.redo.lsn();
    FlushSample {
        lsn,
        durable: core.redo.durable(),
        checkpoint: core.redo.checkpoint_lsn(),
        oldest: core.pool.oldest(),
        limits: AgeLimits {
            capacity: limits.capacity,
            async_age: limits.async_age,
            sync_age: limits.sync_age,
            max_age: limits.max_age,
        },
        dirty_pages: core.pool.dirty_pages() as u64,
        free_frames: core.pool.free_frames() as u64,
        frames: core.pool.frames() as u64,
        settings: settings(&core.settings()),
        ..FlushSample::default()
    }
}

fn settings(settings: &Settings) -> FlushSettings {
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
    }
}
