//! The page cleaner from MySQL 5.6 on: a thread of its own that makes one pass a second, and its
//! generations up to 8.4.
//!
//! Invariant: free frames come first in each pass, then the pages for age, then the rest of the
//! second is slept. How many pages, and what happens when redo runs out, is the generation's.
//! Averages and shares are whole numbers where the servers' are.

use super::master_loop::{SECOND_US, percent_of};
use crate::flush::action::{CapRaise, RedoSync};
use crate::flush::sample::Ages;
use crate::flush::{
    Action, ActionOutcome, AdmitRule, Bound, Cause, FlushPolicy, FlushSample, Ladder, Outlook,
    UserWork,
};
use crate::{FlushWriteLimit, Lsn};

// What the generations of the page cleaner differ in.

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
    /// Asleep for all of it: no signal wakes it.
    Firm,
    /// Asleep until a signal.
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

    /// Free frames are short: the cleaner flushes for them in any case.
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

/// A pause where all pages to write are in use, in microseconds.
const NOTHING_US: u64 = 1_000;

/// What the pass does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CleanerStep {
    Begin,
    Frames,
    Pages,
    Checkpoint,
    Sleep,
}

/// A page cleaner of one generation.
#[derive(Debug)]
pub(super) struct CleanerLoop<G> {
    generation: G,
    rule: AdmitRule,
    step: CleanerStep,
    /// When the next pass is due.
    due_us: u64,
    checkpoint_due_us: u64,
    /// Pages flushed for age since the last pass began, and in the pass before.
    flushed: u64,
    was_furious: bool,
    was_flush: bool,
    /// Activity at the last pass.
    commits: Option<u64>,
    is_idle: bool,
    /// It was woken before its second was over, and no frames were short.
    is_woken_in_vain: bool,
    redo_sync: RedoSync,
    raised: CapRaise,
    /// Pages that a pass may flush at most.
    cap: u64,
    outlook: Outlook,
}

impl<G: Generation> CleanerLoop<G> {
    pub fn new(generation: G) -> Self {
        Self {
            generation,
            rule: AdmitRule::wall(u64::MAX),
            step: CleanerStep::Begin,
            due_us: 0,
            checkpoint_due_us: 0,
            flushed: 0,
            was_furious: false,
            was_flush: false,
            commits: None,
            is_idle: false,
            is_woken_in_vain: false,
            redo_sync: RedoSync::default(),
            raised: CapRaise::default(),
            cap: 0,
            outlook: Outlook::default(),
        }
    }

    fn take(&mut self, now: &FlushSample<'_>, ladder: &Ladder) -> (Option<Action>, CleanerStep) {
        match self.step {
            CleanerStep::Begin if now.now_us >= self.due_us => {
                self.due_us = now.now_us.saturating_add(SECOND_US);
                self.is_woken_in_vain = false;
                (self.sync_redo(now), CleanerStep::Frames)
            }
            // It was woken: frames may be short.
            CleanerStep::Begin => {
                let frames = self.frames(now);
                self.is_woken_in_vain = frames.is_none();
                (frames, CleanerStep::Sleep)
            }
            CleanerStep::Frames => (self.frames(now), CleanerStep::Pages),
            CleanerStep::Pages => (self.pages(now, ladder), CleanerStep::Checkpoint),
            CleanerStep::Checkpoint => (self.checkpoint(now), CleanerStep::Sleep),
            CleanerStep::Sleep => (self.sleep(now, ladder), CleanerStep::Begin),
        }
    }

    fn sync_redo(&mut self, now: &FlushSample<'_>) -> Option<Action> {
        self.redo_sync.is_due(now).then_some(Action::SyncRedo)
    }

    fn frames(&mut self, now: &FlushSample<'_>) -> Option<Action> {
        let depth = u64::from(now.settings.lru_scan_depth).clamp(1, now.free_frames_most());
        if now.free_frames < depth / 2 {
            self.generation.sees_few_frames();
        }
        let missing = u32::try_from(depth.saturating_sub(now.free_frames)).unwrap_or(u32::MAX);
        (missing > 0).then_some(Action::Lru { pages: missing })
    }

