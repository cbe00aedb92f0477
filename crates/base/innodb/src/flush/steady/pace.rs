//! The times of the control loop, all taken from how long the redo takes to fill.
//!
//! A redo of 64 KiB fills in milliseconds, one of 2 GiB in minutes: with every time a share of
//! that, one policy behaves alike on both.

use crate::flush::{AgeLimits, FlushSample};

/// The age that is held lies this share of the way between the async limit and the maximum below
/// the async limit: far enough for the wobble of batches, near enough that pages gather changes
/// before they are written.
const SET_SHARE: f64 = 0.45;

/// A loop is at most this share of the time to fill, so that a batch moves the age by little.
const LOOPS_TO_FILL: f64 = 32.0;
const LOOP_US_MIN: f64 = 500.0;
const LOOP_US_MAX: f64 = 100_000.0;

/// Averages reach back at most this share of the time to fill: a load that changes is followed
/// well before it has filled the redo.
const REACHES_TO_FILL: f64 = 4.0;

/// What flushing frees is averaged over this many times the time to fill. Pages flushed while redo
/// is slow are dirtied again close together, and come due close together when redo of that time is
/// the oldest: a scale of delays that followed the drain faster would keep such a wave going.
const DRAIN_REACH_FILLS: f64 = 2.0;
const DRAIN_REACH_US_MAX: f64 = 60_000_000.0;

/// A batch should take about this share of the time to fill, in microseconds: after it the
/// checkpoint moves.
const BATCH_US_MIN: f64 = 1_000.0;
const BATCH_US_MAX: f64 = 50_000.0;
const BATCHES_TO_FILL: f64 = 16.0;

/// A rate of redo is that of this share of the set-point at least.
const RATES_TO_SET: f64 = 64.0;

/// Time to fill when no redo is produced, in microseconds: about eleven days.
const FILL_US_MAX: f64 = 1e12;

/// The set-point and the times of one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Pace {
    /// Age of the oldest change that is held, in bytes.
    pub set_age: f64,
    /// Time in which redo of that age is produced, in microseconds.
    pub fill_us: f64,
    /// Time between two looks, in microseconds.
    pub loop_us: f64,
    /// How far averages reach back, in microseconds.
    pub reach_us: u64,
    /// How far the average of what flushing frees reaches back, in microseconds.
    pub drain_reach_us: u64,
    /// How long a batch should take at most, in microseconds.
    pub batch_us: f64,
}

/// The least redo of which a rate is taken, in bytes.
pub(super) fn rate_bytes(now: &FlushSample<'_>) -> f64 {
    set_age(&now.limits) / RATES_TO_SET
}

fn set_age(limits: &AgeLimits) -> f64 {
    let width = limits.max_age.saturating_sub(limits.async_age) as f64;
    (limits.async_age as f64 - width * SET_SHARE).max(1.0)
}

impl Pace {
    /// The pace at a rate of redo in bytes per second.
    pub fn of(now: &FlushSample<'_>, redo_bytes_per_s: f64) -> Pace {
        let set_age = set_age(&now.limits);
        let fill_us = (set_age * 1e6 / redo_bytes_per_s.max(1e-3)).min(FILL_US_MAX);
        let loop_us = (fill_us / LOOPS_TO_FILL).clamp(LOOP_US_MIN, LOOP_US_MAX);
        let loops = f64::from(now.settings.flushing_avg_loops.max(1));
        let reach_us = (loops * loop_us).min(fill_us / REACHES_TO_FILL).max(loop_us) as u64;
        let batch_us = (fill_us / BATCHES_TO_FILL).clamp(BATCH_US_MIN, BATCH_US_MAX);
        let drain_reach_us = (fill_us * DRAIN_REACH_FILLS).min(DRAIN_REACH_US_MAX) as u64;
        Pace { set_age, fill_us, loop_us, reach_us, drain_reach_us, batch_us }
    }

    /// Time over which a rate of pages per second gathers a batch, in microseconds: long enough
    /// for a batch worth its syncs, as long as the age does not feel it.
    pub fn period_us(&self, pages_per_s: f64) -> f64 {
        let longest = (self.fill_us / LOOPS_TO_FILL).min(1e6).max(self.loop_us);
        (PAGES_WORTH_SYNCS * 1e6 / pages_per_s.max(1e-3)).clamp(self.loop_us, longest)
    }
}

/// Pages that are worth the syncs of a batch, where there is time to gather them.
pub(super) const PAGES_WORTH_SYNCS: f64 = 64.0;
