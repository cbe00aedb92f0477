//! What keeps transactions apart, by name, so that a proof can take it away.
//!
//! Invariant: without the feature `testing` every safeguard is there, which the compiler knows; with
//! it each is there until it is removed from one engine.

#[cfg(feature = "testing")]
use std::sync::atomic::{AtomicU32, Ordering};

use iostrata_version::PurgeBatch;

use crate::storage::Storage;

/// Something without which transactions are not kept apart, or not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Safeguard {
    /// Row locks are held until the frame of the commit is appended.
    LocksUntilAppended,
    /// What a commit replaces is kept while a snapshot may see it.
    VersionsAreKept,
    /// A ticket waits for everything that its transaction has read.
    TicketWaitsForReads,
    /// Purge takes no tombstone and no version that a snapshot needs.
    #[cfg(feature = "testing")]
    PurgeWaitsForSnapshots,
    /// Versions stay as long as a snapshot needs them. Without it tombstones do, and they do not.
    #[cfg(feature = "testing")]
    VersionsStay,
    /// The numbers of commits go on after an opening. Taken away, they begin at 0 at once.
    #[cfg(feature = "testing")]
    ClockGoesOn,
}

/// The safeguards of one engine.
#[derive(Debug, Default)]
pub(crate) struct Safeguards {
    #[cfg(feature = "testing")]
    removed: AtomicU32,
}

impl Safeguards {
    /// Whether it is there.
    #[cfg(not(feature = "testing"))]
    #[inline]
    pub const fn has(&self, _: Safeguard) -> bool {
        true
    }

    /// Whether it is there.
    #[cfg(feature = "testing")]
    pub fn has(&self, safeguard: Safeguard) -> bool {
        self.removed.load(Ordering::Relaxed) & (1 << safeguard as u32) == 0
    }
}

/// The next keys to purge.
#[cfg(not(feature = "testing"))]
#[inline]
pub(crate) fn take_purge(storage: &Storage, most: usize) -> std::io::Result<PurgeBatch> {
    storage.versions.take_purge(most)
}

/// The next keys to purge.
#[cfg(feature = "testing")]
pub(crate) fn take_purge(storage: &Storage, most: usize) -> std::io::Result<PurgeBatch> {
    let Storage { versions, safeguards, .. } = storage;
    if !safeguards.has(Safeguard::PurgeWaitsForSnapshots) {
        return versions.take_purge_of_all(most);
    }
    if !safeguards.has(Safeguard::VersionsStay) {
        let dropped = versions.take_purge_of_all(most)?;
        versions.finish_purge(PurgeBatch { items: Vec::new(), commits: dropped.commits });
    }
    versions.take_purge(most)
}

#[cfg(feature = "testing")]
impl crate::Engine {
    /// Takes a safeguard away from this engine and its clones, for good.
    pub fn remove_safeguard(&self, safeguard: Safeguard) {
        let storage = &self.parts().storage;
        storage.safeguards.removed.fetch_or(1 << safeguard as u32, Ordering::Relaxed);
        if safeguard == Safeguard::ClockGoesOn {
            storage.versions.restart_clock();
        }
    }
}
