//! Calls of an engine from within a function that it runs itself: one of its index functions, or
//! one that reads a row in its page.
//!
//! Invariant: while a thread runs an index function of an engine, nothing that may wait for that
//! function is begun by it: making an index holds the lock of table making, a check holds up all
//! writers. Such a call is refused. Reads go on, and other engines are not affected. While a thread
//! reads a row in its page, which it may hold latched, it begins nothing that latches a page of
//! that engine, and reads no second row in this way.

use std::cell::Cell;

use crate::error::{EngineError, RequestError};
use crate::storage::Storage;

thread_local! {
    /// Where the storage of the engine lies whose function this thread runs; 0 for none.
    static WITHIN: Cell<usize> = const { Cell::new(0) };
    /// Of the engine at a row of which this thread looks; 0 for none.
    static LOOKING: Cell<usize> = const { Cell::new(0) };
}

/// Ends the look, also where it panics.
struct RowLook;

impl Drop for RowLook {
    fn drop(&mut self) {
        LOOKING.set(0);
    }
}

/// Runs a function that reads a row of an engine in its page. The thread reads no other meanwhile.
pub(crate) fn looking<R>(storage: &Storage, function: impl FnOnce() -> R) -> R {
    LOOKING.set(std::ptr::from_ref(storage).addr());
    let _look = RowLook;
    function()
}

#[inline]
pub(crate) fn check_not_looking(storage: &Storage) -> Result<(), EngineError> {
    match LOOKING.get() == std::ptr::from_ref(storage).addr() {
        true => Err(RequestError::WithinGet.into()),
        false => Ok(()),
    }
}

#[inline]
pub(crate) fn check_may_look() -> Result<(), EngineError> {
    if is_looking() { Err(RequestError::WithinGet.into()) } else { Ok(()) }
}

pub(crate) fn is_looking() -> bool {
    LOOKING.get() != 0
}

/// Ends the function's run, also where it panics: the one around it goes on.
struct Within {
    around: usize,
}

impl Drop for Within {
    fn drop(&mut self) {
        WITHIN.set(self.around);
    }
}

pub(crate) fn within<R>(storage: &Storage, function: impl FnOnce() -> R) -> R {
    let _within = Within { around: WITHIN.replace(std::ptr::from_ref(storage).addr()) };
    function()
}

/// Fails on a thread that runs an index function of this engine, or reads a row of it in its page.
pub(crate) fn check_outside(storage: &Storage) -> Result<(), EngineError> {
    if WITHIN.get() == std::ptr::from_ref(storage).addr() {
        return Err(RequestError::WithinIndexFunction.into());
    }
    check_not_looking(storage)
}
