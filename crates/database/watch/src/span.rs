//! What a target did between two samples of it.
//!
//! Invariant: no rate is below zero. A counter that went back began anew (it wrapped, or somebody
//! switched it off and on) and has no rate; after a restart nothing has one.

use iostrata_target::TargetSample;

use crate::moment::SampleMoment;

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
        (seconds > 0.0 && !after.sample.was_restarted_since(&before.sample)).then_some(span)
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
