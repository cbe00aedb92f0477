//! The master thread of InnoDB up to 5.5: one thread that sleeps a second, flushes, and every ten
//! seconds purges and takes a checkpoint; and what the policies on it differ in.
//!
//! Invariant: its sleep is not cut short by users, and what it does in between takes the time that
//! it takes: while it purges, nothing is flushed. Users flush and take checkpoints by themselves.
//! What is flushed for age is the strategy's business.

use crate::Lsn;
use crate::flush::action::{CapRaise, limited};
use crate::flush::{
    Action, ActionOutcome, AdmitRule, Bound, Cause, FlushPolicy, FlushSample, Ladder, Outlook,
    UserWork,
};

// What the policies of the master loop differ in.

/// One second, in microseconds.
pub(super) const SECOND_US: u64 = 1_000_000;

/// What a strategy reads.
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
    /// Pages that the formula requests.
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

    /// Whether the loop continues at once after a flush for the share of dirty pages.
    fn skips_sleep_when_dirty(&self) -> bool {
        false
    }

    /// Whether `adaptive_flushing = OFF` ends its flushing for age.
    fn follows_adaptive_flushing(&self) -> bool {
        true
    }

    /// What it flushes for age in this tick. `own` is what the loop flushed in the last one.
    fn flush(&mut self, seen: &Tick<'_, '_>, own: u64) -> Option<Proposal>;

    /// The server activity counter: users are at work when it moves.
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

/// Seconds between two rounds of purge and checkpoint.
const SECONDS: u64 = 10;
/// Fewer requests in flight, and fewer reads and writes in ten seconds per 100 of `io_capacity`:
/// then there is time for more flushing.
const PENDING_FEW: u64 = 3;
const IOS_FEW_PCT: u64 = 200;
/// Share of dirty pages in percent from which the flush of every ten seconds is a whole one.
const DIRTY_MANY_PCT: u64 = 70;
/// A pause where all pages to write are in use, in microseconds.
const NOTHING_US: u64 = 10_000;

/// What the loop does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MasterStep {
    Sleep,
    SyncRedo,
    Second,
    IsActive,
    TenFlush,
    TenPurge,
    TenDirty,
    TenCheckpoint,
    QuietPurge,
    QuietFlush,
    QuietCheckpoint,
    QuietTest,
}

/// A master thread with one way of flushing for age.
#[derive(Debug)]
pub(super) struct MasterLoop<S> {
    strategy: S,
    rule: AdmitRule,
    step: MasterStep,
    ticks: u64,
    /// When the next tick is due.
    due_us: u64,
    skips_sleep: bool,
    /// Activity and requests when the round of ten seconds began.
    round: (u64, u64),
    is_begun: bool,
    /// Pages flushed since the last tick.
    flushed: u64,
    /// When redo was last made durable while purging.
    synced_us: u64,
    was_purge: bool,
    did_something: bool,
    raised: CapRaise,
    outlook: Outlook,
}

impl<S: Strategy> MasterLoop<S> {
    pub fn new(strategy: S) -> Self {
        Self {
            strategy,
            rule: AdmitRule::wall(u64::MAX),
            step: MasterStep::Sleep,
            ticks: 0,
            due_us: 0,
            skips_sleep: false,
            round: (0, 0),
            is_begun: false,
            flushed: 0,
            synced_us: 0,
            was_purge: false,
            did_something: false,
            raised: CapRaise::default(),
            outlook: Outlook::default(),
        }
    }

    fn begin_round(&mut self, now: &FlushSample<'_>) {
        self.is_begun = true;
        self.ticks = 0;
        self.round = (self.strategy.activity(now), requests(now));
    }

