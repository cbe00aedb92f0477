//! What the host did while something was measured.

use iostrata_stats::Verdicts;
use serde::{Deserialize, Serialize};

use super::{DeviceDelta, EmulatedDisk, IoLimit, Iostat, LimitedRate, QueueReadback};

/// What was observed with a measured point. What could not be observed is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Evidence {
    /// Length of the observed window, in seconds.
    pub seconds: f64,
    /// The device that serves the path: the topmost one with a queue of its own.
    pub device_name: Option<String>,
    /// What that device did.
    pub device: Option<Iostat>,
    /// The counters behind `device`.
    pub device_delta: Option<DeviceDelta>,
    /// What every device of the stack did, from the top down, `device` included.
    pub layers: Vec<NamedIostat>,
    /// What the volume of a database's redo did, where that has one of its own; its part of
    /// `device`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redo_device: Option<NamedIostat>,
    /// How device, processors and pressure went over time.
    pub device_series: Option<DeviceSeries>,
    /// How the processors spent the window.
    pub cpu: Option<CpuShares>,
    /// How long tasks waited for a resource.
    pub pressure: Option<PressureShares>,
    /// Context switches of this process.
    pub switches: Option<Switches>,
    /// What control groups held back.
    pub throttle: Option<ThrottleEvidence>,
    /// The device's I/O beyond the requests of this process.
    pub foreign: Option<ForeignIo>,
    /// What the device's queue was set to for this window.
    #[serde(default)]
    pub queue: Vec<QueueReadback>,
    /// What reached the emulated disks below.
    #[serde(default)]
    pub emulated: Option<EmulatedDisk>,
    /// Reasons to distrust what was measured in this window.
    pub verdicts: Verdicts,
    /// What could not be observed and why; one sentence each.
    pub notes: Vec<String>,
}

/// The columns of one device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NamedIostat {
    /// Kernel name of the device.
    pub name: String,
    /// Its columns.
    pub iostat: Iostat,
}

/// Columns of equal length, one entry per interval between two samples. An entry is absent where
/// nothing was done that it could be a mean of, or where the host lacks the counter.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeviceSeries {
    /// End of each interval, in seconds after the start of the window.
    pub t_s: Vec<f64>,
    /// Reads per second.
    pub reads_per_s: Vec<Option<f64>>,
    /// Bytes read per second.
    pub read_bytes_per_s: Vec<Option<f64>>,
    /// Mean time of a read, in ms.
    pub read_await_ms: Vec<Option<f64>>,
    /// Writes per second.
    pub writes_per_s: Vec<Option<f64>>,
    /// Bytes written per second.
    pub write_bytes_per_s: Vec<Option<f64>>,
    /// Mean time of a write, in ms.
    pub write_await_ms: Vec<Option<f64>>,
    /// Flushes per second.
    pub flushes_per_s: Vec<Option<f64>>,
    /// Mean time of a flush, in ms.
    pub flush_await_ms: Vec<Option<f64>>,
    /// Mean number of requests in flight.
    pub queue_size: Vec<Option<f64>>,
    /// Share of time with a request in flight, in percent.
    pub util_pct: Vec<Option<f64>>,
    /// Share of processor time spent working, in percent.
    pub cpu_busy_pct: Vec<Option<f64>>,
    /// Share of processor time idle while I/O was outstanding, in percent.
    pub cpu_iowait_pct: Vec<Option<f64>>,
    /// Share of processor time taken by the hypervisor, in percent.
    pub cpu_steal_pct: Vec<Option<f64>>,
    /// Share of time in which some task waited for I/O, in percent.
    pub io_pressure_pct: Vec<Option<f64>>,
}

/// How the processor time of the whole machine was spent, in percent of all processors.
/// The shares add up to 100; time of guests is part of `user_pct` and `nice_pct`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CpuShares {
    /// Programs.
    pub user_pct: f64,
    /// Programs with a low priority.
    pub nice_pct: f64,
    /// Kernel.
    pub system_pct: f64,
    /// Idle with no I/O outstanding.
    pub idle_pct: f64,
    /// Idle while I/O was outstanding; a rough figure.
    pub iowait_pct: f64,
    /// Interrupts.
    pub irq_pct: f64,
    /// Deferred interrupt work.
    pub softirq_pct: f64,
    /// Taken by the hypervisor for others.
    pub steal_pct: f64,
}

impl CpuShares {
    /// Share of time that the machine's own work took: neither idle nor stolen, in percent.
    pub fn busy_pct(&self) -> f64 {
        self.user_pct + self.nice_pct + self.system_pct + self.irq_pct + self.softirq_pct
    }
}

