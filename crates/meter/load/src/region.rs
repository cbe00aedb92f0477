//! What workers share with their controller: memory with counters only, each written by one side,
//! and the descriptor that a parent process left open for it.
//!
//! Invariant: every word is an atomic; a worker process maps the same words as its parent. It gives
//! the words no meaning: [`crate::shared_stats`] does.

#![allow(unsafe_code)]

use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;
use std::{io, ptr};

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// A mapping of zeroed words over a file that has no name.
#[derive(Debug)]
pub(crate) struct Region {
    start: NonNull<AtomicU64>,
    words: usize,
    file: OwnedFd,
}

// SAFETY: the region is plain shared memory of atomics; it stays mapped until the last owner drops.
unsafe impl Send for Region {}
// SAFETY: as above; every access goes through an atomic.
unsafe impl Sync for Region {}

impl Region {
    /// A new region of zeroes. Pages cost memory only once they are touched.
    pub(crate) fn new(words: usize) -> io::Result<Self> {
        let file = memfd_create(c"iostrata", MemfdFlags::empty())?;
        ftruncate(&file, (words * size_of::<AtomicU64>()) as u64)?;
        Self::map(file, words)
    }

    /// The region behind a descriptor that came from a parent process.
    pub(crate) fn map(file: OwnedFd, words: usize) -> io::Result<Self> {
        let bytes = words * size_of::<AtomicU64>();
        let flags = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a fresh mapping at an address of the kernel's choice; nothing else refers to it.
        let start = unsafe { mmap(ptr::null_mut(), bytes, flags, MapFlags::SHARED, &file, 0)? };
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, words, file })
    }

    /// The words.
    pub(crate) fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping holds `words` words, is page aligned and lives as long as `self`;
        // all-zero bytes are a valid AtomicU64.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.words) }
    }

    /// The file behind it, to hand to a child.
    pub(crate) fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: unmaps exactly what was mapped; no slice of it outlives `self`.
        let unmapped =
            unsafe { munmap(self.start.as_ptr().cast(), self.words * size_of::<AtomicU64>()) };
        debug_assert!(unmapped.is_ok(), "unmapping our own region failed: {unmapped:?}");
    }
}

/// Takes ownership of an inherited descriptor.
pub(crate) fn take(descriptor: RawFd) -> OwnedFd {
    assert!(descriptor > 2, "descriptor {descriptor} is a standard stream");
    // SAFETY: called once, at the start of a worker process, with the number under which the parent
    // left the shared statistics open; nothing else in this process uses the number.
    unsafe { OwnedFd::from_raw_fd(descriptor) }
}
