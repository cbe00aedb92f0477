//! Where a file's bytes really are: written, allocated but unwritten, or holes; and how much of
//! them is in the page cache.
//!
//! Purpose: reads of holes and of unwritten extents never reach the device, nor do reads that the
//! cache answers, so a figure measured on them is false.
//! Invariant: the three sums of extents add up to the bytes queried. It changes nothing, except
//! that the query makes the file system allocate what was written and delayed.

#![allow(unsafe_code)]

use std::os::fd::{AsRawFd, BorrowedFd};
use std::{io, ptr};

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use rustix::ioctl::opcode;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::param::page_size;

const FLAG_SYNC: u32 = 1;
const EXTENT_LAST: u32 = 1;
const EXTENT_UNWRITTEN: u32 = 0x800;
const EXTENTS_PER_CALL: usize = 128;

/// The kernel's struct fiemap, without its extents.
#[repr(C)]
#[derive(Default)]
struct Fiemap {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    room: u32,
    reserved: u32,
}

/// The kernel's struct fiemap_extent.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Extent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved: [u64; 2],
    flags: u32,
    more_reserved: [u32; 3],
}

#[repr(C)]
struct Request {
    head: Fiemap,
    extents: [Extent; EXTENTS_PER_CALL],
}

/// How much of a file is what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExtentReport {
    /// Bytes that were written; all that is neither of the others.
    pub written_bytes: u64,
    /// Bytes that are allocated and were never written.
    pub unwritten_bytes: u64,
    /// Bytes that are not allocated.
    pub hole_bytes: u64,
    /// Extents found.
    pub extents: u64,
    /// Whether the file system distinguishes written from unwritten. Without it holes are still
    /// found where it can seek to them.
    pub supported: bool,
}

impl ExtentReport {
    /// Both reports as one.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            written_bytes: self.written_bytes + other.written_bytes,
            unwritten_bytes: self.unwritten_bytes + other.unwritten_bytes,
            hole_bytes: self.hole_bytes + other.hole_bytes,
            extents: self.extents + other.extents,
            supported: self.supported && other.supported,
        }
    }
}

/// Reads the extents of the first `bytes` bytes of a file.
pub(crate) fn look(file: BorrowedFd<'_>, bytes: u64) -> io::Result<ExtentReport> {
    match fiemap(file, bytes) {
        Err(error) => match Errno::from_io_error(&error) {
            Some(Errno::OPNOTSUPP | Errno::NOTTY | Errno::INVAL) => Ok(by_seeking(file, bytes)),
            _ => Err(error),
        },
        report => report,
    }
}

fn fiemap(file: BorrowedFd<'_>, bytes: u64) -> io::Result<ExtentReport> {
    let mut report = ExtentReport { supported: true, ..ExtentReport::default() };
    let mut at = 0;
    while at < bytes {
        let request = ask(file, at, bytes - at)?;
        let found = &request.extents[..request.head.mapped as usize];
        for extent in found {
            let end = (extent.logical + extent.length).min(bytes);
            let start = extent.logical.max(at).min(end);
            report.hole_bytes += start - at;
            if extent.flags & EXTENT_UNWRITTEN == 0 {
                report.written_bytes += end - start;
            } else {
                report.unwritten_bytes += end - start;
            }
            report.extents += 1;
            at = end;
        }
        if found.last().is_none_or(|extent| extent.flags & EXTENT_LAST != 0) {
            break;
        }
    }
    report.hole_bytes += bytes - at;
    Ok(report)
}

fn ask(file: BorrowedFd<'_>, start: u64, length: u64) -> io::Result<Box<Request>> {
    let room = EXTENTS_PER_CALL as u32;
    let head = Fiemap { start, length, flags: FLAG_SYNC, room, ..Fiemap::default() };
    let mut request = Box::new(Request { head, extents: [Extent::default(); EXTENTS_PER_CALL] });
    let call = opcode::read_write::<Fiemap>(b'f', 11);
    // SAFETY: the request has the kernel's layout and room for the extents that it announces.
    let returned = unsafe { libc::ioctl(file.as_raw_fd(), call as _, &mut *request) };
    if returned < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(request)
}

