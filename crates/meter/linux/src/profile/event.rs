//! One event of the kernel: what it records, the open descriptor, and the buffer that the kernel
//! and this process share for it.
//!
//! Invariants: every event stores the same three things per sample, in this order: process and
//! thread, time (CLOCK_MONOTONIC, in ns), kernel call chain; `record` relies on it. An event is
//! closed when its value is dropped, and opened so that no child process inherits the descriptor.
//! Bytes are copied out of a buffer before they are released, and only those between tail and head
//! are ever read.
//!
//! A buffer (perf_event_open(2)) is one page with positions, then 2^n pages of records. The kernel
//! appends at `data_head`, the reader releases what it has copied by moving `data_tail`; both only
//! grow, and a record may wrap around the end.
#![allow(unsafe_code)]

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use perf_event_open_sys::bindings::{
    PERF_COUNT_HW_CPU_CYCLES, PERF_COUNT_SW_CONTEXT_SWITCHES, PERF_COUNT_SW_CPU_CLOCK,
    PERF_FLAG_FD_CLOEXEC, PERF_SAMPLE_CALLCHAIN, PERF_SAMPLE_TID, PERF_SAMPLE_TIME,
    PERF_TYPE_HARDWARE, PERF_TYPE_SOFTWARE, perf_event_attr, perf_event_mmap_page,
};
use perf_event_open_sys::ioctls;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::param::page_size;

/// Whose work is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Every task, and no task at all.
    Machine,
    /// The thread that opens, and the threads and processes that it will start.
    Own,
}

/// An open event.
#[derive(Debug)]
pub(crate) struct PerfEvent {
    fd: OwnedFd,
}

impl PerfEvent {
    /// Opens an event on one processor, or on any (`None`) for the calling thread alone.
    pub(crate) fn open(attr: &perf_event_attr, reach: Reach, cpu: Option<u32>) -> io::Result<Self> {
        let mut attr = *attr;
        let pid = match reach {
            Reach::Machine => -1,
            Reach::Own => 0,
        };
        attr.set_inherit(u64::from(reach == Reach::Own && cpu.is_some()));
        let cpu = cpu.map_or(-1, |cpu| cpu as RawFd);
        let flags = PERF_FLAG_FD_CLOEXEC.into();
        // SAFETY: the pointer is to a whole, initialised attr whose `size` is its size; the kernel
        // writes to it only to report the size it supports, within that size.
        let fd = unsafe { perf_event_open_sys::perf_event_open(&mut attr, pid, cpu, -1, flags) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call returned a new descriptor that nothing else owns.
        Ok(Self { fd: unsafe { OwnedFd::from_raw_fd(fd) } })
    }

    /// Begins to record.
    pub(crate) fn enable(&self) -> io::Result<()> {
        // SAFETY: the descriptor is an open event; the request takes no pointer.
        checked(unsafe { ioctls::ENABLE(self.fd.as_raw_fd(), 0) })
    }

    /// Stops to record.
    pub(crate) fn disable(&self) -> io::Result<()> {
        // SAFETY: the descriptor is an open event; the request takes no pointer.
        checked(unsafe { ioctls::DISABLE(self.fd.as_raw_fd(), 0) })
    }

    /// What a counter has counted.
    pub(crate) fn count(&self) -> io::Result<u64> {
        let mut bytes = [0_u8; 8];
        rustix::io::read(&self.fd, &mut bytes)?;
        Ok(u64::from_ne_bytes(bytes))
    }
}

impl AsFd for PerfEvent {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn checked(answer: libc::c_int) -> io::Result<()> {
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Deepest call chain that is kept; stacks of a file system over a loop device reach 60.
const FRAMES_MAX: u16 = 127;

fn sampling(event_type: u32, config: u64, period: u64) -> perf_event_attr {
    let mut attr = perf_event_attr {
        type_: event_type,
        size: size_of::<perf_event_attr>() as u32,
        config,
        sample_type: u64::from(PERF_SAMPLE_TID)
            | u64::from(PERF_SAMPLE_TIME)
            | u64::from(PERF_SAMPLE_CALLCHAIN),
        sample_max_stack: FRAMES_MAX,
        clockid: libc::CLOCK_MONOTONIC,
        ..perf_event_attr::default()
    };
    attr.sample_period = period;
    attr.set_disabled(1);
    attr.set_sample_id_all(1);
    attr.set_use_clockid(1);
    attr.set_exclude_callchain_user(1);
    attr
}

/// A sample every 1/hz s of a processor's time, idle or not.
pub(crate) fn cpu_clock(hz: u32) -> perf_event_attr {
    let period_ns = 1_000_000_000 / u64::from(hz);
    sampling(PERF_TYPE_SOFTWARE, u64::from(PERF_COUNT_SW_CPU_CLOCK), period_ns)
}

/// A sample every so many cycles; an idle processor makes none.
pub(crate) fn cycles(period: u64) -> perf_event_attr {
    sampling(PERF_TYPE_HARDWARE, u64::from(PERF_COUNT_HW_CPU_CYCLES), period)
}

/// A record of every switch: the stack of the task that leaves, and who comes and goes.
///
/// The software event does what the tracepoint sched:sched_switch does, at the same place in the
/// kernel, and needs no mounted tracefs to be named.
pub(crate) fn switches() -> perf_event_attr {
    let mut attr = sampling(PERF_TYPE_SOFTWARE, u64::from(PERF_COUNT_SW_CONTEXT_SWITCHES), 1);
    attr.set_context_switch(1);
    attr
}

/// A plain counter of cycles, running at once.
pub(crate) fn cycle_counter() -> perf_event_attr {
    perf_event_attr {
        type_: PERF_TYPE_HARDWARE,
        size: size_of::<perf_event_attr>() as u32,
        config: u64::from(PERF_COUNT_HW_CPU_CYCLES),
        ..perf_event_attr::default()
    }
}

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
