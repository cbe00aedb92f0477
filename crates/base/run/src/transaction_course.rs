//! The course of a run of transactions: stalls, growth, the rate that held an objective.
//!
//! Invariant: a cause is named with what speaks for it, and is `unknown` where nothing does.

use std::fmt;

use iostrata_stats::Interval;
use serde::{Deserialize, Serialize};

/// What a target waited for while it stalled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum StallCause {
    /// Redo space: commits wait until a checkpoint frees some.
    RedoFull,
    /// Frames of the buffer pool: none is free until dirty pages are written.
    FreePages,
    /// Purge: writers are held back until old row versions are removed.
    Purge,
    /// The log buffer: it is full until redo is written.
    LogBuffer,
    /// The device: nothing became durable.
    Device,
    /// Row locks that sessions hold against each other.
    Lock,
    /// The lock that stops all writers, as a backup takes it (`FLUSH TABLES WITH READ LOCK`).
    GlobalLock,
    /// Metadata locks: a table's definition is being changed, or others wait until its users are
    /// done.
    MetadataLock,
    /// Connections: the server accepts no more.
    Connections,
    /// Flow control: other members of the cluster are behind.
    FlowControl,
    /// Semi-synchronous replication: no replica acknowledges commits.
    SemiSync,
    /// Room on a disk.
    DiskFull,
    /// Processors: a quota ran out, or others had them.
    Processors,
    /// Nothing that was seen explains it.
    #[default]
    Unknown,
}

impl StallCause {
    /// Every cause, with its word in documents and metrics, in the order of the variants.
    pub const ALL: [(Self, &str); Self::Unknown as usize + 1] = [
        (Self::RedoFull, "redo_full"),
        (Self::FreePages, "free_pages"),
        (Self::Purge, "purge"),
        (Self::LogBuffer, "log_buffer"),
        (Self::Device, "device"),
        (Self::Lock, "lock"),
        (Self::GlobalLock, "global_lock"),
        (Self::MetadataLock, "metadata_lock"),
        (Self::Connections, "connections"),
        (Self::FlowControl, "flow_control"),
        (Self::SemiSync, "semi_sync"),
        (Self::DiskFull, "disk_full"),
        (Self::Processors, "processors"),
        (Self::Unknown, "unknown"),
    ];
}

impl fmt::Display for StallCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RedoFull => "redo full",
            Self::FreePages => "no free pages",
            Self::Purge => "purge behind",
            Self::LogBuffer => "log buffer full",
            Self::Device => "device",
            Self::Lock => "row locks",
            Self::GlobalLock => "global read lock",
            Self::MetadataLock => "metadata locks",
            Self::Connections => "connections",
            Self::FlowControl => "flow control",
            Self::SemiSync => "semi-sync",
            Self::DiskFull => "disk full",
            Self::Processors => "processors",
            Self::Unknown => "unknown",
        })
    }
}

/// A time in which every window of one second had less than half of the rate that is usual: the
/// mean of a measured window, the median of the minute before of a target that is watched.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TransactionStall {
    /// When it began, in seconds since measuring or watching began.
    pub t_s: f64,
    /// How long it lasted, in seconds.
    pub length_s: f64,
    /// Transactions per second in its worst window.
    pub min_tps: f64,
    /// What the target waited for.
    pub cause: StallCause,
    /// What speaks for the cause, or why none is named.
    pub evidence: String,
}

/// The cost of querying the target's state while it was measured or watched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SamplerCost {
    /// Samples that were taken.
    pub samples: u64,
    /// Samples that failed.
    pub failed: u64,
    /// Mean time of a sample in microseconds.
    pub sample_us_mean: f64,
    /// The longest one.
    pub sample_us_max: f64,
}

/// A window by samples of a target. Null is what it does not report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TargetCourse {
    /// Redo made per second, in bytes.
    pub redo_bytes_per_s: Option<f64>,
    /// Pages that became dirty, per second.
    pub pages_dirtied_per_s: Option<f64>,
    /// Furious flushes: redo was about to run out.
    pub furious_flushes: Option<u64>,
    /// Share of the written pages that were written because redo was about to run out, percent.
    pub flushed_for_redo_pct: Option<f64>,
    /// Mean checkpoint age in percent of the max checkpoint age.
    pub checkpoint_age_pct_mean: Option<f64>,
    /// The highest one.
    pub checkpoint_age_pct_max: Option<f64>,
    /// The most commits whose old row versions were not purged.
    pub history_list_length_max: Option<u64>,
    /// The same at the end.
    pub history_list_length_end: Option<u64>,
}

/// How much the tables held before and after a run; null where the target does not report it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DatasetGrowth {
    /// Orders before the run; null for other workloads than TPC-C's.
    pub orders_before: Option<u64>,
    /// Orders after it.
    pub orders_after: Option<u64>,
    /// Size of the files that hold the tables before the run, in bytes.
    pub bytes_before: Option<u64>,
    /// The same after it.
    pub bytes_after: Option<u64>,
}

/// What inserting rows came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InsertFigures {
    /// Rows that one commit inserts.
    pub rows_per_commit: u32,
    /// Rows per second whose commits were acknowledged; null where the rate of commits is not
    /// known.
    pub rows_per_s: Option<f64>,
    /// 95 % interval of the mean over this window.
    pub rows_per_s_ci95: Option<Interval>,
    /// Independent samples behind it.
    pub rows_per_s_n: u64,
    /// The storage engine of the table; null where the target has one only.
    pub storage_engine: Option<String>,
    /// Rows and sizes over time.
    pub growth: InsertGrowth,
}

/// How a table grew: one entry per second of all levels, their warm-up included.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InsertGrowth {
    /// The end of each second, from the beginning of the run.
    pub t_s: Vec<f64>,
    /// Sessions in it.
    pub threads: Vec<u32>,
    /// Rows of the table at its end.
    pub rows: Vec<u64>,
    /// Rows per second in it.
    pub rows_per_s: Vec<f64>,
    /// Bytes of the indexes at its end, without the one by which rows are kept. Servers estimate
    /// them for InnoDB, a while late. Null where the target does not report them; entries where it
    /// did not answer.
    pub index_bytes: Option<Vec<Option<u64>>>,
    /// Bytes of rows and indexes together, by the size of the files where that is known.
    pub table_bytes: Option<Vec<Option<u64>>>,
}

/// Why the search for a rate ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RateBound {
    /// The objective: a rate a little higher did not hold it.
    #[default]
    Objective,
    /// The target's capacity: the objective was held at 95 % of what it gives at all.
    Capacity,
    /// The time that the run may take.
    Time,
    /// The run ended early: a level failed, or a signal came.
    Ended,
}

/// The highest rate at which a percentile of response time holds an objective.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LatencyTarget {
    /// Which percentile.
    pub percentile: f64,
    /// The objective in microseconds.
    pub target_us: f64,
    /// Transactions per second without a schedule, which the search begins below.
    pub capacity_tps: f64,
    /// The highest rate that was measured to hold the objective; null where none was.
    pub rate_per_s: Option<f64>,
    /// Between which rates the highest one lies.
    pub rate_per_s_between: Interval,
    /// The percentile of response time at that rate, in microseconds.
    pub response_us: Option<f64>,
    /// What ended the search.
    pub bound: RateBound,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_spelled_as_in_documents() {
        for (at, (cause, word)) in StallCause::ALL.into_iter().enumerate() {
            assert_eq!(cause as usize, at, "{cause}");
            assert_eq!(serde_json::to_value(cause).unwrap(), word);
        }
    }
}
