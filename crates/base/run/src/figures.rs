//! What one replicate of a point measured.
//!
//! Invariant: `iops = ios / duration_s`, and every figure comes from the same measured window.

use std::collections::BTreeMap;

use iostrata_plan::{OpKind, PerKind, op_kind};
use iostrata_stats::{Latencies, LatencyHistogram, LatencyUs, Measured, Verdicts};
use serde::{Deserialize, Serialize};

use crate::{ResourceUse, SamplerCost, TargetCourse, TransactionSeries, TransactionStall};

/// Requests of one kind in one stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OpFigures {
    /// Requests completed in the window.
    pub ios: u64,
    /// Bytes they moved.
    pub bytes: u64,
    /// Requests per second.
    pub iops: Measured,
    /// Mean service latency with its interval, in microseconds.
    pub latency_mean_us: Measured,
    /// Service latency: from the start of the request to its completion.
    pub latency_us: LatencyUs,
    /// Mean response latency with its interval, in microseconds.
    pub response_mean_us: Option<Measured>,
    /// Response latency: from the scheduled start, if scheduled. For flushes always there: from the
    /// start of the first write that the flush covers.
    pub response_us: Option<LatencyUs>,
    /// The histograms behind both; apart from the event in a run directory, and empty where they
    /// were not read.
    #[serde(skip)]
    pub latencies: Latencies,
}

impl OpFigures {
    /// The service latencies and their mean.
    pub fn service(&self) -> (&LatencyHistogram, &Measured) {
        (&self.latencies.service, &self.latency_mean_us)
    }

    /// The response latencies and their mean; the service latencies without a schedule.
    pub fn response(&self) -> (&LatencyHistogram, &Measured) {
        match (&self.latencies.response, &self.response_mean_us) {
            (Some(response), Some(mean)) => (response, mean),
            _ => self.service(),
        }
    }
}

/// Processor time of the worker threads in the measured window. No filling, calibration or pacing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cpu {
    /// Seconds in user space.
    pub user_s: f64,
    /// Seconds in the kernel.
    pub sys_s: f64,
    /// Both, per completed request; absent when nothing completed.
    pub ns_per_io: Option<f64>,
}

/// Completed requests per slice of time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Series {
    /// Seconds per slice.
    pub width_s: f64,
    /// Operations of each kind per slice.
    #[serde(flatten, with = "op_kind::series")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "op_kind::schema::series"))]
    pub counts: PerKind<Vec<u32>>,
    /// Mean service latency of all requests in each slice, in microseconds; 0 in an empty slice.
    pub latency_mean_us: Vec<f32>,
}

impl Series {
    /// Operations of one kind per slice; empty when there were none.
    pub fn of(&self, kind: OpKind) -> &[u32] {
        self.counts[kind].as_deref().unwrap_or_default()
    }

    /// Operations of all kinds per slice.
    pub fn totals(&self) -> Vec<f64> {
        let len = self.counts.iter().map(|(_, counts)| counts.len()).max().unwrap_or(0);
        let mut sums = vec![0.0; len];
        for (_, counts) in self.counts.iter() {
            sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += f64::from(*count));
        }
        sums
    }

    /// Operations of all kinds per second, second by second. A last, shorter one would look like a
    /// drop, so it is left out.
    pub fn per_second(&self) -> TransactionSeries {
        let group = ((1.0 / self.width_s.max(f64::MIN_POSITIVE)).round() as usize).max(1);
        let second_s = group as f64 * self.width_s;
        let counts = self.totals();
        let tps: Vec<f64> =
            counts.chunks_exact(group).map(|of| of.iter().sum::<f64>() / second_s).collect();
        let t_s = (1..=tps.len()).map(|n| n as f64 * second_s).collect();
        TransactionSeries { t_s, tps }
    }
}

