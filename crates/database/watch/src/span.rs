//! What a target did between two samples of it.
//!
//! Invariant: no rate is below zero. A counter that went back began anew (it wrapped, or somebody
//! switched it off and on) and has no rate; after a restart nothing has one.

use iostrata_target::TargetSample;

use crate::moment::SampleMoment;

/// Starts that lie so close are the same: a server tells them in whole seconds, from two clocks.
const SAME_START_S: u64 = 2;

pub(crate) type SampleField = fn(&TargetSample) -> Option<u64>;

/// The time between two samples.
#[derive(Clone, Copy)]
pub(crate) struct SampleSpan<'a> {
    before: &'a TargetSample,
    after: &'a TargetSample,
    /// How long it was.
    pub(crate) seconds: f64,
}

impl<'a> SampleSpan<'a> {
    /// Nothing where no time passed on the target's clock, or where it was restarted in between.
    pub(crate) fn between(before: &'a SampleMoment, after: &'a SampleMoment) -> Option<Self> {
        let seconds = after.taken_s() - before.taken_s();
        let span = Self { before: &before.sample, after: &after.sample, seconds };
        (seconds > 0.0 && !is_restarted(&before.sample, &after.sample)).then_some(span)
    }

    /// By how much a counter grew.
    pub(crate) fn grown(&self, field: SampleField) -> Option<u64> {
        field(self.after)?.checked_sub(field(self.before)?)
    }

    /// By how much it grew per second.
    pub(crate) fn per_s(&self, field: SampleField) -> Option<f64> {
        Some(self.grown(field)? as f64 / self.seconds)
    }
}

/// Whether the target was started between two samples.
pub(crate) fn is_restarted(before: &TargetSample, after: &TargetSample) -> bool {
    let starts = before.started_s.zip(after.started_s);
    starts.is_some_and(|(before, after)| before.abs_diff(after) > SAME_START_S)
}
