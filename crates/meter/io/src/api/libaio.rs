//! The kernel's older asynchronous I/O (io_submit): its binary interface
//! (include/uapi/linux/aio_abi.h), which libc lacks, the completion ring that it maps at the
//! context's address, contexts by raw system calls, and the API over them.
//!
//! Invariant: layouts are fixed by the kernel's ABI; the ring is used only when its magic number
//! and its feature words are those of the one known layout. A context lives as long as its value;
//! dropping it returns only when nothing is in flight any more. Everything queued goes down in one
//! io_submit; completions are read from the mapped ring without a system call when there are
//! enough. A request that the kernel rejects completes with its errno like any other. It blocks in
//! `submit` wherever the file system does: buffered I/O is not asynchronous here.

#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::{io, ptr};

use crate::api::flushes::Flushes;
use crate::api::submission_batch;
use crate::{
    ApiConfig, Buffers, Caps, Completion, FileApi, IoError, Op, OpKind, OpenFiles, Refusal,
    SyncKind, WriteThrough, api,
};

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
            SyncKind::Fdatasync => FDSYNC,
            // A range is flushed aside.
            SyncKind::Fsync | SyncKind::Range(_) => FSYNC,
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
    pub(crate) fn done(&self) -> Completion {
        api::done_of(self.token, self.result as i32)
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
struct AioRing(*const RingHeader);

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

const NAME: &str = "libaio";

/// Keeps `depth` requests in flight through one kernel context.
#[derive(Debug)]
pub struct LibaioApi {
    /// Dropped first, which waits for what is in flight: the buffers may go only then.
    context: AioContext,
    files: OpenFiles,
    buffers: Buffers,
    /// The first `queued` are filled and not yet taken by the kernel.
    requests: Box<[Iocb]>,
    addresses: Box<[*mut Iocb]>,
    /// The file of each request, for those that the kernel rejects.
    targets: Box<[u32]>,
    events: Box<[IoEvent]>,
    batch: usize,
    queued: usize,
    in_flight: usize,
    /// Flushes that the kernel does not do asynchronously, and requests that it rejected.
    aside: Flushes,
    async_flush: bool,
    sync_kind: SyncKind,
    write_flags: i32,
    bound_to_thread: PhantomData<*const ()>,
}

impl FileApi for LibaioApi {
    fn start(
        config: &ApiConfig,
        files: &OpenFiles,
        buffers: &Buffers,
    ) -> Result<(Self, Caps), IoError> {
        let depth = config.depth.max(1);
        let context = set_up(depth)?;
        let mut caps = Caps::default();
        if !context.has_ring() {
            let why = "the completion ring has an unknown layout; io_getevents is used".to_owned();
            caps.refused.push(Refusal { what: "reading completions without a system call", why });
        }
        let mut requests = vec![Iocb::default(); depth as usize].into_boxed_slice();
        let addresses = requests.iter_mut().map(ptr::from_mut).collect();
        let api = Self {
            context,
            files: files.clone(),
            buffers: buffers.share(),
            requests,
            addresses,
            targets: vec![0; depth as usize].into_boxed_slice(),
            events: vec![IoEvent::default(); depth as usize].into_boxed_slice(),
            batch: submission_batch(depth) as usize,
            queued: 0,
            in_flight: 0,
            aside: Flushes::new(config),
            async_flush: !matches!(config.sync_kind, SyncKind::Range(_)),
            sync_kind: config.sync_kind,
            write_flags: write_flags(config.write_through),
            bound_to_thread: PhantomData,
        };
        Ok((api, caps))
    }

    #[inline]
    fn queue(&mut self, op: Op) {
        let held = self.in_flight + self.queued + self.aside.count();
        assert!(held < self.requests.len(), "more than {held} requests in flight");
        if op.kind == OpKind::Trim || (op.kind == OpKind::Sync && !self.async_flush) {
            self.aside.queue(op);
            return;
        }
        self.requests[self.queued] = self.request(&op);
        self.targets[self.queued] = op.file;
        self.queued += 1;
        // A caller that fills the depth reaps next, which starts the last ones.
        if self.queued >= self.batch && held + 1 < self.requests.len() {
            // A failure comes again, and is reported, at the next reap.
            let _reported_by_reap = self.submit_all();
        }
    }

    #[inline]
    fn submit(&mut self) -> Result<u32, IoError> {
        let count = self.queued + self.aside.count();
        self.submit_all()?;
        Ok(count as u32)
    }

    fn reap(
        &mut self,
        min: u32,
        wait_at_most: Option<u64>,
        mut on: impl FnMut(Completion),
    ) -> Result<u32, IoError> {
        self.submit_all()?;
        let mut reaped = self.aside.run(&self.files, &mut on);
        reaped += self.reap_ring(&mut on);
        let want = min.min(reaped + self.in_flight as u32);
        while reaped < want {
            let more = self.get_events(want - reaped, wait_at_most, &mut on)?;
            reaped += more;
            if more == 0 && wait_at_most.is_some() {
                break;
            }
        }
        Ok(reaped)
    }
}

impl LibaioApi {
    fn request(&self, op: &Op) -> Iocb {
        let file = self.files.descriptor(op.file).as_raw_fd();
        match op.kind {
            OpKind::Sync => Iocb::flush(api::token_of(op), file, self.sync_kind),
            kind => {
                let address = self.buffers.pointer(op.buffer, op.len);
                let write = kind == OpKind::Write;
                let flags = if write { self.write_flags } else { 0 };
                Iocb::transfer(api::token_of(op), file, write, address, op.len, op.offset, flags)
            }
        }
    }

    fn submit_all(&mut self) -> Result<(), IoError> {
        let mut taken = 0;
        while taken < self.queued {
            // SAFETY: the addresses point at `depth` requests that live as long as `self`; the
            // first `queued` are filled, and their buffers live until the context is destroyed.
            let submitted = unsafe { self.context.submit(&mut self.addresses[taken..self.queued]) };
            let errno = match submitted {
                Ok(count) if count > 0 => {
                    taken += count;
                    self.in_flight += count;
                    continue;
                }
                Ok(_) => libc::EIO,
                Err(error) => error.raw_os_error().unwrap_or(libc::EIO),
            };
            match errno {
                libc::EINTR => {}
                // The kernel frees its requests as completions are read; there are some to come.
                libc::EAGAIN if self.in_flight > 0 => self.set_completions_aside()?,
                errno => {
                    self.reject(taken, errno);
                    taken += 1;
                }
            }
        }
        self.queued = 0;
        Ok(())
    }

    /// The kernel refused this one request.
    fn reject(&mut self, number: usize, errno: i32) {
        let done = api::done_of(self.requests[number].token(), -errno);
        // Before Linux 4.18 there is no asynchronous flush.
        if done.kind == OpKind::Sync && errno == libc::EINVAL {
            self.async_flush = false;
            let (kind, file) = (OpKind::Sync, self.targets[number]);
            self.aside.queue(Op { kind, file, offset: 0, len: 0, buffer: 0, tag: done.tag });
        } else {
            self.aside.done(done);
        }
    }

    #[cold]
    fn set_completions_aside(&mut self) -> Result<(), IoError> {
        let mut aside = Vec::new();
        self.get_events(1, None, &mut |done| aside.push(done))?;
        aside.into_iter().for_each(|done| self.aside.done(done));
        Ok(())
    }

    #[inline]
    fn reap_ring(&mut self, on: &mut impl FnMut(Completion)) -> u32 {
        let reaped = self.context.drain(|event| on(event.done()));
        self.in_flight -= reaped as usize;
        reaped
    }

    /// Waits for `min` completions and takes all there are.
    fn get_events(
        &mut self,
        min: u32,
        wait_at_most: Option<u64>,
        on: &mut impl FnMut(Completion),
    ) -> Result<u32, IoError> {
        let time = wait_at_most.map(|nanoseconds| libc::timespec {
            tv_sec: (nanoseconds / 1_000_000_000) as libc::time_t,
            tv_nsec: (nanoseconds % 1_000_000_000) as libc::c_long,
        });
        let reaped = match self.context.wait(min, time.as_ref(), &mut self.events) {
            Ok(reaped) => reaped,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(0),
            Err(source) => return Err(IoError::System { api: NAME, call: "io_getevents", source }),
        };
        self.in_flight -= reaped;
        self.events[..reaped].iter().for_each(|event| on(event.done()));
        Ok(reaped as u32)
    }
}

fn set_up(depth: u32) -> Result<AioContext, IoError> {
    AioContext::new(depth).map_err(|source| match source.raw_os_error() {
        Some(libc::EAGAIN | libc::EINVAL) => IoError::Unavailable {
            api: NAME,
            why: format!("io_setup for {depth} requests: {source}"),
            fix: "raise the sysctl fs.aio-max-nr, or use fewer jobs or a smaller --iodepth",
        },
        Some(libc::ENOSYS | libc::EPERM) => IoError::Unavailable {
            api: NAME,
            why: format!("io_setup: {source}"),
            fix: "use --ioengine sync, or a kernel or sandbox with asynchronous I/O",
        },
        _ => IoError::System { api: NAME, call: "io_setup", source },
    })
}

pub(crate) fn write_flags(write_through: WriteThrough) -> i32 {
    match write_through {
        WriteThrough::None => 0,
        WriteThrough::Dsync => libc::RWF_DSYNC,
        WriteThrough::Sync => libc::RWF_SYNC,
    }
}
