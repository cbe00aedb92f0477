//! Syncs of one file, one at a time, and the failure that leaves unknown what the files hold.
//!
//! Invariant: a caller returns success only if a sync that began after the call succeeded and none
//! before it failed. The system reports a lost write to one caller of a sync only; therefore syncs
//! of a file never overlap, and the one that fails poisons the store before the next may begin.
//! Callers that wait together share one sync. The failure is set once; a write that begins or ends
//! after it fails. Reads go on: nothing built on them becomes durable.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::store::error::StoreError;

#[derive(Debug, Default)]
pub(crate) struct SyncGate {
    /// Calls so far.
    asked: AtomicU64,
    /// Calls that the newest successful sync covers.
    covered: Mutex<u64>,
}

/// Who made the sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Synced {
    Here,
    Elsewhere,
}

impl SyncGate {
    pub(crate) fn sync(
        &self,
        poison: &Poison,
        sync: impl FnOnce() -> Result<(), StoreError>,
    ) -> Result<Synced, StoreError> {
        let call = self.asked.fetch_add(1, SeqCst) + 1;
        let mut covered = self.covered.lock().unwrap_or_else(PoisonError::into_inner);
        poison.check()?;
        if *covered >= call {
            return Ok(Synced::Elsewhere);
        }
        let covers = self.asked.load(SeqCst);
        sync().map_err(|error| poison.set(error))?;
        *covered = covers;
        Ok(Synced::Here)
    }
}

/// The first failure.
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

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

    use iostrata_innodb::PageNo;

    use super::{SyncGate, Synced};
    use crate::store::error::StoreError;
    use crate::store::gate::Poison;

    #[test]
    fn callers_that_wait_share_a_sync_and_none_overlap() {
        let (gate, poison) = (SyncGate::default(), Poison::default());
        let (running, made, shared) = (AtomicU32::new(0), AtomicU32::new(0), AtomicU32::new(0));
        let start = Barrier::new(8);
        std::thread::scope(|threads| {
            for _ in 0..8 {
                threads.spawn(|| {
                    start.wait();
                    for _ in 0..200 {
                        let synced = gate.sync(&poison, || {
                            assert_eq!(running.fetch_add(1, SeqCst), 0);
                            std::thread::yield_now();
                            running.fetch_sub(1, SeqCst);
                            Ok(())
                        });
                        match synced.unwrap() {
                            Synced::Here => made.fetch_add(1, SeqCst),
                            Synced::Elsewhere => shared.fetch_add(1, SeqCst),
                        };
                    }
                });
            }
        });
        assert_eq!(made.load(SeqCst) + shared.load(SeqCst), 1600);
    }

    #[test]
    fn after_a_failure_nobody_succeeds() {
        let (gate, poison) = (SyncGate::default(), Poison::default());
        let lost = StoreError::BeyondEnd { page: PageNo(1), pages: 0 };
        assert_eq!(gate.sync(&poison, || Err(lost.clone())), Err(lost.clone()));
        let later = gate.sync(&poison, || Ok(()));
        assert!(matches!(later, Err(StoreError::Poisoned { cause }) if *cause == lost));
    }
}
