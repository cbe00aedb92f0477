//! How many changes this process has in place, for the thread that waits for signals.
//!
//! Invariant: a change is counted before its intent is written and until it is undone; once ending
//! has begun no change is counted any more, so the count can only fall.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

struct Counted {
    count: u32,
    ending: bool,
}

static COUNTED: Mutex<Counted> = Mutex::new(Counted { count: 0, ending: false });
static FEWER: Condvar = Condvar::new();

fn lock() -> MutexGuard<'static, Counted> {
    COUNTED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Counts one change, unless the program is ending.
pub(crate) fn enter() -> bool {
    let mut counted = lock();
    if !counted.ending {
        counted.count += 1;
    }
    !counted.ending
}

/// Whether the program is ending, so that nothing may be changed any more.
pub(crate) fn is_ending() -> bool {
    lock().ending
}

/// Changes that are undone, or that their session gave up.
pub(crate) fn leave(changes: u32) {
    let mut counted = lock();
    counted.count = counted.count.saturating_sub(changes);
    FEWER.notify_all();
}

/// How many changes of the system this process has in place.
pub fn changes_in_place() -> u32 {
    lock().count
}

/// Lets no further change begin and waits until all that are in place are undone, by whoever holds
/// their sessions. For the thread that ends the program at once: it must not before this returns.
pub fn wait_until_undone() {
    let mut counted = lock();
    counted.ending = true;
    while counted.count > 0 {
        counted = FEWER.wait(counted).unwrap_or_else(PoisonError::into_inner);
    }
}
