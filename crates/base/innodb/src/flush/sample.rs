//! What a policy sees of the engine.

use std::time::Duration;

use crate::flush::AgeLimits;
use crate::{FlushWriteLimit, Lsn, Settings};

/// At most this share of the pool is kept free.
const FREE_SHARE: u64 = 8;

/// Frames that a thread frees at most when it frees them by itself.
const USER_FRAMES: u64 = 64;

/// A write of redo that takes so long stood still, as where a limit on the volume's requests is
/// used up. Where a hypervisor took a third of the processors, one wake in a hundred was as late.
pub const STALLED_REDO_WRITE: Duration = Duration::from_millis(10);

/// Frames that a thread frees by itself when it finds none, in a pool of so many: not more than are
/// kept free.
#[must_use]
pub fn frames_of_user(frames: u64) -> u64 {
    free_most(frames).min(USER_FRAMES)
}

/// Frames that are kept free at most in a pool of so many.
fn free_most(frames: u64) -> u64 {
    (frames / FREE_SHARE).max(1)
}

/// The engine at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub struct FlushSample<'a> {
    /// Now, in microseconds of a clock that never goes back.
    pub now_us: u64,
    /// End of the redo.
    pub lsn: Lsn,
    /// End of the redo that is durable.
    pub durable: Lsn,
    /// The last checkpoint.
    pub checkpoint: Lsn,
    /// The oldest change of a dirty page; nothing when no page is dirty.
    pub oldest: Option<Lsn>,
    /// Limits of the checkpoint age.
    pub limits: AgeLimits,
    /// Dirty pages.
    pub dirty_pages: u64,
    /// Frames that hold no page.
    pub free_frames: u64,
    /// Frames of the pool.
    pub frames: u64,
    /// Dirty pages by their oldest change: the first LSN of a bucket and the pages in it,
    /// ascending. A bucket reaches to the next one, the last to `lsn`.
    pub age_histogram: &'a [(Lsn, u32)],
    /// Pages written to free their frames, since the engine opened.
    pub lru_flushed: u64,
    /// Pages written to let the checkpoint go on, since the engine opened.
    pub list_flushed: u64,
    /// Bytes of the redo files: what limits by generation are computed from.
    pub redo_file_bytes: u64,
    /// Commits since the engine opened.
    pub commits: u64,
    /// Pages read and written since the engine opened.
    pub page_ios: u64,
    /// Times that redo was written and synced since the engine opened, and how long these took in
    /// all, in microseconds.
    pub redo_writes: u64,
    /// As `redo_writes` says.
    pub redo_write_us: u64,
    /// Those of them that took [`STALLED_REDO_WRITE`] or longer.
    pub stalled_redo_writes: u64,
    /// Reads of pages in flight.
    pub pending_reads: u64,
    /// Writes of pages in flight.
    pub pending_writes: u64,
    /// What the cleaner was told to do and has not done yet.
    pub lanes: LanesUse,
    /// Settings that may change at any time.
    pub settings: FlushSettings,
}

impl FlushSample<'_> {
    /// Redo since the oldest change of a dirty page, in bytes: what flushing acts on.
    #[must_use]
    pub fn modified_age(&self) -> u64 {
        self.oldest.map_or(0, |oldest| self.lsn.0.saturating_sub(oldest.0))
    }

    /// Redo since the last checkpoint, in bytes: what committing threads are held by.
    #[must_use]
    pub fn checkpoint_age(&self) -> u64 {
        self.lsn.0.saturating_sub(self.checkpoint.0)
    }

    /// Share of dirty frames, in percent.
    #[must_use]
    pub fn dirty_pct(&self) -> f64 {
        100.0 * self.dirty_pages as f64 / self.frames.max(1) as f64
    }

    /// Frames that are kept free at most, whatever `lru_scan_depth` says.
    #[must_use]
    pub fn free_frames_most(&self) -> u64 {
        free_most(self.frames)
    }

    /// Reads and writes of pages in flight.
    #[must_use]
    pub fn pending_ios(&self) -> u64 {
        self.pending_reads.saturating_add(self.pending_writes)
    }

    /// Behind all dirty pages.
    #[must_use]
    pub fn behind_all(&self) -> Lsn {
        self.lsn.plus(1)
    }

    /// So much redo behind the oldest change.
    #[must_use]
    pub fn after_oldest(&self, bytes: u64) -> Lsn {
        self.could_checkpoint().plus(bytes)
    }

    /// Where a checkpoint could be now.
    #[must_use]
    pub fn could_checkpoint(&self) -> Lsn {
        self.oldest.unwrap_or(self.lsn).min(self.lsn)
    }
}

/// Orders of a policy that does not wait for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LanesUse {
    /// Pages of [`Action::Flush`](crate::flush::Action::Flush) that are not written yet.
    pub list_pages: u32,
    /// Frames of [`Action::Lru`](crate::flush::Action::Lru) that are not free yet.
    pub cold_frames: u32,
}

/// The settings that a policy follows, under InnoDB's names.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlushSettings {
    /// Pages per second for background flushing.
    pub io_capacity: u32,
    /// Pages per second that flushing keeps to unless redo is about to run out.
    pub io_capacity_max: u32,
    /// Share of dirty frames in percent that is flushed with `io_capacity`.
    pub max_dirty_pages_pct: f64,
    /// Share of dirty frames in percent from which flushing for it begins; 0: shortly below.
    pub max_dirty_pages_pct_lwm: f64,
    /// Whether pages are flushed for redo below the async limit.
    pub adaptive_flushing: bool,
    /// Share of the redo capacity in percent below which nothing is flushed for it.
    pub adaptive_flushing_lwm: f64,
    /// Loops that averages reach back.
    pub flushing_avg_loops: u32,
    /// Share of `io_capacity` in percent that is flushed while nothing changes.
    pub idle_flush_pct: f64,
    /// Whether flushing may go beyond `io_capacity_max` when redo is about to run out.
    pub flush_sync: bool,
    /// Free frames to keep ready, at most an eighth of the pool.
    pub lru_scan_depth: u32,
    /// Time after which redo is made durable when commits do not ask for it, in microseconds.
    pub flush_log_at_timeout_us: u64,
    /// Threads that purge; without any the policy asks for it.
    pub purge_threads: u32,
    /// Whether pages are copied before they are written in place.
    pub doublewrite: bool,
    /// Whether what a policy wants to write is capped.
    pub write_limit: FlushWriteLimit,
}

impl Default for FlushSettings {
    /// The defaults of the engine.
    fn default() -> FlushSettings {
        FlushSettings::of(&Settings::default())
    }
}
