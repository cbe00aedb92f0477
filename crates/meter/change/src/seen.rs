//! What a machine shows of its files, devices, mounts and servers.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::tokens::FileToken;

/// What a path is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeenKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A block device.
    BlockDevice,
    /// Something else.
    Other,
}

/// What is at a path, links not followed for the last part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// What.
    pub kind: SeenKind,
    /// Major and minor number of the file system that it is on.
    pub device: (u32, u32),
    /// Its inode.
    pub inode: u64,
    /// Major and minor number of a device.
    pub number: (u32, u32),
    /// Bytes of a file.
    pub bytes: u64,
    /// It belongs to this user, and nobody else may read or write it.
    pub is_private: bool,
    /// When it came into being, in us since 1970, where the file system knows.
    pub born_us: Option<u64>,
}

/// A loop device that is attached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopDevice {
    /// As in `/sys/block`: `loop3`.
    pub name: String,
    /// Over which file.
    pub backing: FileToken,
    /// Whether it does direct I/O on the file.
    pub direct: bool,
    /// Its logical block, in bytes.
    pub block_bytes: u32,
}

impl LoopDevice {
    /// Its node.
    pub fn path(&self) -> PathBuf {
        Path::new("/dev").join(&self.name)
    }
}

/// What a device is in use for, or holds; the first that applies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceState {
    /// It, one of its partitions or its disk is mounted or swapped on; where.
    Mounted(String),
    /// Another device or an exclusive opener holds it; which.
    Held(String),
    /// It has partitions.
    Partitioned,
    /// It holds something: the name of a known signature, or where the first bytes are not zero.
    Signed(String),
    /// Nothing known, and the first MiB is zero.
    Empty,
}

impl fmt::Display for DeviceState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mounted(by) => f.write_str(by),
            Self::Held(by) => f.write_str(by),
            Self::Partitioned => f.write_str("it has partitions"),
            Self::Signed(what) => write!(f, "it holds {what}"),
            Self::Empty => f.write_str("it is empty"),
        }
    }
}

/// What a served file says when it is asked for, with bounded patience.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is there, and its server answered just now.
    There(Seen),
    /// Its server answers, or there is none, and the file is not there.
    NotThere,
    /// Its server is gone.
    Dead,
    /// No answer came.
    Stuck,
}
