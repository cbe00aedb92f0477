//! How many pages per second should leave, and why.

use super::pace::Pace;
use crate::flush::ages::Ages;
use crate::flush::{Cause, FlushSample, RedoRate};

/// Without any redo for this long the engine is idle, in microseconds.
const IDLE_US: u64 = 1_000_000;

/// Without a low-water mark, flushing for the share of dirty pages begins at this share of the
/// maximum.
const DIRTY_BEGIN_SHARE: f64 = 0.875;

/// What should be flushed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Need {
    /// Pages per second; without bound when furious.
    pub pages_per_s: f64,
    /// Why.
    pub cause: Cause,
}

impl Need {
    /// The greatest of all needs.
    /// `most_per_s` is what the device is known to write, in pages per second.
    pub fn of(
        now: &FlushSample<'_>,
        pace: &Pace,
        redo: &RedoRate,
        most_per_s: Option<f64>,
    ) -> Need {
        if now.dirty_pages == 0 {
            return Need { pages_per_s: 0.0, cause: Cause::Background };
        }
        let cap = f64::from(now.settings.io_capacity_max.max(1));
        let age = now.modified_age() as f64;
        if now.settings.flush_sync && age >= now.limits.sync_age as f64 {
            return Need { pages_per_s: f64::INFINITY, cause: Cause::Sync };
        }
        let for_age = for_age(now, pace, redo, most_per_s).min(cap * stretch(now));
        let background = for_dirty(now).max(for_idle(now, redo)).min(cap);
        if for_age >= background {
            return Need { pages_per_s: for_age, cause: Cause::Adaptive };
        }
        Need { pages_per_s: background, cause: Cause::Background }
    }

    /// Whether redo is about to run out.
    pub fn is_furious(&self) -> bool {
        self.cause == Cause::Sync
    }
}

/// Whether nothing has changed for a while.
pub(super) fn is_idle(redo: &RedoRate) -> bool {
    redo.still_us() >= IDLE_US
}

/// How far ahead deadlines are looked at, as a share of the time to fill.
const HORIZON: f64 = 0.5;

/// Share of what the device writes from which on all deadlines count.
const CATCHES_UP: f64 = 0.7;

/// Pages per second that hold the age.
fn for_age(now: &FlushSample<'_>, pace: &Pace, redo: &RedoRate, most_per_s: Option<f64>) -> f64 {
    let age = now.modified_age() as f64;
    let async_age = now.limits.async_age as f64;
    let cap = f64::from(now.settings.io_capacity_max.max(1));
    if age >= async_age {
        // Past the async limit writers are slowed down, so their rate says nothing about what
        // is needed: everything that is allowed goes into freeing redo.
        return f64::INFINITY;
    }
    let low = now.limits.capacity as f64 * now.settings.adaptive_flushing_lwm / 100.0;
    if !now.settings.adaptive_flushing {
        return 0.0;
    }
    let is_low = age < low.min(pace.set_age);
    let late_us = (pace.fill_us / 16.0).clamp(pace.loop_us, 1e6);
    let rate = |horizon| Ages::of(now).rate_for(pace.set_age, redo.bytes_per_s(), late_us, horizon);
    // Most pages that load dirties at first come due together. What the device could not catch up
    // with later has to begin now; what it can may well be changed again.
    let all = rate(1.0);
    let is_much = most_per_s.map_or(!is_low, |most| all >= most * CATCHES_UP);
    let held = match (is_much, is_low) {
        (true, _) => all,
        (false, true) => return 0.0,
        (false, false) => rate(HORIZON),
    };
    // Without a step to what is done past the async limit; of no weight where the age is held.
    let over = ((age - pace.set_age) / (async_age - pace.set_age).max(1.0)).max(0.0);
    held.max(cap * over.powi(3))
}

/// By how much the cap is exceeded: not at all on three quarters of the way from the async to the
/// sync limit, without bound at the sync limit.
fn stretch(now: &FlushSample<'_>) -> f64 {
    if !now.settings.flush_sync {
        return 1.0;
    }
    let sync_age = now.limits.sync_age as f64;
    let begin = now.limits.async_age as f64 * 0.25 + sync_age * 0.75;
    let left = (sync_age - now.modified_age() as f64) / (sync_age - begin).max(1.0);
    1.0 / left.clamp(1e-3, 1.0)
}

/// Pages per second for the share of dirty pages: nothing at the low-water mark, `io_capacity` at
/// the maximum, `io_capacity_max` when all are dirty.
fn for_dirty(now: &FlushSample<'_>) -> f64 {
    let settings = &now.settings;
    let dirty_pct = now.dirty_pct();
    let most = settings.max_dirty_pages_pct;
    let begin = match settings.max_dirty_pages_pct_lwm {
        low if low > 0.0 => low.min(most),
        _ => most * DIRTY_BEGIN_SHARE,
    };
    let share = |from: f64, to: f64| ((dirty_pct - from) / (to - from).max(1e-9)).clamp(0.0, 1.0);
    let capacity = f64::from(settings.io_capacity);
    let beyond = (f64::from(settings.io_capacity_max) - capacity).max(0.0);
    capacity * share(begin, most) + beyond * share(most, 100.0)
}

/// Pages per second while nothing changes.
fn for_idle(now: &FlushSample<'_>, redo: &RedoRate) -> f64 {
    if !is_idle(redo) {
        return 0.0;
    }
    f64::from(now.settings.io_capacity) * now.settings.idle_flush_pct / 100.0
}
