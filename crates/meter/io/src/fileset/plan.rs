//! Which files a workload wants, and where; whether there is room for them, and why they could not
//! be prepared.
//!
//! Invariant: a plan that passed its check names at least one block per file. Free space is checked
//! before the first byte is written, so that a disk is not filled up in vain. Each message names
//! the path, what was found and the fix. It reads the file system only to find what a path is and
//! what room it has.

use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

use iostrata_stats::units::{Size, bytes as shown};
use rustix::fs::statvfs;
use thiserror::Error;

/// What a user's path stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A file to be made here; its directory exists.
    NewFile(PathBuf),
    /// A directory to make own files in.
    Directory(PathBuf),
    /// A regular file.
    ExistingFile(PathBuf),
    /// A block device.
    Device(PathBuf),
}

impl Place {
    /// Finds out what `path` is.
    ///
    /// # Errors
    /// When neither the path nor its directory exists, it would be a device, or it is something
    /// that holds no data.
    pub fn find(path: &Path) -> Result<Self, FileSetError> {
        let owned = path.to_owned();
        match fs::metadata(path) {
            Ok(meta) if meta.is_dir() => Ok(Place::Directory(owned)),
            Ok(meta) if meta.is_file() => Ok(Place::ExistingFile(owned)),
            Ok(meta) if meta.file_type().is_block_device() => Ok(Place::Device(owned)),
            Ok(_) => Err(FileSetError::NotAFile { path: owned }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let directory = directory_of(path);
                if names_a_device(path) {
                    Err(FileSetError::NoDevice { path: owned })
                } else if directory.is_dir() {
                    Ok(Place::NewFile(owned))
                } else {
                    Err(FileSetError::NoDirectory { path: owned, directory })
                }
            }
            Err(source) => Err(FileSetError::System { doing: "look at", path: owned, source }),
        }
    }
}

/// Whether only a device can be meant by a path: it lies under `/dev`, and not where files of
/// shared memory are.
pub fn names_a_device(path: &Path) -> bool {
    let directory = directory_of(path);
    let directory = fs::canonicalize(&directory).unwrap_or(directory);
    let files = ["/dev/shm", "/dev/mqueue", "/dev/hugepages"];
    directory.starts_with("/dev") && !files.iter().any(|place| directory.starts_with(place))
}

/// What a made file holds before the first request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Fill {
    /// Every block written with incompressible data and flushed.
    #[default]
    Written,
    /// Allocated and never written: unwritten extents, where the file system has them.
    Fallocated,
    /// What a file that is there holds, and behind it the same as `Fallocated`.
    Grown,
    /// No bytes at all: requests extend the file.
    Empty,
    /// No file at all: requests make it.
    Absent,
}

/// The files that a workload wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSetPlan {
    /// Where.
    pub place: Place,
    /// How many files; an existing file or device is one.
    pub files: u32,
    /// Bytes over all files; absent: the whole of an existing file or device.
    pub total_bytes: Option<u64>,
    /// Every file's size is a multiple of this.
    pub block_bytes: u32,
    /// What made files hold.
    pub fill: Fill,
    /// Made files stay after the run and are used again by the next with the same plan.
    pub keep: bool,
    /// Requests will write.
    pub write: bool,
    /// Leave to overwrite an existing file or device that iostrata did not make.
    pub overwrite_contents: bool,
    /// Seed of the data.
    pub seed: u64,
}

impl FileSetPlan {
    /// A plan for one fully written file or file set that is removed afterwards.
    pub fn new(place: Place, total_bytes: u64, block_bytes: u32) -> Self {
        Self {
            place,
            files: 1,
            total_bytes: Some(total_bytes),
            block_bytes,
            fill: Fill::Written,
            keep: false,
            write: true,
            overwrite_contents: false,
            seed: 1,
        }
    }

    pub(super) fn check(&self) -> Result<(), FileSetError> {
        assert!(self.block_bytes > 0, "a plan needs a block size");
        if self.files == 0 {
            return Err(FileSetError::NoFiles);
        }
        let Some(total) = self.total_bytes else { return Ok(()) };
        let least = u64::from(self.block_bytes) * u64::from(self.files);
        if total < least {
            let (files, block_bytes) = (self.files, self.block_bytes);
            return Err(FileSetError::TooSmall { total, files, block_bytes, least });
        }
        Ok(())
    }