    /// Does one step: the action, if there is one, and what follows.
    fn take(&mut self, seen: &Tick<'_, '_>, last: ActionOutcome) -> (Option<Action>, MasterStep) {
        let now = seen.now;
        let dirty_or_not = if seen.dirty_pct() > DIRTY_MANY_PCT { 100 } else { 10 };
        let is_quiet = self.strategy.activity(now) == self.round.0;
        match self.step {
            MasterStep::Sleep => (self.sleep(now), MasterStep::SyncRedo),
            MasterStep::SyncRedo => (sync(now), MasterStep::Second),
            MasterStep::Second => (self.second(seen), MasterStep::IsActive),
            MasterStep::IsActive => (None, self.after_second(seen, is_quiet)),
            MasterStep::TenFlush => {
                let ios = requests(now).saturating_sub(self.round.1);
                let has_time = now.pending_ios() < PENDING_FEW && ios < seen.pct(IOS_FEW_PCT);
                let all = has_time.then(|| flush(seen, seen.pct(100))).flatten();
                (all, self.before_purge(now, MasterStep::TenPurge, MasterStep::TenDirty))
            }
            MasterStep::TenPurge | MasterStep::QuietPurge => self.purge(now, last),
            MasterStep::TenDirty => {
                (flush(seen, seen.pct(dirty_or_not)), MasterStep::TenCheckpoint)
            }
            MasterStep::TenCheckpoint => {
                self.begin_round(now);
                (
                    Some(Action::Checkpoint),
                    if is_quiet { self.quiet(now) } else { MasterStep::Sleep },
                )
            }
            MasterStep::QuietFlush => {
                self.flushed = 0;
                (flush(seen, seen.pct(100)), MasterStep::QuietCheckpoint)
            }
            MasterStep::QuietCheckpoint => {
                self.did_something |= self.flushed > 0;
                let moves = now.could_checkpoint() > now.checkpoint;
                (moves.then_some(Action::Checkpoint), MasterStep::QuietTest)
            }
            MasterStep::QuietTest => self.after_quiet(seen, is_quiet),
        }
    }

    fn sleep(&mut self, now: &FlushSample<'_>) -> Option<Action> {
        let tick_us = self.strategy.tick_us();
        if std::mem::take(&mut self.skips_sleep) {
            self.due_us = now.now_us;
            return None;
        }
        self.due_us = self.due_us.saturating_add(tick_us).max(now.now_us);
        // Late by more than a tick: what was missed is not made up for.
        self.due_us = self.due_us.min(now.now_us.saturating_add(tick_us));
        (self.due_us > now.now_us).then_some(Action::Sleep { until_us: self.due_us, firm: true })
    }

    /// Flushes for the share of dirty pages, or for age.
    fn second(&mut self, seen: &Tick<'_, '_>) -> Option<Action> {
        self.ticks += 1;
        let own = std::mem::take(&mut self.flushed);
        // It is called in any case, so that its averages go on.
        let for_age = self.strategy.flush(seen, own);
        let is_on =
            seen.now.settings.adaptive_flushing || !self.strategy.follows_adaptive_flushing();
        let for_age = for_age.filter(|_| is_on);
        if seen.dirty_pct() as f64 > seen.now.settings.max_dirty_pages_pct {
            self.skips_sleep = self.strategy.skips_sleep_when_dirty();
            self.looks(seen, seen.now.dirty_pages, seen.pct(100));
            return flush(seen, seen.pct(100));
        }
        let limit = seen.now.settings.write_limit;
        let own_cap = for_age.map_or(Some(seen.pct(100)), |batch| batch.cap);
        let cap = limited(limit, u64::MAX, own_cap, seen.pct(100));
        let want = for_age.map_or(0, |batch| batch.want.min(seen.now.dirty_pages));
        self.looks(seen, want, cap);
        let batch = for_age?;
        self.skips_sleep = batch.skips_sleep;
        let pages = limited(limit, batch.want, batch.cap, seen.pct(100));
        flush_until(seen, pages, Cause::Adaptive, batch.until)
    }

    /// Keeps what is gone by.
    fn looks(&mut self, seen: &Tick<'_, '_>, want: u64, cap: u64) {
        let raised = seen.io.saturating_sub(self.strategy.io(seen.now));
        self.outlook = Outlook::capped(cap, raised, want, Bound::IoCapacity);
    }

    /// Skipping a sleep after nothing could be flushed would only turn in circles.
    fn after_second(&mut self, seen: &Tick<'_, '_>, is_quiet: bool) -> MasterStep {
        self.skips_sleep &= self.flushed > 0;
        let is_round = self.ticks >= SECONDS * (SECOND_US / self.strategy.tick_us().max(1));
        let is_second = self.ticks.is_multiple_of((SECOND_US / self.strategy.tick_us()).max(1));
        if is_quiet && is_second {
            self.quiet(seen.now)
        } else if is_round {
            MasterStep::TenFlush
        } else {
            MasterStep::Sleep
        }
    }

    fn quiet(&mut self, now: &FlushSample<'_>) -> MasterStep {
        self.did_something = false;
        self.before_purge(now, MasterStep::QuietPurge, MasterStep::QuietFlush)
    }

