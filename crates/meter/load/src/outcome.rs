//! What a window brought back, before figures are made of it, with the requests that failed.
//!
//! Invariant: histograms and slices of a stream are sums over its workers. It does not depend on
//! the kind of load, and computes no figure.

use std::io;

use iostrata_plan::OpKind;
use iostrata_run::IoErrorCount;
use iostrata_run::host::OwnIo;
use iostrata_stats::{Verdicts, choose_cut};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::rate_watch::MissedRate;
use crate::segment::Segment;
use crate::shared_stats::SharedStats;
use crate::steady::SteadyRates;
use crate::tally::Slices;

/// Whose work the processor time of a stream's workers is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CpuOf {
    /// The figure itself: nothing else is measured.
    Figure,
    /// The meter's, and the kernel's on its behalf.
    Meter,
    /// Mostly that of what is measured, which runs in the workers.
    Measured,
}

/// The options of a stream that its figures depend on.
#[derive(Clone, Debug)]
pub(crate) struct StreamOptions {
    /// The stream's name.
    pub name: String,
    /// Relative half-width of the interval at which the window may end early.
    pub precision: f64,
    /// Operations that may be in flight at a time.
    pub in_flight_max: f64,
    /// Whether so many should be in flight all the time.
    pub holds_depth: bool,
    /// Threads or processes that make requests.
    pub workers: u32,
    /// Whose work their processor time is.
    pub cpu_of: CpuOf,
    /// Bytes of each operation but a flush; absent where each is counted by itself.
    pub block_bytes: Option<u32>,
    /// Whether its mix has reads: then not all are of what was written and is verified.
    pub reads: bool,
    /// Whether its operations are transactions.
    pub has_transactions: bool,
    /// Slices of the longest series that is kept.
    pub series_points_max: usize,
}

/// What a worker brings back.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct JobOutcome {
    pub segments: Vec<Segment>,
    pub failure: Failure,
    pub notes: Vec<String>,
    pub verdicts: Verdicts,
}

/// What one stream brought back.
#[derive(Clone, Debug)]
pub(crate) struct StreamOutcome {
    /// Its options.
    pub asked: StreamOptions,
    /// Stretches of the window, merged over its workers.
    pub segments: Vec<Segment>,
    /// Tallies per slice.
    pub slices: Slices,
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
    /// How steady its rate was; only where that was requested.
    pub steady: Option<SteadyRates>,
    /// Its workers; only where requests are noted in detail.
    pub clones: Vec<CloneOutcome>,
}

/// Where the tallies of one worker are.
#[derive(Clone, Debug)]
pub(crate) struct CloneOutcome {
    pub shared: SharedStats,
    pub worker: u32,
    /// Slices of the window that they cover.
    pub covered: usize,
    /// Seconds from the start of the window to the end of the worker.
    pub ended_s: f64,
    /// Seconds from the start of the window until it began to read back what it had written.
    pub reads_back_s: Option<f64>,
}

/// What a window brought back.
#[derive(Clone, Debug)]
pub struct WindowOutcome {
    /// One entry per stream.
    pub(crate) streams: Vec<StreamOutcome>,
    /// Seconds of one slice.
    pub(crate) slice_s: f64,
    /// Whether the length was fixed beforehand, so that no rule ended it.
    pub(crate) exact: bool,
    /// The slice before which the window was warming up.
    pub(crate) cut_slice: usize,
    /// Whether a signal ended it.
    pub(crate) interrupted: bool,
    /// The load's own requests to devices, where known.
    pub(crate) own_io: Option<OwnIo>,
    /// Bytes written to files, counting those outside the window.
    pub(crate) written_bytes: u64,
    /// Why it ended early.
    pub(crate) failure: Option<LoadFailure>,
}

impl StreamOutcome {
    /// Nothing yet.
    pub(crate) fn new(asked: StreamOptions, slices: Slices) -> Self {
        Self {
            asked,
            segments: Vec::new(),
            slices,
            failure: Failure::default(),
            notes: Vec::new(),
            verdicts: Verdicts::none(),
            written_bytes: 0,
            counted_slice: 0,
            ended_s: 0.0,
            steady: None,
            clones: Vec::new(),
        }
    }

