//! The lines of `events.jsonl`: what happened in a run, in order, one line per finished thing.
//!
//! Invariant: a line is appended whole and flushed before the next thing starts, so that a killed
//! run is a shorter run and nothing else.

use iostrata_plan::{OpKind, Point};
use iostrata_stats::{Measured, Percentile, Verdicts};
use serde::{Deserialize, Serialize};

use crate::host::{BlockLatency, Evidence, IoLimit, Profile};
use crate::{
    StallSnapshot, StreamFigures, TransactionStall, TunedSetting, Unavailable, WatchSample,
    WatchTarget,
};

/// One finished measurement of one point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Replicate {
    /// What was measured.
    pub point: Point,
    /// Counts from 0 within the point.
    pub replicate: u32,
    /// Seconds from the start of the run to the start of the measured window.
    pub started_s: f64,
    /// Length of the measured window in seconds.
    pub duration_s: f64,
    /// One entry per stream of the point, in its order.
    pub streams: Vec<StreamFigures>,
    /// What the machine and the device did meanwhile.
    pub evidence: Option<Evidence>,
    /// What speaks against the whole replicate.
    pub verdicts: Verdicts,
}

/// A profile of one replicate of a point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PointProfile {
    /// The point.
    pub point: String,
    /// The replicate; absent for a pass apart from the measured ones.
    pub replicate: Option<u32>,
    /// The profile.
    pub profile: Profile,
}

/// Latencies of several replicates of a point taken together: percentiles for which one window is
/// too short.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PooledLatencies {
    /// The point.
    pub point: String,
    /// The replicates.
    pub replicates: Vec<u32>,
    /// One entry per stream and kind of request.
    pub latencies: Vec<PooledLatency>,
}

/// The response latency of one kind of request of a stream, over several replicates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PooledLatency {
    /// The stream.
    pub stream: String,
    /// The kind of request.
    pub op: OpKind,
    /// Requests in all.
    pub n: u64,
    /// Rising percentiles.
    pub percentiles: Vec<Percentile>,
}

/// Latency by layer of a point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LatencyTrace {
    /// The point.
    pub point: String,
    /// IOPS of the traced pass, to be set against the measured ones: what tracing costs.
    pub iops: f64,
    /// Where the time went.
    pub latency: BlockLatency,
}

/// A stretch in which a device had requests in flight and answered none.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DevicePause {
    /// When it began, in seconds since the start of the run.
    pub at_s: f64,
    /// How long it lasted, in seconds.
    pub lasts_s: f64,
}

/// A system change that the study made, and what the kernel took.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChangeRecord {
    /// What was done, in words.
    pub text: String,
    /// The requested value, if any.
    pub asked: Option<String>,
    /// The value that the kernel really took, where it can be read back.
    pub took: Option<String>,
}

/// One line of the event log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A replicate is finished.
    Replicate(Box<Replicate>),
    /// The clock that every latency is taken with.
    Clock {
        /// Its name.
        name: String,
        /// What reading it costs, in nanoseconds.
        read_ns: Measured,
        /// Why a better clock was not used.
        fallback: Option<String>,
    },
    /// Something was found not to be possible here.
    Unavailable(Unavailable),
    /// A point of a suspicion is about to be confirmed: the id of the suspicion.
    Suspected {
        /// The finding's id.
        id: String,
        /// The points that will confirm or clear it.
        confirm: Vec<String>,
    },
    /// The limits of control groups are others than before.
    Limits {
        /// Seconds since the start of the run.
        at_s: f64,
        /// All limits in force.
        limits: Vec<IoLimit>,
    },
    /// What the kernel did during one replicate of a point.
    Profiled(Box<PointProfile>),
    /// Latencies of all replicates of a point.
    Pooled(Box<PooledLatencies>),
    /// Where the requests of a point spent their time, from a pass apart from the measured ones.
    Traced(Box<LatencyTrace>),
    /// For how long the device was watched for pauses, within windows and between them, and those
    /// that it made.
    Paused {
        /// Seconds watched.
        watched_s: f64,
        /// The pauses in their order.
        pauses: Vec<DevicePause>,
    },
    /// A system setting was changed for the run, or has another value than requested.
    Changed(ChangeRecord),
    /// A target is watched or tuned from here on: what it is.
    Watching(Box<WatchTarget>),
    /// A sample of it.
    Sampled {
        /// The sample with its rates.
        sample: Box<WatchSample>,
        /// The current stall, or the one that has just ended; a later one with the same start
        /// replaces it.
        stall: Option<TransactionStall>,
        /// The activity when it began, where it was queried with this sample.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        snapshot: Option<Box<StallSnapshot>>,
    },
    /// A setting of it was changed.
    Tuned(TunedSetting),
    /// The run ended by itself.
    Finished {
        /// Seconds since its start.
        at_s: f64,
        /// Bytes written in all.
        bytes_written: u64,
    },
    /// The run was stopped by a signal.
    Interrupted {
        /// Seconds since its start.
        at_s: f64,
        /// Bytes written in all.
        bytes_written: u64,
    },
}

impl Event {
    /// The replicate that it is of.
    pub fn replicate(&self) -> Option<&Replicate> {
        match self {
            Self::Replicate(replicate) => Some(replicate),
            _ => None,
        }
    }
}
