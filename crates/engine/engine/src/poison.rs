//! The first failure after which nothing may be written.
//!
//! Invariant: it is kept for good; whoever writes asks first, and again before acknowledging.

use std::sync::{Arc, OnceLock};

use crate::error::EngineError;

/// The first failure, if there was one.
#[derive(Debug, Default)]
pub(crate) struct Poison {
    first: OnceLock<Arc<EngineError>>,
}

impl Poison {
    /// Fails if there was a failure.
    pub fn check(&self) -> Result<(), EngineError> {
        match self.first.get() {
            None => Ok(()),
            Some(cause) => Err(EngineError::Poisoned { cause: Arc::clone(cause) }),
        }
    }

    /// Keeps a failure, if it is the first, and gives it back.
    pub fn keep(&self, error: impl Into<EngineError>) -> EngineError {
        let error = error.into();
        if !matches!(error, EngineError::Poisoned { .. }) {
            let _kept_before = self.first.set(Arc::new(error.clone()));
        }
        error
    }

    /// Watches over work that must not end in the middle: a panic in it poisons.
    pub fn alarm(&self, what: &'static str) -> Alarm<'_> {
        Alarm { poison: self, what }
    }

    /// An invariant does not hold.
    #[cold]
    pub fn broken(&self, what: String) -> EngineError {
        self.keep(EngineError::Broken { what })
    }
}

/// Tells everybody when the thread that has it ends by a panic: others would wait for ever for what
/// it had begun.
pub(crate) struct Alarm<'p> {
    poison: &'p Poison,
    what: &'static str,
}

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _kept = self.poison.broken(format!("{} ended by a panic", self.what));
        }
    }
}
