//! What can go wrong on a disk.
//!
//! Invariant: each error names the file and what was tried; errors are plain data, so that the same
//! one can reach every request that waited.

use std::io;

use thiserror::Error;

/// Why a call on a disk failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DiskError {
    /// A name that would leave the directory, or is too long.
    #[error("{name:?} is no file name: use 1 to 255 bytes without a slash")]
    BadName {
        /// The name.
        name: String,
    },
    /// No file of that name.
    #[error("there is no file {name}")]
    NotFound {
        /// The name.
        name: String,
    },
    /// A file of that name is there.
    #[error("there is a file {name} already")]
    Exists {
        /// The name.
        name: String,
    },
    /// A read beyond the end.
    #[error("{name} has {file_bytes} bytes: cannot read {bytes} bytes at {at}")]
    PastEnd {
        /// The file.
        name: String,
        /// First byte asked for.
        at: u64,
        /// Bytes asked for.
        bytes: u64,
        /// The file's length, in bytes.
        file_bytes: u64,
    },
    /// An offset or length that the file cannot take.
    #[error("{name} takes multiples of {block_bytes} bytes, not {bytes} bytes at {at}")]
    Unaligned {
        /// The file.
        name: String,
        /// First byte.
        at: u64,
        /// Bytes.
        bytes: u64,
        /// What both must be a multiple of.
        block_bytes: u32,
    },
    /// A directory that someone else uses.
    #[error("{directory} is in use{}; close it there first", by(*.holder))]
    Locked {
        /// The directory.
        directory: String,
        /// The file that is locked.
        name: String,
        /// The process that holds it, where it left its number.
        holder: Option<u32>,
    },
    /// The system, or a fault that a test asked for.
    #[error("cannot {doing} {name}: {}", io::Error::from_raw_os_error(*.errno))]
    System {
        /// What was tried.
        doing: &'static str,
        /// The file.
        name: String,
        /// The system's answer.
        errno: i32,
    },
}

impl DiskError {
    /// Whether there was no room left: on the disk, in a quota or below a limit of file sizes.
    pub fn is_full(&self) -> bool {
        matches!(self, Self::System { errno: libc::ENOSPC | libc::EDQUOT | libc::EFBIG, .. })
    }
}

fn by(holder: Option<u32>) -> String {
    holder.map_or_else(String::new, |process| format!(" by process {process}"))
}