    fn pages(&mut self, now: &FlushSample<'_>, ladder: &Ladder) -> Option<Action> {
        let last = self.commits.replace(now.commits);
        let flushed = std::mem::take(&mut self.flushed);
        self.is_idle = last == Some(now.commits);
        let portion = self.generation.recommend(now, ladder, flushed, self.cap);
        // A recommendation is cut off at the cap: one that reaches it would have been higher.
        let is_cut = portion.pages >= self.cap && now.dirty_pages > self.cap;
        let want = if is_cut { u64::MAX } else { 0 };
        self.outlook = Outlook::capped(self.cap, self.raised.by(), want, Bound::IoCapacityMax);
        if self.is_idle && portion.pages == 0 {
            let pct = self.generation.idle_pct(now).clamp(0.0, 100.0);
            let pages = (f64::from(now.settings.io_capacity) * pct / 100.0) as u64;
            return self.flush(now, Portion { pages, until: now.behind_all() }, Cause::Background);
        }
        self.flush(now, portion, Cause::Adaptive)
    }

    fn flush(&self, now: &FlushSample<'_>, portion: Portion, cause: Cause) -> Option<Action> {
        let pages = portion.pages.min(now.dirty_pages);
        let pages = u32::try_from(pages).unwrap_or(u32::MAX);
        let until = portion.until;
        let checkpoints = self.generation.checkpoint_s().is_none();
        let furious = cause == Cause::Sync;
        (pages > 0).then_some(Action::Flush { pages, until, furious, cause, checkpoints })
    }

    fn checkpoint(&mut self, now: &FlushSample<'_>) -> Option<Action> {
        let seconds = self.generation.checkpoint_s().unwrap_or(1);
        let moves = now.could_checkpoint() > now.checkpoint;
        if now.now_us < self.checkpoint_due_us || !moves {
            return None;
        }
        self.checkpoint_due_us = now.now_us.saturating_add(seconds * SECOND_US);
        Some(Action::Checkpoint)
    }

    fn sleep(&mut self, now: &FlushSample<'_>, ladder: &Ladder) -> Option<Action> {
        let rest = self.generation.rest(now, ladder, self.is_idle && self.flushed > 0);
        if rest == Rest::Skipped {
            self.due_us = now.now_us.saturating_add(if self.flushed > 0 { 0 } else { NOTHING_US });
        }
        // A waiter for frames may wake it; any other wake-up is for nothing.
        let hears = !self.generation.users_free_frames() && !self.is_woken_in_vain;
        let firm = rest != Rest::Light && !hears;
        let until_us = self.due_us;
        (until_us > now.now_us).then_some(Action::Sleep { until_us, firm })
    }

    /// Pages that a pass may flush at most. The formulas keep to the settings: a greater
    /// `io_capacity_max` would request more at every age, not only where it caps.
    fn pages_max(&mut self, now: &FlushSample<'_>, capacity: u64) -> u64 {
        let raised = self.raised.look(now, capacity);
        match now.settings.write_limit {
            FlushWriteLimit::Free => u64::MAX,
            _ => u64::from(now.settings.io_capacity_max).saturating_add(raised),
        }
    }
}

