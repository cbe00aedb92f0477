//! Transfers through an io_uring.
//!
//! Invariant: the kernel takes entries in the order in which they were pushed. A ring that cannot
//! be entered is given up: what it did not take is refused, what it took is waited for.
//! The ring is bound to no thread: the caller of `drain` need not be the one of `push`.

#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::time::Duration;
use std::{io, thread};

use io_uring::{IoUring, opcode, types};

use crate::disk::real::batch::{Carrier, Transfer};

const ENTER_GETEVENTS: u32 = 1;
/// Between two looks at the completions when the kernel cannot be asked to wait.
const LOOK_EVERY: Duration = Duration::from_micros(100);

/// A ring.
pub(super) struct Uring {
    ring: IoUring,
    /// In the ring and not taken by the kernel yet.
    pushed: VecDeque<u32>,
    /// Taken by the kernel and not complete yet.
    taken: u32,
    is_broken: bool,
}

impl Uring {
    pub(super) fn new(depth: u32) -> io::Result<Self> {
        // Without interrupts of a thread that computes: Linux 5.19.
        let newest = IoUring::builder()
            .setup_coop_taskrun()
            .setup_taskrun_flag()
            .setup_submit_all()
            .build(depth);
        let ring = match newest {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => IoUring::new(depth)?,
            other => other?,
        };
        Ok(Self { ring, pushed: VecDeque::new(), taken: 0, is_broken: false })
    }

    /// Enters the kernel without giving it anything.
    fn enter(&self, min: u32) -> io::Result<usize> {
        // SAFETY: nothing is submitted, and there is no argument.
        unsafe { self.ring.submitter().enter::<libc::sigset_t>(0, min, ENTER_GETEVENTS, None) }
    }
}

impl Carrier for Uring {
    unsafe fn push(&mut self, slot: u32, transfer: &Transfer) {
        self.pushed.push_back(slot);
        if self.is_broken {
            return;
        }
        let Transfer { address, bytes, at, .. } = *transfer;
        let file = types::Fd(transfer.file);
        let entry = match transfer.is_write {
            false => opcode::Read::new(file, address, bytes).offset(at).build(),
            true => {
                let write = opcode::Write::new(file, address, bytes).offset(at);
                write.rw_flags(transfer.flags).build()
            }
        };
        let entry = entry.user_data(u64::from(slot));
        // SAFETY: the caller vouches for memory and descriptor.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        assert!(pushed.is_ok(), "the ring is smaller than the depth");
    }

    fn start(&mut self, refused: &mut Vec<u32>) {
        while !self.pushed.is_empty() && !self.is_broken {
            match self.ring.submit() {
                Ok(count) if count > 0 => {
                    self.pushed.drain(..count);
                    self.taken += count as u32;
                }
                Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
                // Memory for requests is short; completions free some.
                Err(error)
                    if self.taken > 0
                        && matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EBUSY)) =>
                {
                    return;
                }
                Ok(_) | Err(_) => self.is_broken = true,
            }
        }
        refused.extend(self.pushed.drain(..));
    }

    fn drain(&mut self, on: &mut dyn FnMut(u32, i32)) {
        if self.ring.submission().taskrun() {
            // A failure leaves the completions where they are, for the next call.
            let _later = self.enter(0);
        }
        for completion in self.ring.completion() {
            self.taken -= 1;
            on(completion.user_data() as u32, completion.result());
        }
    }

    fn wait(&mut self, min: u32) {
        match self.enter(min.min(self.taken)) {
            Ok(_) => {}
            Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
            Err(_) => thread::sleep(LOOK_EVERY),
        }
    }

    fn is_fit(&self) -> bool {
        !self.is_broken
    }
}
