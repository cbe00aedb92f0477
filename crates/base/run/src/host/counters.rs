//! A block device's counters, their difference, and the columns that iostat derives from it.
//!
//! Invariant: counters and differences are in the kernel's units (512-byte sectors, milliseconds);
//! derived columns have theirs in the name.

use serde::{Deserialize, Serialize};

/// Counters since boot, as in `/proc/diskstats`. Discards came with Linux 4.18, flushes with 5.5;
/// before that they are absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeviceCounters {
    /// Reads completed.
    pub reads: u64,
    /// Reads merged into a neighbour before they were issued.
    pub reads_merged: u64,
    /// Sectors of 512 bytes read.
    pub sectors_read: u64,
    /// Time that all reads together took, in ms.
    pub read_ms: u64,
    /// Writes completed.
    pub writes: u64,
    /// Writes merged into a neighbour before they were issued.
    pub writes_merged: u64,
    /// Sectors of 512 bytes written.
    pub sectors_written: u64,
    /// Time that all writes together took, in ms.
    pub write_ms: u64,
    /// Requests in flight at this moment.
    pub in_flight: u64,
    /// Time with at least one request in flight, in ms.
    pub busy_ms: u64,
    /// Time of all requests together, weighted by how many were in flight, in ms.
    pub queue_ms: u64,
    /// Discards completed.
    pub discards: Option<u64>,
    /// Discards merged.
    pub discards_merged: Option<u64>,
    /// Sectors of 512 bytes discarded.
    pub sectors_discarded: Option<u64>,
    /// Time that all discards together took, in ms.
    pub discard_ms: Option<u64>,
    /// Flushes completed. The kernel counts those of whole disks only, and combines flushes that
    /// wait at the same time into one.
    pub flushes: Option<u64>,
    /// Time that all flushes together took, in ms.
    pub flush_ms: Option<u64>,
}

/// What a device did between two readings of its counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeviceDelta {
    /// Time between the readings, in seconds.
    pub seconds: f64,
    /// The differences; `in_flight` is that of the later reading.
    pub counters: DeviceCounters,
}

impl DeviceDelta {
    /// Bytes read.
    pub fn read_bytes(&self) -> u64 {
        self.counters.sectors_read.saturating_mul(512)
    }

    /// Bytes written.
    pub fn written_bytes(&self) -> u64 {
        self.counters.sectors_written.saturating_mul(512)
    }
}

/// The columns of `iostat -x`, computed as sysstat computes them. A mean over no request is absent
/// (iostat prints 0.00); columns of counters that the kernel lacks are absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Iostat {
    /// `r/s`: reads completed per second.
    pub reads_per_s: f64,
    /// `rkB/s`: KiB read per second.
    pub read_kib_per_s: f64,
    /// `rrqm/s`: reads merged per second.
    pub reads_merged_per_s: f64,
    /// `%rrqm`: share of reads that were merged, in percent.
    pub reads_merged_pct: Option<f64>,
    /// `r_await`: mean time of a read including its wait in the queue, in ms.
    pub read_await_ms: Option<f64>,
    /// `rareq-sz`: mean size of a read, in KiB.
    pub read_size_kib: Option<f64>,
    /// `w/s`: writes completed per second.
    pub writes_per_s: f64,
    /// `wkB/s`: KiB written per second.
    pub write_kib_per_s: f64,
    /// `wrqm/s`: writes merged per second.
    pub writes_merged_per_s: f64,
    /// `%wrqm`: share of writes that were merged, in percent.
    pub writes_merged_pct: Option<f64>,
    /// `w_await`: mean time of a write including its wait in the queue, in ms.
    pub write_await_ms: Option<f64>,
    /// `wareq-sz`: mean size of a write, in KiB.
    pub write_size_kib: Option<f64>,
    /// `d/s`: discards completed per second.
    pub discards_per_s: Option<f64>,
    /// `dkB/s`: KiB discarded per second.
    pub discard_kib_per_s: Option<f64>,
    /// `drqm/s`: discards merged per second.
    pub discards_merged_per_s: Option<f64>,
    /// `%drqm`: share of discards that were merged, in percent.
    pub discards_merged_pct: Option<f64>,
    /// `d_await`: mean time of a discard including its wait in the queue, in ms.
    pub discard_await_ms: Option<f64>,
    /// `dareq-sz`: mean size of a discard, in KiB.
    pub discard_size_kib: Option<f64>,
    /// `f/s`: flushes completed per second.
    pub flushes_per_s: Option<f64>,
    /// `f_await`: mean time of a flush, in ms.
    pub flush_await_ms: Option<f64>,
    /// `aqu-sz`: mean number of requests in the queue and in the device.
    pub queue_size: f64,
    /// `%util`: share of time with a request in flight, in percent. It does not show saturation for
    /// a device that serves several requests at once.
    pub util_pct: f64,
}