impl<G: Generation> FlushPolicy for CleanerLoop<G> {
    fn next(&mut self, now: &FlushSample<'_>, last: ActionOutcome) -> Action {
        let ladder = self.generation.ladder(now);
        self.rule = self.generation.rule(&ladder);
        if std::mem::take(&mut self.was_flush) {
            self.flushed = self.flushed.saturating_add(u64::from(last.flushed));
        }
        self.cap = self.pages_max(now, ladder.capacity);
        let has_stuck = std::mem::take(&mut self.was_furious) && last.flushed == 0;
        let furious = self.generation.furious(now, &ladder, self.cap);
        let furious = furious.and_then(|portion| self.flush(now, portion, Cause::Sync));
        if let Some(action) = furious.filter(|_| !has_stuck) {
            (self.was_furious, self.was_flush) = (true, true);
            return action;
        }
        if has_stuck {
            // Everything that should go is in use: without a pause it would be requested again at
            // once.
            let until_us = now.now_us.saturating_add(NOTHING_US);
            return Action::Sleep { until_us, firm: false };
        }
        // No way through the steps without an action is longer.
        for _ in 0..12 {
            let (action, next) = self.take(now, &ladder);
            self.step = next;
            if let Some(action) = action {
                self.was_flush = matches!(action, Action::Flush { .. });
                return action;
            }
        }
        Action::Sleep { until_us: now.now_us.saturating_add(NOTHING_US), firm: false }
    }

    fn admit(&self) -> AdmitRule {
        self.rule
    }

    fn outlook(&self) -> Outlook {
        self.outlook
    }

    fn users_free_frames(&self) -> bool {
        self.generation.users_free_frames()
    }
}

// What page cleaners average, in whole numbers as they do.

/// Averages over `flushing_avg_loops` passes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Averages {
    /// End of the redo and time from which the rates are taken.
    begun: (Lsn, u64),
    passes: u64,
    pages: u64,
    /// Pages flushed per second.
    pub pages_rate: u64,
    /// Redo made, in bytes per second.
    pub lsn_rate: u64,
}

/// What a sum is divided by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Over {
    /// The passes, whatever time they took: MySQL 5.6.
    Passes,
    /// The seconds that passed: from 5.7 on.
    Seconds,
}

impl Averages {
    /// These rates, at the beginning of a sum.
    #[cfg(test)]
    pub fn known(pages_rate: u64, lsn_rate: u64) -> Self {
        Averages { pages_rate, lsn_rate, ..Averages::default() }
    }

    /// The rates are taken from here on: the first look begins them and counts as no pass.
    pub fn begin(&mut self, now: &FlushSample<'_>) {
        self.begun = (now.lsn, now.now_us);
    }

    /// Takes in one pass and the pages that the one before flushed.
    pub fn pass(&mut self, now: &FlushSample<'_>, flushed: u64, over: Over) {
        let (lsn, us) = self.begun;
        let loops = u64::from(now.settings.flushing_avg_loops.max(1));
        self.passes += 1;
        self.pages = self.pages.saturating_add(flushed);
        let seconds = now.now_us.saturating_sub(us) / SECOND_US;
        let of = match over {
            Over::Passes if self.passes >= loops => loops,
            Over::Seconds if self.passes >= loops || seconds >= loops => seconds.max(1),
            _ => return,
        };
        self.pages_rate = (self.pages / of).midpoint(self.pages_rate);
        self.lsn_rate = (now.lsn.since(lsn) / of).midpoint(self.lsn_rate);
        (self.passes, self.pages) = (0, 0);
        self.begin(now);
    }
}

// From the share of dirty pages and the age of the redo to a share of `io_capacity`, in percent.

/// How the age becomes a share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AgeFactor {
    /// MySQL: `f^1.5 / 7.5`.
    Legacy,
    /// Percona: `f^2.5 / 700.5`, less below 93 percent and more above.
    HighCheckpoint,
}

impl AgeFactor {
    /// The share at `f` percent of the async limit, where the greatest rate is so many times
    /// `io_capacity`.
    fn percent(self, times: u64, f: f64) -> u64 {
        let times = times as f64;
        match self {
            AgeFactor::Legacy => (times * f * f.sqrt() / 7.5) as u64,
            AgeFactor::HighCheckpoint => (times * f * f * f.sqrt() / 700.5) as u64,
        }
    }

