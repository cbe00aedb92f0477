//! What a file's blocks really are: written, allocated but unwritten, or holes.
//!
//! Purpose: reads of holes and of unwritten extents never reach the device, so a figure measured
//! on them is false.
//! Invariant: the three sums add up to the bytes asked about. It changes nothing, except that
//! asking makes the file system allocate what was written and delayed.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use rustix::ioctl::opcode;

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
    /// Whether the file system tells written from unwritten. Without it holes are still found
    /// where it can seek to them.
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

/// Looks at the first `bytes` bytes of a file.
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
