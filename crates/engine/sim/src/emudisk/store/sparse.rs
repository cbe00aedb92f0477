//! Contents in a sparse file that has no name.
//!
//! Invariant: a page that is not known to be written is a hole and is not read. The file goes with
//! the process, however that ends.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{FallocateFlags, FsWord, Mode, OFlags, fallocate, fstatfs, fstatvfs, open};

use super::PAGE_BYTES;
use super::pages::parts;
use crate::emudisk::error::ServeError;

/// Of tmpfs, as statfs(2) shows it.
const TMPFS_MAGIC: FsWord = 0x0102_1994;
/// Least room that the file system must have.
const ROOM_BYTES_MIN: u64 = 1 << 20;

#[derive(Debug)]
pub(super) struct Sparse {
    file: File,
    written: HashSet<u64>,
}

impl Sparse {
    pub(super) fn new(dir: &Path, size_bytes: u64) -> Result<Self, ServeError> {
        let refused = |found: String, fix| ServeError::Store { dir: dir.to_owned(), found, fix };
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let file = open(dir, flags, mode).map(File::from).map_err(|error| {
            refused(error.to_string(), "take an existing directory on ext4, XFS or btrfs")
        })?;
        let looked =
            |error: rustix::io::Errno| refused(error.to_string(), "take another directory");
        if fstatfs(&file).map_err(looked)?.f_type == TMPFS_MAGIC {
            let fix = "keep the contents in memory, or take a directory on a disk";
            return Err(refused("it is in memory (tmpfs)".to_owned(), fix));
        }
        let room = fstatvfs(&file).map_err(looked)?;
        let room_bytes = room.f_bavail * room.f_frsize;
        if room_bytes < ROOM_BYTES_MIN {
            let found = format!("its file system has {room_bytes} bytes left");
            return Err(refused(found, "make room, or take another directory"));
        }
        let sized = file.set_len(size_bytes);
        sized.map_err(|error| refused(error.to_string(), "take a smaller disk"))?;
        Ok(Self { file, written: HashSet::new() })
    }

    pub(super) fn pages(&self) -> u64 {
        self.written.len() as u64
    }

    /// Pages that a write could add.
    pub(super) fn missing(&self, at: u64, bytes: usize) -> u64 {
        parts(at, bytes as u64).filter(|part| !self.written.contains(&part.page)).count() as u64
    }

    pub(super) fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        if self.missing(at, into.len()) == 0 {
            return self.file.read_exact_at(into, at);
        }
        for part in parts(at, into.len() as u64) {
            let into = &mut into[part.of_range.clone()];
            if self.written.contains(&part.page) {
                self.file.read_exact_at(into, at + part.of_range.start as u64)?;
            } else {
                into.fill(0);
            }
        }
        Ok(())
    }

    pub(super) fn write(&mut self, at: u64, from: &[u8]) -> io::Result<()> {
        let is_hole = self.missing(at, from.len()) == parts(at, from.len() as u64).count() as u64;
        if is_hole && from.iter().all(|byte| *byte == 0) {
            return Ok(());
        }
        self.file.write_all_at(from, at)?;
        self.written.extend(parts(at, from.len() as u64).map(|part| part.page));
        Ok(())
    }

    pub(super) fn zero(&mut self, range: Range<u64>) -> io::Result<()> {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        fallocate(&self.file, flags, range.start, range.end - range.start)?;
        let whole = range.start.div_ceil(PAGE_BYTES)..range.end / PAGE_BYTES;
        self.written.retain(|page| !whole.contains(page));
        Ok(())
    }
}
