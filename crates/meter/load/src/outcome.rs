//! What a window brought back, before figures are made of it.
//!
//! Invariant: histograms, slices and bytes of a stream are sums over its workers. It computes no
//! figure.

use iostrata_stats::Verdicts;

use crate::board::{SliceTally, Tally};
use crate::failure::Failure;
use crate::job::JobOutcome;
use crate::segment::Segment;
use crate::window::StreamPlan;

/// A window shorter than so many requests one after another says little about their rate.
const LATENCIES_MIN: f64 = 20.0;

/// How long a window must be for requests as slow as these, in nanoseconds; `None` while none has
/// completed. The slowest kind counts.
pub(crate) fn window_ns_min(slices: &[SliceTally]) -> Option<f64> {
    let mean_ns = |kind: usize| {
        let tallies = slices.iter().map(|slice| slice[kind]);
        let (count, ns) =
            tallies.fold((0, 0), |sum, one: Tally| (sum.0 + one.count, sum.1 + one.service_ns));
        (count > 0).then(|| ns as f64 / count as f64)
    };
    let slowest = (0..3).filter_map(mean_ns).reduce(f64::max)?;
    Some(LATENCIES_MIN * slowest)
}

/// What one stream brought back.
#[derive(Clone, Debug)]
pub struct StreamOutcome {
    /// Its plan.
    pub plan: StreamPlan,
    /// Stretches of the window, merged over its workers.
    pub segments: Vec<Segment>,
    /// Tallies per slice, summed over its workers.
    pub slices: Vec<SliceTally>,
    /// Requests that failed.
    pub failure: Failure,
    /// What was refused and done otherwise.
    pub notes: Vec<String>,
    /// What the APIs and the clock speak against it.
    pub verdicts: Verdicts,
    /// Bytes written from start to end, counting those outside the window.
    pub written_bytes: u64,
    /// The first slice that counts, after a delay or a ramp.
    pub counted_slice: usize,
    /// Seconds from the start of the window to the end of its last worker.
    pub ended_s: f64,
}

/// What a window brought back.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// One entry per stream.
    pub streams: Vec<StreamOutcome>,
    /// Seconds of one slice.
    pub slice_s: f64,
    /// Whether the length was fixed beforehand, so that nothing may be cut.
    pub exact: bool,
    /// Whether a signal ended it.
    pub interrupted: bool,
}

impl StreamOutcome {
    /// Adds what one worker brought back.
    pub(crate) fn add(&mut self, outcome: JobOutcome, written_bytes: u64) {
        if self.segments.is_empty() {
            self.segments = outcome.segments;
        } else {
            for (mine, theirs) in self.segments.iter_mut().zip(&outcome.segments) {
                mine.merge(theirs);
            }
        }
        self.failure.merge(&outcome.failure);
        self.verdicts.merge(&outcome.verdicts);
        self.written_bytes += written_bytes;
        for note in outcome.notes {
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
    }
}

impl StreamOutcome {
    /// Bytes that the window's requests moved, by [`kind_index`](crate::kind_index).
    pub fn moved_bytes(&self) -> [u64; 3] {
        let spec = &self.plan.spec;
        if spec.variation.is_plain_loop() {
            let ios = |kind: usize| self.slices.iter().map(|slice| slice[kind].count).sum::<u64>();
            let block_bytes = u64::from(spec.block_bytes);
            return [ios(0) * block_bytes, ios(1) * block_bytes, 0];
        }
        let bytes = |kind: usize| self.segments.iter().map(|segment| segment.bytes[kind]).sum();
        [bytes(0), bytes(1), 0]
    }
}
