//! Who waits for which lock, and what waiting cost.
//!
//! Invariant: an owner is here from before it enters a queue until its thread has noticed that it
//! has left it. All of it is guarded by one mutex, which is taken only by those who must wait.

use std::collections::HashMap;
use std::time::Duration;

use crate::lock::border::LockStats;
use crate::lock::id::LockId;

/// The edges of the wait graph and the counts of those who waited.
#[derive(Default)]
pub(crate) struct Waits {
    /// By the number of the owner that waits.
    edges: HashMap<u64, LockId>,
    stats: LockStats,
}

impl Waits {
    pub(crate) fn begin(&mut self, number: u64, id: LockId) {
        let before = self.edges.insert(number, id);
        debug_assert!(before.is_none(), "owner {number} waits for two locks");
    }

    pub(crate) fn end(&mut self, number: u64, waited: Duration, is_granted: bool) {
        self.edges.remove(&number);
        let ns = u64::try_from(waited.as_nanos()).unwrap_or(u64::MAX);
        self.stats.waits += 1;
        self.stats.wait_ns = self.stats.wait_ns.saturating_add(ns);
        self.stats.wait_ns_max = self.stats.wait_ns_max.max(ns);
        self.stats.timeouts += u64::from(!is_granted);
    }

    /// Whether the requester would wait for itself if it waited for a lock of `holder`. `holder_of`
    /// says who holds a lock now; others may release theirs during the search.
    pub(crate) fn closes_cycle(
        &self,
        requester: u64,
        mut holder: u64,
        holder_of: impl Fn(LockId) -> Option<u64>,
    ) -> bool {
        // Without a cycle each step takes another edge.
        for _ in 0..=self.edges.len() {
            if holder == requester {
                return true;
            }
            let Some(next) = self.edges.get(&holder).and_then(|id| holder_of(*id)) else {
                return false;
            };
            if next == holder {
                // It was handed the lock and has not noticed yet: it does not wait any more.
                return false;
            }
            holder = next;
        }
        debug_assert!(false, "a cycle that nobody noticed when it was closed");
        false
    }

    pub(crate) fn refused(&mut self) {
        self.stats.deadlocks += 1;
    }

    /// The counts; `held` is not known here.
    pub(crate) fn stats(&self) -> LockStats {
        LockStats { waiting: self.edges.len() as u64, ..self.stats }
    }
}