    /// Purge in this thread, or what comes after it when others purge.
    fn before_purge(
        &mut self,
        now: &FlushSample<'_>,
        purge: MasterStep,
        next: MasterStep,
    ) -> MasterStep {
        self.synced_us = now.now_us;
        self.was_purge = false;
        if now.settings.purge_threads == 0 { purge } else { next }
    }

    /// Purges until nothing is left, however long that takes.
    fn purge(
        &mut self,
        now: &FlushSample<'_>,
        last: ActionOutcome,
    ) -> (Option<Action>, MasterStep) {
        let was_purge = std::mem::take(&mut self.was_purge);
        if was_purge && !last.has_purged {
            let is_ten = self.step == MasterStep::TenPurge;
            return (None, if is_ten { MasterStep::TenDirty } else { MasterStep::QuietFlush });
        }
        self.did_something |= was_purge;
        if now.now_us.saturating_sub(self.synced_us) > SECOND_US {
            self.synced_us = now.now_us;
            return (Some(Action::SyncRedo), self.step);
        }
        self.was_purge = true;
        (Some(Action::Purge), self.step)
    }

    /// Users are back, there is more to do, or it waits for users.
    fn after_quiet(&mut self, seen: &Tick<'_, '_>, is_quiet: bool) -> (Option<Action>, MasterStep) {
        let now = seen.now;
        if !is_quiet {
            self.begin_round(now);
            return (None, MasterStep::Sleep);
        }
        let is_dirty = seen.dirty_pct() as f64 > now.settings.max_dirty_pages_pct;
        let more = self.did_something || is_dirty;
        let next = self.quiet(now);
        let us = match (more, self.strategy.background_is_capped()) {
            (true, false) if self.flushed > 0 => return (None, next),
            (true, false) => NOTHING_US,
            _ => SECOND_US,
        };
        let until_us = now.now_us.saturating_add(us);
        (
            Some(Action::Sleep { until_us, firm: more }),
            if more { next } else { MasterStep::QuietTest },
        )
    }
}

impl<S: Strategy> FlushPolicy for MasterLoop<S> {
    fn next(&mut self, now: &FlushSample<'_>, mut last: ActionOutcome) -> Action {
        let ladder = Ladder::of(Ladder::mysql_5, now);
        self.rule = users_flush(&ladder);
        if !self.is_begun {
            self.due_us = now.now_us;
            self.begin_round(now);
        }
        self.flushed = self.flushed.saturating_add(u64::from(last.flushed));
        let raised = self.raised.look(now, ladder.capacity);
        let io = self.strategy.io(now).saturating_add(raised);
        let seen = Tick { now, ladder, io };
        // No way through the steps without an action is longer.
        for _ in 0..16 {
            let (action, next) = self.take(&seen, last);
            self.step = next;
            if let Some(action) = action {
                return action;
            }
            last = ActionOutcome::default();
        }
        Action::Sleep { until_us: now.now_us.saturating_add(SECOND_US), firm: true }
    }

    fn admit(&self) -> AdmitRule {
        self.rule
    }

    fn outlook(&self) -> Outlook {
        self.outlook
    }

    fn users_free_frames(&self) -> bool {
        true
    }
}

/// Users flush what is beyond the async limit without waiting, and twice what is beyond the sync
/// limit by waiting; they also take the checkpoints that they need.
fn users_flush(ladder: &Ladder) -> AdmitRule {
    AdmitRule {
        flush_age: ladder.async_age,
        flush_wait_age: ladder.sync_age,
        wait_excess: 2,
        work: UserWork::FlushAndCheckpoints,
        ..ladder.wall_with_checkpoints()
    }
}

/// The requests to the device: those servers counted the writes of their redo with the pages.
fn requests(now: &FlushSample<'_>) -> u64 {
    now.page_ios.saturating_add(now.redo_writes)
}

fn sync(now: &FlushSample<'_>) -> Option<Action> {
    (now.durable < now.lsn).then_some(Action::SyncRedo)
}

fn flush(seen: &Tick<'_, '_>, pages: u64) -> Option<Action> {
    flush_until(seen, pages, Cause::Background, seen.now.behind_all())
}

fn flush_until(seen: &Tick<'_, '_>, pages: u64, cause: Cause, until: Lsn) -> Option<Action> {
    let pages = u32::try_from(pages.min(seen.now.dirty_pages)).unwrap_or(u32::MAX);
    let flush = Action::Flush { pages, until, furious: false, cause, checkpoints: false };
    (pages > 0).then_some(flush)
}
