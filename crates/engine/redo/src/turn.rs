//! Whose turn it is to write and sync for everyone.
//!
//! Invariant: at most one thread leads. Who waits is either covered by what a leader settled, or
//! is told to lead: when nobody leads, nobody waits.
//! It knows no file: what leading means is the caller's.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};

const WAITING: u32 = 0;
const SETTLED: u32 = 1;
const LEADING: u32 = 2;

/// What became of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// What was waited for is settled.
    Settled,
    /// The caller leads, and calls `leave` when it has settled something.
    Lead,
}

/// A waiting thread.
#[derive(Debug)]
struct Slot {
    state: AtomicU32,
    thread: Thread,
}

impl Slot {
    fn wake(&self, state: u32) {
        self.state.store(state, Ordering::Release);
        self.thread.unpark();
    }
}

thread_local! {
    /// One thread waits for one thing at a time, so it needs one slot for its life.
    static SLOT: RefCell<Arc<Slot>> = RefCell::new(Arc::new(Slot {
        state: AtomicU32::new(WAITING),
        thread: thread::current(),
    }));
}

#[derive(Debug)]
struct Waiter {
    upto: u64,
    slot: Arc<Slot>,
}

#[derive(Debug, Default)]
struct Waiting {
    queue: Vec<Waiter>,
    /// Kept for its memory.
    covered: Vec<Arc<Slot>>,
}

#[derive(Debug, Default)]
pub(crate) struct Turn {
    led: AtomicBool,
    waiting: Mutex<Waiting>,
}

/// Looks before sleeping: with a pause between, then giving the processor away.
const SPINS: u32 = 64;
const YIELDS: u32 = 8;

impl Turn {
    /// Waits until `settled`, or until it is the caller's turn to lead.
    pub(crate) fn enter(&self, upto: u64, settled: impl Fn() -> bool) -> Outcome {
        for round in 0..SPINS + YIELDS {
            if settled() {
                return Outcome::Settled;
            }
            if !self.led.load(Ordering::Relaxed) && !self.led.swap(true, Ordering::AcqRel) {
                return Outcome::Lead;
            }
            if round < SPINS { std::hint::spin_loop() } else { thread::yield_now() }
        }
        SLOT.with_borrow(|slot| self.sleep(upto, slot, settled))
    }

    fn sleep(&self, upto: u64, slot: &Arc<Slot>, settled: impl Fn() -> bool) -> Outcome {
        {
            let mut waiting = self.lock();
            // Who leaves has published before it takes this lock, so nothing is missed.
            if settled() {
                return Outcome::Settled;
            }
            if !self.led.swap(true, Ordering::AcqRel) {
                return Outcome::Lead;
            }
            slot.state.store(WAITING, Ordering::Relaxed);
            waiting.queue.push(Waiter { upto, slot: Arc::clone(slot) });
        }
        loop {
            match slot.state.load(Ordering::Acquire) {
                WAITING => thread::park(),
                LEADING => return Outcome::Lead,
                _ => return Outcome::Settled,
            }
        }
    }

    /// Ends the caller's lead: everything before `upto` is settled. The longest waiting of the
    /// others leads next and is woken first.
    pub(crate) fn leave(&self, upto: u64) {
        let mut waiting = self.lock();
        let Waiting { queue, covered } = &mut *waiting;
        let mut covered = std::mem::take(covered);
        queue.retain(|waiter| {
            let is_covered = waiter.upto <= upto;
            if is_covered {
                covered.push(Arc::clone(&waiter.slot));
            }
            !is_covered
        });
        let heir = if queue.is_empty() { None } else { Some(queue.remove(0).slot) };
        if heir.is_none() {
            self.led.store(false, Ordering::Release);
        }
        drop(waiting);
        if let Some(heir) = heir {
            heir.wake(LEADING);
        }
        for slot in covered.drain(..) {
            slot.wake(SETTLED);
        }
        self.lock().covered = covered;
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
