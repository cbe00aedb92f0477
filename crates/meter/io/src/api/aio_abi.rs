//! The kernel's binary interface of io_submit (include/uapi/linux/aio_abi.h), which libc lacks,
//! and the completion ring that it maps at the context's address.
//!
//! Invariant: layouts are fixed by the kernel's ABI; the ring is used only when its magic number
//! and its feature words are those of the one known layout.

#![allow(unsafe_code)]

use std::sync::atomic::{AtomicU32, Ordering};

use crate::api::token;
use crate::{Done, SyncKind};

const READ: u16 = 0;
const WRITE: u16 = 1;
const FSYNC: u16 = 2;
const FDSYNC: u16 = 3;
const RING_MAGIC: u32 = 0xa10a_10a1;

/// One request. On big-endian machines `key` and `flags` change places.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Iocb {
    token: u64,
    #[cfg(target_endian = "little")]
    key: u32,
    flags: i32,
    #[cfg(target_endian = "big")]
    key: u32,
    code: u16,
    priority: i16,
    file: u32,
    address: u64,
    bytes: u64,
    offset: i64,
    reserved: u64,
    extra_flags: u32,
    event_file: u32,
}

impl Iocb {
    /// A read or a write; `flags` are RWF_ flags.
    #[inline]
    pub(crate) fn transfer(
        token: u64,
        file: i32,
        write: bool,
        address: *mut u8,
        len: u32,
        offset: u64,
        flags: i32,
    ) -> Self {
        Self {
            token,
            flags,
            code: if write { WRITE } else { READ },
            file: file as u32,
            address: address as u64,
            bytes: u64::from(len),
            offset: offset as i64,
            ..Self::default()
        }
    }

    /// A flush of one file.
    pub(crate) fn flush(token: u64, file: i32, kind: SyncKind) -> Self {
        let code = match kind {
            SyncKind::Fsync => FSYNC,
            SyncKind::Fdatasync => FDSYNC,
        };
        Self { token, code, file: file as u32, ..Self::default() }
    }

    pub(crate) fn token(&self) -> u64 {
        self.token
    }
}

/// One completion.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IoEvent {
    token: u64,
    request: u64,
    result: i64,
    second_result: i64,
}

impl IoEvent {
    #[inline]
    pub(crate) fn done(&self) -> Done {
        token::done(self.token, self.result as i32)
    }

    #[inline]
    pub(crate) fn token(&self) -> u64 {
        self.token
    }

    /// Bytes moved, or a negative errno.
    #[inline]
    pub(crate) fn result(&self) -> i32 {
        self.result as i32
    }
}

#[repr(C)]
struct RingHeader {
    id: u32,
    slots: u32,
    head: AtomicU32,
    tail: AtomicU32,
    magic: u32,
    compatible: u32,
    incompatible: u32,
    header_bytes: u32,
}

/// The completion ring of a context, as the kernel maps it into this process.
#[derive(Debug)]
pub(crate) struct AioRing(*const RingHeader);

impl AioRing {
    /// The ring of a live context, when its layout is the known one.
    pub(crate) fn at(context: usize) -> Option<Self> {
        let header = context as *const RingHeader;
        // SAFETY: io_setup returned `context`, which is the address of the ring, mapped readable
        // and writable until io_destroy.
        let known = unsafe {
            (*header).magic == RING_MAGIC
                && (*header).incompatible == 0
                && (*header).header_bytes as usize == size_of::<RingHeader>()
        };
        known.then_some(Self(header))
    }

    /// Hands every completion in the ring to `on`; returns how many.
    #[inline]
    pub(crate) fn drain(&self, mut on: impl FnMut(&IoEvent)) -> u32 {
        // SAFETY: the owner of this ring drops it before it destroys the context.
        let header = unsafe { &*self.0 };
        // SAFETY: the events follow the header.
        let events = unsafe { self.0.add(1) }.cast::<IoEvent>();
        // Only this thread moves the head; the kernel moves the tail after it wrote the event.
        let mut head = header.head.load(Ordering::Relaxed);
        let tail = header.tail.load(Ordering::Acquire);
        let mut count = 0;
        while head != tail {
            // SAFETY: `head` is below `slots`, and the event was written before the tail moved.
            on(&unsafe { events.add(head as usize).read() });
            head = if head + 1 == header.slots { 0 } else { head + 1 };
            count += 1;
        }
        if count > 0 {
            header.head.store(head, Ordering::Release);
        }
        count
    }
}
