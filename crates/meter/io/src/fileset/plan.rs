//! Which files a workload wants, and where.
//!
//! Invariant: a plan that passed its check names at least one block per file.
//! It looks at the file system only to tell what a path is.

use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use crate::FileSetError;

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
    /// No bytes at all: requests extend the file.
    Empty,
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
