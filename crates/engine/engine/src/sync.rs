//! Locks whose poison means nothing, and the numbers of threads that share no line of the cache.
//!
//! Invariant: what a lock guards is whole at every moment, whatever panics: every change is made of
//! steps that cannot.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

#[inline]
pub(crate) fn locked<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sleeps while `condition` holds, so long at most.
pub(crate) fn wait_while<'l, T>(
    wake: &Condvar,
    held: MutexGuard<'l, T>,
    longest: Duration,
    condition: impl FnMut(&mut T) -> bool,
) -> MutexGuard<'l, T> {
    wake.wait_timeout_while(held, longest, condition).unwrap_or_else(PoisonError::into_inner).0
}

/// The calling thread's number, from 0 in the order in which threads first call this. Each takes
/// the shard of its number, so that threads do not write the same lines of the processor's cache.
#[inline]
pub(crate) fn thread_number() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local!(static OWN: Cell<usize> = const { Cell::new(usize::MAX) });
    let own = OWN.get();
    if own != usize::MAX {
        return own;
    }
    let own = NEXT.fetch_add(1, Ordering::Relaxed);
    OWN.set(own);
    own
}
