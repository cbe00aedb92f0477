//! The latch of a frame: shared holders, one exclusive holder and a version in one word.
//!
//! Invariant: an exclusive holder is alone. Holders never wait for I/O, so waiting is short: spin,
//! then give the processor away, then sleep. A waiting writer keeps new readers out for a moment
//! only, so that a thread which already holds the latch shared may take it shared again. It is
//! independent of pages and pins.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex};
use std::thread::yield_now;

use crate::sync::locked;

const SHARED: u64 = 1;
const SHARED_MASK: u64 = 0xffff;
const EXCLUSIVE: u64 = 1 << 16;
const WANTED: u64 = 1 << 17;
const PARKED: u64 = 1 << 18;
/// A reader found the word changed by another one while it took the latch.
const MET: u64 = 1 << 19;
const VERSION: u64 = 1 << 24;

const SPINS: u32 = 60;
const YIELDS: u32 = 6;

static PARKING: Parking = Parking::new();

#[derive(Default)]
pub struct Latch(AtomicU64);

impl Latch {
    #[inline]
    pub fn try_shared(&self) -> bool {
        let mut word = self.0.load(Ordering::Relaxed);
        while word & EXCLUSIVE == 0 {
            match self.shared_from(word) {
                Ok(()) => return true,
                Err(now) => word = now,
            }
        }
        false
    }

    #[inline]
    pub fn try_exclusive(&self) -> bool {
        let mut word = self.0.load(Ordering::Relaxed);
        while word & (EXCLUSIVE | SHARED_MASK) == 0 {
            match self.exclusive_from(word) {
                Ok(()) => return true,
                Err(now) => word = now,
            }
        }
        false
    }

    #[inline]
    pub fn shared(&self) {
        let word = self.0.load(Ordering::Relaxed);
        if word & (EXCLUSIVE | WANTED) != 0 || self.shared_from(word).is_err() {
            self.wait_shared();
        }
    }

    #[inline]
    pub fn exclusive(&self) {
        let word = self.0.load(Ordering::Relaxed);
        if word & (EXCLUSIVE | SHARED_MASK) != 0 || self.exclusive_from(word).is_err() {
            self.wait_exclusive();
        }
    }

    #[inline]
    pub fn unlatch_shared(&self) {
        let was = self.0.fetch_sub(SHARED, Ordering::Release);
        debug_assert!(was & SHARED_MASK != 0, "not held shared");
        if was & PARKED != 0 && was & SHARED_MASK == SHARED {
            self.wake();
        }
    }

    /// Gives back the exclusive hold; the version is another from now on.
    #[inline]
    pub fn unlatch_exclusive(&self) {
        let was = self.0.fetch_add(VERSION - EXCLUSIVE, Ordering::Release);
        debug_assert!(was & EXCLUSIVE != 0, "not held exclusively");
        if was & PARKED != 0 {
            self.wake();
        }
    }

    /// Changes with every exclusive hold.
    #[inline]
    pub fn version(&self) -> u64 {
        self.0.load(Ordering::Acquire) / VERSION
    }

    /// The version, unless the latch is held exclusively now.
    #[inline]
    pub fn version_at_rest(&self) -> Option<u64> {
        let word = self.0.load(Ordering::Acquire);
        (word & EXCLUSIVE == 0).then_some(word / VERSION)
    }

    /// Whether readers have met here: each of them waits for the other's cache line.
    #[inline]
    pub fn have_readers_met(&self) -> bool {
        self.0.load(Ordering::Relaxed) & MET != 0
    }

    pub(crate) fn note_meeting(&self) {
        self.0.fetch_or(MET, Ordering::Relaxed);
    }

    pub fn forget_meeting(&self) {
        self.0.fetch_and(!MET, Ordering::Relaxed);
    }

    #[inline]
    fn shared_from(&self, word: u64) -> Result<(), u64> {
        assert!(word & SHARED_MASK != SHARED_MASK, "65535 shared holders: guards are leaked");
        let next = word + SHARED;
        self.0.compare_exchange_weak(word, next, Ordering::Acquire, Ordering::Relaxed).map(drop)
    }

    #[inline]
    fn exclusive_from(&self, word: u64) -> Result<(), u64> {
        let next = (word | EXCLUSIVE) & !WANTED;
        self.0.compare_exchange_weak(word, next, Ordering::Acquire, Ordering::Relaxed).map(drop)
    }

