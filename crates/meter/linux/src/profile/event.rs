//! One open event of the kernel.
//!
//! Invariant: an event is closed when its value is dropped, and opened so that no child process
//! inherits the descriptor.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use perf_event_open_sys::bindings::{PERF_FLAG_FD_CLOEXEC, perf_event_attr};
use perf_event_open_sys::ioctls;

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
        // SAFETY: the pointer is to a whole, initialised attr whose `size` says its size; the
        // kernel writes to it only to report the size it knows, within that size.
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
