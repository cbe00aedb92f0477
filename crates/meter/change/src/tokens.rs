//! By what things are named and found again.
//!
//! Invariant: a number that the kernel may give to somebody else later counts only together with
//! what it does not: the path, the inode, the sequence number of a disk.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

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
