//! Everything together: what the engine calls.

use std::io;
use std::sync::Arc;

use crate::version::log::VersionLog;
use crate::version::purge::{Purge, PurgeBatch};
use crate::version::registry::{OldestSnapshot, Registry, Snapshot};
use crate::version::segment::{Body, SpillFile};
use crate::version::shard::{Keeper, SEGMENT_BYTES_MAX, SHARDS};

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
    registry: Registry,
    log: VersionLog,
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

    #[inline]
    pub fn now(&self) -> u64 {
        self.registry.now()
    }

    /// The next number, for a commit that holds the latches of all its leaves.
    #[inline]
    pub fn tick(&self) -> u64 {
        self.registry.tick()
    }

    /// Opens a snapshot of now. `transaction` is only shown, in [`VersionStats`].
    #[inline]
    pub fn snapshot(&self, transaction: u64) -> Snapshot {
        self.registry.open(transaction)
    }

    /// After the tick that gave `number`: whether a snapshot below it may be registered, now or
    /// later. If not, what that commit replaces need not be kept.
    #[inline]
    pub fn is_needed(&self, number: u64) -> bool {
        self.registry.is_any_below(number)
    }

    /// Every snapshot that is or will be registered is at or above this number.
    pub fn oldest(&self) -> u64 {
        self.registry.oldest()
    }

    /// Keeps what one commit replaces. It locks one shard of the log until it is dropped, touches
    /// memory only, and is made to be called under page latches.
    #[inline]
    pub fn keep(&self) -> Keeper<'_> {
        self.log.keep()
    }

    /// Puts the value that `pointer` leads to into `into`, in place of what was there: with its
    /// version. Gives the flags of the cell; None when the version was dropped, which does
    /// not happen to a pointer that a registered snapshot follows from a number above its own.
    ///
    /// # Errors
    /// When the spill file cannot be read, or gives back other bytes than were written.
    pub fn read(&self, pointer: u64, into: &mut Vec<u8>) -> io::Result<Option<u8>> {
        self.log.read(pointer, into)
    }

    /// The next keys to purge, at most `most`: those of commits at or below every snapshot. Drops
    /// the versions that it passes. An empty batch says that there is nothing to do now. Several
    /// threads may call it; each gets other keys.
    ///
    /// # Errors
    /// When the spill file cannot be read and no other shard had anything to hand out. Nothing is
    /// lost: another call tries again.
    pub fn take_purge(&self, most: usize) -> io::Result<PurgeBatch> {
        self.purge.take(&self.log, self.oldest(), most)
    }

    /// As [`take_purge`](Self::take_purge), but what snapshots need goes, too.
    #[cfg(feature = "testing")]
    pub fn take_purge_of_all(&self, most: usize) -> io::Result<PurgeBatch> {
        self.purge.take(&self.log, self.now(), most)
    }

    /// Sets the clock to 0, as if an opening did not know where it stood.
    #[cfg(feature = "testing")]
    pub fn restart_clock(&self) {
        self.registry.restart();
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

    /// When there is more in memory than allowed, writes the oldest full segment to the spill file,
    /// without a lock. False when there was nothing to do. Several threads may call it.
    ///
    /// # Errors
    /// When the spill file cannot be written. The segment stays in memory.
    pub fn spill_step(&self) -> io::Result<bool> {
        self.log.spill_step()
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