    /// Bytes of each file: an even share, rounded down to whole blocks.
    pub(super) fn bytes_each(&self, total: u64) -> u64 {
        let block = u64::from(self.block_bytes);
        total / u64::from(self.files) / block * block
    }

    /// The paths of a set at a path of the user's choice.
    pub(super) fn new_paths(&self, path: &Path) -> Vec<PathBuf> {
        if self.files == 1 {
            return vec![path.to_owned()];
        }
        let numbered = |number| {
            let mut name = path.as_os_str().to_owned();
            name.push(format!(".{number}"));
            PathBuf::from(name)
        };
        (0..self.files).map(numbered).collect()
    }

    /// The paths of own files in a directory. Kept sets have fixed names, so that they are found
    /// again; others carry the process id, so that two runs do not meet.
    pub(super) fn own_paths(&self, directory: &Path) -> Vec<PathBuf> {
        let set = if self.keep { "kept".to_owned() } else { unique_set() };
        let path = |number| directory.join(format!("iostrata-{set}-{number}.dat"));
        (0..self.files).map(path).collect()
    }
}

/// How far the filling has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes written so far, over all files.
    pub done_bytes: u64,
    /// Bytes to write.
    pub total_bytes: u64,
}

pub(super) fn directory_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

fn unique_set() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

// Whether the files fit into the free space.
//
// Invariant: checked before the first byte is written, so that a disk is not filled up in vain.

/// Refuses when `needed` more bytes do not fit into the file system of `directory`.
pub(super) fn check(directory: &Path, needed: u64) -> Result<(), FileSetError> {
    let stat = statvfs(directory).map_err(|errno| FileSetError::System {
        doing: "ask for the free space of",
        path: directory.to_owned(),
        source: errno.into(),
    })?;
    let available = stat.f_bavail.saturating_mul(stat.f_frsize);
    // Some file systems (network, FUSE) report nothing: all sizes 0.
    if stat.f_blocks > 0 && available < needed {
        let directory = directory.to_owned();
        return Err(FileSetError::NoSpace { directory, needed, available });
    }
    Ok(())
}

// Why files could not be prepared.
//
// Invariant: each message names the path, what was found and the fix.

/// Why a file set could not be prepared.
#[derive(Debug, Error)]
pub enum FileSetError {
    /// Neither the path nor its directory is there.
    #[error(
        "{path} cannot be made: there is no directory {directory}; create it or choose another --path"
    )]
    NoDirectory {
        /// The path requested.
        path: PathBuf,
        /// Its directory.
        directory: PathBuf,
    },
    /// No such device exists, and what would be made is no device.
    #[error("{path}: no such device; a file made there would be in memory")]
    NoDevice {
        /// The path requested.
        path: PathBuf,
    },
    /// The path is a socket, a pipe or the like.
    #[error(
        "{path} is neither a regular file, a directory nor a block device; choose another --path"
    )]
    NotAFile {
        /// The path requested.
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
        /// Bytes requested.
        total: u64,
        /// Files requested.
        files: u32,
        /// Block size, in bytes.
        block_bytes: u32,
        /// The smallest size that works, in bytes.
        least: u64,
    },
    /// A file is to be made and no size was given.
    #[error("{path} has to be made: say how large with --size")]
    SizeNeeded {
        /// The path requested.
        path: PathBuf,
    },
    /// An existing file or device is smaller than requested.
    #[error(
        "{path} has {}, less than the {} requested; use a smaller --size",
        shown(*bytes as f64), shown(*asked as f64)
    )]
    ExistingTooSmall {
        /// The file or device.
        path: PathBuf,
        /// What it has.
        bytes: u64,
        /// The size requested.
        asked: u64,
    },
    /// An existing file or device is one file.
    #[error("{path} exists and is one file, not {files}; use --nrfiles 1 or a directory as --path")]
    OneFileOnly {
        /// The file or device.
        path: PathBuf,
        /// Files requested.
        files: u32,
    },
    /// Writing was requested on something that iostrata did not make.
    #[error(
        "{path} was not made by iostrata, so it is only read; to destroy its contents, add \
         --overwrite-contents, else choose a path that does not exist"
    )]
    NotOurs {
        /// The file or device.
        path: PathBuf,
    },
    /// Writing was requested on something in use.
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
