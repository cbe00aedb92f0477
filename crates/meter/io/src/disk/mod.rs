//! The disk that a storage engine stands on: named files in one flat directory; its errors, names,
//! and batches that are carried out in turn.
//!
//! Invariant: a read or write is done whole or is an error; what a finished `sync` covered, and a
//! write-through write, survives a crash; a created, renamed or removed name survives only after
//! `sync_dir`. Three forms obey it: real, memory, and for tests trace (feature `testing`). It
//! caches nothing and has no notion of pages, logs or checksums.

pub mod aligned;
mod blocks;
#[cfg(any(test, feature = "testing"))]
mod forward;
pub mod memory;
pub mod real;
#[cfg(any(test, feature = "testing"))]
mod replay;
#[cfg(any(test, feature = "testing"))]
pub mod trace;

use std::collections::VecDeque;
use std::sync::Arc;
use std::{fmt, io};

use thiserror::Error;

use crate::SyncKind;

pub use aligned::Aligned;
pub use memory::MemDisk;
pub use real::{BatchGrant, BatchKind, DirectoryLock, RealDisk, RealOptions, WriteThrough};

#[cfg(any(test, feature = "testing"))]
pub use forward::ForwardDisk;
#[cfg(any(test, feature = "testing"))]
pub use forward::PacedDisk;
#[cfg(any(test, feature = "testing"))]
pub use replay::{Ending, Tear};
#[cfg(any(test, feature = "testing"))]
pub use trace::TraceDisk;

/// An open file of one disk. Numbers are not used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub u32);

/// Whether opening may or must create the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileMode {
    /// It must be there.
    Existing,
    /// It is made, empty, unless it is there.
    Create,
    /// It must not be there yet.
    CreateNew,
}

/// What a write promises when it returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Durability {
    /// Nothing before the next sync of the file.
    Volatile,
    /// It survives a crash.
    WriteThrough,
}

/// What a disk reports about a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Offsets and lengths must be multiples of this, in bytes.
    pub block_bytes: u32,
    /// The smallest write that the device does not have to read around, in bytes.
    pub physical_block_bytes: u32,
    /// Reads and writes go around the page cache.
    pub direct: bool,
    /// The largest write, in bytes, that a crash cannot tear, when its length is a power of two and
    /// its offset a multiple of its length; 0 when nothing is promised.
    pub atomic_write_bytes: u32,
}

impl Facts {
    /// Whether the file takes a request at this place.
    fn check_alignment(&self, name: &FileName, at: u64, bytes: u64) -> Result<(), DiskError> {
        let block_bytes = self.block_bytes;
        let block = u64::from(block_bytes);
        if at.is_multiple_of(block) && bytes.is_multiple_of(block) {
            return Ok(());
        }
        Err(DiskError::Unaligned { name: name.to_string(), at, bytes, block_bytes })
    }
}

/// A disk. Calls may come from any thread at once.
pub trait Disk: Send + Sync {
    /// Opens a file.
    ///
    /// # Errors
    /// [`DiskError::NotFound`], [`DiskError::Exists`] or the system's error.
    fn open(&self, name: &FileName, mode: FileMode) -> Result<FileId, DiskError>;

    /// Closes a file; its number is not valid any more. Nothing is synced.
    fn close(&self, file: FileId);

    /// What is known about a file.
    fn facts(&self, file: FileId) -> Facts;

    /// Bytes that files can still take, where the system reports them.
    fn free_bytes(&self) -> Option<u64> {
        None
    }

    /// Its length in bytes.
    ///
    /// # Errors
    /// The system's error.
    fn len(&self, file: FileId) -> Result<u64, DiskError>;

    /// Reads exactly `into.len()` bytes.
    ///
    /// # Errors
    /// [`DiskError::PastEnd`] when the file is shorter, or the system's error.
    fn read(&self, file: FileId, at: u64, into: &mut Aligned) -> Result<(), DiskError>;

    /// Writes all of `from`; the file grows as needed.
    ///
    /// # Errors
    /// The system's error. Some of the bytes may then be written.
    fn write(&self, file: FileId, at: u64, from: &Aligned, d: Durability) -> Result<(), DiskError>;

    /// Writes all of `parts`, one behind the other from `at` on, as [`Disk::write`] writes one
    /// buffer. Where the system gathers them, no byte is copied for it.
    ///
    /// # Errors
    /// As there.
    fn write_parts(
        &self,
        file: FileId,
        at: u64,
        parts: &[&Aligned],
        d: Durability,
    ) -> Result<(), DiskError> {
        let parts: Vec<&[u8]> = parts.iter().map(|part| &part[..]).collect();
        self.write(file, at, &Aligned::from_slice(&parts.concat()), d)
    }

    /// Makes every write that finished before durable.
    ///
    /// # Errors
    /// The system's error. After that nothing is known about earlier writes, and a later success
    /// proves nothing about them either.
    fn sync(&self, file: FileId, kind: SyncKind) -> Result<(), DiskError>;

    /// A way to keep many reads and writes in flight from one thread.
    fn batch(&self) -> Box<dyn Batch>;

    /// Cuts a file or extends it with zero bytes.
    ///
    /// # Errors
    /// The system's error.
    fn set_len(&self, file: FileId, len: u64) -> Result<(), DiskError>;

