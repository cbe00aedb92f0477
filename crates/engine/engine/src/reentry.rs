//! Calls of an engine from within one of its own index functions.
//!
//! Invariant: while a thread runs an index function of an engine, nothing that may wait for that
//! function is begun by it: making an index holds the lock of table making, a check holds up all
//! writers. Such a call is refused. Reads go on, and other engines are none of this one's business.

use std::cell::Cell;

use crate::error::{EngineError, RequestError};
use crate::storage::Storage;

thread_local! {
    /// Where the storage of the engine lies whose function this thread runs; 0 for none.
    static WITHIN: Cell<usize> = const { Cell::new(0) };
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

/// Runs an index function of an engine.
pub(crate) fn within<R>(storage: &Storage, function: impl FnOnce() -> R) -> R {
    let _within = Within { around: WITHIN.replace(std::ptr::from_ref(storage).addr()) };
    function()
}

/// Fails on a thread that runs an index function of this engine.
///
/// # Errors
/// [`RequestError::WithinIndexFunction`].
pub(crate) fn check_outside(storage: &Storage) -> Result<(), EngineError> {
    if WITHIN.get() == std::ptr::from_ref(storage).addr() {
        return Err(RequestError::WithinIndexFunction.into());
    }
    Ok(())
}
