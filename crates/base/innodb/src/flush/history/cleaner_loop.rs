//! The page cleaner from MySQL 5.6 on: a thread of its own that makes one pass a second.
//!
//! Invariant: free frames come first in each pass, then the pages for age, then the rest of the
//! second is slept. How many pages, and what happens when redo runs out, is the generation's.

use super::generation::{Generation, Portion, Rest};
use super::strategy::SECOND_US;
use crate::FlushWriteLimit;

use crate::flush::redo_sync::RedoSync;
use crate::flush::write_limit::Raised;
use crate::flush::{
    Action, AdmitRule, Bound, Cause, Finished, FlushPolicy, FlushSample, Ladder, Outlook,
};

/// A pause where everything there is to write is in use, in microseconds.
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
    raised: Raised,
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
            raised: Raised::default(),
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
        // A recommendation is cut off at the cap: who reaches it would have liked more.
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
        // Who waits for frames may wake it; who waits for anything else has done so for nothing.
        let hears = !self.generation.users_free_frames() && !self.is_woken_in_vain;
        let firm = rest != Rest::Light && !hears;
        let until_us = self.due_us;
        (until_us > now.now_us).then_some(Action::Sleep { until_us, firm })
    }

    /// Pages that a pass may flush at most. The formulas keep to the settings: a greater
    /// `io_capacity_max` would ask for more at every age, not only where it caps.
    fn pages_max(&mut self, now: &FlushSample<'_>, capacity: u64) -> u64 {
        let raised = self.raised.look(now, capacity);
        match now.settings.write_limit {
            FlushWriteLimit::Free => u64::MAX,
            _ => u64::from(now.settings.io_capacity_max).saturating_add(raised),
        }
    }
}

impl<G: Generation> FlushPolicy for CleanerLoop<G> {
    fn next(&mut self, now: &FlushSample<'_>, last: Finished) -> Action {
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
            // Everything that should go is in use: without a pause it would be asked for at once.
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
