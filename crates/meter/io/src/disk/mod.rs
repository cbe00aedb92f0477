//! The disk that a storage engine stands on: named files in one flat directory.
//!
//! Invariant: a read or write is done whole or is an error; what a finished `sync` covered, and a
//! write-through write, survives a crash; a created, renamed or removed name survives only after
//! `sync_dir`. Three forms obey it: real, memory, and for tests trace (feature `testing`).
//! It caches nothing and knows no page, log or checksum.

pub mod aligned;
mod blocks;
mod error;
mod faults;
#[cfg(any(test, feature = "testing"))]
mod forward;
mod in_turn;
pub mod memory;
mod name;
#[cfg(any(test, feature = "testing"))]
mod paced;
pub mod real;
#[cfg(any(test, feature = "testing"))]
mod replay;
#[cfg(any(test, feature = "testing"))]
pub mod trace;

pub use aligned::Aligned;
pub use error::DiskError;
#[cfg(any(test, feature = "testing"))]
pub use forward::ForwardDisk;
pub use in_turn::InTurn;
pub use memory::MemDisk;
pub use name::FileName;
#[cfg(any(test, feature = "testing"))]
pub use paced::PacedDisk;
pub use real::{BatchGranted, BatchKind, DirectoryLock, RealDisk, RealOptions, WriteThrough};
#[cfg(any(test, feature = "testing"))]
pub use replay::{Ending, Tear};
#[cfg(any(test, feature = "testing"))]
pub use trace::TraceDisk;

use crate::SyncKind;

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

/// What a disk says about a file.
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
    /// [`DiskError::NotFound`], [`DiskError::Exists`] or what the system says.
    fn open(&self, name: &FileName, mode: FileMode) -> Result<FileId, DiskError>;

    /// Closes a file; its number is not valid any more. Nothing is synced.
    fn close(&self, file: FileId);

    /// What is known about a file.
    fn facts(&self, file: FileId) -> Facts;

    /// Bytes that files can still take, where the system says so.
    fn free_bytes(&self) -> Option<u64> {
        None
    }

    /// Its length in bytes.
    ///
    /// # Errors
    /// What the system says.
    fn len(&self, file: FileId) -> Result<u64, DiskError>;

    /// Reads exactly `into.len()` bytes.
    ///
    /// # Errors
    /// [`DiskError::PastEnd`] when the file is shorter, or what the system says.
    fn read(&self, file: FileId, at: u64, into: &mut Aligned) -> Result<(), DiskError>;

    /// Writes all of `from`; the file grows as needed.
    ///
    /// # Errors
    /// What the system says. Some of the bytes may then be written.
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
    /// What the system says. After that nothing is known about earlier writes, and a later success
    /// says nothing about them either.
    fn sync(&self, file: FileId, kind: SyncKind) -> Result<(), DiskError>;

    /// A way to keep many reads and writes in flight from one thread.
    fn batch(&self) -> Box<dyn Batch>;

    /// Cuts a file or extends it with zero bytes.
    ///
    /// # Errors
    /// What the system says.
    fn set_len(&self, file: FileId, len: u64) -> Result<(), DiskError>;

    /// Renames a file; one that has the new name is replaced.
    ///
    /// # Errors
    /// [`DiskError::NotFound`] or what the system says.
    fn rename(&self, from: &FileName, to: &FileName) -> Result<(), DiskError>;

    /// Removes a name. The file lives as long as it is open.
    ///
    /// # Errors
    /// [`DiskError::NotFound`] or what the system says.
    fn remove(&self, name: &FileName) -> Result<(), DiskError>;

    /// Every name, sorted.
    ///
    /// # Errors
    /// What the system says.
    fn list(&self) -> Result<Vec<FileName>, DiskError>;

    /// Makes created, renamed and removed names durable.
    ///
    /// # Errors
    /// What the system says.
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
    fn complete(&mut self, min: usize, done: &mut dyn FnMut(Finished));
}

/// One completion of a batch.
#[derive(Debug)]
pub struct Finished {
    /// The request's tag.
    pub tag: u64,
    /// The request's buffer; after a read that succeeded, filled.
    pub buffer: Aligned,
    /// What became of it.
    pub result: Result<(), DiskError>,
}