    /// The share for an age. The quotient of the two rates is a whole number there: with
    /// `io_capacity` above half of the maximum it is 1, and with whole percents so is the age.
    pub fn of(self, now: &FlushSample<'_>, ladder: &Ladder, whole: bool) -> u64 {
        let (age, settings) = (now.modified_age(), &now.settings);
        let begin = if settings.adaptive_flushing { ladder.low_water } else { ladder.async_age };
        if age < begin {
            return 0;
        }
        let f = age as f64 * 100.0 / ladder.async_age.max(1) as f64;
        let times = settings.io_capacity_max / settings.io_capacity.max(1);
        self.percent(u64::from(times), if whole { f.floor() } else { f })
    }
}

/// The share for dirty pages. Up to 5.6 in whole percents and only above a limit, later also at it.
pub(super) fn for_dirty(now: &FlushSample<'_>, whole: bool) -> f64 {
    let settings = &now.settings;
    let cut = |pct: f64| if whole { pct.floor() } else { pct };
    let (most, low) = (cut(settings.max_dirty_pages_pct), cut(settings.max_dirty_pages_pct_lwm));
    let dirty = cut(now.dirty_pct());
    let is_beyond = |limit: f64| if whole { dirty > limit } else { dirty >= limit };
    if most == 0.0 {
        return if now.dirty_pages > 0 { 100.0 } else { 0.0 };
    }
    if low == 0.0 {
        return if is_beyond(most) { 100.0 } else { 0.0 };
    }
    if is_beyond(low) { cut(dirty * 100.0 / (most + 1.0)) } else { 0.0 }
}

// The page cleaner of MySQL 5.6, and Percona's with its way of weighing the age.
//
// The averages over 30 passes are 0 until 30 passes were made, and what is flushed is limited by
// the redo that is made per second on average: so at first nothing is flushed for age.

/// The page cleaner of 2012.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mysql56 {
    factor: AgeFactor,
    averages: Averages,
    last: Option<Lsn>,
    requested: u64,
}

impl Mysql56 {
    pub fn new(factor: AgeFactor) -> Self {
        Self { factor, averages: Averages::default(), last: None, requested: 0 }
    }

    fn is_percona(&self) -> bool {
        self.factor == AgeFactor::HighCheckpoint
    }
}

impl Generation for Mysql56 {
    fn ladder(&self, now: &FlushSample<'_>) -> Ladder {
        Ladder::of(Ladder::mysql_5, now)
    }

    /// Past the sync limit users flush twice the excess; Percona's wait for the cleaner to do it.
    fn rule(&self, ladder: &Ladder) -> AdmitRule {
        let work =
            if self.is_percona() { UserWork::Checkpoints } else { UserWork::FlushAndCheckpoints };
        let (flush_wait_age, wait_excess) = (ladder.sync_age, 2);
        AdmitRule { flush_wait_age, wait_excess, work, ..ladder.wall_with_checkpoints() }
    }

    fn recommend(
        &mut self,
        now: &FlushSample<'_>,
        ladder: &Ladder,
        flushed: u64,
        cap: u64,
    ) -> Portion {
        let nothing = Portion { pages: 0, until: now.lsn };
        let Some(last) = self.last.replace(now.lsn) else {
            self.averages.begin(now);
            return nothing;
        };
        if now.lsn == last {
            return nothing;
        }
        self.averages.pass(now, flushed, Over::Passes);
        let Averages { pages_rate, lsn_rate, .. } = self.averages;
        let settings = &now.settings;
        let percent = (for_dirty(now, true) as u64).max(self.factor.of(now, ladder, true));
        let share = percent_of(u64::from(settings.io_capacity), percent);
        let is_urgent = self.is_percona() && now.modified_age() >= ladder.async_age;
        let pages = if is_urgent { share } else { share.midpoint(pages_rate) };
        let pages = pages.min(cap);
        let moved = now.lsn.since(last) > lsn_rate / 2;
        let times = if moved { self.requested / flushed.saturating_add(1) } else { 0 };
        self.requested = pages;
        let until = now.after_oldest(lsn_rate.saturating_mul(times.saturating_add(1)));
        Portion { pages, until }
    }