/// What one stream of one replicate measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StreamFigures {
    /// The stream's name in its point.
    pub name: String,
    /// Each kind of operation that was requested.
    #[serde(flatten)]
    pub ops: PerKind<OpFigures>,
    /// Reads and writes together per second, with an interval of their own; absent when there was
    /// neither, and in runs of older versions.
    #[serde(default)]
    pub total: Option<Measured>,
    /// Length of its own measured part of the window, which a delay, a ramp or an early end makes
    /// shorter; absent in runs of older versions.
    #[serde(default)]
    pub duration_s: Option<f64>,
    /// Processor time of its workers.
    pub cpu: Cpu,
    /// Mean requests in flight, by Little's law: rate times mean service latency.
    pub depth_mean: f64,
    /// Lateness of request starts on the schedule, 99th percentile in microseconds, when rated.
    pub start_lateness_us_p99: Option<f64>,
    /// Requests that failed, by error number.
    pub errors: Vec<IoErrorCount>,
    /// What transactions have besides; absent for requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transactions: Option<TransactionFigures>,
    /// What was refused and how the work was done instead, in words.
    pub notes: Vec<String>,
    /// Requests per 100 ms (or longer, so that a long run stays small).
    pub series: Series,
    /// What speaks against these figures.
    pub verdicts: Verdicts,
}

/// How often one error number came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IoErrorCount {
    /// The error number.
    pub errno: i32,
    /// How often.
    pub count: u64,
}

/// What a stream of transactions counted in the measured window besides those that completed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TransactionFigures {
    /// Transactions that failed, by the target's code. None of them is counted as completed.
    pub errors: BTreeMap<String, u64>,
    /// How often a transaction was begun again after a deadlock or a conflict.
    pub retries: u64,
    /// Transactions that were to start by a schedule; 0 without one.
    pub arrivals: u64,
    /// Those of them that found the queue full and were dropped.
    pub dropped: u64,
    /// Those of them that still waited for a session when the window ended.
    pub waiting: u64,
    /// Times that sessions waited for an answer.
    pub round_trips: u64,
    /// Statements, or calls of an embedded engine.
    pub statements: u64,
    /// Seconds before the measured window that warmed it up.
    pub warm_up_s: f64,
    /// Times below half the mean rate, each with its cause.
    #[serde(default)]
    pub stalls: Vec<TransactionStall>,
    /// The cost of querying the target for the causes.
    #[serde(default)]
    pub sampler: Option<SamplerCost>,
    /// What the target used in the window, by its own counters; absent where it was not queried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<ResourceUse>,
    /// The window by samples of the target; absent where none were taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub course: Option<TargetCourse>,
    /// What a second database on the same volume did meanwhile; absent where there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second: Option<SecondDatabase>,
    /// What readers on the same volume did meanwhile; absent where there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub readers: Option<ReaderFigures>,
}

/// What a second database did in the window of the measured one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SecondDatabase {
    /// Transactions per second that it completed.
    pub tps: f64,
    /// What it used, by its own counters.
    pub used: ResourceUse,
}

/// What readers of a file did on the volume of a measured database, in its window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReaderFigures {
    /// Reads per second of all of them.
    pub reads_per_s: f64,
    /// Mean latency of a read, in microseconds.
    pub latency_mean_us: f64,
    /// Its 99th percentile.
    pub latency_p99_us: f64,
}

impl TransactionFigures {
    /// Counts transactions that failed with a code.
    pub fn add_errors(&mut self, code: &str, count: u64) {
        match self.errors.get_mut(code) {
            Some(errors) => *errors += count,
            None => drop(self.errors.insert(code.to_owned(), count)),
        }
    }

    /// Adds the counts of another worker or stretch of the window.
    pub fn add(&mut self, other: &Self) {
        other.errors.iter().for_each(|(code, count)| self.add_errors(code, *count));
        self.retries += other.retries;
        self.arrivals += other.arrivals;
        self.dropped += other.dropped;
        self.waiting += other.waiting;
        self.round_trips += other.round_trips;
        self.statements += other.statements;
    }
}
