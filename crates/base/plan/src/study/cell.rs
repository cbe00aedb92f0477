//! One combination of levels, and what has to be there for it.
//!
//! Invariant: a [`Volume`] is made once and stays as it is; [`Conditions`] are switched from cell
//! to cell on the same volume.

use serde::{Deserialize, Serialize};

use crate::disk::DiskSpec;
use crate::{IoSpec, TransactionSpec, Words};

/// A factor at one of its levels, as the study's text names them.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LevelAt {
    /// The factor: `filesystem`, `bs`, `method`.
    pub factor: String,
    /// The level: `ext4`, `4K`, `fsync`.
    pub level: String,
}

/// What lies between the device and the requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum VolumeKind {
    /// Nothing: requests go to the block device.
    Raw,
    /// An ext4 file system.
    Ext4,
    /// An XFS file system.
    Xfs,
    /// A btrfs file system.
    Btrfs,
    /// The directory that the study was started in, as it is: nothing is made or mounted.
    Here,
}

impl VolumeKind {
    /// The word for it in a study and in a plan.
    pub fn name(self) -> &'static str {
        Words::name(self)
    }
}

/// One or several equal block devices, with or without a file system, that cells run on.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Volume {
    /// Raw, or which file system.
    pub kind: VolumeKind,
    /// The disk that is emulated under each of them; absent: the storage that is there.
    #[serde(default)]
    pub disk: Option<DiskSpec>,
    /// Bytes of each; absent: as many as the file sets need.
    pub bytes: Option<u64>,
    /// How many equal volumes; a workload's files and jobs are spread over them.
    pub count: u32,
    /// Further options of mkfs.
    pub mkfs_options: Vec<String>,
    /// Options of mount; empty: the defaults.
    pub mount_options: Vec<String>,
}

/// An attribute of the request queue with the value to give it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QueueSetting {
    /// `scheduler`, `nr_requests`, `read_ahead_kb`, `nomerges`, `rq_affinity`, `wbt_lat_usec`,
    /// `add_random`, `iostats`.
    pub attribute: String,
    /// The value as it is written.
    pub value: String,
}

/// Bounds on the I/O of the workload's control group, each absent where there is none.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IoLimits {
    /// Reads per second.
    pub read_iops: Option<u64>,
    /// Writes per second.
    pub write_iops: Option<u64>,
    /// Bytes read per second.
    pub read_bytes_per_s: Option<u64>,
    /// Bytes written per second.
    pub write_bytes_per_s: Option<u64>,
}

impl IoLimits {
    /// Whether nothing is bounded.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// What is switched from cell to cell on the same volume.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Conditions {
    /// Queue attributes of the volume's devices, in the order in which they are set (the scheduler
    /// first: it resets the others).
    pub queue: Vec<QueueSetting>,
    /// Memory of the control group in which the workload runs; the page cache counts.
    pub memory_limit_bytes: Option<u64>,
    /// I/O limits of that group on the volume's devices.
    pub io_limits: IoLimits,
    /// `vm.dirty_*` settings by their name in /proc/sys/vm.
    pub dirty: Vec<(String, String)>,
    /// Whether the page cache is dropped before every replicate.
    pub drop_caches: bool,
}

/// One combination of levels with everything that it needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cell {
    /// Unique in its plan, in snake case, from its levels: `ext4_randwrite_4k_direct_w16_f1`.
    pub id: String,
    /// One line for a reader.
    pub title: String,
    /// The part of the study it belongs to first; a cell that two parts share is there once.
    pub parts: Vec<String>,
    /// Every factor of the study at this cell's level, in the study's order. A factor that has no
    /// meaning here (files of a raw device) is left out.
    pub levels: Vec<LevelAt>,
    /// Where it runs.
    pub volume: Volume,
    /// What is set meanwhile.
    pub conditions: Conditions,
    /// What runs; its path is filled in when the volume is there.
    pub workload: IoSpec,
    /// The load of transactions, where that is what runs; then `workload` is of no meaning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transactions: Option<TransactionSpec>,
    /// The load of a second database of the same kind on the same volume, where one runs meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second: Option<TransactionSpec>,
    /// Readers of a file of their own on the same volume, where some read meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub readers: Option<IoSpec>,
}

impl Cell {
    /// The requests, unless transactions are what runs.
    pub fn requests(&self) -> Option<&IoSpec> {
        self.transactions.is_none().then_some(&self.workload)
    }

    /// What reads and writes files that are made for it: the requests, and readers that run with a
    /// database.
    pub fn on_files(&self) -> impl Iterator<Item = &IoSpec> {
        self.requests().into_iter().chain(&self.readers)
    }

    /// The level of a factor.
    pub fn level(&self, factor: &str) -> Option<&str> {
        self.levels.iter().find(|at| at.factor == factor).map(|at| at.level.as_str())
    }
}