    /// Adds what one worker brought back.
    pub(crate) fn add(&mut self, outcome: JobOutcome, written_bytes: u64) {
        self.add_segments(outcome.segments);
        self.failure.merge(&outcome.failure);
        self.verdicts.merge(&outcome.verdicts);
        self.written_bytes += written_bytes;
        for note in outcome.notes {
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
    }

    /// Adds the stretches of one worker, which begin where those of all others do.
    pub(crate) fn add_segments(&mut self, segments: Vec<Segment>) {
        if self.segments.is_empty() {
            self.segments = segments;
            return;
        }
        for (mine, theirs) in self.segments.iter_mut().zip(&segments) {
            mine.merge(theirs);
        }
    }

    /// The slice before which the stream was warming up.
    pub(crate) fn warm_up(&self) -> usize {
        let candidates: Vec<usize> =
            self.segments.iter().map(|segment| segment.first_slice).collect();
        choose_cut(&self.slices.counts(|_| true), &candidates)
    }

    /// Bytes that requests of a kind moved: all of them are of one block, or each counted.
    pub(crate) fn moved_bytes<'a>(
        &self,
        kind: OpKind,
        slices: &Slices,
        segments: impl IntoIterator<Item = &'a Segment>,
    ) -> u64 {
        if let Some(block_bytes) = self.asked.block_bytes.filter(|_| kind != OpKind::Sync) {
            return slices.sum(kind).count * u64::from(block_bytes);
        }
        segments.into_iter().filter_map(|one| Some(one.kinds[kind].as_ref()?.bytes)).sum()
    }
}

// Requests that failed: the first one whole, the others counted.
//
// Invariant: a failed request is never in a histogram. It allocates only when something failed,
// and then at most once per error number.

/// A request that failed or moved fewer bytes than requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedRequest {
    /// Read, write or flush.
    pub kind: OpKind,
    /// Index of the file.
    pub file: u32,
    /// Offset in it.
    pub offset: u64,
    /// Bytes requested.
    pub asked_bytes: u32,
    /// `-errno`, or the bytes that were moved.
    pub result: i32,
}

impl FailedRequest {
    /// The error number; `None` when the request merely moved too few bytes.
    pub fn errno(&self) -> Option<i32> {
        (self.result < 0).then_some(-self.result)
    }
}

/// Why a window ended early, though it has figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadFailure {
    /// A request failed.
    Request {
        /// The first one that did.
        request: FailedRequest,
        /// Its file.
        path: String,
    },
    /// A file was removed meanwhile.
    Removed {
        /// The file.
        path: String,
    },
    /// Jobs ended since they missed rates that they must reach.
    RatesMissed {
        /// The streams, each with the first rate that one of its jobs missed.
        missed: Vec<(String, MissedRate)>,
    },
    /// Every session was gone, and none could be opened again.
    SessionsGone {
        /// The number of sessions.
        sessions: u32,
        /// For how long, in whole seconds.
        seconds: u64,
        /// The target's last error.
        code: String,
    },
    /// More transactions arrived than could wait.
    Overloaded {
        /// How many could.
        queue_max: u32,
    },
    /// A transaction failed after which every other one would fail, too.
    Refused {
        /// Under what it is counted.
        code: String,
        /// The target's message, and the fix.
        text: String,
    },
    /// So many transactions failed that the others are no measurement.
    TransactionsFailed {
        /// How many did.
        failed: u64,
        /// How many were done.
        done: u64,
        /// Under what most of them are counted.
        code: String,
        /// The target's first message, and the fix.
        text: String,
    },
}

/// What failed in one worker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The first failed request.
    pub first: Option<FailedRequest>,
    /// How often each error number came; 0 stands for too few bytes.
    pub counts: Vec<IoErrorCount>,
    /// The rate that ended the worker, since it was not reached.
    pub missed_rate: Option<MissedRate>,
}

impl Failure {
    pub(crate) fn is_set(&self) -> bool {
        self.first.is_some()
    }

    pub(crate) fn add(&mut self, request: FailedRequest) {
        self.first.get_or_insert(request);
        self.add_count(request.errno().unwrap_or(0), 1);
    }

    /// Files that could not be flushed, all of them together.
    pub(crate) fn add_flush(&mut self, error: &io::Error) {
        let result = -error.raw_os_error().unwrap_or(Errno::IO.raw_os_error());
        let (kind, file, offset, asked_bytes) = (OpKind::Sync, 0, 0, 0);
        self.add(FailedRequest { kind, file, offset, asked_bytes, result });
    }

    /// As in fio, a missed rate is an error of input or output.
    pub(crate) fn add_missed(&mut self, missed: MissedRate) {
        self.missed_rate.get_or_insert(missed);
        self.add_count(Errno::IO.raw_os_error(), 1);
    }

    fn add_count(&mut self, errno: i32, count: u64) {
        match self.counts.iter_mut().find(|entry| entry.errno == errno) {
            Some(entry) => entry.count += count,
            None => self.counts.push(IoErrorCount { errno, count }),
        }
    }

    /// Adds another worker's.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.first = self.first.or(other.first);
        self.missed_rate = self.missed_rate.or(other.missed_rate);
        for entry in &other.counts {
            self.add_count(entry.errno, entry.count);
        }
    }
}
