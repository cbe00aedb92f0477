//! What `run` of `iostrata tpcc`, `oltp`, `stress` and `insert` prints with `--json` and keeps as
//! `result.json`.
//!
//! Invariants: only transactions that are settled are counted, failed and repeated ones never;
//! speed has its steadiness. Of a staircase the top level is the best one.

use std::collections::BTreeMap;

use iostrata_plan::OpKind;
use iostrata_stats::{
    Drift, Interval, LatencyUs, Measured, SECOND_EVENTS_MIN, Stability, Verdicts,
};
use serde::{Deserialize, Serialize};

use crate::{
    DatasetGrowth, InsertFigures, LatencyTarget, SamplerCost, StallCause, TransactionBound,
    TransactionStall, Unknown,
};

/// Transactions of a workload on a target.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TransactionDocument {
    /// Which workload.
    pub workload: String,
    /// Sessions.
    pub threads: u32,
    /// Completed transactions of all types per second, rollbacks that the workload requests
    /// included.
    pub tps: f64,
    /// 95 % interval of the mean over this window. It does not hold for another time.
    pub tps_ci95: Option<Interval>,
    /// Independent samples behind it.
    pub tps_n: u64,
    /// New orders per minute; null for other workloads than TPC-C's.
    pub nopm: Option<f64>,
    /// Completed transactions by type.
    pub completed: BTreeMap<OpKind, u64>,
    /// Share of each type in all that completed.
    pub mix: BTreeMap<OpKind, f64>,
    /// Service latency by type: from the start to the durable commit.
    pub latency_us: BTreeMap<OpKind, LatencyUs>,
    /// Response latency by type: from the moment at which a transaction was due; null without a
    /// schedule.
    pub response_us: Option<BTreeMap<OpKind, LatencyUs>>,
    /// Rate over time.
    pub series: TransactionSeries,
    /// How evenly the rate held; null where the window was too short. Below 20 transactions per
    /// second this is chance.
    pub stability: Option<Stability>,
    /// The last third of the window against the first; null where it was too short.
    #[serde(default)]
    pub drift: Option<Drift>,
    /// Times below half the mean rate, each with its cause.
    #[serde(default)]
    pub stalls: Vec<TransactionStall>,
    /// The cost of querying the target for the causes; null where it does not report them.
    #[serde(default)]
    pub sampler: Option<SamplerCost>,
    /// How much the tables grew; null where nothing is known.
    #[serde(default)]
    pub dataset: Option<DatasetGrowth>,
    /// What inserting came to; null for other workloads.
    #[serde(default)]
    pub insert: Option<InsertFigures>,
    /// Transactions that failed, by the target's code.
    pub errors: BTreeMap<String, u64>,
    /// How often a transaction was begun again.
    pub retries: u64,
    /// Arrivals by the schedule; null without one.
    pub arrivals: Option<u64>,
    /// Arrivals that found the queue full and were dropped.
    pub dropped: u64,
    /// Arrivals that still waited for a session at the end.
    pub waiting: u64,
    /// 99th percentile of how late transactions started, in microseconds, when scheduled.
    pub start_lateness_us_p99: Option<f64>,
    /// What driving it cost.
    pub driver: DriverCost,
    /// What a commit survives, as the target's settings have it.
    pub durability: TransactionDurability,
    /// What transactions see of others.
    pub isolation: String,
    /// How the workload differs from the specification that it follows.
    pub deviations: Vec<String>,
    /// Every level of a staircase, in its order; empty without one.
    pub levels: Vec<TransactionLevel>,
    /// The fewest threads that bring nearly all of the best throughput; null where that was not
    /// seen.
    pub knee_threads: Option<u32>,
    /// The highest rate that held an objective of latency; null where none was set.
    #[serde(default)]
    pub latency_target: Option<LatencyTarget>,
    /// What it ran on.
    pub target: TransactionTarget,
    /// Length of the measured window in seconds.
    pub duration_s: f64,
    /// Warm-up before it, in seconds.
    pub warm_up_s: f64,
    /// What was done otherwise, or is worth knowing.
    pub notes: Vec<String>,
    /// Where the events are.
    pub run: Option<String>,
    /// Figures that are not known, and why.
    #[serde(default)]
    pub unknown: Vec<Unknown>,
    /// What speaks against the figures.
    pub verdicts: Verdicts,
}

