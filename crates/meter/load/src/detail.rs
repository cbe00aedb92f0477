//! What fio's forms of the output show of requests in addition to their figures.
//!
//! Invariant: it is noted only where a stream requests it, and covers the same stretch of the
//! window as the figures. Noting allocates nothing: its memory is there before the window begins.

use std::ops::Range;

use iostrata_io::submission_batch;
use iostrata_plan::{IoApi, IoSpec, OpKind, PerKind};
use iostrata_stats::LatencyHistogram;
use serde::{Deserialize, Serialize};

use crate::clock::Ticks;
use crate::steady::SteadyRates;
use crate::tally::Tally;
use crate::usage::ThreadUse;

/// Classes of depths and of batches.
pub(crate) const CLASSES: usize = 7;

/// Requests of a stretch of a window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RequestDetail {
    /// Requests by how many were in flight when they started: 1, 2, from 4, 8, 16, 32, 64 on.
    pub depths: [u64; CLASSES],
    /// Submissions by their requests: none, up to 4, 8, 16, 32, 64, and more.
    pub submissions: [u64; CLASSES],
    /// Looks for completions by how many there were, in the same classes.
    pub completions: [u64; CLASSES],
    /// From the start of a request until it was submitted; only where that is apart from its
    /// completion, and never for flushes.
    pub submission: PerKind<LatencyHistogram>,
    /// From there to the completion.
    pub completion: PerKind<LatencyHistogram>,
}

impl RequestDetail {
    /// An empty one with all the memory that it will need for these kinds.
    pub(crate) fn new(kinds: &[OpKind], is_apart: bool) -> Self {
        let apart = || {
            let kinds = kinds.iter().filter(|kind| is_apart && **kind != OpKind::Sync);
            kinds.map(|kind| (*kind, LatencyHistogram::new())).collect()
        };
        Self { submission: apart(), completion: apart(), ..Self::default() }
    }

    /// Adds another stretch's, or another worker's.
    pub fn merge(&mut self, other: &Self) {
        let counts = [
            (&mut self.depths, &other.depths),
            (&mut self.submissions, &other.submissions),
            (&mut self.completions, &other.completions),
        ];
        for (mine, theirs) in counts {
            mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| *mine += theirs);
        }
        for (kind, theirs) in other.submission.iter() {
            self.submission.entry(kind).merge(theirs);
        }
        for (kind, theirs) in other.completion.iter() {
            self.completion.entry(kind).merge(theirs);
        }
    }

    pub(crate) fn record(&mut self, kind: OpKind, submission_ns: u64, completion_ns: u64) {
        if let Some(histogram) = self.submission.get_mut(kind) {
            histogram.record_ns(submission_ns);
        }
        if let Some(histogram) = self.completion.get_mut(kind) {
            histogram.record_ns(completion_ns);
        }
    }

    /// Gives back memory that holds nothing.
    pub(crate) fn shrink(&mut self) {
        let all = self.submission.iter_mut().chain(self.completion.iter_mut());
        all.for_each(|(_, histogram)| histogram.shrink());
    }
}

/// The class of a depth: of a power of two and what is below the next.
fn depth_class(depth: u32) -> usize {
    (depth.max(1).ilog2() as usize).min(CLASSES - 1)
}

/// The class of a batch.
pub(crate) fn batch_class(requests: u32) -> usize {
    match requests {
        0 => 0,
        1..=4 => 1,
        more => ((more - 1).ilog2() as usize).min(CLASSES - 1),
    }
}

/// When the requests in flight were submitted.
#[derive(Debug)]
pub(crate) struct Submissions {
    /// By tag.
    pub stamps: Box<[Ticks]>,
    /// Tags of requests that were started and not yet noted.
    fresh: Vec<u32>,
    /// Whether the API submits apart from completing.
    pub is_apart: bool,
    batch: usize,
}

impl Submissions {
    pub(crate) fn of(spec: &IoSpec) -> Self {
        Self {
            stamps: vec![0; spec.depth as usize].into_boxed_slice(),
            fresh: Vec::with_capacity(spec.depth as usize),
            is_apart: is_apart(spec.api),
            batch: if is_apart(spec.api) { submission_batch(spec.depth) as usize } else { 1 },
        }
    }

    #[inline]
    pub(crate) fn started(&mut self, tag: u32) {
        self.fresh.push(tag);
    }

    pub(crate) fn has_fresh(&self) -> bool {
        !self.fresh.is_empty()
    }

    /// Notes that what was started since the last time is submitted by `now`, with so many in
    /// flight then.
    pub(crate) fn note(&mut self, now: Ticks, in_flight: u32, detail: &mut RequestDetail) {
        let before = in_flight.saturating_sub(self.fresh.len() as u32);
        for (depth, tag) in (before + 1..).zip(&self.fresh) {
            self.stamps[*tag as usize] = now;
            detail.depths[depth_class(depth)] += 1;
        }
        for batch in self.fresh.chunks(self.batch) {
            detail.submissions[batch_class(batch.len() as u32)] += 1;
        }
        self.fresh.clear();
    }
}

/// Whether an API starts a request in one call and completes it in another.
pub(crate) fn is_apart(api: IoApi) -> bool {
    matches!(api, IoApi::Libaio | IoApi::IoUring)
}

/// One worker of a stream.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CloneDetail {
    /// Length of its own measured part of the window.
    pub duration_s: f64,
    /// Of these, the seconds until it began to read back what it had written.
    pub reads_back_s: Option<f64>,
    /// Seconds per slice of its series.
    pub width_s: f64,
    /// Its requests by slice.
    pub series: PerKind<Vec<Tally>>,
}

impl CloneDetail {
    /// The part of its time that requests of a kind belong to, in seconds: writes come before what
    /// was written is read back, and reads behind it unless the mix has `reads` of its own.
    pub fn part_s(&self, kind: OpKind, reads: bool) -> Range<f64> {
        let whole = 0.0..self.duration_s;
        match (kind, self.reads_back_s) {
            (OpKind::Read, Some(at)) if !reads => at..whole.end,
            (OpKind::Write, Some(at)) => 0.0..at,
            _ => whole,
        }
    }
}

/// One stream of a window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StreamDetail {
    /// Its requests; empty where that was not requested.
    pub requests: RequestDetail,
    /// Switches and faults of its workers.
    pub used: ThreadUse,
    /// How steady its rate was; absent where that was not requested.
    pub steady: Option<SteadyRates>,
    /// Its workers; none where that was not requested.
    pub clones: Vec<CloneDetail>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_those_of_fio() {
        let depths = [(1, 0), (2, 1), (3, 1), (4, 2), (7, 2), (8, 3), (63, 5), (64, 6), (4096, 6)];
        for (depth, class) in depths {
            assert_eq!(depth_class(depth), class, "{depth}");
        }
        for (requests, class) in
            [(0, 0), (1, 1), (4, 1), (5, 2), (8, 2), (9, 3), (32, 4), (64, 5), (65, 6), (4096, 6)]
        {
            assert_eq!(batch_class(requests), class, "{requests}");
        }
    }
}
