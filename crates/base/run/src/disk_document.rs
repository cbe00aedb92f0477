//! What `iostrata disk` prints with `--json`.
//!
//! Invariant: a device is named by its node at that moment; what a disk that does not answer cannot
//! report is absent, never 0.

use serde::{Deserialize, Serialize};

/// A disk that was started: `disk start`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DiskStartDocument {
    /// Its block device: `/dev/loop3`.
    pub device: String,
    /// The disk as it was requested: `hdd-15k,queue=1`.
    pub model: String,
    /// Its size.
    pub size_bytes: u64,
    /// The process that serves it.
    pub pid: u32,
}

/// All disks: `disk list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DiskListDocument {
    /// One entry per disk that is served, in the order of their devices.
    pub disks: Vec<DiskRow>,
}

/// One disk of `disk list`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DiskRow {
    /// Its block device: `/dev/loop3`.
    pub device: String,
    /// The disk as it was requested: `hdd-15k,queue=1`.
    pub model: String,
    /// Its size.
    pub size_bytes: u64,
    /// The process that serves it.
    pub pid: u32,
    /// The run that it belongs to: a process. Absent for a disk of `disk start`.
    pub run_pid: Option<u32>,
    /// Where it is mounted, or what else uses it.
    pub in_use: Option<String>,
    /// Whether its server answered. If not, all that follows is absent.
    pub answers: bool,
    /// Reads that came so far, as the block layer had merged them.
    pub reads: Option<u64>,
    /// Writes that came.
    pub writes: Option<u64>,
    /// Flushes that came.
    pub flushes: Option<u64>,
    /// Requests that the block layer merged into others before they came, reads and writes.
    pub merged: Option<u64>,
    /// Most requests in flight at a time.
    pub depth_max: Option<u32>,
    /// Requests in flight, averaged over the time in which there was at least one.
    pub depth_mean: Option<f64>,
    /// Bytes that were read.
    pub read_bytes: Option<u64>,
    /// Bytes that were written.
    pub write_bytes: Option<u64>,
    /// Share of reads and writes that began where the one before them ended, in percent.
    pub in_order_pct: Option<f64>,
    /// Replies that were sent more than 100 us after the model's moment.
    pub late: Option<u64>,
    /// Requests that failed because an error was injected.
    pub errors_injected: Option<u64>,
    /// Bytes of done writes that a power cut could take now.
    pub unflushed_bytes: Option<u64>,
    /// Bytes that the contents take in memory or in the store's directory.
    pub store_bytes: Option<u64>,
    /// Whether it has power.
    pub has_power: Option<bool>,
    /// Power cuts so far.
    pub power_cuts: Option<u64>,
}

/// What was made to go wrong: `disk fault`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DiskFaultDocument {
    /// The block device.
    pub device: String,
    /// What holds from now on, one line each: `eio 0-4096`, `power-cut tear 512`.
    pub faults: Vec<String>,
}

/// Disks that were stopped: `disk stop`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DiskStopDocument {
    /// The block devices that they were.
    pub stopped: Vec<String>,
    /// With `--all`: disks that were not stopped, and why.
    pub refused: Vec<DiskRefusal>,
}

/// A disk that was not stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DiskRefusal {
    /// Its block device.
    pub device: String,
    /// Why.
    pub why: String,
}
