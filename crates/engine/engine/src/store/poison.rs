//! The first failure that leaves the files' contents unknown.
//!
//! Invariant: set once; whoever begins or finishes a write after it is set hears of it.
//! Reads go on: what can be read harms nobody, since nothing built on it becomes durable.

use std::sync::{Arc, OnceLock};

use crate::store::error::StoreError;

#[derive(Debug, Default)]
pub(crate) struct Poison(OnceLock<Arc<StoreError>>);

impl Poison {
    /// Keeps the first cause; returns the error itself, so that its finder reports it.
    pub(crate) fn set(&self, error: StoreError) -> StoreError {
        self.0.get_or_init(|| Arc::new(error.clone()));
        error
    }

    pub(crate) fn check(&self) -> Result<(), StoreError> {
        match self.0.get() {
            None => Ok(()),
            Some(cause) => Err(StoreError::Poisoned { cause: Arc::clone(cause) }),
        }
    }

    pub(crate) fn cause(&self) -> Option<StoreError> {
        self.0.get().map(|cause| StoreError::clone(cause))
    }
}
