//! What the lock table needs of threads, locks and time.
//!
//! Invariant: nothing else in this module touches them, so that with the feature `model` a model
//! checker tries interleavings. It knows no time: there a wait with an end may end at any moment.

#[cfg(not(feature = "model"))]
pub(crate) use std::{
    sync::{Mutex, MutexGuard, atomic::AtomicUsize},
    thread::{Thread, current},
};

#[cfg(feature = "model")]
pub(crate) use shuttle::{
    sync::{Mutex, MutexGuard, atomic::AtomicUsize},
    thread::{Thread, current},
};
use std::sync::PoisonError;
use std::time::{Duration, Instant};

/// No code panics while it holds one of these locks, and what they guard is whole at every moment.
#[inline]
pub(crate) fn locked<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One wait of the calling thread.
pub(crate) struct Patience {
    start: Instant,
    /// Nothing when it lies beyond the end of time.
    end: Option<Instant>,
    #[cfg(feature = "model")]
    is_over: bool,
}

impl Patience {
    pub(crate) fn new(patience: Duration) -> Self {
        let start = Instant::now();
        Self {
            start,
            end: start.checked_add(patience),
            #[cfg(feature = "model")]
            is_over: false,
        }
    }

    pub(crate) fn waited(&self) -> Duration {
        self.start.elapsed()
    }

    /// Sleeps until the thread is unparked or the patience is over; may wake for no reason.
    #[cfg(not(feature = "model"))]
    pub(crate) fn sleep(&mut self) {
        match self.end {
            Some(end) => {
                std::thread::park_timeout(end.saturating_duration_since(Instant::now()));
            }
            None => std::thread::park(),
        }
    }

    #[cfg(not(feature = "model"))]
    pub(crate) fn is_over(&self) -> bool {
        self.end.is_some_and(|end| Instant::now() >= end)
    }

    #[cfg(feature = "model")]
    pub(crate) fn sleep(&mut self) {
        use shuttle::rand::Rng;

        if self.end.is_some() && shuttle::rand::thread_rng().gen_bool(0.5) {
            shuttle::thread::yield_now();
            self.is_over = true;
        } else {
            shuttle::thread::park();
        }
    }

    #[cfg(feature = "model")]
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }
}
