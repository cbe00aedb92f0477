//! Everything together: what the engine calls.

use std::io;
use std::sync::Arc;

use crate::version::log::VersionLog;
use crate::version::purge::{Purge, PurgeBatch};
use crate::version::registry::{OldestSnapshot, Registry, Snapshot};
use crate::version::segment::{Body, SpillFile};
use crate::version::shard::{SEGMENT_BYTES_MAX, SHARDS};

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
