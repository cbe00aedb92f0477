//! What the generations of the page cleaner differ in.

use crate::Lsn;

use crate::flush::{AdmitRule, FlushSample, Ladder};

/// Pages to flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Portion {
    /// Pages at most.
    pub pages: u64,
    /// Only pages whose oldest change is before this LSN.
    pub until: Lsn,
}

/// How the rest of a second is spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    /// It is not: the next pass begins at once.
    Skipped,
    /// Asleep, whoever wakes it.
    Firm,
    /// Asleep until somebody wakes it.
    Light,
}

/// One generation of the page cleaner; what they share is the loop's.
pub(super) trait Generation: Send {
    /// Its limits.
    fn ladder(&self, now: &FlushSample<'_>) -> Ladder;

    /// What users do.
    fn rule(&self, ladder: &Ladder) -> AdmitRule;

    /// What one pass of a second flushes. `flushed` is what the last one did; `cap` is the most
    /// that a pass may, apart from what its formula makes of `io_capacity_max`.
    fn recommend(
        &mut self,
        now: &FlushSample<'_>,
        ladder: &Ladder,
        flushed: u64,
        cap: u64,
    ) -> Portion;

    /// What is flushed at once, without a sleep, because redo is about to run out.
    fn furious(&mut self, now: &FlushSample<'_>, ladder: &Ladder, cap: u64) -> Option<Portion>;

    /// Hears that frames are short, so that the cleaner works for them in any case.
    fn sees_few_frames(&mut self) {}

    /// Whether users who find no free frame write a page by themselves; otherwise they wait for
    /// the cleaner.
    fn users_free_frames(&self) -> bool {
        true
    }

    /// How it rests after a pass; `is_busy` where it found pages to write without users. A firm
    /// rest is cut short for frames where users wait for those.
    fn rest(&self, _: &FlushSample<'_>, _: &Ladder, _is_busy: bool) -> Rest {
        Rest::Light
    }

    /// Share of `io_capacity` in percent that is flushed without users.
    fn idle_pct(&self, now: &FlushSample<'_>) -> f64;

    /// Seconds between checkpoints; none where they follow the flushing.
    fn checkpoint_s(&self) -> Option<u64>;
}
