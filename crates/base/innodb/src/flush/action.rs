//! What a policy may order the page cleaner to do, the cap on it, and what is shown of it.
//!
//! Invariant: `io_capacity` belongs to the user. What is raised is another value and belongs to the
//! policy: it begins again at nothing when the user changes the setting, or with a new policy.

use crate::flush::{AdmitRule, FlushSample};
use crate::{FlushWriteLimit, Lsn};

/// Pages of one batch at most.
pub const BATCH_PAGES: u32 = 128;

/// Pages in flight for which another batch is worth beginning: fewer in each would make many small
/// batches, each with its syncs.
const PAGES_PER_BATCH: u32 = 32;

/// The number of batches worth having in flight at once, with so many pages in flight and so many
/// writers.
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
    /// The next action. `last` is the result of the previous action; the default at first.
    fn next(&mut self, now: &FlushSample<'_>, last: ActionOutcome) -> Action;

    /// What committing threads do from now on: published after every `next` by atomics, so that
    /// they never take a lock of the policy.
    fn admit(&self) -> AdmitRule;

    /// Whether a thread that needs a free frame writes a page for it by itself, instead of waiting
    /// for the cleaner.
    fn users_free_frames(&self) -> bool {
        false
    }

    /// Whether it is called again while its last order is being written. Otherwise the cleaner does
    /// one thing at a time.
    fn goes_on(&self) -> bool {
        false
    }

    /// What it goes by, for display.
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
    /// Pages that may be in flight at once.
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
        /// to write. Otherwise the policy requests checkpoints, or users take them.
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
        /// Whether it continues when someone wakes the cleaner.
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

/// The result of an action.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ActionOutcome {
    /// Dirty pages that were written.
    pub flushed: u32,
    /// Frames that became free.
    pub freed: u32,
    /// How long the action took, with its syncs and its checkpoint; 0 for `Sleep`.
    pub took_us: u64,
    /// Whether purge found something to do.
    pub has_purged: bool,
}

/// A round that is greater than was thought is believed this many times as fast as a smaller one:
/// too short delays let the age rise, too long ones only keep it low.
const UP: u64 = 3;

/// Redo of a round, in bytes: threads times the redo of a transaction.
///
/// Threads that are delayed by `d` produce redo at `round / d`, where what they do besides waiting
/// counts for nothing; so the redo rate times the delay in force is the round. That product hardly
/// changes while both of its factors do.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Round {
    bytes: Option<f64>,
}

impl Round {
    /// Takes in a rate of redo and the delay under which it came about, for `dt_us`. Without a
    /// delay nothing is learnt. `most` is what is thought before the first time.
    pub fn observe(&mut self, seen: DelayedRate, most: f64, reach_us: u64) {
        if seen.delay_us == 0 || seen.dt_us == 0 {
            return;
        }
        let bytes = self.bytes.unwrap_or(most);
        let product = seen.bytes_per_s * seen.delay_us as f64 / 1e6;
        let reach_us = if product > bytes { reach_us / UP } else { reach_us };
        let share = seen.dt_us as f64 / (seen.dt_us as f64 + reach_us as f64);
        self.bytes = Some(bytes + (product - bytes) * share);
    }

    /// Bytes; nothing before threads were delayed.
    #[must_use]
    pub fn bytes(&self) -> Option<f64> {
        self.bytes
    }
}

/// A rate of redo under a delay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DelayedRate {
    /// Redo produced, in bytes per second.
    pub bytes_per_s: f64,
    /// The delay, in microseconds.
    pub delay_us: u64,
    /// For how long, in microseconds.
    pub dt_us: u64,
}

// What a policy makes of the device and of its caps, for display.
//
// Invariant: nothing is decided by it; it is what the last `next` went by.

/// Which bound held the last order of pages back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bound {
    /// None: all that was wanted was ordered.
    #[default]
    Nothing = 0,
    /// `io_capacity`, with what was raised.
    IoCapacity = 1,
    /// `io_capacity_max`, with what was raised.
    IoCapacityMax = 2,
    /// What the device was seen to write.
    Device = 3,
}

/// What a policy goes by now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outlook {
    /// Pages per second that it counts on: what the device was seen to write, or its cap. 0 where
    /// nothing caps it, or it does not know yet.
    pub pages_per_s: u64,
    /// Pages per second that `flush_write_limit = auto-raised` has added.
    pub raised_pages_per_s: u64,
    /// What held it back.
    pub bound: Bound,
}

impl Outlook {
    /// Under a cap of `cap` pages per second, `u64::MAX` for none, of a policy that wants `want`.
    pub(crate) fn capped(cap: u64, raised: u64, want: u64, bound: Bound) -> Outlook {
        Outlook {
            pages_per_s: if cap == u64::MAX { 0 } else { cap },
            raised_pages_per_s: raised,
            bound: if want > cap { bound } else { Bound::Nothing },
        }
    }
}

// Makes redo durable in time when commits do not require it.

/// Remembers an end of the redo and since when it is not durable.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RedoSync {
    mark: Lsn,
    since_us: u64,
}

