//! Transfers through io_submit.
//!
//! Invariant: a transfer that the kernel does not take is refused, it never waits here.
//! It is asynchronous for direct I/O only: `start` carries buffered transfers out.

#![allow(unsafe_code)]

use std::time::Duration;
use std::{io, ptr, thread};

use crate::api::aio_abi::{IoEvent, Iocb};
use crate::api::aio_context::AioContext;
use crate::disk::real::batch::{Carrier, Transfer};

/// Between two looks at the completions when the kernel cannot be asked to wait.
const LOOK_EVERY: Duration = Duration::from_micros(100);

/// A context with room for its depth.
pub(super) struct Libaio {
    context: AioContext,
    /// Taken here and not by the kernel yet.
    pushed: Vec<Iocb>,
    addresses: Vec<*mut Iocb>,
    events: Box<[IoEvent]>,
    /// The first so many of `events` are complete and not handed on yet.
    waited: usize,
    /// Taken by the kernel and not complete yet.
    taken: usize,
}

// SAFETY: the addresses are empty outside `start`.
unsafe impl Send for Libaio {}

impl Libaio {
    pub(super) fn new(depth: u32) -> io::Result<Self> {
        Ok(Self {
            context: AioContext::new(depth)?,
            pushed: Vec::with_capacity(depth as usize),
            addresses: Vec::with_capacity(depth as usize),
            events: vec![IoEvent::default(); depth as usize].into_boxed_slice(),
            waited: 0,
            taken: 0,
        })
    }
}

impl Carrier for Libaio {
    unsafe fn push(&mut self, slot: u32, transfer: &Transfer) {
        let Transfer { file, is_write, address, bytes, at, flags } = *transfer;
        let slot = u64::from(slot);
        self.pushed.push(Iocb::transfer(slot, file, is_write, address, bytes, at, flags));
    }

    fn start(&mut self, refused: &mut Vec<u32>) {
        self.addresses.extend(self.pushed.iter_mut().map(ptr::from_mut));
        let mut done = 0;
        while done < self.addresses.len() {
            // SAFETY: the addresses are those of `pushed`, which does not move before they are
            // cleared; whoever pushed them vouches for memory and descriptors.
            match unsafe { self.context.submit(&mut self.addresses[done..]) } {
                Ok(count) if count > 0 => {
                    done += count;
                    self.taken += count;
                }
                Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
                Ok(_) | Err(_) => {
                    refused.push(self.pushed[done].token() as u32);
                    done += 1;
                }
            }
        }
        self.addresses.clear();
        self.pushed.clear();
    }

    fn drain(&mut self, on: &mut dyn FnMut(u32, i32)) {
        let mut count = 0;
        let mut hand_on = |event: &IoEvent| {
            count += 1;
            on(event.token() as u32, event.result());
        };
        self.events[..self.waited].iter().for_each(&mut hand_on);
        self.waited = 0;
        if self.context.has_ring() {
            self.context.drain(hand_on);
        } else {
            let nothing = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            // A failure leaves the completions where they are, for the next call.
            let more = self.context.wait(0, Some(&nothing), &mut self.events).unwrap_or(0);
            self.events[..more].iter().for_each(hand_on);
        }
        self.taken -= count;
    }

    fn wait(&mut self, min: u32) {
        // What waits to be handed on is complete already.
        let min = min.min((self.taken - self.waited) as u32);
        if self.waited > 0 || min == 0 {
            return;
        }
        match self.context.wait(min, None, &mut self.events) {
            Ok(count) => self.waited = count,
            Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
            Err(_) => thread::sleep(LOOK_EVERY),
        }
    }

    fn is_fit(&self) -> bool {
        true
    }
}