    fn furious(&mut self, _: &FlushSample<'_>, _: &Ladder, _: u64) -> Option<Portion> {
        None
    }

    /// Percona's back off until a thread of its own, which does nothing else, has freed some.
    fn users_free_frames(&self) -> bool {
        !self.is_percona()
    }

    fn rest(&self, now: &FlushSample<'_>, ladder: &Ladder, is_busy: bool) -> Rest {
        let is_urgent = self.is_percona() && now.checkpoint_age() > ladder.sync_age;
        if is_busy || is_urgent { Rest::Skipped } else { Rest::Firm }
    }

    fn idle_pct(&self, _: &FlushSample<'_>) -> f64 {
        100.0
    }

    fn checkpoint_s(&self) -> Option<u64> {
        Some(7)
    }
}

// The page cleaner of MySQL 5.7, and that of 8.0.30 and 8.4.
//
// Three terms are averaged: the share of `io_capacity`, the pages flushed so far, and the pages
// that hold the redo of the next three seconds.

/// Seconds of redo that are looked ahead.
const AHEAD: u64 = 3;

/// The three terms of a sum, in pages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    pub share: u64,
    pub average: u64,
    pub for_redo: u64,
}

impl Terms {
    /// Their mean, at most so many pages.
    pub fn mean(self, most: u64) -> u64 {
        let sum = self.share.saturating_add(self.average).saturating_add(self.for_redo);
        (sum / 3).min(most)
    }
}

/// Pages per second that free as much redo as is made.
pub(super) fn pages_for_redo(now: &FlushSample<'_>, lsn_rate: u64) -> u64 {
    let target = now.after_oldest(lsn_rate.saturating_mul(AHEAD));
    (Ages::of(now).pages_before(target) as u64 / AHEAD).max(1)
}

/// Whose limits, and what happens at them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    /// Users wait at the sync limit until the cleaner has flushed the excess.
    V57,
    /// Users wait for the checkpoint only; the cleaner flushes in small rounds.
    V84,
}

/// The page cleaner with a coordinator.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mysql57 {
    version: Version,
    averages: Averages,
    last: Option<Lsn>,
}

impl Mysql57 {
    pub fn new(version: Version) -> Self {
        Self { version, averages: Averages::default(), last: None }
    }

    fn is_84(&self) -> bool {
        self.version == Version::V84
    }
}

impl Generation for Mysql57 {
    fn ladder(&self, now: &FlushSample<'_>) -> Ladder {
        Ladder::of(if self.is_84() { Ladder::mysql_8 } else { Ladder::mysql_5 }, now)
    }

    fn rule(&self, ladder: &Ladder) -> AdmitRule {
        if self.is_84() {
            // A thread that passes the sync limit wakes the cleaner and continues.
            return AdmitRule { flush_age: ladder.sync_age, ..ladder.wall() };
        }
        let (flush_wait_age, work) = (ladder.sync_age, UserWork::Checkpoints);
        AdmitRule { flush_wait_age, work, ..ladder.wall_with_checkpoints() }
    }

    fn recommend(
        &mut self,
        now: &FlushSample<'_>,
        ladder: &Ladder,
        flushed: u64,
        cap: u64,
    ) -> Portion {
        let nothing = Portion { pages: 0, until: now.lsn };
        let Some(last) = self.last.replace(now.lsn) else {
            self.averages.begin(now);
            return nothing;
        };
        if now.lsn == last {
            return nothing;
        }
        self.averages.pass(now, flushed, Over::Seconds);
        let most = u64::from(now.settings.io_capacity_max);
        let for_age = AgeFactor::Legacy.of(now, ladder, !self.is_84());
        let percent = (for_dirty(now, false) as u64).max(for_age);
        let for_redo = pages_for_redo(now, self.averages.lsn_rate).min(most.saturating_mul(2));
        let share = percent_of(u64::from(now.settings.io_capacity), percent);
        let terms = Terms { share, average: self.averages.pages_rate, for_redo };
        Portion { pages: terms.mean(cap), until: now.behind_all() }
    }

