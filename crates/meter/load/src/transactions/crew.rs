//! What the workers of a window of transactions share beside the statistics.
//!
//! Invariant: whatever is here is written rarely, or by one worker each.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::transactions::agenda::Agenda;
use crate::transactions::live::Live;

/// What all workers share.
pub(crate) struct Crew {
    /// What is due next; absent in a closed loop.
    pub agenda: Option<Agenda>,
    /// Terminals, where they are apart from slots.
    pub homes: Option<u32>,
    /// Seed of every random choice.
    pub seed: u64,
    /// What happens at the moment.
    pub live: Live,
    /// Whether more arrived than could wait.
    pub is_overloaded: AtomicBool,
    /// Workers.
    pub workers: u32,
    /// Sessions that are gone.
    pub gone: Gone,
}

/// How many sessions are gone, and why.
pub(crate) struct Gone {
    sessions: u32,
    gone: AtomicU32,
    code: Mutex<String>,
}

impl Gone {
    /// None of so many.
    pub(crate) fn new(sessions: u32) -> Self {
        Self { sessions, gone: AtomicU32::new(0), code: Mutex::default() }
    }

    /// A session is gone.
    pub(crate) fn add(&self, code: &str) {
        self.gone.fetch_add(1, Ordering::Relaxed);
        self.note(code);
    }

    /// Takes note of what the target says.
    pub(crate) fn note(&self, code: &str) {
        let mut last = self.code.lock().unwrap_or_else(PoisonError::into_inner);
        code.clone_into(&mut last);
    }

    /// A session is back.
    pub(crate) fn remove(&self) {
        self.gone.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether there is none left.
    pub(crate) fn are_all(&self) -> bool {
        self.gone.load(Ordering::Relaxed) >= self.sessions
    }

    /// How many there were.
    pub(crate) fn sessions(&self) -> u32 {
        self.sessions
    }

    /// What the target said last.
    pub(crate) fn code(&self) -> String {
        self.code.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
