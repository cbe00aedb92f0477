//! Syncs of one file, one at a time.
//!
//! Invariant: a caller returns success only if a sync that began after the call succeeded and none
//! before it failed. The system reports a lost write to one caller of a sync only; therefore syncs
//! of a file never overlap, and the one that fails poisons the store before the next may begin.
//! Callers that wait together share one sync. Reads go on after a failure: nothing built on them
//! becomes durable.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};

use crate::error::{EngineError, Poison};

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
        sync: impl FnOnce() -> Result<(), EngineError>,
    ) -> Result<Synced, EngineError> {
        let call = self.asked.fetch_add(1, SeqCst) + 1;
        let mut covered = self.covered.lock().unwrap_or_else(PoisonError::into_inner);
        poison.check()?;
        if *covered >= call {
            return Ok(Synced::Elsewhere);
        }
        let covers = self.asked.load(SeqCst);
        sync().map_err(|error| poison.keep(error))?;
        *covered = covers;
        Ok(Synced::Here)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

    use super::{SyncGate, Synced};
    use crate::error::{EngineError, Poison};

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
        let lost = || Err(EngineError::full("lost".to_owned()));
        assert!(matches!(gate.sync(&poison, lost), Err(EngineError::NoSpace { .. })));
        let later = gate.sync(&poison, || Ok(()));
        let Err(EngineError::Poisoned { cause }) = later else { panic!("{later:?}") };
        assert!(matches!(*cause, EngineError::NoSpace { .. }), "{cause}");
    }
}
