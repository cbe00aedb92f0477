//! Writers of one process in turn.
//!
//! SQLite has one writer at a time and lets the others poll with growing sleeps. Within a process
//! they can be woken instead, which is how its users are advised to write from several threads.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// Whose turn it is to write.
#[derive(Debug, Default)]
pub(super) struct Turns {
    is_taken: Mutex<bool>,
    freed: Condvar,
}

/// A turn, until it is dropped.
#[derive(Debug)]
pub(super) struct Turn(Arc<Turns>);

impl Turns {
    /// Waits for a turn.
    pub fn take(self: &Arc<Self>) -> Turn {
        let is_taken = self.is_taken.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.freed.wait_while(is_taken, |is_taken| *is_taken);
        *waited.unwrap_or_else(PoisonError::into_inner) = true;
        Turn(Arc::clone(self))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *self.0.is_taken.lock().unwrap_or_else(PoisonError::into_inner) = false;
        self.0.freed.notify_one();
    }
}
