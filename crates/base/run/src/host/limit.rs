//! Limits that control groups set on a device's I/O.

use serde::{Deserialize, Serialize};

use super::DeviceNumber;

/// A limit in force. An absent value is not limited.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IoLimit {
    /// Path of the group that sets it, below the hierarchy's mount point.
    pub cgroup: String,
    /// Hierarchy that the group belongs to.
    pub version: CgroupVersion,
    /// What the limit holds back.
    pub scope: LimitScope,
    /// Name of the limited device.
    pub device: String,
    /// Number of the limited device.
    pub device_number: DeviceNumber,
    /// Bytes read per second, at most.
    pub read_bytes_per_s: Option<u64>,
    /// Bytes written per second, at most.
    pub write_bytes_per_s: Option<u64>,
    /// Reads per second, at most.
    pub read_iops: Option<u64>,
    /// Writes per second, at most.
    pub write_iops: Option<u64>,
}

/// A way to share a device out between groups that is no limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IoControl {
    /// Path of the group that sets it, below the hierarchy's mount point.
    pub cgroup: String,
    /// Hierarchy that the group belongs to.
    pub version: CgroupVersion,
    /// How it shares.
    pub kind: IoControlKind,
    /// The device, where it is for one.
    pub device: Option<String>,
    /// The content of the file.
    pub value: String,
}

/// How a device is shared out between groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum IoControlKind {
    /// By a model of what requests cost (`io.cost.qos`).
    Cost,
    /// By a latency that one group is promised (`io.latency`).
    Latency,
    /// By weights (`io.weight`, `blkio.weight`).
    Weight,
    /// By weights of the scheduler bfq (`io.bfq.weight`).
    BfqWeight,
}

/// A generation of control groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CgroupVersion {
    /// `blkio.throttle.*`
    V1,
    /// `io.max`
    V2,
}

/// Whose requests a limit holds back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LimitScope {
    /// Everything that this process does.
    Process,
    /// Only write-back of the page cache, which version 1 charges to the root group.
    WriteBack,
}

/// One of the rates that a limit can bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LimitedRate {
    /// Bytes read per second.
    ReadBytes,
    /// Bytes written per second.
    WriteBytes,
    /// Reads per second.
    Reads,
    /// Writes per second.
    Writes,
}

impl LimitedRate {
    /// Every rate that can be bounded.
    pub const ALL: [Self; 4] = [Self::Reads, Self::Writes, Self::ReadBytes, Self::WriteBytes];
}

impl IoLimit {
    /// The bound on one rate, per second.
    pub fn bound(&self, rate: LimitedRate) -> Option<u64> {
        match rate {
            LimitedRate::ReadBytes => self.read_bytes_per_s,
            LimitedRate::WriteBytes => self.write_bytes_per_s,
            LimitedRate::Reads => self.read_iops,
            LimitedRate::Writes => self.write_iops,
        }
    }
}