    fn furious(&mut self, now: &FlushSample<'_>, ladder: &Ladder, cap: u64) -> Option<Portion> {
        let excess = now.modified_age().checked_sub(ladder.sync_age).filter(|over| *over > 0)?;
        if !now.settings.flush_sync {
            return None;
        }
        let ahead = self.averages.lsn_rate.saturating_mul(AHEAD);
        let until = now.after_oldest(excess.saturating_add(ahead).saturating_add(1));
        if !self.is_84() {
            return Some(Portion { pages: u64::MAX, until });
        }
        let most = cap.saturating_mul(2);
        let pages = (Ages::of(now).pages_before(until) as u64).min(most);
        Some(Portion { pages: pages.max(u64::from(now.settings.io_capacity)), until })
    }

    fn idle_pct(&self, now: &FlushSample<'_>) -> f64 {
        if self.is_84() { now.settings.idle_flush_pct } else { 100.0 }
    }

    fn checkpoint_s(&self) -> Option<u64> {
        (!self.is_84()).then_some(7)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_known_before_all_passes_were_made() {
        let after = |passes: u64, step_us: u64, over: Over| {
            let mut averages = Averages::default();
            let at = |step: u64| FlushSample {
                now_us: 7 * SECOND_US + step * step_us,
                lsn: Lsn(5_000 + step * 600),
                ..FlushSample::default()
            };
            averages.begin(&at(0));
            (1..=passes).for_each(|step| averages.pass(&at(step), 90, over));
            (averages.pages_rate, averages.lsn_rate)
        };
        assert_eq!(after(29, SECOND_US, Over::Passes), (0, 0));
        assert_eq!(after(30, SECOND_US, Over::Passes), (45, 300));
        assert_eq!(after(30, SECOND_US / 10, Over::Passes), (45, 300), "time is not checked");
        assert_eq!(after(30, SECOND_US / 2, Over::Seconds), (90, 600), "15 seconds");
        assert_eq!(after(15, 2 * SECOND_US, Over::Seconds), (22, 150), "30 seconds");
    }
}

#[cfg(test)]
mod percent_tests {
    use super::*;
    use crate::flush::FlushSettings;

    #[test]
    fn the_factors_are_the_known_curves() {
        let curve = |factor: AgeFactor| {
            [10.0, 25.0, 50.0, 75.0, 90.0, 100.0].map(|f| factor.percent(10, f))
        };
        assert_eq!(curve(AgeFactor::Legacy), [42, 166, 471, 866, 1138, 1333]);
        assert_eq!(curve(AgeFactor::HighCheckpoint), [4, 44, 252, 695, 1096, 1427]);
    }

    #[test]
    fn dirty_pages_count_from_their_limits() {
        let of = |dirty_pages: u64, lwm: f64, whole: bool| {
            let settings = FlushSettings {
                max_dirty_pages_pct: 75.0,
                max_dirty_pages_pct_lwm: lwm,
                ..FlushSettings::default()
            };
            let frames = 1000;
            for_dirty(
                &FlushSample { dirty_pages, frames, settings, ..FlushSample::default() },
                whole,
            )
        };
        assert_eq!((of(750, 0.0, true), of(760, 0.0, true)), (0.0, 100.0));
        assert_eq!((of(749, 0.0, false), of(750, 0.0, false)), (0.0, 100.0));
        assert_eq!((of(100, 10.0, true), of(380, 10.0, true)), (0.0, 50.0));
        assert_eq!(of(385, 10.0, true), 50.0, "cut off");
    }
}

#[cfg(test)]
mod mysql_56_tests {
    use super::*;
    use crate::flush::FlushSettings;

