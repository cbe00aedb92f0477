//! Limits that control groups set on a device's I/O.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::DeviceNumber;

/// A limit in force. An absent value is not limited.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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

/// A generation of control groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CgroupVersion {
    /// `blkio.throttle.*`
    V1,
    /// `io.max`
    V2,
}

/// Whose requests a limit holds back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LimitScope {
    /// Everything that this process does.
    Process,
    /// Only write-back of the page cache, which version 1 charges to the root group.
    WriteBack,
}