    /// Renames a file; one that has the new name is replaced.
    ///
    /// # Errors
    /// [`DiskError::NotFound`] or the system's error.
    fn rename(&self, from: &FileName, to: &FileName) -> Result<(), DiskError>;

    /// Removes a name. The file lives as long as it is open.
    ///
    /// # Errors
    /// [`DiskError::NotFound`] or the system's error.
    fn remove(&self, name: &FileName) -> Result<(), DiskError>;

    /// Every name, sorted.
    ///
    /// # Errors
    /// The system's error.
    fn list(&self) -> Result<Vec<FileName>, DiskError>;

    /// Makes created, renamed and removed names durable.
    ///
    /// # Errors
    /// The system's error.
    fn sync_dir(&self) -> Result<(), DiskError>;
}

/// Many reads and writes in flight. The buffers travel with the requests and come back with their
/// completions. It may go from thread to thread. Whether a request is carried out that was not
/// handed back when the batch is dropped is open; nothing of it goes on afterwards.
pub trait Batch: Send {
    /// Takes a read of `into.len()` bytes.
    fn read(&mut self, file: FileId, at: u64, into: Aligned, tag: u64);

    /// Takes a write of all of `from`.
    fn write(&mut self, file: FileId, at: u64, from: Aligned, d: Durability, tag: u64);

    /// Starts everything taken.
    fn submit(&mut self);

    /// Requests submitted and not handed back yet.
    fn in_flight(&self) -> usize;

    /// Waits for at least `min` completions (or all in flight) and hands back all there are.
    fn complete(&mut self, min: usize, done: &mut dyn FnMut(BatchCompletion));
}

/// One completion of a batch.
#[derive(Debug)]
pub struct BatchCompletion {
    /// The request's tag.
    pub tag: u64,
    /// The request's buffer; after a read that succeeded, filled.
    pub buffer: Aligned,
    /// What became of it.
    pub result: Result<(), DiskError>,
}

// What can go wrong on a disk.
//
// Invariant: each error names the file and what was tried; errors are plain data, so that the same
// one can reach every request that waited.

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
        /// First byte requested.
        at: u64,
        /// Bytes requested.
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
    /// The system, or a fault that a test injected.
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

// Names of files on a disk.
//
// Invariant: a name stays within its directory: not empty, no slash, not `.` or `..`, at most 255
// bytes.

/// The name of a file in the flat directory of a disk. Clones share the text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileName(Arc<str>);

impl FileName {
    /// Checks a name.
    ///
    /// # Errors
    /// [`DiskError::BadName`] when it would leave the directory or is too long.
    pub fn new(name: impl Into<String>) -> Result<Self, DiskError> {
        let name = name.into();
        let bad = name.is_empty() || name == "." || name == ".." || name.len() > 255;
        if bad || name.contains(['/', '\0']) {
            return Err(DiskError::BadName { name });
        }
        Ok(Self(name.into()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for FileName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

// A batch that carries its requests out one after another, when they are waited for.
//
// Invariant: completions come in the order of the requests, each exactly once.
// It keeps nothing in flight at the device: enough for memory, and for a real disk until an
// engine needs depth from one thread.

#[derive(Debug)]
struct Request {
    tag: u64,
    file: FileId,
    at: u64,
    buffer: Aligned,
    /// Absent for a read.
    write: Option<Durability>,
}

/// A batch over any disk: for one that has no way of its own to keep requests in flight.
#[derive(Debug)]
pub struct InTurn<D> {
    disk: D,
    queued: VecDeque<Request>,
    submitted: VecDeque<Request>,
}

impl<D: Disk> InTurn<D> {
    /// A batch on a clone of the disk.
    pub fn new(disk: D) -> Self {
        Self { disk, queued: VecDeque::new(), submitted: VecDeque::new() }
    }
}

impl<D: Disk> Batch for InTurn<D> {
    fn read(&mut self, file: FileId, at: u64, into: Aligned, tag: u64) {
        self.queued.push_back(Request { tag, file, at, buffer: into, write: None });
    }

    fn write(&mut self, file: FileId, at: u64, from: Aligned, d: Durability, tag: u64) {
        self.queued.push_back(Request { tag, file, at, buffer: from, write: Some(d) });
    }

    fn submit(&mut self) {
        self.submitted.append(&mut self.queued);
    }

    fn in_flight(&self) -> usize {
        self.submitted.len()
    }

    fn complete(&mut self, min: usize, done: &mut dyn FnMut(BatchCompletion)) {
        for _ in 0..min {
            let Some(mut request) = self.submitted.pop_front() else { break };
            let result = match request.write {
                Some(d) => self.disk.write(request.file, request.at, &request.buffer, d),
                None => self.disk.read(request.file, request.at, &mut request.buffer),
            };
            done(BatchCompletion { tag: request.tag, buffer: request.buffer, result });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::FileName;

    #[test]
    fn names_stay_in_the_directory() {
        for bad in ["", ".", "..", "a/b", "/a", "a\0b", &"x".repeat(256)] {
            assert!(FileName::new(bad).is_err(), "{bad}");
        }
        assert_eq!(FileName::new("redo.0").unwrap().as_str(), "redo.0");
    }
}
