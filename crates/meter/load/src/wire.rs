//! How a worker process takes its job and brings back its outcome: one JSON line each way.
//!
//! Invariant: parent and child are the same program, so the form needs no version.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use iostrata_run::IoErrorCount;
use iostrata_stats::{LatencyHistogram, Verdicts};
use serde::{Deserialize, Serialize};

use crate::board::Layout;
use crate::clock::ClockFacts;
use crate::failure::{FailedRequest, Failure};
use crate::job::{Job, JobOutcome};
use crate::segment::{KindLatency, Segment};
use crate::usage::ThreadCpu;
use iostrata_io::OpKind;

/// What a worker process is told.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    pub job: Job,
    pub layout: Layout,
    pub clock: ClockFacts,
    /// The descriptor number under which the child finds the board.
    pub board_fd: i32,
}

/// What a worker process answers.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Answer {
    Outcome(Box<WireOutcome>),
    Failed(String),
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct WireOutcome {
    segments: Vec<WireSegment>,
    first_failure: Option<(u8, u32, u64, u32, i32)>,
    failures: Vec<IoErrorCount>,
    notes: Vec<String>,
    verdicts: Verdicts,
}

#[derive(Debug, Serialize, Deserialize)]
struct WireSegment {
    first_slice: usize,
    /// Service and response histograms of reads, writes and flushes; empty text where there is
    /// none.
    histograms: Vec<String>,
    lateness: String,
    bytes: [u64; 3],
    cpu: ThreadCpu,
    pacing_ns: u64,
}

const KINDS: [OpKind; 3] = [OpKind::Read, OpKind::Write, OpKind::Sync];

impl WireOutcome {
    /// # Errors
    /// A histogram that cannot be encoded, in words.
    pub(crate) fn pack(outcome: &JobOutcome) -> Result<Self, String> {
        let first = outcome.failure.first.map(|first| {
            let kind = crate::board::kind_index(first.kind) as u8;
            (kind, first.file, first.offset, first.asked_bytes, first.result)
        });
        Ok(Self {
            segments: outcome.segments.iter().map(WireSegment::pack).collect::<Result<_, _>>()?,
            first_failure: first,
            failures: outcome.failure.counts.clone(),
            notes: outcome.notes.clone(),
            verdicts: outcome.verdicts.clone(),
        })
    }

    /// # Errors
    /// A histogram that cannot be decoded, in words.
    pub(crate) fn unpack(self) -> Result<JobOutcome, String> {
        let first = self.first_failure.map(|(kind, file, offset, asked_bytes, result)| {
            let kind = KINDS[usize::from(kind).min(2)];
            FailedRequest { kind, file, offset, asked_bytes, result }
        });
        Ok(JobOutcome {
            segments: self
                .segments
                .into_iter()
                .map(WireSegment::unpack)
                .collect::<Result<_, _>>()?,
            failure: Failure { first, counts: self.failures },
            notes: self.notes,
            verdicts: self.verdicts,
        })
    }
}

impl WireSegment {
    fn pack(segment: &Segment) -> Result<Self, String> {
        let mut histograms = Vec::new();
        for kind in &segment.kinds {
            histograms.push(encode(kind.as_ref().map(|kind| &kind.service))?);
            histograms.push(encode(kind.as_ref().and_then(|kind| kind.response.as_ref()))?);
        }
        Ok(Self {
            first_slice: segment.first_slice,
            histograms,
            lateness: encode(segment.lateness.as_ref())?,
            bytes: segment.bytes,
            cpu: segment.cpu,
            pacing_ns: segment.pacing_ns,
        })
    }

    fn unpack(self) -> Result<Segment, String> {
        let mut kinds = [None, None, None];
        for (kind, pair) in kinds.iter_mut().zip(self.histograms.chunks(2)) {
            if let [service, response] = pair
                && let Some(service) = decode(service)?
            {
                *kind = Some(KindLatency { service, response: decode(response)? });
            }
        }
        Ok(Segment {
            first_slice: self.first_slice,
            kinds,
            lateness: decode(&self.lateness)?,
            bytes: self.bytes,
            cpu: self.cpu,
            pacing_ns: self.pacing_ns,
        })
    }
}

fn encode(histogram: Option<&LatencyHistogram>) -> Result<String, String> {
    match histogram {
        None => Ok(String::new()),
        Some(histogram) => {
            histogram.to_bytes().map(|bytes| STANDARD.encode(bytes)).map_err(|e| e.to_string())
        }
    }
}

fn decode(text: &str) -> Result<Option<LatencyHistogram>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let bytes = STANDARD.decode(text).map_err(|error| error.to_string())?;
    LatencyHistogram::from_bytes(&bytes).map(Some).map_err(|error| error.to_string())
}
