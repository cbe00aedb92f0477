//! Operations counted per slice of a window, and the slices in which a job runs.

use std::ops::Range;
use std::time::Duration;

use iostrata_plan::{IoSpec, OpKind, PerKind};
use serde::{Deserialize, Serialize};

/// A window shorter than so many requests one after another is too short to show their rate.
const LATENCIES_MIN: f64 = 20.0;

/// Count and latency sums of one kind of operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Requests completed.
    pub count: u64,
    /// Sum of their service latencies, in nanoseconds.
    pub service_ns: u64,
    /// Sum of their response latencies, in nanoseconds.
    pub response_ns: u64,
    /// Sum of the times until they were submitted, in nanoseconds; 0 where that is not noted.
    pub submission_ns: u64,
}

impl Tally {
    /// Adds another worker's or slice's.
    pub fn add(&mut self, other: Self) {
        self.count += other.count;
        self.service_ns += other.service_ns;
        self.response_ns += other.response_ns;
        self.submission_ns += other.submission_ns;
    }
}

/// The tallies of one slice, by the number of the kind.
pub(crate) type SliceTally = [Tally; OpKind::COUNT];

/// Tallies per slice, summed over workers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slices {
    /// The number of slices.
    pub len: usize,
    /// By kind of operation, one tally per slice.
    pub kinds: PerKind<Vec<Tally>>,
}

impl Slices {
    /// Adds those of another worker, as far as these go.
    pub(crate) fn add(&mut self, other: &Self) {
        for (kind, theirs) in other.kinds.iter() {
            let mine = self.kinds.entry(kind);
            mine.resize(self.len.max(mine.len()), Tally::default());
            mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| mine.add(*theirs));
        }
    }

    /// Some of them.
    pub(crate) fn range(&self, range: Range<usize>) -> Self {
        Self { len: range.len(), kinds: self.kinds.map(|_, all| all[range.clone()].to_vec()) }
    }

    /// Sums of so many slices each. A last, shorter group would look like a drop, so it is left
    /// out.
    pub(crate) fn grouped(&self, group: usize) -> PerKind<Vec<Tally>> {
        let sum = |tallies: &[Tally]| {
            let mut sum = Tally::default();
            tallies.iter().for_each(|tally| sum.add(*tally));
            sum
        };
        self.kinds.map(|_, tallies| tallies.chunks_exact(group).map(sum).collect())
    }

    /// All operations of a kind.
    pub(crate) fn sum(&self, kind: OpKind) -> Tally {
        let mut sum = Tally::default();
        self.kinds[kind].iter().flatten().for_each(|tally| sum.add(*tally));
        sum
    }

    /// The number of operations of these kinds in each slice.
    pub(crate) fn counts(&self, is_counted: impl Fn(OpKind) -> bool) -> Vec<f64> {
        let mut counts = vec![0.0; self.len];
        for (_, tallies) in self.kinds.iter().filter(|(kind, _)| is_counted(*kind)) {
            counts.iter_mut().zip(tallies).for_each(|(sum, one)| *sum += one.count as f64);
        }
        counts
    }

    /// How long a window must be for requests as slow as these, in nanoseconds; `None` while none
    /// has completed. The slowest kind counts.
    pub(crate) fn window_ns_min(&self) -> Option<f64> {
        let sums = self.kinds.kinds().map(|kind| self.sum(kind)).filter(|sum| sum.count > 0);
        let slowest = sums.map(|sum| sum.service_ns as f64 / sum.count as f64).reduce(f64::max)?;
        Some(LATENCIES_MIN * slowest)
    }
}

// The part of the window in which a job runs.
//
// Invariant: whole slices, so that what is counted begins on the edge of one; only a job that ends
// by itself ends between two.

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
