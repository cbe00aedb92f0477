//! Where threads sleep until something of a frame changes.
//!
//! Invariant: who sleeps has set its mark while holding the lot's lock, and who wakes takes the
//! same lock after it saw the mark; so no wake-up is lost. Several things may share a lot: whoever
//! wakes looks again at what it waits for.

use std::sync::{Condvar, Mutex};

use crate::sync::locked;

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

    /// Sleeps until somebody wakes this key, unless `must_sleep`, called under the lot's lock, says
    /// that there is no reason to any more.
    pub fn park(&self, key: usize, must_sleep: impl FnOnce() -> bool) {
        let lot = &self.lots[key % LOTS];
        let guard = locked(&lot.lock);
        if must_sleep() {
            drop(lot.changed.wait(guard));
        }
    }

    /// Wakes all who sleep at this key, after `clear_mark` under the lot's lock.
    pub fn wake(&self, key: usize, clear_mark: impl FnOnce()) {
        let lot = &self.lots[key % LOTS];
        let guard = locked(&lot.lock);
        clear_mark();
        drop(guard);
        lot.changed.notify_all();
    }
}
