//! The part of the window in which a job runs.
//!
//! Invariant: whole slices, so that what is counted begins on the edge of one; only a job that ends
//! by itself ends between two.

use std::time::Duration;

use iostrata_plan::IoSpec;
use serde::{Deserialize, Serialize};

/// When a job runs and from when on it is counted, in slices of the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Span {
    /// Its first slice.
    pub first_slice: usize,
    /// The first slice that counts.
    pub counted_slice: usize,
    /// The slice before which it ends; absent: with the window.
    pub end_slice: Option<usize>,
}

impl Span {
    /// The span of every job of a stream in slices of a length.
    pub(crate) fn of(spec: &IoSpec, slice: Duration) -> Self {
        let slices = |time: Duration| (time.as_secs_f64() / slice.as_secs_f64()).round() as usize;
        let delay = spec.variation.start_delay;
        let counted = delay.saturating_add(spec.variation.ramp_time);
        Self {
            first_slice: slices(delay),
            counted_slice: slices(counted),
            end_slice: spec.runtime.map(|runtime| slices(counted.saturating_add(runtime)).max(1)),
        }
    }
}
