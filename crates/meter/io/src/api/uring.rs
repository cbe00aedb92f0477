//! io_uring: registered files and buffers, one system call per round of the loop.
//!
//! Invariant: `reap` starts what is queued and waits in the same io_uring_enter; completions that
//! are there already are taken without one. Memory lives until the last request is complete.
//! It sets nothing up ([`uring_setup`](super::uring_setup) does) and never starts a kernel poller.

#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::os::fd::AsRawFd;
use std::{io, mem, ptr};

use io_uring::{IoUring, opcode, squeue, types};

use crate::api::flushes::Flushes;
use crate::api::libaio::write_flags;
use crate::api::uring_setup::{self, Grant, NAME};
use crate::api::{submission_batch, token};
use crate::{ApiConfig, Buffers, Caps, Done, FileApi, IoError, Op, OpKind, OpenFiles, SyncKind};

const ENTER_GETEVENTS: u32 = 1;
const ENTER_EXT_ARG: u32 = 1 << 3;
const ENTER_REGISTERED_RING: u32 = 1 << 4;

/// Keeps `depth` requests in flight through one ring.
pub struct UringApi {
    ring: IoUring,
    granted: Grant,
    files: OpenFiles,
    buffers: Buffers,
    depth: u32,
    batch: u32,
    queued: u32,
    in_flight: u32,
    /// Discards, and flushes on a polled ring, which has none of its own.
    aside: Flushes,
    sync_kind: SyncKind,
    write_flags: i32,
    bound_to_thread: PhantomData<*const ()>,
}

/// What io_uring_enter takes with ENTER_EXT_ARG (struct io_uring_getevents_arg).
#[repr(C)]
struct WaitArgument {
    signals: u64,
    signals_bytes: u32,
    min_wait_us: u32,
    time: u64,
}

impl FileApi for UringApi {
    fn start(
        config: &ApiConfig,
        files: &OpenFiles,
        buffers: &Buffers,
    ) -> Result<(Self, Caps), IoError> {
        let depth = config.depth.max(1);
        let (ring, granted, caps) = uring_setup::set_up(config, files, buffers)?;
        let api = Self {
            ring,
            granted,
            files: files.clone(),
            buffers: buffers.share(),
            depth,
            batch: submission_batch(depth),
            queued: 0,
            in_flight: 0,
            aside: Flushes::new(config),
            sync_kind: config.sync_kind,
            write_flags: write_flags(config.write_through),
            bound_to_thread: PhantomData,
        };
        Ok((api, caps))
    }

    #[inline]
    fn queue(&mut self, op: Op) {
        let held = self.in_flight + self.queued + self.aside.count() as u32;
        assert!(held < self.depth, "more than {held} requests in flight");
        if op.kind == OpKind::Trim || (op.kind == OpKind::Sync && self.granted.polled) {
            self.aside.queue(op);
            return;
        }
        let entry = self.entry(&op);
        // SAFETY: the buffer belongs to `self.buffers`, which lives until the request is complete;
        // `entry` checked slot and length.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        assert!(pushed.is_ok(), "the ring has fewer than {} entries", self.depth);
        self.queued += 1;
        // Whoever fills the depth reaps next, which starts the last ones.
        if self.queued >= self.batch && held + 1 < self.depth {
            // A failure comes again, and is reported, at the next reap.
            let _reported_by_reap = self.enter(0, None);
        }
    }

    #[inline]
    fn submit(&mut self) -> Result<u32, IoError> {
        let count = self.queued + self.aside.count() as u32;
        while self.queued > 0 {
            self.enter(0, None)?;
        }
        Ok(count)
    }

    #[inline]
    fn reap(
        &mut self,
        min: u32,
        wait_at_most: Option<u64>,
        mut on: impl FnMut(Done),
    ) -> Result<u32, IoError> {
        let mut reaped = self.aside.run(&self.files, &mut on);
        let want = min.min(reaped + self.in_flight + self.queued);
        loop {
            let at_hand = self.ring.completion().len() as u32;
            let missing = want.saturating_sub(reaped);
            if self.queued > 0 || at_hand < missing || self.has_deferred_work(at_hand) {
                self.enter(missing, wait_at_most)?;
            }
            reaped += self.drain(&mut on);
            // A wait of limited length is not begun again: nobody here knows how much is left.
            if self.queued == 0 && (reaped >= want || wait_at_most.is_some()) {
                return Ok(reaped);
            }
        }
    }
}