impl RedoSync {
    /// Whether redo is older than `flush_log_at_timeout` and not durable. True once for each
    /// time-out, also when the sync does not help.
    pub fn is_due(&mut self, now: &FlushSample<'_>) -> bool {
        if now.durable >= self.mark {
            self.mark = now.lsn;
            self.since_us = now.now_us;
            return false;
        }
        let waited_us = now.now_us.saturating_sub(self.since_us);
        let is_due = waited_us >= now.settings.flush_log_at_timeout_us;
        if is_due {
            self.since_us = now.now_us;
        }
        is_due
    }
}

/// Meetings after which the cap rises, and by how much.
const MEETINGS: u32 = 10;
const RAISE: u64 = 100;

/// What may be written of `want` pages, under the policy's own cap and under `io` pages.
pub(crate) fn limited(limit: FlushWriteLimit, want: u64, own_cap: Option<u64>, io: u64) -> u64 {
    match limit {
        FlushWriteLimit::Policy => want.min(own_cap.unwrap_or(u64::MAX)),
        FlushWriteLimit::Capped | FlushWriteLimit::AutoRaised => want.min(io),
        FlushWriteLimit::Free => want,
    }
}

/// What the policy has raised.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CapRaise {
    /// The user's setting that it was raised from.
    setting: u32,
    meetings: u32,
    raised: u64,
    /// The second of the last look.
    second: Option<u64>,
}

impl CapRaise {
    /// What is added to the cap.
    pub(crate) fn by(&self) -> u64 {
        self.raised
    }

    /// Takes in one look at the redo, of which one in each second counts, however often the policy
    /// is called in it; returns what is added to the cap.
    pub(crate) fn look(&mut self, now: &FlushSample<'_>, capacity: u64) -> u64 {
        let settings = &now.settings;
        if settings.write_limit != FlushWriteLimit::AutoRaised
            || self.setting != settings.io_capacity
        {
            *self = CapRaise { setting: settings.io_capacity, ..CapRaise::default() };
        }
        let second = now.now_us / 1_000_000;
        let is_first = self.second.replace(second) != Some(second);
        if is_first
            && settings.write_limit == FlushWriteLimit::AutoRaised
            && now.modified_age() >= capacity - capacity / 4
        {
            self.meetings += 1;
            if self.meetings == MEETINGS {
                self.meetings = 0;
                self.raised = self.raised.saturating_add(RAISE);
            }
        }
        self.raised
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(round: f64, delay_us: u64) -> DelayedRate {
        DelayedRate { bytes_per_s: round * 1e6 / delay_us as f64, delay_us, dt_us: 1000 }
    }

    #[test]
    fn the_round_is_found_at_any_delay() {
        let mut round = Round::default();
        round.observe(DelayedRate { bytes_per_s: 1e6, delay_us: 0, dt_us: 1000 }, 1e9, 1000);
        assert_eq!(round.bytes(), None);
        for at in 1..400 {
            round.observe(seen(4096.0, 50 + at * 7919 % 1000), 1e6, 10_000);
        }
        assert!((round.bytes().unwrap() - 4096.0).abs() < 1.0, "{round:?}");
    }

    #[test]
    fn a_greater_round_is_believed_sooner() {
        let mut round = Round::default();
        let reach_us = 1000 * UP;
        round.observe(seen(1000.0, 100), 1000.0, reach_us);
        round.observe(seen(2000.0, 100), 1000.0, reach_us);
        assert!((round.bytes().unwrap() - 1500.0).abs() < 1.0, "{round:?}");
        round.observe(seen(500.0, 100), 1000.0, reach_us);
        assert!((round.bytes().unwrap() - 1250.0).abs() < 1.0, "{round:?}");
    }
}

#[cfg(test)]
mod write_limit_tests {
    use crate::Lsn;

    use super::*;
    use crate::flush::FlushSettings;

    #[test]
    fn the_limit_is_apart_from_the_policy() {
        let of = |limit| (limited(limit, 500, Some(200), 300), limited(limit, 500, None, 300));
        assert_eq!(of(FlushWriteLimit::Policy), (200, 500));
        assert_eq!(of(FlushWriteLimit::Capped), (300, 300));
        assert_eq!(of(FlushWriteLimit::Free), (500, 500));
    }

    #[test]
    fn ten_meetings_raise_by_a_hundred_and_a_new_setting_begins_again() {
        let mut now_us = 0;
        let mut look = |raised: &mut CapRaise, io_capacity: u32, age: u64| {
            now_us += 1_000_000;
            let settings = FlushSettings {
                io_capacity,
                write_limit: FlushWriteLimit::AutoRaised,
                ..FlushSettings::default()
            };
            let lsn = Lsn(10_000);
            let oldest = Some(Lsn(lsn.0 - age));
            let now = FlushSample { now_us, lsn, oldest, settings, ..FlushSample::default() };
            // Other looks in the same second add nothing new.
            raised.look(&now, 1000);
            raised.look(&FlushSample { now_us: now_us + 999_999, ..now }, 1000)
        };
        let mut raised = CapRaise::default();
        let seen: Vec<u64> = (0..20).map(|_| look(&mut raised, 200, 750)).collect();
        assert_eq!((seen[8], seen[9], seen[18], seen[19]), (0, 100, 100, 200));
        assert_eq!(look(&mut raised, 200, 749), 200, "it does not fall again");
        assert_eq!(look(&mut raised, 300, 100), 0, "the user has spoken");
    }
}