/// Pressure stall information, of the whole machine or of a control group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PressureShares {
    /// Waiting for I/O.
    pub io: Option<PressureShare>,
    /// Waiting for a processor.
    pub cpu: Option<PressureShare>,
    /// Waiting for memory.
    pub memory: Option<PressureShare>,
}

/// How long tasks waited for one resource in the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PressureShare {
    /// Share of the window in which at least one task waited, in percent.
    pub some_pct: f64,
    /// Share of the window in which all tasks that had work waited, in percent.
    pub full_pct: Option<f64>,
    /// The same as `some_pct`, as time, in microseconds.
    pub some_us: u64,
    /// The same as `full_pct`, as time, in microseconds.
    pub full_us: Option<u64>,
    /// The kernel's own running mean of `some` over the last 10 s at the end, in percent.
    pub some_avg10_pct: Option<f64>,
    /// The kernel's own running mean of `full` over the last 10 s at the end, in percent.
    pub full_avg10_pct: Option<f64>,
}

/// Context switches of this process and of its threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Switches {
    /// Gave the processor up, mostly to wait.
    pub voluntary: u64,
    /// Lost the processor to another task.
    pub involuntary: u64,
}

/// What control groups held back in the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThrottleEvidence {
    /// Enforcement periods of the processor quota.
    pub cpu_periods: Option<u64>,
    /// Periods in which the quota ran out.
    pub cpu_periods_throttled: Option<u64>,
    /// Time that tasks were held back by the quota, in microseconds.
    pub cpu_throttled_us: Option<u64>,
    /// How far the tightest I/O limit was used, in percent of it.
    pub io_limit_used_pct: Option<f64>,
    /// That limit.
    pub io_limit: Option<IoLimit>,
    /// Which of its values was used that far.
    pub io_limit_rate: Option<LimitedRate>,
}

/// What a process waited for, and what held it back, between two looks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeldBackShares {
    /// Absent where the kernel does not report it.
    pub pressure: Option<PressureShares>,
    /// The control group whose pressure it is; absent where it is the whole machine's.
    pub pressure_group: Option<String>,
    /// Absent where no group counts.
    pub throttle: Option<ThrottleEvidence>,
    /// Share of this machine's processor time that its hypervisor gave to others.
    pub cpu_stolen_pct: Option<f64>,
}

/// What a caller issued itself in the window, by its own counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OwnIo {
    /// Whether the requests were meant to bypass the page cache.
    pub direct: bool,
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Flushes requested (fsync, fdatasync, synchronous writes).
    pub flushes: u64,
}

/// I/O of the device that its observer did not issue, and how much of that is normal.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ForeignIo {
    /// Whether it exceeds what journals, metadata, read-ahead and write-back explain.
    pub raised: bool,
    /// Bytes read per second beyond the caller's own.
    pub read_bytes_per_s: f64,
    /// Bytes written per second beyond the caller's own.
    pub write_bytes_per_s: f64,
    /// Reads per second beyond the caller's own.
    pub reads_per_s: f64,
    /// Writes per second beyond the caller's own.
    pub writes_per_s: f64,
    /// Bytes read per second beyond the caller's own that pass as normal.
    pub read_allowance_bytes_per_s: f64,
    /// Bytes written per second beyond the caller's own that pass as normal.
    pub write_allowance_bytes_per_s: f64,
    /// Other processes that did I/O in the window, the largest first, if it was raised.
    pub processes: Vec<ProcessIo>,
}

/// I/O of one process, on whichever device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProcessIo {
    /// Process id.
    pub pid: u32,
    /// The process's short name.
    pub comm: String,
    /// Bytes that it caused to be read from storage, per second.
    pub read_bytes_per_s: f64,
    /// Bytes that it caused to be written to storage, per second.
    pub write_bytes_per_s: f64,
}

/// Who uses a device while nothing is being measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QuietCheck {
    /// Kernel name of the device.
    pub device: String,
    /// How long was watched, in seconds.
    pub seconds: f64,
    /// Whether what was seen is too little to disturb a measurement.
    pub quiet: bool,
    /// What the device did; absent where it has no counters.
    pub iostat: Option<Iostat>,
    /// Processes that did I/O meanwhile, on whichever device, the largest first.
    pub processes: Vec<ProcessIo>,
    /// Processes whose counters this user may not read.
    pub processes_hidden: u32,
}
