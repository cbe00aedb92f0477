//! How much of a file is in the page cache.
//!
//! Purpose: a direct read leaves nothing there. Pages that appear during direct I/O show that the
//! flag was ignored; pages present before buffered reads show that the cache answered.
//! Invariant: asking brings no page in and drops none.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::param::page_size;

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
    /// Bytes looked at.
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

/// Looks at the first `bytes` bytes of a file.
pub(crate) fn look(file: BorrowedFd<'_>, bytes: u64) -> io::Result<Residency> {
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