/// Holes only; where even those cannot be found, everything counts as written.
fn by_seeking(file: BorrowedFd<'_>, bytes: u64) -> ExtentReport {
    let mut report = ExtentReport::default();
    let mut at = 0;
    while at < bytes {
        let data = match seek(file, SeekFrom::Data(at)) {
            Ok(data) => data.min(bytes),
            Err(Errno::NXIO) => bytes,
            Err(_) => at,
        };
        let end = seek(file, SeekFrom::Hole(data)).unwrap_or(bytes).clamp(data, bytes);
        report.hole_bytes += data - at;
        report.written_bytes += end - data;
        report.extents += u64::from(end > data);
        at = end.max(data);
        if end == data && data < bytes {
            report.written_bytes += bytes - data;
            break;
        }
    }
    report
}

// How much of a file is in the page cache.
//
// Purpose: a direct read leaves nothing there. Pages that appear during direct I/O show that the
// flag was ignored; pages present before buffered reads show that the cache answered.
// Invariant: the query brings no page in and drops none.

/// Number of the cachestat system call (Linux 6.5), the same on every architecture but alpha.
const SYS_CACHESTAT: libc::c_long = 451;
const WINDOW_BYTES: u64 = 1 << 30;

/// The kernel's struct cachestat_range.
#[repr(C)]
struct Range {
    offset: u64,
    length: u64,
}

/// The kernel's struct cachestat, in pages.
#[repr(C)]
#[derive(Default)]
struct CacheStat {
    cached: u64,
    dirty: u64,
    writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

/// How much of some files is in the page cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Residency {
    /// Bytes in the page cache.
    pub cached_bytes: u64,
    /// Bytes checked.
    pub total_bytes: u64,
}

impl Residency {
    /// The cached part, 0 to 1.
    pub fn share(&self) -> f64 {
        if self.total_bytes == 0 { 0.0 } else { self.cached_bytes as f64 / self.total_bytes as f64 }
    }

    /// Both as one.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            cached_bytes: self.cached_bytes + other.cached_bytes,
            total_bytes: self.total_bytes + other.total_bytes,
        }
    }
}

/// Counts the cached bytes among the first `bytes` bytes of a file.
pub(crate) fn cached(file: BorrowedFd<'_>, bytes: u64) -> io::Result<Residency> {
    let pages = match by_cachestat(file, bytes) {
        Ok(pages) => pages,
        Err(_older_kernel) => by_mincore(file, bytes)?,
    };
    let cached_bytes = (pages * page_size() as u64).min(bytes);
    Ok(Residency { cached_bytes, total_bytes: bytes })
}

fn by_cachestat(file: BorrowedFd<'_>, length: u64) -> io::Result<u64> {
    let range = Range { offset: 0, length };
    let mut stat = CacheStat::default();
    // SAFETY: both structures have the kernel's layout and live through the call.
    let returned = unsafe { libc::syscall(SYS_CACHESTAT, file.as_raw_fd(), &range, &mut stat, 0) };
    if returned == 0 { Ok(stat.cached) } else { Err(io::Error::last_os_error()) }
}

/// Before Linux 6.5: through a mapping that is never touched.
fn by_mincore(file: BorrowedFd<'_>, bytes: u64) -> io::Result<u64> {
    let mut pages = 0;
    let mut states = Vec::new();
    for offset in (0..bytes).step_by(WINDOW_BYTES as usize) {
        let length = WINDOW_BYTES.min(bytes - offset) as usize;
        states.clear();
        states.resize(length.div_ceil(page_size()), 0u8);
        // SAFETY: a new mapping at an address of the kernel's choice; it is never read.
        let start = unsafe {
            mmap(ptr::null_mut(), length, ProtFlags::READ, MapFlags::SHARED, file, offset)?
        };
        // SAFETY: the mapping was just made, and `states` has a byte for each of its pages.
        let asked = unsafe { libc::mincore(start, length, states.as_mut_ptr()) };
        let answer = if asked == 0 { Ok(()) } else { Err(io::Error::last_os_error()) };
        // SAFETY: the mapping was made above and nothing refers to it.
        unsafe { munmap(start, length)? };
        answer?;
        pages += states.iter().filter(|state| **state & 1 != 0).count() as u64;
    }
    Ok(pages)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsFd;

    use super::{by_cachestat, by_mincore};

    #[test]
    fn both_ways_agree() {
        let mut file = tempfile::tempfile_in("/var/tmp").unwrap();
        file.write_all(&[1; 1 << 20]).unwrap();
        let expected = (1 << 20) / rustix::param::page_size() as u64;
        assert_eq!(by_mincore(file.as_fd(), 1 << 20).unwrap(), expected);
        match by_cachestat(file.as_fd(), 1 << 20) {
            Ok(pages) => assert_eq!(pages, expected),
            Err(error) => eprintln!("skipped: cachestat: {error}"),
        }
    }
}
