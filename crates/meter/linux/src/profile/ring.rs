//! The buffer that the kernel and this process share for one event.
//!
//! Layout (perf_event_open(2)): one page with positions, then 2^n pages of records. The kernel
//! appends at `data_head`, the reader releases what it has copied by moving `data_tail`; both only
//! grow, and a record may wrap around the end. Invariant: bytes are copied out before they are
//! released, and only those between tail and head are ever read.

#![allow(unsafe_code)]

use std::io;
use std::ops::Range;
use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use perf_event_open_sys::bindings::perf_event_mmap_page;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::param::page_size;

/// A mapped buffer.
#[derive(Debug)]
pub(crate) struct Ring {
    base: NonNull<u8>,
    data_bytes: usize,
}

// SAFETY: the mapping belongs to this value alone on this side; the kernel's side is synchronised
// by the two positions. Nothing of it is bound to a thread.
unsafe impl Send for Ring {}

impl Ring {
    /// Maps the buffer of an event with so many pages of records, a power of two.
    pub(crate) fn map(event: impl AsFd, pages: usize) -> io::Result<Self> {
        assert!(pages.is_power_of_two(), "the kernel takes powers of two, not {pages} pages");
        let data_bytes = pages * page_size();
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        let length = page_size() + data_bytes;
        // SAFETY: a new mapping at an address that the kernel chooses overlaps nothing.
        let base = unsafe { mmap(std::ptr::null_mut(), length, access, flags, event, 0) }?;
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { base, data_bytes })
    }

    /// Appends everything recorded so far to `into` and gives its room back to the kernel.
    pub(crate) fn drain(&mut self, into: &mut Vec<u8>) {
        let (head, tail) = (self.head(), self.tail());
        let end = head.load(Ordering::Acquire);
        let begin = tail.load(Ordering::Relaxed);
        for part in parts(begin, end, self.data_bytes) {
            // SAFETY: `parts` stays within the records, which follow the first page of the mapping;
            // the kernel has finished these bytes (head was read with acquire) and does not touch
            // them before tail moves past them.
            let bytes = unsafe {
                let from = self.base.as_ptr().add(page_size() + part.start);
                std::slice::from_raw_parts(from, part.len())
            };
            into.extend_from_slice(bytes);
        }
        tail.store(end, Ordering::Release);
    }

    fn head(&self) -> &AtomicU64 {
        self.position(std::mem::offset_of!(perf_event_mmap_page, data_head))
    }

    fn tail(&self) -> &AtomicU64 {
        self.position(std::mem::offset_of!(perf_event_mmap_page, data_tail))
    }

    fn position(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: the offset is that of an aligned u64 within the first page, which lives as long
        // as `self`; both sides use it as an atomic only.
        unsafe { AtomicU64::from_ptr(self.base.as_ptr().add(offset).cast()) }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        let length = page_size() + self.data_bytes;
        // SAFETY: `map` made exactly this mapping, and nothing borrows from it any more. A failure
        // would leave it mapped, which is harmless.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), length) };
    }
}

/// Where the bytes from `begin` to `end` lie in a buffer of `size` bytes: one piece, or two when
/// they wrap around.
fn parts(begin: u64, end: u64, size: usize) -> [Range<usize>; 2] {
    let length = (end.wrapping_sub(begin) as usize).min(size);
    let start = (begin % size as u64) as usize;
    let first = length.min(size - start);
    [start..start + first, 0..length - first]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ring over plain memory, in which the test plays the kernel.
    fn ring(pages: usize) -> Ring {
        let data_bytes = pages * page_size();
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: a new anonymous mapping overlaps nothing.
        let base = unsafe {
            let length = page_size() + data_bytes;
            rustix::mm::mmap_anonymous(std::ptr::null_mut(), length, access, flags)
        };
        Ring { base: NonNull::new(base.unwrap().cast()).unwrap(), data_bytes }
    }

    fn append(ring: &Ring, bytes: &[u8]) {
        let at = ring.head().load(Ordering::Relaxed);
        for (offset, &byte) in bytes.iter().enumerate() {
            let place = (at as usize + offset) % ring.data_bytes;
            // SAFETY: the place lies within the records of the mapping.
            unsafe { ring.base.as_ptr().add(page_size() + place).write(byte) };
        }
        ring.head().store(at + bytes.len() as u64, Ordering::Release);
    }

    #[test]
    fn bytes_come_out_whole_around_the_end() {
        let mut ring = ring(1);
        let piece: Vec<u8> = (0..=250).collect();
        for round in 0..100 {
            append(&ring, &piece);
            let mut out = Vec::new();
            ring.drain(&mut out);
            assert_eq!(out, piece, "round {round}");
            assert_eq!(ring.tail().load(Ordering::Relaxed), 251 * (round + 1));
        }
        let mut out = Vec::new();
        ring.drain(&mut out);
        assert!(out.is_empty());
    }

    #[test]
    fn a_full_ring_is_two_parts() {
        assert_eq!(parts(0, 0, 64), [0..0, 0..0]);
        assert_eq!(parts(0, 64, 64), [0..64, 0..0]);
        assert_eq!(parts(130, 194, 64), [2..64, 0..2]);
        assert_eq!(parts(60, 70, 64), [60..64, 0..6]);
    }
}