    #[cold]
    fn wait_shared(&self) {
        let mut pause = Pause::default();
        if self.0.load(Ordering::Relaxed) & (EXCLUSIVE | WANTED | MET) == 0 {
            self.note_meeting();
        }
        loop {
            let word = self.0.load(Ordering::Relaxed);
            let is_free = word & EXCLUSIVE == 0;
            // Writers that wait go first while this thread can still be patient.
            if is_free && (word & WANTED == 0 || pause.is_over()) {
                if self.shared_from(word).is_ok() {
                    return;
                }
            } else if !pause.wait() {
                self.park(EXCLUSIVE, PARKED);
            }
        }
    }

    #[cold]
    fn wait_exclusive(&self) {
        let mut pause = Pause::default();
        loop {
            let word = self.0.load(Ordering::Relaxed);
            if word & (EXCLUSIVE | SHARED_MASK) == 0 {
                if self.exclusive_from(word).is_ok() {
                    return;
                }
            } else if !pause.wait() {
                self.park(EXCLUSIVE | SHARED_MASK, PARKED | WANTED);
            } else if word & WANTED == 0 {
                self.0.fetch_or(WANTED, Ordering::Relaxed);
            }
        }
    }

    /// Sleeps while one of `blocking` is set, leaving `marks`.
    fn park(&self, blocking: u64, marks: u64) {
        PARKING.park(self.key(), || {
            let mark = |word| (word & blocking != 0).then_some(word | marks);
            self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, mark).is_ok()
        });
    }

    #[cold]
    fn wake(&self) {
        PARKING.wake(self.key(), || {
            self.0.fetch_and(!PARKED, Ordering::Relaxed);
        });
    }

    fn key(&self) -> usize {
        // Frames lie 64 bytes apart.
        std::ptr::from_ref(self).addr() / 64
    }
}

/// How patient a waiter still is.
#[derive(Default)]
pub struct Pause {
    rounds: u32,
}

impl Pause {
    /// Waits a moment; false when it is time to sleep instead.
    pub fn wait(&mut self) -> bool {
        if self.is_over() {
            return false;
        }
        if self.rounds < SPINS {
            spin_loop();
        } else {
            yield_now();
        }
        self.rounds += 1;
        true
    }

    fn is_over(&self) -> bool {
        self.rounds >= SPINS + YIELDS
    }
}

const LOTS: usize = 64;

#[derive(Default)]
struct Lot {
    lock: Mutex<()>,
    changed: Condvar,
}

pub struct Parking {
    lots: [Lot; LOTS],
}

impl Parking {
    pub const fn new() -> Self {
        let lots = [const { Lot { lock: Mutex::new(()), changed: Condvar::new() } }; LOTS];
        Self { lots }
    }

    /// Sleeps until this key is woken, unless `must_sleep`, called under the lot's lock, returns
    /// false.
    pub fn park(&self, key: usize, must_sleep: impl FnOnce() -> bool) {
        let lot = &self.lots[key % LOTS];
        let guard = locked(&lot.lock);
        if must_sleep() {
            drop(lot.changed.wait(guard));
        }
    }

    /// Wakes all sleepers at this key, after `clear_mark` under the lot's lock.
    pub fn wake(&self, key: usize, clear_mark: impl FnOnce()) {
        let lot = &self.lots[key % LOTS];
        let guard = locked(&lot.lock);
        clear_mark();
        drop(guard);
        lot.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn wait_until_parked(latch: &Latch) {
        while latch.0.load(Ordering::Relaxed) & PARKED == 0 {
            yield_now();
        }
    }

    #[test]
    fn who_sleeps_is_woken_by_the_last_holder() {
        let latch = Latch::default();
        for _ in 0..20 {
            latch.shared();
            latch.shared();
            let version = latch.version();
            thread::scope(|scope| {
                scope.spawn(|| {
                    latch.exclusive();
                    latch.unlatch_exclusive();
                });
                wait_until_parked(&latch);
                latch.unlatch_shared();
                assert!(!latch.try_exclusive(), "one reader is left");
                latch.unlatch_shared();
            });
            assert_eq!(latch.version(), version + 1);
            latch.exclusive();
            thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| {
                        latch.shared();
                        latch.unlatch_shared();
                    });
                }
                wait_until_parked(&latch);
                assert!(!latch.try_shared() && !latch.try_exclusive());
                latch.unlatch_exclusive();
            });
            assert_eq!(latch.0.load(Ordering::Relaxed) & (VERSION - 1) & !PARKED, 0);
        }
    }

    #[test]
    fn a_reader_gets_in_again_beside_a_writer_that_waits() {
        let latch = Latch::default();
        latch.shared();
        thread::scope(|scope| {
            scope.spawn(|| {
                latch.exclusive();
                latch.unlatch_exclusive();
            });
            wait_until_parked(&latch);
            latch.shared();
            latch.unlatch_shared();
            latch.unlatch_shared();
        });
    }
}