impl UringApi {
    #[inline]
    fn entry(&self, op: &Op) -> squeue::Entry {
        let file = self.files.descriptor(op.file);
        // The builders differ by type only in the flag that says which kind of number this is.
        let (file, flags) = if self.granted.registered_files {
            (types::Fd(op.file as i32), squeue::Flags::FIXED_FILE)
        } else {
            (types::Fd(file.as_raw_fd()), squeue::Flags::empty())
        };
        let entry = match op.kind {
            OpKind::Read => self.read(file, op),
            OpKind::Write => self.write(file, op),
            // A discard is never queued here.
            OpKind::Sync | OpKind::Trim => match self.sync_kind {
                SyncKind::Fsync => opcode::Fsync::new(file).build(),
                SyncKind::Fdatasync => {
                    opcode::Fsync::new(file).flags(types::FsyncFlags::DATASYNC).build()
                }
            },
        };
        entry.flags(flags).user_data(token::of(op))
    }

    #[inline]
    fn read(&self, file: types::Fd, op: &Op) -> squeue::Entry {
        let to = self.buffers.pointer(op.buffer, op.len);
        match self.granted.registered_slots {
            Some(slots) => {
                let index = (op.buffer / slots) as u16;
                opcode::ReadFixed::new(file, to, op.len, index).offset(op.offset).build()
            }
            None => opcode::Read::new(file, to, op.len).offset(op.offset).build(),
        }
    }

    #[inline]
    fn write(&self, file: types::Fd, op: &Op) -> squeue::Entry {
        let from = self.buffers.pointer(op.buffer, op.len);
        let (offset, flags) = (op.offset, self.write_flags);
        match self.granted.registered_slots {
            Some(slots) => {
                let index = (op.buffer / slots) as u16;
                let write = opcode::WriteFixed::new(file, from, op.len, index);
                write.offset(offset).rw_flags(flags).build()
            }
            None => opcode::Write::new(file, from, op.len).offset(offset).rw_flags(flags).build(),
        }
    }

    /// Deferred and polled completions wait until this thread enters the kernel.
    #[inline]
    fn has_deferred_work(&mut self, at_hand: u32) -> bool {
        if self.granted.polled && at_hand == 0 {
            return self.in_flight > 0;
        }
        let queue = self.ring.submission();
        queue.taskrun() || queue.cq_overflow()
    }

    #[inline]
    fn drain(&mut self, on: &mut impl FnMut(Done)) -> u32 {
        let mut count = 0;
        for entry in self.ring.completion() {
            on(token::done(entry.user_data(), entry.result()));
            count += 1;
        }
        self.in_flight -= count;
        count
    }

    /// One io_uring_enter: starts what is queued and waits for `min` completions, or as long as
    /// it may. A kernel without timed waits (before 5.11) does not wait when there is a limit.
    fn enter(&mut self, min: u32, wait_at_most: Option<u64>) -> Result<(), IoError> {
        let time = wait_at_most.map(|ns| {
            types::Timespec::new().sec(ns / 1_000_000_000).nsec((ns % 1_000_000_000) as u32)
        });
        let argument = time.as_ref().map(|time| WaitArgument {
            signals: 0,
            signals_bytes: 0,
            min_wait_us: 0,
            time: ptr::from_ref(time) as u64,
        });
        let (min, address, bytes, flag) = match &argument {
            Some(argument) if min > 0 && self.granted.timed_wait => {
                (min, ptr::from_ref(argument), size_of::<WaitArgument>(), ENTER_EXT_ARG)
            }
            Some(_) => (0, ptr::null(), 0, 0),
            None => (min, ptr::null(), 0, 0),
        };
        let (ring, registered) = match self.granted.ring_index {
            Some(index) => (index, ENTER_REGISTERED_RING),
            None => (self.ring.as_raw_fd(), 0),
        };
        let flags = ENTER_GETEVENTS | flag | registered;
        let (call, queued) = (libc::SYS_io_uring_enter, self.queued);
        // SAFETY: the ring is ours; the entries up to the tail were filled by `queue`, and the
        // argument is null or lives through the call.
        let returned = unsafe { libc::syscall(call, ring, queued, min, flags, address, bytes) };
        if returned >= 0 {
            self.queued -= returned as u32;
            self.in_flight += returned as u32;
            return Ok(());
        }
        let source = io::Error::last_os_error();
        match source.raw_os_error() {
            Some(libc::ETIME | libc::EINTR) => Ok(()),
            // Memory for requests is short: taking completions frees some.
            Some(libc::EAGAIN | libc::EBUSY) if self.in_flight > 0 => Ok(()),
            _ => Err(IoError::System { api: NAME, call: "io_uring_enter", source }),
        }
    }
}

impl Drop for UringApi {
    fn drop(&mut self) {
        // The queued ones were never started. Those in flight write into the buffers.
        self.queued = 0;
        while self.in_flight > 0 {
            if self.reap(self.in_flight, None, |_| {}).is_err() {
                // The kernel still owns the memory: better lost than freed.
                mem::forget(self.buffers.share());
                break;
            }
        }
        uring_setup::unregister(&self.ring, &self.granted);
    }
}
