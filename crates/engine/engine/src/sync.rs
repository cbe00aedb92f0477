//! Locks whose poison means nothing.
//!
//! Invariant: what they guard is whole at every moment, whatever panics: every change is made of
//! steps that cannot.

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
