//! A stretch of the window with its own histograms.
//!
//! Purpose: warm-up is found only afterwards, so the first parts of a window are kept apart until it
//! is known whether they count. Invariant: a window is the sum of its segments.

use iostrata_stats::LatencyHistogram;

use crate::board::kind_index;
use crate::usage::ThreadCpu;
use iostrata_io::OpKind;

/// Which histograms a worker needs; what it never does costs no memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Kept {
    /// Kinds of requests, by [`kind_index`].
    pub kinds: [bool; 3],
    /// Whether there is a schedule, and so a response latency and a lateness.
    pub scheduled: bool,
}

/// Service and response latencies of one kind of request.
#[derive(Clone, Debug, Default)]
pub struct KindLatency {
    /// From the start of the request.
    pub service: LatencyHistogram,
    /// From its scheduled start, or for flushes from the first write that it covers.
    pub response: Option<LatencyHistogram>,
}

/// One stretch of a worker's window.
#[derive(Clone, Debug, Default)]
pub struct Segment {
    /// The slice it begins with.
    pub first_slice: usize,
    /// Reads, writes, flushes.
    pub kinds: [Option<KindLatency>; 3],
    /// How late requests started, when there is a schedule.
    pub lateness: Option<LatencyHistogram>,
    /// Processor time used in it, pacing included.
    pub cpu: ThreadCpu,
    /// Time spent spinning for the next due moment, in nanoseconds.
    pub pacing_ns: u64,
}

impl Segment {
    pub(crate) fn new(first_slice: usize, kept: Kept) -> Self {
        let kind = |kind: OpKind| {
            kept.kinds[kind_index(kind)].then(|| KindLatency {
                service: LatencyHistogram::new(),
                response: (kept.scheduled || kind == OpKind::Sync).then(LatencyHistogram::new),
            })
        };
        Self {
            first_slice,
            kinds: [kind(OpKind::Read), kind(OpKind::Write), kind(OpKind::Sync)],
            lateness: kept.scheduled.then(LatencyHistogram::new),
            cpu: ThreadCpu::default(),
            pacing_ns: 0,
        }
    }

    /// Adds another segment: of a later stretch, or of another worker.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.kinds.iter_mut().zip(&other.kinds) {
            match (mine, theirs) {
                (Some(mine), Some(theirs)) => {
                    mine.service.merge(&theirs.service);
                    merge_option(&mut mine.response, &theirs.response);
                }
                (mine @ None, Some(theirs)) => *mine = Some(theirs.clone()),
                (_, None) => {}
            }
        }
        merge_option(&mut self.lateness, &other.lateness);
        self.cpu.add(other.cpu);
        self.pacing_ns += other.pacing_ns;
    }
}

fn merge_option(mine: &mut Option<LatencyHistogram>, theirs: &Option<LatencyHistogram>) {
    match (mine, theirs) {
        (Some(mine), Some(theirs)) => mine.merge(theirs),
        (mine @ None, Some(theirs)) => *mine = Some(theirs.clone()),
        (_, None) => {}
    }
}
