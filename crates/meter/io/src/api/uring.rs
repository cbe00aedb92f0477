//! io_uring: registered files and buffers, one system call per round of the loop; and its setting
//! up.
//!
//! Invariant: `reap` starts what is queued and waits in the same io_uring_enter; completions that
//! are there already are taken without one. Memory lives until the last request is complete. It
//! never starts a kernel poller.

#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::os::fd::{AsRawFd, RawFd};
use std::{io, iter, mem, ptr};

use io_uring::{Builder, IoUring, cqueue, opcode, squeue, types};
use rustix::process::{Resource, getrlimit};

use crate::api::flushes::Flushes;
use crate::api::libaio::write_flags;
use crate::api::submission_batch;
use crate::{
    ApiConfig, Buffers, Caps, Completion, FileApi, IoError, Op, OpKind, OpenFiles, Refusal,
    SyncKind, api, open,
};

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
        let (ring, granted, caps) = set_up(config, files, buffers)?;
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
        // A caller that fills the depth reaps next, which starts the last ones.
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
        mut on: impl FnMut(Completion),
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
            // A wait of limited length is not begun again: how much is left is not known here.
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
        // The builders differ by type only in the flag for the kind of this number.
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
                SyncKind::Range(flags) => {
                    opcode::SyncFileRange::new(file, op.len).offset(op.offset).flags(flags).build()
                }
            },
        };
        entry.flags(flags).user_data(api::token_of(op))
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
    fn drain(&mut self, on: &mut impl FnMut(Completion)) -> u32 {
        let mut count = 0;
        for entry in self.ring.completion() {
            on(api::done_of(entry.user_data(), entry.result()));
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
        unregister(&self.ring, &self.granted);
    }
}

// Setting up an io_uring and finding out what the kernel grants.
//
// Invariant: the most that can be had, step by step down; every step down is named with its
// reason. Only the absence of io_uring itself is an error.

pub(super) const NAME: &str = "io_uring";
/// IORING_MAX_ENTRIES of the kernel.
const MOST_ENTRIES: u32 = 32768;
/// The kernel registers at most 1 GiB in one piece.
const MOST_PIECE_BYTES: usize = 1 << 30;
const REGISTER_RING_FDS: u32 = 20;
const UNREGISTER_RING_FDS: u32 = 21;

/// What the hot path must know.
struct Grant {
    /// Slots in each registered piece of the buffers; absent when they are not registered.
    registered_slots: Option<u32>,
    pub(super) registered_files: bool,
    pub(super) polled: bool,
    timed_wait: bool,
    /// The ring's number in this thread's table, which saves a look-up per call.
    ring_index: Option<RawFd>,
}

/// The kernel's struct io_uring_rsrc_update.
#[repr(C)]
struct RingUpdate {
    offset: u32,
    reserved: u32,
    data: u64,
}

/// Makes a ring for these files and buffers.
fn set_up(
    config: &ApiConfig,
    files: &OpenFiles,
    buffers: &Buffers,
) -> Result<(IoUring, Grant, Caps), IoError> {
    let depth = config.depth.max(1);
    if depth > MOST_ENTRIES {
        return Err(IoError::Depth { api: NAME, depth, most: MOST_ENTRIES, hint: "" });
    }
    let mut caps = Caps::default();
    if config.polled {
        match polling_refused(files) {
            Some(why) => caps.refused.push(Refusal { what: "polled completions", why }),
            None => caps.polled = true,
        }
    }
    let ring = make_ring(depth, &mut caps)?;
    let mut registered_slots = None;
    if config.registered {
        caps.registered_files = register_files(&ring, files, &mut caps.refused);
        registered_slots = register_buffers(&ring, buffers, &mut caps);
        caps.registered_buffers = registered_slots.is_some();
    }
    let granted = Grant {
        registered_slots,
        registered_files: caps.registered_files,
        polled: caps.polled,
        timed_wait: ring.params().is_feature_ext_arg(),
        ring_index: register_ring(&ring),
    };
    Ok((ring, granted, caps))
}

/// From the newest set of flags to none: 6.6, 6.1, 5.19, 5.1.
fn make_ring(depth: u32, caps: &mut Caps) -> Result<IoUring, IoError> {
    type Flags = fn(&mut Builder<squeue::Entry, cqueue::Entry>);
    let steps: [(bool, Flags); 4] = [
        (true, |ring| {
            ring.setup_single_issuer().setup_defer_taskrun().setup_taskrun_flag();
            ring.setup_no_sqarray().setup_submit_all();
        }),
        (true, |ring| {
            ring.setup_single_issuer().setup_defer_taskrun().setup_taskrun_flag();
            ring.setup_submit_all();
        }),
        (false, |ring| {
            ring.setup_coop_taskrun().setup_taskrun_flag().setup_submit_all();
        }),
        (false, |_plain| {}),
    ];
    let mut last = io::Error::from_raw_os_error(libc::EINVAL);
    for (single_issuer, flags) in steps {
        let mut builder = IoUring::builder();
        flags(&mut builder);
        if caps.polled {
            builder.setup_iopoll();
        }
        match builder.build(depth) {
            Ok(ring) => {
                caps.single_issuer = single_issuer;
                if !single_issuer {
                    let why = format!("{last}: needs Linux 6.1; completions cost more CPU");
                    caps.refused.push(Refusal { what: "single issuer", why });
                }
                return Ok(ring);
            }
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => last = error,
            Err(error) => return Err(unavailable(error)),
        }
    }
    Err(unavailable(last))
}

