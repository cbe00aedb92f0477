//! Why files could not be prepared.
//!
//! Invariant: each message names the path, what was found and the fix.

use std::io;
use std::path::{Path, PathBuf};

use iostrata_stats::units::{Size, bytes as shown};
use thiserror::Error;

/// Why a file set could not be prepared.
#[derive(Debug, Error)]
pub enum FileSetError {
    /// Neither the path nor its directory is there.
    #[error(
        "{path} cannot be made: there is no directory {directory}; create it or choose another --path"
    )]
    NoDirectory {
        /// The path asked for.
        path: PathBuf,
        /// Its directory.
        directory: PathBuf,
    },
    /// There is no such device, and what would be made is no device.
    #[error("{path}: no such device; a file made there would be in memory")]
    NoDevice {
        /// The path asked for.
        path: PathBuf,
    },
    /// The path is a socket, a pipe or the like.
    #[error(
        "{path} is neither a regular file, a directory nor a block device; choose another --path"
    )]
    NotAFile {
        /// The path asked for.
        path: PathBuf,
    },
    /// A set of no files.
    #[error("--nrfiles 0: a set needs at least one file")]
    NoFiles,
    /// Less than a block per file.
    #[error(
        "--size {} is smaller than one block of {} in each of {files} files; use at least {}",
        Size(*total), Size(u64::from(*block_bytes)), Size(*least)
    )]
    TooSmall {
        /// Bytes asked for.
        total: u64,
        /// Files asked for.
        files: u32,
        /// Block size, in bytes.
        block_bytes: u32,
        /// The smallest size that works, in bytes.
        least: u64,
    },
    /// A file is to be made and nobody said how large.
    #[error("{path} has to be made: say how large with --size")]
    SizeNeeded {
        /// The path asked for.
        path: PathBuf,
    },
    /// An existing file or device is smaller than asked for.
    #[error(
        "{path} has {}, less than the {} asked for; use a smaller --size",
        shown(*bytes as f64), shown(*asked as f64)
    )]
    ExistingTooSmall {
        /// The file or device.
        path: PathBuf,
        /// What it has.
        bytes: u64,
        /// What was asked for.
        asked: u64,
    },
    /// An existing file or device is one file.
    #[error("{path} exists and is one file, not {files}; use --nrfiles 1 or a directory as --path")]
    OneFileOnly {
        /// The file or device.
        path: PathBuf,
        /// Files asked for.
        files: u32,
    },
    /// Writing was asked for on something that iostrata did not make.
    #[error(
        "{path} was not made by iostrata, so it is only read; to destroy its contents, add \
         --overwrite-contents, else choose a path that does not exist"
    )]
    NotOurs {
        /// The file or device.
        path: PathBuf,
    },
    /// Writing was asked for on something in use.
    #[error("{path} is in use ({by}) and is never written; free it or choose another --path")]
    Held {
        /// The file or device.
        path: PathBuf,
        /// By what: a mount point, swap, or a device above it.
        by: String,
    },
    /// Not enough room.
    #[error(
        "{directory} has {} free and {} are needed; free some or use a smaller --size",
        shown(*available as f64), shown(*needed as f64)
    )]
    NoSpace {
        /// The directory.
        directory: PathBuf,
        /// Bytes that the files need.
        needed: u64,
        /// Bytes free for this user.
        available: u64,
    },
    /// The room, or the quota, ran out while filling: others use the file system too.
    #[error("the disk or the quota was full while {path} was filled; use a smaller --size")]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// The file system cannot allocate without writing.
    #[error("{path}: this file system has no unwritten extents (fallocate: {source})")]
    NoFallocate {
        /// The file.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The stop flag was raised while filling.
    #[error("stopped while filling {path}; what was made is removed")]
    Stopped {
        /// The file.
        path: PathBuf,
    },
    /// Another error.
    #[error("cannot {doing} {path}: {source}{}", fix(source))]
    System {
        /// What was tried.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
}

/// What would help against an answer of the kernel, where that is known.
fn fix(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::PermissionDenied => "; run it as a user who may, or choose another place",
        io::ErrorKind::ReadOnlyFilesystem => "; choose a place that can be written",
        _ => "",
    }
}

/// An error of the system; a full disk or quota is named as such.
pub(super) fn system(doing: &'static str, path: &Path, source: io::Error) -> FileSetError {
    if matches!(source.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT)) {
        return FileSetError::Full { path: path.to_owned() };
    }
    FileSetError::System { doing, path: path.to_owned(), source }
}
