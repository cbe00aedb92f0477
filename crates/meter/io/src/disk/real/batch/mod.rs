//! What keeps the requests of a batch in flight, and which kind of it a kernel grants.
//!
//! Invariant: a carrier holds at most its depth; a request that it took is refused or completes,
//! exactly once. The next lower kind is used when one is not granted, and the reason is kept.

#![allow(unsafe_code)]

mod libaio;
mod queued;
mod uring;

use std::io;

pub(super) use queued::Queued;

use crate::Refused;
use crate::disk::real::options::{BatchGranted, BatchKind};

/// The most bytes of one request to the kernel; the rest of a longer one follows.
const REQUEST_BYTES_MAX: usize = 1 << 30;

/// A read or write as the kernel is asked for it.
pub(super) struct Transfer {
    file: i32,
    is_write: bool,
    address: *mut u8,
    bytes: u32,
    at: u64,
    /// RWF_ flags.
    flags: i32,
}

/// Keeps transfers in flight, each known by a slot number.
pub(super) trait Carrier: Send {
    /// Takes a transfer, which starts with the next `start`.
    ///
    /// # Safety
    /// Memory and descriptor live until the slot is refused or completed.
    unsafe fn push(&mut self, slot: u32, transfer: &Transfer);

    /// Starts what was taken. What the kernel does not take goes to `refused`; it may also stay for
    /// the next call.
    fn start(&mut self, refused: &mut Vec<u32>);

    /// Hands every completion that is there to `on`: the slot, and the bytes or a negative errno.
    fn drain(&mut self, on: &mut dyn FnMut(u32, i32));

    /// Waits until `min` completions are there (or as many as are in flight), or less long.
    fn wait(&mut self, min: u32);

    /// Whether another batch can use it.
    fn is_fit(&self) -> bool;
}

type Make = fn(u32) -> io::Result<Box<dyn Carrier>>;

const KINDS: [(BatchKind, &str, Make); 2] = [
    (BatchKind::IoUring, "io_uring", |depth| Ok(Box::new(uring::Uring::new(depth)?))),
    (BatchKind::Libaio, "libaio", |depth| Ok(Box::new(libaio::Libaio::new(depth)?))),
];

/// The carrier that was asked for or the next lower one; none for batches that run in turn.
pub(super) fn grant(asked: BatchKind, depth: u32) -> (Option<Box<dyn Carrier>>, BatchGranted) {
    first_of(&KINDS, asked, depth)
}

fn first_of(
    kinds: &[(BatchKind, &'static str, Make)],
    asked: BatchKind,
    depth: u32,
) -> (Option<Box<dyn Carrier>>, BatchGranted) {
    let mut refused = Vec::new();
    let from = kinds.iter().position(|(kind, ..)| *kind == asked).unwrap_or(kinds.len());
    for (kind, what, make) in &kinds[from..] {
        match make(depth) {
            Ok(carrier) => return (Some(carrier), BatchGranted { kind: *kind, depth, refused }),
            Err(error) => refused.push(Refused { what, why: why(*kind, &error, depth) }),
        }
    }
    (None, BatchGranted { kind: BatchKind::Sync, depth: 1, refused })
}

fn why(kind: BatchKind, error: &io::Error, depth: u32) -> String {
    let fix = match (kind, error.raw_os_error()) {
        (_, Some(libc::ENOSYS)) => "this kernel has none",
        (_, Some(libc::EMFILE | libc::ENFILE)) => "raise the limit of open files (ulimit -n)",
        (BatchKind::IoUring, Some(libc::EPERM | libc::EACCES)) => {
            "set the sysctl kernel.io_uring_disabled to 0, or allow io_uring_setup in the \
             container's seccomp profile"
        }
        (BatchKind::IoUring, Some(libc::ENOMEM)) => {
            "raise RLIMIT_MEMLOCK (ulimit -l) or use a smaller depth"
        }
        (BatchKind::Libaio, Some(libc::EAGAIN | libc::EINVAL)) => {
            "raise the sysctl fs.aio-max-nr or use a smaller depth"
        }
        _ => "a sandbox may be what refuses it",
    };
    format!("{error} at depth {depth}; {fix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_lower_kind_steps_in() {
        let refuse: Make = |_| Err(io::Error::from_raw_os_error(libc::EPERM));
        let aio = KINDS[1];
        let kinds = [(BatchKind::IoUring, "io_uring", refuse), aio];
        let (carrier, granted) = first_of(&kinds, BatchKind::IoUring, 8);
        assert_eq!((carrier.is_some(), granted.kind, granted.depth), (true, BatchKind::Libaio, 8));
        assert_eq!(granted.refused[0].what, "io_uring");
        assert!(granted.refused[0].why.contains("io_uring_disabled"), "{granted:?}");

        let kinds = [kinds[0], (BatchKind::Libaio, "libaio", refuse)];
        let (carrier, granted) = first_of(&kinds, BatchKind::IoUring, 8);
        assert_eq!((carrier.is_some(), granted.kind), (false, BatchKind::Sync));
        assert_eq!(granted.refused.len(), 2);
        let (carrier, granted) = first_of(&kinds, BatchKind::Sync, 8);
        assert!(carrier.is_none() && granted.refused.is_empty(), "nothing else was asked for");
    }
}
