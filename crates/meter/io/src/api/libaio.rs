//! The kernel's older asynchronous I/O (io_submit).
//!
//! Invariant: everything queued goes down in one io_submit; completions are read from the mapped
//! ring without a system call when there are enough. A request that the kernel rejects completes
//! with its errno like any other.
//! It blocks in `submit` wherever the file system does: buffered I/O is not asynchronous here.

#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::os::fd::AsRawFd;
use std::{io, ptr};

use crate::api::aio_abi::{IoEvent, Iocb};
use crate::api::aio_context::AioContext;
use crate::api::flushes::Flushes;
use crate::api::{submission_batch, token};
use crate::{
    ApiConfig, Buffers, Caps, Done, FileApi, IoError, Op, OpKind, OpenFiles, Refused, SyncKind,
    WriteThrough,
};

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
            caps.refused.push(Refused { what: "reading completions without a system call", why });
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
            async_flush: true,
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
        // Whoever fills the depth reaps next, which starts the last ones.
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
        mut on: impl FnMut(Done),
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
            OpKind::Sync => Iocb::flush(token::of(op), file, self.sync_kind),
            kind => {
                let address = self.buffers.pointer(op.buffer, op.len);
                let write = kind == OpKind::Write;
                let flags = if write { self.write_flags } else { 0 };
                Iocb::transfer(token::of(op), file, write, address, op.len, op.offset, flags)
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
        let done = token::done(self.requests[number].token(), -errno);
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
    fn reap_ring(&mut self, on: &mut impl FnMut(Done)) -> u32 {
        let reaped = self.context.drain(|event| on(event.done()));
        self.in_flight -= reaped as usize;
        reaped
    }

    /// Waits for `min` completions and takes all there are.
    fn get_events(
        &mut self,
        min: u32,
        wait_at_most: Option<u64>,
        on: &mut impl FnMut(Done),
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
