//! What keeps transactions apart, by name, so that a proof can take it away.
//!
//! Invariant: without the feature `testing` every safeguard is there, known at compile time; with
//! it each is there until it is removed from one engine.

use std::io;
#[cfg(feature = "testing")]
use std::sync::atomic::{AtomicU32, Ordering};

use crate::version::{PurgeBatch, Versions};

/// Something without which transactions are not kept apart, or not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Safeguard {
    /// Row locks are held until the frame of the commit is appended.
    LocksUntilAppended,
    /// What a commit replaces is kept while a snapshot may see it.
    VersionsAreKept,
    /// A ticket waits for everything that its transaction has read.
    TicketWaitsForReads,
    /// A row's old entry goes from an index when the row changes.
    EntriesFollowRows,
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

#[cfg(not(feature = "testing"))]
impl Safeguards {
    /// Whether it is there.
    #[inline]
    pub const fn has(&self, _: Safeguard) -> bool {
        true
    }

    /// The next keys to purge.
    #[inline]
    pub fn take_purge(&self, versions: &Versions, most: usize) -> io::Result<PurgeBatch> {
        versions.take_purge(most)
    }
}

#[cfg(feature = "testing")]
impl Safeguards {
    /// Whether it is there.
    pub fn has(&self, safeguard: Safeguard) -> bool {
        self.removed.load(Ordering::Relaxed) & (1 << safeguard as u32) == 0
    }

    /// Takes one away.
    pub fn remove(&self, versions: &Versions, safeguard: Safeguard) {
        self.removed.fetch_or(1 << safeguard as u32, Ordering::Relaxed);
        if safeguard == Safeguard::ClockGoesOn {
            versions.registry.restart();
        }
    }

    /// The next keys to purge.
    pub fn take_purge(&self, versions: &Versions, most: usize) -> io::Result<PurgeBatch> {
        if !self.has(Safeguard::PurgeWaitsForSnapshots) {
            return versions.take_purge_of_all(most);
        }
        if !self.has(Safeguard::VersionsStay) {
            let dropped = versions.take_purge_of_all(most)?;
            versions.finish_purge(PurgeBatch { items: Vec::new(), commits: dropped.commits });
        }
        versions.take_purge(most)
    }
}
