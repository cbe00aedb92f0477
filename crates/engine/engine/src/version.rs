//! Versions of rows: the clock that numbers commits, the snapshots that read, and the log of what
//! commits replaced.
//!
//! Purpose: a commit takes its number with [`Registry::tick`] while it holds the latches of all its
//! leaves, asks [`Registry::is_any_below`], and keeps what it replaces through a [`Keeper`]. A
//! [`Snapshot`] sees numbers at or below its own and follows pointers to what was there before.
//! Purge takes the keys of deleted rows when nobody can need them any more.
//! Invariants: a version that a registered snapshot may read is never dropped; a key to purge is
//! handed out only when every snapshot that is or will be registered is at or above its number;
//! no file is touched while a lock is held that a commit takes.
//! What it deliberately does not do: it knows neither pages nor latches, has no thread, and nothing
//! of it survives a restart.
//!
//! # Why no snapshot is missed
//! Opening a snapshot is (1) a read of the clock, (2) storing it in a slot as a lower bound, (3) a
//! second read of the clock: the snapshot's number. A commit is (a) the tick that gives V, (b) a
//! look at all slots. All of these are sequentially consistent, so they have one order. A snapshot
//! below V read the clock in (3) before (a); it stored its slot in (2) before that; so (b) sees the
//! slot, with a value at or below the snapshot's number, or the snapshot is closed already. One
//! whose (2) comes after (b) reads the clock in (3) after (a), and is at or above V.
//!
//! [`Registry::oldest`] reads the clock first and then looks at the slots, and gives the least of
//! all. A snapshot whose (3) came before that read of the clock is seen by the same argument; any
//! other is at or above what was read.
//!
//! The number of slots in use only grows. It is raised before the new slot is stored to, and read
//! after the tick, so the argument holds for it, too.
//!
//! # Why a reader finds what it needs
//! A snapshot S follows a pointer only from a cell with a number V above S. The record behind it
//! carries V as the number that replaced it. Purge passes, and drops, only records whose number is
//! at or below `oldest`, which is at or below S. So as long as S is registered the record stays,
//! and so does its place in the spill file: a slot is reused only after its segment was dropped,
//! when nobody can be reading from it.

use std::io;
use std::sync::Arc;

mod log;
#[cfg(all(test, feature = "model"))]
mod model_tests;
mod purge;
mod registry;

pub use log::{Keeper, SpillFile};
pub use purge::{PurgeBatch, PurgeItem};
pub use registry::{OldestSnapshot, Registry, Snapshot};

use log::{Body, SEGMENT_BYTES_MAX, SHARDS, VersionLog};
use purge::Purge;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VersionSettings {
    /// Bytes of a segment, and of a slot of the spill file; above 1 MiB it counts as 1 MiB. A
    /// version that is longer has a segment of its own, which stays in memory.
    pub segment_bytes: usize,
    /// Bytes of segments above which the oldest of them are spilled. The 16 segments that grow stay
    /// in memory in any case.
    pub memory_bytes_max: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VersionStats {
    /// Commits that kept something and are not purged yet.
    pub history: u64,
    pub memory_bytes: u64,
    pub spilled_bytes: u64,
    pub kept: u64,
    pub purged: u64,
    pub snapshots: u64,
    pub oldest: Option<OldestSnapshot>,
}

pub struct Versions {
    pub registry: Registry,
    pub log: VersionLog,
    purge: Purge,
}

impl Versions {
    /// A log without versions, and a clock that stands at `clock`: at or above every number in the
    /// data. Without a spill file everything stays in memory.
    pub fn new(clock: u64, settings: VersionSettings, spill: Option<Box<dyn SpillFile>>) -> Self {
        let segment_bytes = settings.segment_bytes.min(SEGMENT_BYTES_MAX);
        let log = VersionLog::new(segment_bytes, settings.memory_bytes_max, spill);
        Self { registry: Registry::new(clock), log, purge: Purge::default() }
    }

    /// The next keys to purge, at most `most`: those of commits at or below every snapshot. Drops
    /// the versions that it passes. An empty batch says that there is nothing to do now. Several
    /// threads may call it; each gets other keys.
    ///
    /// # Errors
    /// When the spill file cannot be read and no other shard had anything to hand out. Nothing is
    /// lost: another call tries again.
    pub fn take_purge(&self, most: usize) -> io::Result<PurgeBatch> {
        self.purge.take(&self.log, self.registry.oldest(), most)
    }

    /// As [`take_purge`](Self::take_purge), but what snapshots need goes, too.
    #[cfg(feature = "testing")]
    pub fn take_purge_of_all(&self, most: usize) -> io::Result<PurgeBatch> {
        self.purge.take(&self.log, self.registry.now(), most)
    }

    /// The keys of the batch are purged: counts its commits.
    pub fn finish_purge(&self, batch: PurgeBatch) {
        self.purge.finish(&batch);
    }

    /// The keys of the batch could not be purged: they are handed out again, after newer ones. Who
    /// purged some of them takes these out first.
    pub fn put_back(&self, batch: PurgeBatch) {
        self.purge.put_back(batch);
    }

    /// How it stands. Looks at every segment of the log, one shard after the other.
    pub fn stats(&self) -> VersionStats {
        let (snapshots, mut oldest) = self.registry.open_now();
        let purged = self.purge.purged();
        let mut stats = VersionStats { snapshots, purged, ..VersionStats::default() };
        let mut commits = 0;
        for shard in 0..SHARDS {
            let shard = self.log.lock(shard);
            stats.kept += shard.kept;
            commits += shard.commits;
            for segment in shard.segments() {
                if let Body::Spilled { len, .. } = segment.body {
                    stats.spilled_bytes += len as u64;
                }
                if let Some(oldest) = oldest.as_mut().filter(|oldest| segment.greatest > oldest.at)
                {
                    oldest.versions += u64::from(segment.records);
                }
            }
        }
        stats.memory_bytes = self.log.memory();
        stats.history = commits.saturating_sub(purged);
        VersionStats { oldest, ..stats }
    }
}

const _: () = {
    const fn is_shared<T: Send + Sync>() {}
    is_shared::<Versions>();
    is_shared::<Arc<Versions>>();
    is_shared::<Snapshot>();
};