    /// What is recommended at half of the async limit, with 500 pages per second on average.
    fn at_half(factor: AgeFactor) -> Portion {
        let settings =
            FlushSettings { io_capacity: 200, io_capacity_max: 2000, ..FlushSettings::default() };
        let (lsn, oldest) = (Lsn(10_000), Some(Lsn(9_500)));
        let now = FlushSample { lsn, oldest, settings, frames: 10, ..FlushSample::default() };
        let ladder = Ladder { async_age: 1000, low_water: 100, ..Ladder::default() };
        let averages = Averages::known(500, 60);
        let last = Some(Lsn(9_900));
        let mut cleaner = Mysql56 { averages, last, requested: 60, ..Mysql56::new(factor) };
        cleaner.recommend(&now, &ladder, 19, 2000)
    }

    #[test]
    fn half_of_the_limit_asks_for_the_mean_of_share_and_average() {
        let legacy = at_half(AgeFactor::Legacy);
        assert_eq!((legacy.pages, legacy.until), (721, Lsn(9_500 + 60 * 4)));
        assert_eq!(at_half(AgeFactor::HighCheckpoint).pages, 502);
    }

    #[test]
    fn the_first_look_begins_the_first_window() {
        let mut cleaner = Mysql56::new(AgeFactor::Legacy);
        let ladder = Ladder { async_age: 1000, low_water: 100, ..Ladder::default() };
        for look in 0..=30 {
            assert_eq!(cleaner.averages.lsn_rate, 0, "before look {look}");
            let now = FlushSample { lsn: Lsn(9_000 + look * 600), ..FlushSample::default() };
            cleaner.recommend(&now, &ladder, 0, 2000);
        }
        assert_eq!(cleaner.averages.lsn_rate, 300, "half of what thirty passes made each");
    }
}

#[cfg(test)]
mod mysql_57_tests {
    use super::*;
    use crate::flush::FlushSettings;

    #[test]
    fn half_of_the_limit_asks_for_the_mean_of_three() {
        let settings =
            FlushSettings { io_capacity: 200, io_capacity_max: 2000, ..FlushSettings::default() };
        let (lsn, oldest) = (Lsn(10_000), Some(Lsn(9_500)));
        // 900 pages over the redo of three seconds.
        let ages = [(Lsn(9_500), 900), (Lsn(9_800), 600)];
        let now = FlushSample {
            lsn,
            oldest,
            settings,
            frames: 10_000,
            age_histogram: &ages,
            ..FlushSample::default()
        };
        let ladder = Ladder { async_age: 1000, low_water: 100, ..Ladder::default() };
        let averages = Averages::known(500, 100);
        for version in [Version::V57, Version::V84] {
            let last = Some(Lsn(9_900));
            let mut cleaner = Mysql57 { version, averages, last };
            let portion = cleaner.recommend(&now, &ladder, 0, 2000);
            assert_eq!((portion.pages, portion.until), (580, Lsn(10_001)), "{version:?}");
        }
    }

    #[test]
    fn furious_flushing_is_whole_in_57_and_in_rounds_in_84() {
        let (lsn, oldest) = (Lsn(10_000), Some(Lsn(9_000)));
        let ages = [(Lsn(9_000), 90_000)];
        let now = FlushSample { lsn, oldest, age_histogram: &ages, ..FlushSample::default() };
        let ladder = Ladder { sync_age: 900, ..Ladder::default() };
        let of = |version: Version| Mysql57::new(version).furious(&now, &ladder, 20_000).unwrap();
        let until = Lsn(9_101);
        assert_eq!(of(Version::V57), Portion { pages: u64::MAX, until });
        assert_eq!(of(Version::V84), Portion { pages: 10_000, until }, "at least io_capacity");
        let settings = FlushSettings { flush_sync: false, ..now.settings };
        let now = FlushSample { settings, ..now };
        assert_eq!(Mysql57::new(Version::V84).furious(&now, &ladder, 20_000), None);
    }
}