/// Transactions per second, second by second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TransactionSeries {
    /// The end of each second in the measured window.
    pub t_s: Vec<f64>,
    /// Transactions per second in it.
    pub tps: Vec<f64>,
}

/// What driving transactions cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DriverCost {
    /// Processor seconds of the threads that drive; those of an embedded engine are in them.
    pub cpu_s: f64,
    /// The same per transaction, in microseconds.
    pub us_per_txn: Option<f64>,
    /// Times that a transaction waited for an answer.
    pub round_trips_per_txn: Option<f64>,
    /// Its statements, or calls of an embedded engine.
    pub statements_per_txn: Option<f64>,
}

/// What a commit survives; null where the target does not report it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TransactionDurability {
    /// `innodb_flush_log_at_trx_commit`, or what means the same.
    pub flush_log_at_commit: Option<u8>,
    /// Whether pages are written twice.
    pub doublewrite: Option<String>,
    /// How data files are written.
    pub flush_method: Option<String>,
    /// Whether the binary log is on.
    pub binlog: Option<bool>,
    /// `sync_binlog`.
    pub sync_binlog: Option<u64>,
}

/// What transactions ran on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TransactionTarget {
    /// As the user named it, without secrets.
    pub name: String,
    /// `engine`, `mysql`, `mariadb`, `percona`, `tidb`, or what it calls itself.
    pub flavour: String,
    /// As it calls its version.
    pub version: String,
    /// Settings that flushing follows, by the target's own names; empty in older runs.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
}

/// One level of a staircase, or of the search for a rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TransactionLevel {
    /// Sessions.
    pub threads: u32,
    /// Arrivals per second by the schedule; null without one.
    #[serde(default)]
    pub rate_per_s: Option<f64>,
    /// Completed transactions per second.
    pub tps: f64,
    /// 95 % interval of the mean over this window.
    pub tps_ci95: Option<Interval>,
    /// Independent samples behind it.
    pub tps_n: u64,
    /// New orders per minute.
    pub nopm: Option<f64>,
    /// Service latency of all types together.
    pub latency_us: LatencyUs,
    /// Response latency of all types together, from the moment at which a transaction was due;
    /// null without a schedule.
    #[serde(default)]
    pub response_us: Option<LatencyUs>,
    /// Whether it held the objective of latency; null where none was set.
    #[serde(default)]
    pub holds_target: Option<bool>,
    /// How evenly the rate held.
    pub stability: Option<Stability>,
    /// Transactions that failed.
    pub errors: u64,
    /// Processor time of the driving threads per transaction, in microseconds.
    pub us_per_txn: Option<f64>,
    /// What speaks against it.
    pub verdicts: Verdicts,
}

/// How evenly a rate held, where a second has enough transactions to be judged.
fn judged(stability: Option<&Stability>, tps: f64) -> Option<&Stability> {
    stability.filter(|_| tps >= SECOND_EVENTS_MIN)
}

impl TransactionDocument {
    /// How evenly the rate held, where seconds can be judged.
    pub fn steadiness(&self) -> Option<&Stability> {
        judged(self.stability.as_ref(), self.tps)
    }
}

impl TransactionLevel {
    /// How evenly the rate held, where seconds can be judged.
    pub fn steadiness(&self) -> Option<&Stability> {
        judged(self.stability.as_ref(), self.tps)
    }
}

/// What transactions of a point have besides their rate, over its windows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StudyTransactions {
    /// Figures by the names of their metrics; those that the database does not report are absent.
    pub figures: BTreeMap<String, Measured>,
    /// Windows that are left out because the hypervisor took more than 10 % of the processors in
    /// more than half of their seconds.
    pub left_out: u32,
    /// Times below half the mean rate, each with its cause: the longest of all windows.
    pub stalls: Vec<TransactionStall>,
    /// What was waited for in most of the time below half the mean rate, over all such times of all
    /// windows; null where there were none.
    #[serde(default)]
    pub main_cause: Option<StallCause>,
    /// Transactions per second in the first window that is not left out.
    pub series: TransactionSeries,
    /// What binds: the resource that was at work for most of the time; absent where nothing was
    /// seen of the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<TransactionBound>,
}
