//! How much redo the device bears for long: writers keep to it before the redo is short.
//!
//! Most pages that a load changes are changed in its first seconds, and come due together. Writers
//! that are slowed down only when these are due stand still while they are written. Here they are
//! slowed down as soon as the schedule of what is dirty cannot be kept at the rate of the device,
//! and by no more than that.

use crate::Lsn;

use crate::flush::sample::Ages;
use crate::flush::{AgeLimits, FlushSample, RedoPace};

/// Share of what the device writes that is counted on.
const COUNTED_ON: f64 = 0.98;

/// Share of the way from the async limit to the greatest age that no page is to pass.
const AGE_SHARE: f64 = 0.45;

/// Share from which on writers are delayed by the age as well.
const DELAY_SHARE: f64 = 0.7;

/// Writers are held back from when they make this share of what the device bears, until they make
/// less than that.
const NEAR: f64 = 0.95;
const LEAVES: f64 = 0.85;

/// Steps grow to their whole length, and shrink to nothing, in this time: longer while writers are
/// held back, shorter while they make less than the device bears, which may be for the steps alone.
const STEPS_US: f64 = 3_000_000.0;

/// Redo that may be made at once after a pause, as a share of that age: commits come in bursts.
const SPARES: f64 = 64.0;

/// Redo that is owed at most, as a time.
const OWED_US: u64 = 1_000_000;

/// Redo is made in steps that take the device as long as so many pages, and at most so long: the
/// syncs of commits then cost little compared with the pages.
const PAGES_OF_STEP: f64 = 12.0;
const STEP_US_MAX: f64 = 50_000.0;

/// Share of a step by which redo writes may take longer than without pages.
const SPARE_OF_STEP: f64 = 0.5;

/// The age that no page is to pass.
fn most_age(limits: &AgeLimits) -> f64 {
    age_at(limits, AGE_SHARE)
}

fn age_at(limits: &AgeLimits, share: f64) -> f64 {
    limits.async_age as f64 + limits.max_age.saturating_sub(limits.async_age) as f64 * share
}

/// The pace that writers keep to.
#[derive(Clone, Copy, Debug)]
pub(super) struct SustainableRedo {
    pace: RedoPace,
    holds_back: bool,
    /// Share of the whole step, from 0 to 1.
    step_share: f64,
}

impl Default for SustainableRedo {
    fn default() -> Self {
        Self { pace: RedoPace::FREE, holds_back: false, step_share: 0.0 }
    }
}

impl SustainableRedo {
    /// Takes a sample; `most_per_s` is what the device writes in pages per second, as far as it is
    /// known, and `redo_per_s` what writers make of redo, in bytes per second.
    pub fn observe(&mut self, now: &FlushSample<'_>, most_per_s: Option<f64>, redo_per_s: f64) {
        let Some(most_per_s) = most_per_s else { return };
        let most_age = most_age(&now.limits);
        let borne = Ages::of(now).redo_rate_for(most_age, most_per_s * COUNTED_ON);
        if !borne.is_finite() {
            *self = Self::default();
            return;
        }
        let is_old = now.modified_age() as f64 >= most_age * COUNTED_ON;
        let is_above = |share: f64| is_old || redo_per_s >= borne * share;
        self.holds_back = is_above(if self.holds_back { LEAVES } else { NEAR });
        let took_us = now.now_us.saturating_sub(self.pace.at_us) as f64;
        self.step_share += match (self.holds_back, is_above(LEAVES)) {
            (true, _) => took_us / STEPS_US,
            (false, true) => 0.0,
            (false, false) => -took_us / STEPS_US,
        };
        self.step_share = self.step_share.clamp(0.0, 1.0);
        let bytes_per_s = (borne as u64).max(1);
        let bytes_in = |us: u64| (u128::from(bytes_per_s) * u128::from(us) / 1_000_000) as u64;
        let lsn = match self.pace.bytes_per_s {
            u64::MAX => now.lsn,
            _ => self.pace.line_at(now.now_us),
        };
        let least = now.lsn.0.saturating_sub(bytes_in(OWED_US));
        let most = now.lsn.0.saturating_add((most_age / SPARES) as u64);
        let lsn = Lsn(lsn.0.clamp(least, most));
        let longest_us = (most_age / SPARES * 1e6 / borne).min(STEP_US_MAX);
        let whole_us = (PAGES_OF_STEP * 1e6 / most_per_s).min(longest_us);
        let step_us = (whole_us * self.step_share).max(1.0) as u64;
        self.pace = RedoPace { lsn, at_us: now.now_us, bytes_per_s, step_us };
    }

    /// From where on writers are slowed down by the age as well: somewhat above what the pace keeps
    /// it at, once there is one.
    pub fn delay_age(&self, limits: &AgeLimits) -> u64 {
        if self.pace.is_free() { limits.async_age } else { age_at(limits, DELAY_SHARE) as u64 }
    }

    /// The pace from now on.
    pub fn pace(&self) -> RedoPace {
        self.pace
    }

    /// By how much longer redo writes may take: writers who are held back wait for their step, and
    /// not for the redo.
    pub fn spare_us(&self) -> f64 {
        if self.holds_back { self.pace.step_us as f64 * SPARE_OF_STEP } else { 0.0 }
    }

    /// Whether writers would make more than the device bears.
    pub fn holds_back(&self) -> bool {
        self.holds_back
    }
}