fn unavailable(error: io::Error) -> IoError {
    let fix = match error.raw_os_error() {
        Some(libc::ENOSYS) => "it needs Linux 5.1 and CONFIG_IO_URING; use --ioengine libaio",
        Some(libc::EPERM | libc::EACCES) => {
            "set the sysctl kernel.io_uring_disabled to 0, or allow io_uring_setup in the \
             container's seccomp profile; or use --ioengine libaio"
        }
        Some(libc::ENOMEM) => {
            "raise RLIMIT_MEMLOCK (ulimit -l) or use a smaller --iodepth; or use --ioengine libaio"
        }
        _ => "use --ioengine libaio",
    };
    IoError::Unavailable { api: NAME, why: format!("io_uring_setup: {error}"), fix }
}

fn register_files(ring: &IoUring, files: &OpenFiles, refused: &mut Vec<Refusal>) -> bool {
    let descriptors: Vec<RawFd> =
        (0..files.count()).map(|file| files.descriptor(file).as_raw_fd()).collect();
    match ring.submitter().register_files(&descriptors) {
        Ok(()) => true,
        Err(error) => {
            let why = format!("{error}; {} files (ulimit -n)", descriptors.len());
            refused.push(Refusal { what: "registered files", why });
            false
        }
    }
}

fn register_buffers(ring: &IoUring, buffers: &Buffers, caps: &mut Caps) -> Option<u32> {
    let (start, bytes) = buffers.region()?;
    let stride = bytes / buffers.slots() as usize;
    let slots = (MOST_PIECE_BYTES / stride).clamp(1, buffers.slots() as usize);
    let piece = slots * stride;
    let pieces: Vec<libc::iovec> = iter::successors(Some(0), |at| Some(at + piece))
        .take_while(|at| *at < bytes)
        .map(|at| libc::iovec {
            iov_base: start.wrapping_add(at).cast(),
            iov_len: piece.min(bytes - at),
        })
        .collect();
    // SAFETY: the pieces lie within the region, which outlives the ring: the API holds both, and
    // drops the ring's last request first.
    match unsafe { ring.submitter().register_buffers(&pieces) } {
        Ok(()) => Some(slots as u32),
        Err(error) => {
            let refusal = Refusal { what: "registered buffers", why: locked_memory(&error, bytes) };
            caps.refused.push(refusal);
            if matches!(error.raw_os_error(), Some(libc::ENOMEM | libc::EPERM)) {
                caps.is_memlock_limited = true;
            }
            None
        }
    }
}

fn locked_memory(error: &io::Error, bytes: usize) -> String {
    let limit = match getrlimit(Resource::Memlock).current {
        Some(limit) => format!("RLIMIT_MEMLOCK is {limit} bytes"),
        None => "RLIMIT_MEMLOCK is unlimited".to_owned(),
    };
    format!("{error}: {bytes} bytes are to be locked, {limit}; raise it with ulimit -l")
}

/// Why completions cannot be polled on these files; absent when they can.
fn polling_refused(files: &OpenFiles) -> Option<String> {
    if !files.mode().direct {
        return Some("polling needs direct I/O (--direct)".to_owned());
    }
    (0..files.count()).find_map(|file| {
        match open::attribute(files.descriptor(file), "io_poll").as_deref() {
            Some("1") => None,
            Some(_) => Some("the device's queue/io_poll is 0: NVMe needs nvme.poll_queues".into()),
            None => Some(format!("{} is on no single block device", files.path(file).display())),
        }
    })
}

/// Puts the ring into this thread's table (Linux 5.18). Without it every call looks it up, which
/// changes no result, so a refusal is not reported.
fn register_ring(ring: &IoUring) -> Option<RawFd> {
    let number = ring.as_raw_fd();
    let mut update = RingUpdate { offset: u32::MAX, reserved: 0, data: number as u64 };
    // SAFETY: the kernel reads and writes the one update, which lives through the call.
    let returned = unsafe {
        libc::syscall(libc::SYS_io_uring_register, number, REGISTER_RING_FDS, &mut update, 1)
    };
    (returned == 1).then_some(update.offset as RawFd)
}

/// Gives everything registered back now. The kernel takes a closed ring apart some time later, and
/// until then removed files would keep their room and file systems could not be unmounted.
fn unregister(ring: &IoUring, granted: &Grant) {
    if granted.registered_files {
        let _freed_later_else = ring.submitter().unregister_files();
    }
    if granted.registered_slots.is_some() {
        let _freed_later_else = ring.submitter().unregister_buffers();
    }
    let Some(index) = granted.ring_index else { return };
    let update = RingUpdate { offset: index as u32, reserved: 0, data: 0 };
    let number = ring.as_raw_fd();
    // SAFETY: the kernel reads the one update, which lives through the call.
    unsafe { libc::syscall(libc::SYS_io_uring_register, number, UNREGISTER_RING_FDS, &update, 1) };
}
