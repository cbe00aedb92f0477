//! What the length of a request queue does to a device, as a study's document holds it.
//!
//! Invariant: fields may be added, never renamed; lengths are those that the kernel took, not those
//! that were requested.

use iostrata_plan::study::LevelAt;
use iostrata_stats::{Conclusion, Interval, Verdicts};
use serde::{Deserialize, Serialize};

/// A figure of the device in addition to the main one, as iostat counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum DeviceMetric {
    /// Completed requests per second, flushes left out.
    RequestsPerS,
    /// Mean size of a request in KiB (areq-sz).
    RequestKib,
    /// Requests per second that were merged into others (rrqm/s and wrqm/s).
    MergedPerS,
    /// Mean number of requests in flight (aqu-sz).
    QueueSize,
    /// Mean time of a request in ms (await).
    AwaitMs,
}

/// What a longer request queue does on one disk, from the kernel's default of 128 requests (or the
/// shortest measured, without that) to the longest that the kernel took, all other levels equal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QueueChange {
    /// The fixed levels.
    pub levels: Vec<LevelAt>,
    /// The point with the shorter queue, and the one with the longer.
    pub points: [String; 2],
    /// Queue lengths that the kernel took at these.
    pub took: [u64; 2],
    /// Throughput with the longer queue over that with the shorter.
    pub ratio: f64,
    /// 95 % interval.
    pub ratio_ci95: Option<Interval>,
    /// Pairs of replicates behind it.
    pub ratio_n: u64,
    /// What follows, corrected for the number of such comparisons.
    pub conclusion: Conclusion,
    /// What became of the device's figures.
    pub device: Vec<DeviceChange>,
    /// One sentence.
    pub text: String,
    /// Verdicts of what went in.
    pub verdicts: Verdicts,
}

/// A figure of the device at two points.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeviceChange {
    /// Which figure.
    pub metric: DeviceMetric,
    /// At the first point, mean over the replicates.
    pub from: f64,
    /// At the second.
    pub to: f64,
    /// Second over first by pairs of replicates; absent where one of them is zero.
    pub ratio: Option<f64>,
    /// 95 % interval.
    pub ratio_ci95: Option<Interval>,
    /// What follows from it alone.
    pub conclusion: Conclusion,
}
