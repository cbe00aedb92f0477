//! What `iostrata simulate queue --json` prints and keeps as `result.json`.
//!
//! Invariant: fields may be added, never renamed; every figure is of virtual time and has its
//! interval and count; figures of the post are those that it prints, never read off a graph.

use std::collections::BTreeMap;
use std::fmt;

use iostrata_stats::{Conclusion, Interval, LatencyUs, Verdicts};
use serde::{Deserialize, Serialize};

use crate::host::Iostat;
use crate::{ThenRow, Unavailable};

/// Which kernel writes the pages back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum KernelThen {
    /// As then: pages written back in no order, any nr_requests taken.
    #[serde(rename = "2009")]
    Y2009,
    /// As now: pages of a file written back in their order, nr_requests bounded.
    #[serde(rename = "today")]
    Today,
}

impl KernelThen {
    /// Both, in order of time.
    pub const ALL: [Self; 2] = [Self::Y2009, Self::Today];
}

impl fmt::Display for KernelThen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Y2009 => "2009",
            Self::Today => "today",
        })
    }
}

/// What a reader that runs with the inserts waits for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QueueReader {
    /// Latency of its reads in microseconds: means of the replicates' figures, the largest of the
    /// largest.
    pub latency_us: LatencyUs,
    /// 95 % interval of the 99th percentile, between replicates.
    pub latency_us_p99_ci95: Option<Interval>,
    /// Replicates behind the interval.
    pub latency_us_p99_n: u64,
    /// Rows inserted per hour while it reads.
    pub rows_per_hour: f64,
    /// 95 % interval.
    pub rows_per_hour_ci95: Option<Interval>,
    /// Replicates behind it.
    pub rows_per_hour_n: u64,
    /// Reads in all.
    pub reads: u64,
}

/// One replicate at one index size: what its own seed came to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QueueReplicate {
    /// Rows inserted per hour.
    pub rows_per_hour: f64,
    /// Virtual hours from the empty table to this size.
    pub reached_h: Option<f64>,
    /// The device's columns.
    pub iostat: Iostat,
    /// 99th percentile of the reader, microseconds.
    pub reader_us_p99: Option<f64>,
}

/// The load at one index size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QueuePoint {
    /// Rows in the table.
    pub rows: u64,
    /// Bytes of the index with so many rows.
    pub index_bytes: u64,
    /// Rows inserted per hour at this size.
    pub rows_per_hour: f64,
    /// 95 % interval, between replicates.
    pub rows_per_hour_ci95: Option<Interval>,
    /// Replicates behind it.
    pub rows_per_hour_n: u64,
    /// Virtual hours from the empty table to this size, by the rates at the sizes up to it; null
    /// where only one size was simulated.
    pub reached_h: Option<f64>,
    /// 95 % interval, between replicates.
    pub reached_h_ci95: Option<Interval>,
    /// Replicates behind it.
    pub reached_h_n: u64,
    /// The device's columns, mean over the replicates.
    pub iostat: Iostat,
    /// A reader that runs with the inserts; null when none was requested.
    pub reader: Option<QueueReader>,
    /// Each replicate; the same place has the same seed in every run.
    pub replicates: Vec<QueueReplicate>,
    /// What speaks against the figures.
    pub verdicts: Verdicts,
}

/// One queue size on one device under one kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QueueRun {
    /// The requested value of `nr_requests` of the block queue.
    pub nr_requests: u64,
    /// What the kernel takes of it.
    pub nr_requests_taken: u64,
    /// The device, in its text form.
    pub device: String,
    /// Which kernel.
    pub kernel: KernelThen,
    /// Index size at which the runs are compared: that of the figures in this entry.
    pub index_bytes: u64,
    /// Rows inserted per hour at that size.
    pub rows_per_hour: f64,
    /// 95 % interval.
    pub rows_per_hour_ci95: Option<Interval>,
    /// Replicates behind it.
    pub rows_per_hour_n: u64,
    /// The device's columns at that size.
    pub iostat: Iostat,
    /// A reader that runs with the inserts at that size.
    pub reader: Option<QueueReader>,
    /// Virtual seconds measured, over all windows.
    pub measured_s: f64,
    /// The same at every index size, by rising size.
    pub points: Vec<QueuePoint>,
    /// What speaks against the figures.
    pub verdicts: Verdicts,
}

/// A device of the simulation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QueueDevice {
    /// Its text form.
    pub device: String,
    /// In words.
    pub title: String,
    /// Whether seeks cost time.
    pub is_rotational: bool,
    /// Disks in it.
    pub spindles: u32,
    /// Commands that it considers at a time.
    pub queue_depth: u32,
}

/// One run over another, all else equal, at one index size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QueueComparison {
    /// What is compared: `nr_requests`, `reader`, `command_queue`, `spindles`, `kernel`.
    pub what: QueueQuestion,
    /// The device of the second run.
    pub device: String,
    /// The kernel of the second run.
    pub kernel: KernelThen,
    /// The first run, in words.
    pub from: String,
    /// The second run, in words.
    pub to: String,
    /// Index size of both.
    pub index_bytes: u64,
    /// Geometric mean of the ratios second / first.
    pub ratio: f64,
    /// 95 % interval.
    pub ratio_ci95: Option<Interval>,
    /// Pairs of replicates behind it.
    pub ratio_n: u64,
    /// What follows.
    pub conclusion: Conclusion,
    /// One sentence.
    pub text: String,
}

/// What an effect answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum QueueQuestion {
    /// Rows per hour of the largest queue over the smallest.
    NrRequests,
    /// Rows per hour of a device with command queueing over the same without.
    CommandQueue,
    /// Rows per hour of an array of many spindles over one of few.
    Spindles,
    /// 99th percentile of a reader with the largest queue over the smallest.
    Reader,
    /// Rows per hour of today's kernel over that of 2009.
    Kernel,
}

/// A figure printed in the post, and the simulated one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QueueThenRow {
    /// When the post printed it: `nr_requests 128, 12 h, 13 M rows`.
    pub moment: String,
    /// The queue size.
    pub nr_requests: u64,
    /// Rows at that moment; the simulated figure is taken at as many.
    pub rows: u64,
    /// The figures.
    #[serde(flatten)]
    pub row: ThenRow,
}

/// What `iostrata simulate queue --json` prints.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QueueDocument {
    /// One line.
    pub title: String,
    /// The verdict in a few sentences.
    pub headline: Vec<String>,
    /// Where the model and the post disagree, in sentences.
    pub contradictions: Vec<String>,
    /// The devices.
    pub devices: Vec<QueueDevice>,
    /// Every queue size on every device under every kernel.
    pub runs: Vec<QueueRun>,
    /// One run over another.
    pub effects: Vec<QueueComparison>,
    /// The post, in words.
    pub then_source: String,
    /// The post's machine.
    pub then_machine: String,
    /// Then and now.
    pub then: Vec<QueueThenRow>,
    /// The least length of all runs together, as requested, in virtual seconds.
    pub span_s: f64,
    /// The seed.
    pub seed: u64,
    /// What belongs to the method, by name with the unit in the name.
    pub method: BTreeMap<String, serde_json::Value>,
    /// What the model leaves out, in sentences.
    pub limits: Vec<String>,
    /// Runs that were not simulated, and why.
    pub unavailable: Vec<Unavailable>,
    /// Seconds that the simulation took.
    pub duration_s: f64,
    /// Whether it was stopped before its end.
    pub interrupted: bool,
    /// What speaks against the whole.
    pub verdicts: Verdicts,
    /// Path of the report, when one was written.
    pub report: Option<String>,
}
