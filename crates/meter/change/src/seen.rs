//! What a machine shows of its files, devices, mounts and servers, and the tokens by which things
//! are named and found again.
//!
//! Invariant: a number that the kernel may give to somebody else later counts only together with
//! what it does not: the path, the inode, the sequence number of a disk.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

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

/// Number of a change within its journal, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ChangeId(pub u32);

impl fmt::Display for ChangeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// By what a file is known: a file that took its place has another inode.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileToken {
    /// Where it is.
    pub path: PathBuf,
    /// Major and minor number of its file system.
    pub device: (u32, u32),
    /// Its inode.
    pub inode: u64,
}

/// A block device, named by what stays the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceRef {
    /// The loop device over a backing file.
    Loop {
        /// The file.
        backing: PathBuf,
    },
    /// A device that the user named.
    Named {
        /// Its path.
        path: PathBuf,
        /// The user's flag named this very device as one whose contents may be lost.
        overwrite: bool,
    },
}

impl fmt::Display for DeviceRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Loop { backing } => write!(f, "the loop device over {}", backing.display()),
            Self::Named { path, .. } => write!(f, "{}", path.display()),
        }
    }
}

/// By what a device is found again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DeviceToken {
    Loop(FileToken),
    Named { path: PathBuf, number: (u32, u32), sequence: Option<String> },
}
