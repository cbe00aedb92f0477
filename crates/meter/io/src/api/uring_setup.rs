//! Setting up an io_uring and finding out what the kernel grants.
//!
//! Invariant: the most that can be had, step by step down; every step down is named with its
//! reason. Only the absence of io_uring itself is an error.

#![allow(unsafe_code)]

use std::os::fd::{AsRawFd, RawFd};
use std::{io, iter};

use io_uring::{Builder, IoUring, cqueue, squeue};
use rustix::process::{Resource, getrlimit};

use crate::queue;
use crate::{ApiConfig, Buffers, Caps, IoError, OpenFiles, Refused};

pub(super) const NAME: &str = "io_uring";
/// IORING_MAX_ENTRIES of the kernel.
const MOST_ENTRIES: u32 = 32768;
/// The kernel registers at most 1 GiB in one piece.
const MOST_PIECE_BYTES: usize = 1 << 30;
const REGISTER_RING_FDS: u32 = 20;
const UNREGISTER_RING_FDS: u32 = 21;

/// What the hot path must know.
pub(super) struct Grant {
    /// Slots in each registered piece of the buffers; absent when they are not registered.
    pub(super) registered_slots: Option<u32>,
    pub(super) registered_files: bool,
    pub(super) polled: bool,
    pub(super) timed_wait: bool,
    /// The ring's number in this thread's table, which saves a look-up per call.
    pub(super) ring_index: Option<RawFd>,
}

/// The kernel's struct io_uring_rsrc_update.
#[repr(C)]
struct RingUpdate {
    offset: u32,
    reserved: u32,
    data: u64,
}

/// Makes a ring for these files and buffers.
pub(super) fn set_up(
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
            Some(why) => caps.refused.push(Refused { what: "polled completions", why }),
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
                    caps.refused.push(Refused { what: "single issuer", why });
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

fn register_files(ring: &IoUring, files: &OpenFiles, refused: &mut Vec<Refused>) -> bool {
    let descriptors: Vec<RawFd> =
        (0..files.count()).map(|file| files.descriptor(file).as_raw_fd()).collect();
    match ring.submitter().register_files(&descriptors) {
        Ok(()) => true,
        Err(error) => {
            let why = format!("{error}; {} files (ulimit -n)", descriptors.len());
            refused.push(Refused { what: "registered files", why });
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
            let refusal = Refused { what: "registered buffers", why: locked_memory(&error, bytes) };
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
        match queue::attribute(files.descriptor(file), "io_poll").as_deref() {
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
pub(super) fn unregister(ring: &IoUring, granted: &Grant) {
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
