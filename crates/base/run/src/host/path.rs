//! What lies under a path: mount, file system, block devices, limits.

use serde::{Deserialize, Serialize};

use super::{BlockLayer, DeviceFacts, DeviceNumber, IoControl, IoLimit};

/// Everything known about where a file would be kept.
///
/// For an overlay or a loop device, `block_stack`, `devices` and `limits` go on down to the disk
/// below the file that stands behind it, where that can be found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PathFacts {
    /// The path, absolute and without symbolic links.
    pub path: String,
    /// Where its file system is mounted.
    pub mount_point: Option<String>,
    /// Type of the file system, as in `/proc/self/mountinfo`.
    pub file_system: Option<String>,
    /// What was mounted: a device, an export, or a bare word. User names and passwords are cut.
    pub mount_source: Option<String>,
    /// Options of the mount, then of the file system, each once. Secrets are cut.
    pub mount_options: Vec<String>,
    /// Whether the mount refuses writes.
    pub read_only: Option<bool>,
    /// The number that stat reports for files here; anonymous for btrfs, overlay and the like.
    pub device_number: Option<DeviceNumber>,
    /// Block size of the file system, in bytes.
    pub block_bytes: Option<u64>,
    /// Size of the file system, in bytes.
    pub total_bytes: Option<u64>,
    /// Bytes that this user may still write.
    pub free_bytes: Option<u64>,
    /// Files that the file system can hold; absent where it has no fixed number.
    pub inodes_total: Option<u64>,
    /// Files that can still be made; absent where there is no fixed number.
    pub inodes_free: Option<u64>,
    /// What sort of place it is.
    pub kind: PathKind,
    /// Block devices from the file system down, each once.
    pub block_stack: Vec<BlockLayer>,
    /// Facts of every device in the stack that has a request queue, from the top down.
    pub devices: Vec<DeviceFacts>,
    /// Limits that hold this process back on those devices.
    pub limits: Vec<IoLimit>,
    /// How groups share those devices out by other means.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub io_controls: Vec<IoControl>,
    /// What direct I/O does here.
    pub direct_io: DirectIo,
    /// What could not be found out and why, or what is unusual; one sentence each.
    pub notes: Vec<String>,
}

impl PathFacts {
    /// A path of which nothing is known yet.
    pub fn unknown(path: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            mount_point: None,
            file_system: None,
            mount_source: None,
            mount_options: Vec::new(),
            read_only: None,
            device_number: None,
            block_bytes: None,
            total_bytes: None,
            free_bytes: None,
            inodes_total: None,
            inodes_free: None,
            kind: PathKind::Unknown,
            block_stack: Vec::new(),
            devices: Vec::new(),
            limits: Vec::new(),
            io_controls: Vec::new(),
            direct_io: DirectIo {
                behaviour: DirectIoBehaviour::Unknown,
                reason: None,
                memory_align_bytes: None,
                offset_align_bytes: None,
            },
            notes: Vec::new(),
        }
    }
}

/// What sort of place a path is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum PathKind {
    /// A file system on block devices.
    Disk,
    /// The path is itself a block device.
    BlockDevice,
    /// Memory: tmpfs or ramfs. Nothing here survives a power cut.
    Tmpfs,
    /// Directories laid over each other; writes go to the upper one.
    Overlay {
        /// The lower directories, topmost first.
        lower: Vec<String>,
        /// The directory that takes writes; absent on a read-only overlay.
        upper: Option<String>,
        /// File system of the upper directory, where it could be found.
        upper_file_system: Option<String>,
    },
    /// Served by another machine, a hypervisor or a process.
    Network {
        /// Protocol.
        protocol: NetworkKind,
    },
    /// None of these.
    Unknown,
}

/// How a file system without a block device reaches its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum NetworkKind {
    /// NFS.
    Nfs,
    /// SMB, CIFS.
    Cifs,
    /// Plan 9 protocol, often a directory of the virtual machine's host.
    #[serde(rename = "9p")]
    NineP,
    /// A directory of the virtual machine's host.
    Virtiofs,
    /// A process in user space.
    Fuse,
    /// Ceph.
    Ceph,
    /// Another cluster or network file system.
    Other,
}

impl NetworkKind {
    /// How files are served, behind "is served".
    pub fn words(self) -> &'static str {
        match self {
            Self::Nfs => "over NFS",
            Self::Cifs => "over SMB",
            Self::NineP | Self::Virtiofs => "by the virtual machine's host",
            Self::Fuse => "by a process in user space",
            Self::Ceph => "by a Ceph cluster",
            Self::Other => "by other machines",
        }
    }
}

/// What the file system does with direct I/O, as far as that can be known without trying.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DirectIo {
    /// What is to be expected.
    pub behaviour: DirectIoBehaviour,
    /// Why.
    pub reason: Option<String>,
    /// Alignment of the buffer in memory that the kernel requires, in bytes.
    pub memory_align_bytes: Option<u64>,
    /// Alignment of offset and length that the kernel requires, in bytes.
    pub offset_align_bytes: Option<u64>,
}

/// Expected behaviour of `O_DIRECT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum DirectIoBehaviour {
    /// Requests go to the device.
    Honoured,
    /// Accepted, and at least writes pass through the page cache all the same.
    Ignored,
    /// Opening with the flag fails.
    Refused,
    /// Not known without trying.
    Unknown,
}
