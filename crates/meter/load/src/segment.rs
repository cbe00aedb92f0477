//! A stretch of the window with its own histograms.
//!
//! Purpose: warm-up is found only afterwards, so the first parts of a window are kept apart until
//! it is known whether they count. Invariant: a window is the sum of its segments.

use iostrata_stats::{LatencyHistogram, LatencyRecorder};

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
    /// Bytes moved, by [`kind_index`]; zeroes where every request moves the spec's block.
    pub bytes: [u64; 3],
    /// Processor time used in it, pacing included.
    pub cpu: ThreadCpu,
    /// Time spent spinning for the next due moment, in nanoseconds.
    pub pacing_ns: u64,
}

/// A segment while it is being recorded.
pub(crate) struct LiveSegment {
    pub first_slice: usize,
    kinds: [Option<LiveKind>; 3],
    lateness: Option<LatencyRecorder>,
    bytes: [u64; 3],
    pub cpu: ThreadCpu,
    pub pacing_ns: u64,
}

struct LiveKind {
    service: LatencyRecorder,
    response: Option<LatencyRecorder>,
}

impl LiveSegment {
    pub(crate) fn new(first_slice: usize, kept: Kept) -> Self {
        let kind = |kind: OpKind| {
            kept.kinds[kind_index(kind)].then(|| LiveKind {
                service: LatencyRecorder::new(),
                response: (kept.scheduled || kind == OpKind::Sync).then(LatencyRecorder::new),
            })
        };
        Self {
            first_slice,
            kinds: [kind(OpKind::Read), kind(OpKind::Write), kind(OpKind::Sync)],
            lateness: kept.scheduled.then(LatencyRecorder::new),
            bytes: [0; 3],
            cpu: ThreadCpu::default(),
            pacing_ns: 0,
        }
    }

    #[inline(always)]
    pub(crate) fn record(&mut self, kind: usize, service_ns: u64, response_ns: u64) {
        if let Some(latency) = &mut self.kinds[kind] {
            latency.service.record_ns(service_ns);
            if let Some(response) = &mut latency.response {
                response.record_ns(response_ns);
            }
        }
    }

    #[inline]
    pub(crate) fn add_bytes(&mut self, kind: usize, bytes: u32) {
        self.bytes[kind] += u64::from(bytes);
    }

    #[inline]
    pub(crate) fn record_lateness(&mut self, late_ns: u64) {
        if let Some(lateness) = &mut self.lateness {
            lateness.record_ns(late_ns);
        }
    }

    pub(crate) fn finish(self) -> Segment {
        let kinds = self.kinds.map(|kind| {
            kind.map(|kind| KindLatency {
                service: kind.service.into_histogram(),
                response: kind.response.map(LatencyRecorder::into_histogram),
            })
        });
        Segment {
            first_slice: self.first_slice,
            kinds,
            lateness: self.lateness.map(LatencyRecorder::into_histogram),
            bytes: self.bytes,
            cpu: self.cpu,
            pacing_ns: self.pacing_ns,
        }
    }
}

impl Segment {
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
        for (mine, theirs) in self.bytes.iter_mut().zip(other.bytes) {
            *mine += theirs;
        }
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
