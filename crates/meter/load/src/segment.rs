//! A stretch of the window with its own histograms.
//!
//! Purpose: warm-up is found only afterwards, so the first parts of a window are kept apart until
//! it is known whether they count. Invariants: a window is the sum of its segments; recording
//! neither allocates nor fails.

use iostrata_plan::{OpKind, PerKind};
use iostrata_run::TransactionFigures;
use iostrata_stats::{Latencies, LatencyHistogram};
use serde::{Deserialize, Serialize};

use crate::detail::RequestDetail;
use crate::usage::ThreadUse;

/// Which histograms a worker needs; what it never does costs no memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct HistogramNeeds {
    /// Kinds of operations.
    pub kinds: Vec<OpKind>,
    /// Whether operations are scheduled, and so have a response latency and a lateness.
    pub scheduled: bool,
    /// Whether requests are noted in detail.
    pub detail: bool,
    /// Whether that separates their submission from their completion.
    pub is_apart: bool,
}

/// The operations of one kind in a segment.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct KindSegment {
    pub latencies: Latencies,
    /// Bytes moved; 0 where every request moves the spec's block.
    pub bytes: u64,
}

/// One stretch of a worker's window.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Segment {
    /// The slice it begins with.
    pub first_slice: usize,
    pub kinds: PerKind<KindSegment>,
    /// How late operations started, if scheduled.
    pub lateness: Option<LatencyHistogram>,
    /// Its requests in detail, where that was requested.
    pub detail: Option<Box<RequestDetail>>,
    /// What the worker used in it, pacing included.
    pub cpu: ThreadUse,
    /// Time spent spinning for the next due moment, in nanoseconds.
    pub pacing_ns: u64,
    /// What only transactions have.
    pub transactions: TransactionFigures,
}

impl Segment {
    /// An empty one with all the memory that it will need.
    pub(crate) fn new(first_slice: usize, recorded: &HistogramNeeds) -> Self {
        let kind = |&kind: &OpKind| {
            // A flush responds to the first write that it covers, schedule or not.
            let has_response = recorded.scheduled || kind == OpKind::Sync;
            (kind, KindSegment { latencies: Latencies::new(has_response), bytes: 0 })
        };
        Self {
            first_slice,
            kinds: recorded.kinds.iter().map(kind).collect(),
            lateness: recorded.scheduled.then(LatencyHistogram::new),
            detail: recorded
                .detail
                .then(|| Box::new(RequestDetail::new(&recorded.kinds, recorded.is_apart))),
            ..Self::default()
        }
    }

    #[inline(always)]
    pub(crate) fn record(&mut self, kind: OpKind, service_ns: u64, response_ns: u64) {
        if let Some(of_kind) = self.kinds.get_mut(kind) {
            of_kind.latencies.record(service_ns, response_ns);
        }
    }

    #[inline]
    pub(crate) fn add_bytes(&mut self, kind: OpKind, bytes: u32) {
        if let Some(of_kind) = self.kinds.get_mut(kind) {
            of_kind.bytes += u64::from(bytes);
        }
    }

    #[inline]
    pub(crate) fn record_lateness(&mut self, late_ns: u64) {
        if let Some(lateness) = &mut self.lateness {
            lateness.record_ns(late_ns);
        }
    }

    /// Gives back memory that holds nothing.
    pub(crate) fn shrink(&mut self) {
        self.kinds.iter_mut().for_each(|(_, of_kind)| of_kind.latencies.shrink());
        self.lateness.iter_mut().for_each(LatencyHistogram::shrink);
        self.detail.iter_mut().for_each(|detail| detail.shrink());
    }

    /// Adds another segment: of a later stretch, or of another worker.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (kind, theirs) in other.kinds.iter() {
            let mine = self.kinds.entry(kind);
            mine.latencies.merge(&theirs.latencies);
            mine.bytes += theirs.bytes;
        }
        if let Some(lateness) = &other.lateness {
            self.lateness.get_or_insert_default().merge(lateness);
        }
        if let Some(detail) = &other.detail {
            self.detail.get_or_insert_default().merge(detail);
        }
        self.cpu.add(other.cpu);
        self.pacing_ns += other.pacing_ns;
        self.transactions.add(&other.transactions);
    }
}
