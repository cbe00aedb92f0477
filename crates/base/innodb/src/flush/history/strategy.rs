//! What the policies of the master loop differ in.

use crate::Lsn;

use crate::flush::{FlushSample, Ladder};

/// One second, in microseconds.
pub(super) const SECOND_US: u64 = 1_000_000;

/// What a strategy looks at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tick<'a, 'b> {
    pub now: &'a FlushSample<'b>,
    pub ladder: Ladder,
    /// Pages per second for background work: `io_capacity`, with what was raised.
    pub io: u64,
}

impl Tick<'_, '_> {
    /// This share of the pages per second, cut off.
    pub fn pct(&self, percent: u64) -> u64 {
        percent_of(self.io, percent)
    }

    /// Share of dirty pages in percent, cut off.
    pub fn dirty_pct(&self) -> u64 {
        let frames = u128::from(self.now.frames) + 1;
        (u128::from(self.now.dirty_pages) * 100 / frames) as u64
    }
}

/// Pages to flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Proposal {
    /// Pages that the formula asks for.
    pub want: u64,
    /// What the policy itself is capped by.
    pub cap: Option<u64>,
    /// Only pages whose oldest change is before this LSN.
    pub until: Lsn,
    /// Whether the next second begins at once.
    pub skips_sleep: bool,
}

/// What a policy of the master loop decides by itself; the rest is the loop's.
pub(super) trait Strategy: Send {
    /// Time between two looks.
    fn tick_us(&self) -> u64 {
        SECOND_US
    }

    /// Pages per second that the loop takes shares of.
    fn io(&self, now: &FlushSample<'_>) -> u64 {
        u64::from(now.settings.io_capacity)
    }

    /// Whether the loop goes on at once after a flush for the share of dirty pages.
    fn skips_sleep_when_dirty(&self) -> bool {
        false
    }

    /// Whether `adaptive_flushing = OFF` ends its flushing for age.
    fn follows_adaptive_flushing(&self) -> bool {
        true
    }

    /// What it flushes for age in this tick. `own` is what the loop flushed in the last one.
    fn flush(&mut self, seen: &Tick<'_, '_>, own: u64) -> Option<Proposal>;

    /// What tells that users are at work when it moves.
    fn activity(&self, now: &FlushSample<'_>) -> u64 {
        now.commits
    }

    /// Whether flushing without users keeps to `io_capacity`.
    fn background_is_capped(&self) -> bool {
        false
    }
}

/// `whole * percent / 100` without overflow.
pub(super) fn percent_of(whole: u64, percent: u64) -> u64 {
    u64::try_from(u128::from(whole) * u128::from(percent) / 100).unwrap_or(u64::MAX)
}
