//! What a policy may ask the cleaner to do.

use crate::Lsn;

use crate::flush::{AdmitRule, FlushSample, Outlook};

/// Pages of one batch at most.
pub const BATCH_PAGES: u32 = 128;

/// Pages in flight for which another batch is worth beginning: fewer in each would make many small
/// batches, each with its syncs.
const PAGES_PER_BATCH: u32 = 32;

/// Batches that are worth having under way at once, with so many pages in flight and so many who
/// write.
#[must_use]
pub fn batches_at_once(in_flight: u32, writers: u32) -> u32 {
    in_flight.div_ceil(PAGES_PER_BATCH).clamp(1, writers.max(1))
}

/// Pages of the next batch of so many, which are shared by the batches under way.
#[must_use]
pub fn batch_share(left: f64, batches: u32) -> f64 {
    (left / f64::from(batches.max(1))).clamp(f64::from(PAGES_PER_BATCH), f64::from(BATCH_PAGES))
}

/// Decides what is flushed and when. One policy belongs to one cleaner.
pub trait FlushPolicy: Send {
    /// The next action. `last` is what came of the action before; the default at first.
    fn next(&mut self, now: &FlushSample<'_>, last: Finished) -> Action;

    /// What committing threads do from now on: published after every `next` by atomics, so that
    /// they never take a lock of the policy.
    fn admit(&self) -> AdmitRule;

    /// Whether a thread that needs a free frame writes a page for it by itself, instead of waiting
    /// for the cleaner.
    fn users_free_frames(&self) -> bool {
        false
    }

    /// Whether it is asked again while what it ordered is being written. Otherwise the cleaner does
    /// one thing at a time.
    fn goes_on(&self) -> bool {
        false
    }

    /// What it goes by, for whoever looks on.
    fn outlook(&self) -> Outlook {
        Outlook::default()
    }

    /// How fast ordered pages go to their places, over all batches.
    fn write_pace(&self) -> WritePace {
        WritePace::FREE
    }
}

/// How fast pages are written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WritePace {
    /// Pages that may be on their way at once.
    pub in_flight: u32,
    /// Pages that may be begun per second; without bound for as many as are in flight.
    pub pages_per_s: f64,
}

impl WritePace {
    /// As fast as the device takes them.
    pub const FREE: WritePace = WritePace { in_flight: u32::MAX, pages_per_s: f64::INFINITY };
}

/// One thing for the cleaner to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Write the dirty pages with the oldest changes, oldest first.
    Flush {
        /// At most this many pages.
        pages: u32,
        /// Only pages whose oldest change is before this LSN.
        until: Lsn,
        /// Whether redo is about to run out, so that `io_capacity_max` is not kept to.
        furious: bool,
        /// Which counter the pages belong to.
        cause: Cause,
        /// Whether a checkpoint is taken whenever it frees enough redo, and when there was nothing
        /// to write. Otherwise the policy asks for checkpoints, or users take them.
        checkpoints: bool,
    },
    /// Free this many frames at the cold end: drop clean pages, write dirty ones and drop them;
    /// then take a checkpoint.
    Lru {
        /// Frames to free.
        pages: u32,
    },
    /// Purge one batch.
    Purge,
    /// Make the redo durable up to its end.
    SyncRedo,
    /// Take a checkpoint: nothing needs to be written for it.
    Checkpoint,
    /// Nothing until then, or until someone wakes the cleaner.
    Sleep {
        /// On the sample's clock, in microseconds.
        until_us: u64,
        /// Whether it goes on when someone wakes the cleaner.
        firm: bool,
    },
}

/// Why pages are flushed; InnoDB counts them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// To hold the checkpoint age.
    Adaptive,
    /// For the share of dirty pages, or because nothing else happens.
    Background,
    /// Because redo is about to run out.
    Sync,
}

/// What came of an action.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Finished {
    /// Dirty pages that were written.
    pub flushed: u32,
    /// Frames that became free.
    pub freed: u32,
    /// How long the action took, with its syncs and its checkpoint; 0 for `Sleep`.
    pub took_us: u64,
    /// Whether purge found something to do.
    pub has_purged: bool,
}
