//! A context of the kernel's older asynchronous I/O, by raw system calls.
//!
//! Invariant: the context lives as long as this value; dropping it returns only when nothing is in
//! flight any more. It owns no requests and no buffers.

#![allow(unsafe_code)]

use std::{io, ptr};

use crate::api::aio_abi::{AioRing, IoEvent, Iocb};

/// One context.
#[derive(Debug)]
pub(crate) struct AioContext {
    id: usize,
    ring: Option<AioRing>,
}

// SAFETY: a context belongs to the process, not to a thread, and the ring is read only through
// `&mut self`.
unsafe impl Send for AioContext {}

impl AioContext {
    /// A context for at least so many requests in flight.
    pub(crate) fn new(depth: u32) -> io::Result<Self> {
        let mut id: usize = 0;
        // SAFETY: the kernel writes one word to `id`.
        let returned = unsafe { libc::syscall(libc::SYS_io_setup, depth, &mut id) };
        match returned {
            0 => Ok(Self { id, ring: AioRing::at(id) }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Completions can be read without a system call.
    pub(crate) fn has_ring(&self) -> bool {
        self.ring.is_some()
    }

    /// Hands requests to the kernel; returns how many of the first it took.
    ///
    /// # Safety
    /// The requests are valid, and what they point at lives until they are complete.
    #[inline]
    pub(crate) unsafe fn submit(&mut self, requests: &mut [*mut Iocb]) -> io::Result<usize> {
        let (count, first) = (requests.len(), requests.as_mut_ptr());
        // SAFETY: the context is ours; the caller vouches for the requests.
        let returned = unsafe { libc::syscall(libc::SYS_io_submit, self.id, count, first) };
        usize::try_from(returned).map_err(|_| io::Error::last_os_error())
    }

    /// Hands every completion that is there to `on`; returns how many. None without a ring.
    #[inline]
    pub(crate) fn drain(&mut self, on: impl FnMut(&IoEvent)) -> u32 {
        self.ring.as_ref().map_or(0, |ring| ring.drain(on))
    }

    /// Waits for `min` completions, or as long as it may, and takes up to `events.len()` of them.
    pub(crate) fn wait(
        &mut self,
        min: u32,
        time: Option<&libc::timespec>,
        events: &mut [IoEvent],
    ) -> io::Result<usize> {
        let time = time.map_or(ptr::null(), ptr::from_ref);
        // SAFETY: the context is ours, the kernel writes at most `events.len()` events, and `time`
        // is null or lives through the call.
        let returned = unsafe {
            libc::syscall(
                libc::SYS_io_getevents,
                self.id,
                libc::c_long::from(min),
                events.len() as libc::c_long,
                events.as_mut_ptr(),
                time,
            )
        };
        usize::try_from(returned).map_err(|_| io::Error::last_os_error())
    }
}

impl Drop for AioContext {
    fn drop(&mut self) {
        self.ring = None;
        // SAFETY: the context is ours and not used again.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.id) };
    }
}
