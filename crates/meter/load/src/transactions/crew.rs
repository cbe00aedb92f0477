//! What the workers of a window of transactions share beside the statistics.
//!
//! Invariant: whatever is here is written rarely, or by one worker each.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::transactions::agenda::Agenda;
use crate::transactions::live::Live;
use crate::transactions::source::{FailedTransaction, Reach};

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
    /// What failed.
    pub failures: Failures,
    /// How many transactions there are to be, where that is bounded.
    pub events: Option<Events>,
}

/// Transactions of a window that ends after so many.
pub(crate) struct Events {
    most: u64,
    begun: AtomicU64,
    ended: AtomicU64,
}

impl Events {
    /// So many.
    pub(crate) fn new(most: u64) -> Self {
        Self { most, begun: AtomicU64::new(0), ended: AtomicU64::new(0) }
    }

    /// Whether one more may begin.
    pub(crate) fn begin(&self) -> bool {
        self.begun.fetch_add(1, Ordering::Relaxed) < self.most
    }

    /// One has ended; whether it was the last.
    pub(crate) fn end(&self) -> bool {
        self.ended.fetch_add(1, Ordering::Relaxed) + 1 == self.most
    }
}

/// What the target said to transactions that failed.
#[derive(Default)]
pub(crate) struct Failures {
    words: Mutex<FirstWords>,
    /// Codes that end nothing; `all` for every one.
    ignored: Vec<String>,
}

#[derive(Default)]
struct FirstWords {
    /// By code, what was said the first time.
    by_code: BTreeMap<String, String>,
    /// The code after which nothing could be done any more.
    ended_by: Option<String>,
    /// The first code that speaks against the window.
    spoiled_by: Option<String>,
}

impl Failures {
    fn lock(&self) -> std::sync::MutexGuard<'_, FirstWords> {
        self.words.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Of which some end nothing.
    pub(crate) fn ignoring(codes: &[String]) -> Self {
        Self { ignored: codes.to_vec(), ..Self::default() }
    }

    /// Whether failures with this code end nothing.
    pub(crate) fn ignores(&self, code: &str) -> bool {
        self.ignored.iter().any(|one| one == code || one == "all")
    }

    /// A transaction failed; what is over with it.
    pub(crate) fn add(&self, failed: &FailedTransaction) -> Reach {
        let mut words = self.lock();
        if !words.by_code.contains_key(&failed.code) {
            words.by_code.insert(failed.code.clone(), failed.text.clone());
        }
        let code = match failed.reach {
            Reach::Session => return Reach::Session,
            _ if self.ignores(&failed.code) => return Reach::Transaction,
            Reach::Run => &mut words.ended_by,
            Reach::Window => &mut words.spoiled_by,
            Reach::Transaction => return Reach::Transaction,
        };
        code.get_or_insert_with(|| failed.code.clone());
        failed.reach
    }

    /// The code after which nothing could be done any more, and what was said with it.
    pub(crate) fn ended_by(&self) -> Option<(String, String)> {
        let words = self.lock();
        let code = words.ended_by.clone()?;
        let text = words.by_code.get(&code).cloned().unwrap_or_default();
        Some((code, text))
    }

    /// The code that speaks against the window, however many were done.
    pub(crate) fn spoiled_by(&self) -> Option<String> {
        self.lock().spoiled_by.clone()
    }

    /// What was said with a code.
    pub(crate) fn text(&self, code: &str) -> String {
        self.lock().by_code.get(code).cloned().unwrap_or_default()
    }
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
