//! The default policy: feedback on the age of the oldest change.
//!
//! It holds that age at a set-point below the async limit by letting pages leave at the rate at
//! which redo comes, smoothed over the pages that are still to come due. Free frames come first
//! when they are short. Where the device cannot follow, writers are slowed down smoothly, and
//! stopped only at the limit of the redo.
//!
//! It does not wait for what it ordered: frames and the oldest pages are written side by side, as
//! many at once as the depth allows. Nothing here counts on how many pages an order wrote or how
//! long it took: what was requested and did not happen is requested again, since the next sample
//! shows it.

mod sustained;

use crate::Lsn;
use crate::flush::action::RedoSync;
use crate::flush::average::Average;
use crate::flush::sample::Ages;
use crate::flush::{
    Action, ActionOutcome, AdmitRule, AgeLimits, BatchCost, Bound, Cause, DelayedRate, Depth,
    FlushPolicy, FlushSample, Outlook, RedoRate, Round, WritePace,
};
use sustained::SustainableRedo;

#[cfg(test)]
mod tests;

/// Redo freed by a checkpoint alone that is worth one, as a share of the set-point.
const CHECKPOINTS_TO_SET: f64 = 32.0;

/// Scale of delays before anything was measured, and its limits, in microseconds.
const SPAN_US_FIRST: u64 = 100_000;
const SPAN_US_MIN: f64 = 50.0;
const SPAN_US_MAX: f64 = 10_000_000.0;

/// Delays settle at this share of their scale, which is a fifth of the way from the async limit to
/// the maximum.
const DELAY_AT_SETTLED: f64 = 0.25;

/// After an action that found nothing to do, this long passes at least, in microseconds.
const NOTHING_US: f64 = 1_000.0;

/// While an order is written and the next one waits for it, it is checked so often, and at most and
/// at least after these times, in microseconds.
const LOOKS_PER_ORDER: f64 = 8.0;
const ORDER_LOOK_US_MIN: f64 = 50.0;
const ORDER_LOOK_US_MAX: f64 = 1_000.0;

/// Where writers are held back, the device is given this many times what it wrote.
const HELD_BACK: f64 = 1.1;

/// Sleep while nothing changes and nothing is dirty, in microseconds.
const IDLE_SLEEP_US: f64 = 1_000_000.0;

/// Holds the age of the oldest change below the async limit.
#[derive(Clone, Debug)]
pub struct Steady {
    rule: AdmitRule,
    redo: RedoRate,
    drain: DrainRate,
    round: Round,
    cost: BatchCost,
    depth: Depth,
    order: ListOrder,
    sustained: SustainableRedo,
    supply: Supply,
    redo_sync: RedoSync,
    /// Time and checkpoint of the last sample.
    last: Option<(u64, Lsn)>,
    last_action: Action,
    outlook: Outlook,
    /// Pages that should have left and have not.
    credit: f64,
}

impl Default for Steady {
    fn default() -> Steady {
        Steady {
            rule: AdmitRule::wall(u64::MAX),
            redo: RedoRate::default(),
            drain: DrainRate::default(),
            round: Round::default(),
            cost: BatchCost::default(),
            depth: Depth::default(),
            order: ListOrder::default(),
            sustained: SustainableRedo::default(),
            supply: Supply::default(),
            redo_sync: RedoSync::default(),
            last: None,
            last_action: Action::Sleep { until_us: 0, firm: false },
            outlook: Outlook::default(),
            credit: 0.0,
        }
    }
}

impl FlushPolicy for Steady {
    fn next(&mut self, now: &FlushSample<'_>, last: ActionOutcome) -> Action {
        let pace = self.observe(now, last);
        let most_per_s = self.most_per_s(now);
        let mut need = Need::of(now, &pace, &self.redo, most_per_s);
        self.sustained.observe(now, most_per_s, self.redo.bytes_per_s());
        if self.sustained.holds_back() && now.dirty_pages > 0 {
            // Threads are held back by the device then, which is at its best.
            let most_per_s = most_per_s.unwrap_or(f64::INFINITY);
            need.pages_per_s = need.pages_per_s.max(most_per_s * HELD_BACK);
        }
        self.outlook = self.outlook_at(now, &need);
        self.rule = self.rule_for(now);
        self.depth.observe(now, need.pages_per_s, self.sustained.spare_us());
        self.gather(now, &pace, &need);
        self.last = Some((now.now_us, now.checkpoint));
        self.last_action = self.choose(now, last, &pace, &need);
        self.last_action
    }

    fn admit(&self) -> AdmitRule {
        self.rule
    }

    fn outlook(&self) -> Outlook {
        self.outlook
    }

    fn goes_on(&self) -> bool {
        true
    }

    fn write_pace(&self) -> WritePace {
        self.depth.write_pace()
    }
}

impl Steady {
    /// Pages per second that the device writes, and may when redo gets short; nothing before the
    /// first batch.
    fn most_per_s(&self, now: &FlushSample<'_>) -> Option<f64> {
        let cap = match now.settings.flush_sync {
            true => f64::INFINITY,
            false => f64::from(now.settings.io_capacity_max.max(1)),
        };
        let paced = self.depth.proven_pages_per_s();
        Some(self.cost.pages_per_s()?.min(paced).min(cap))
    }

    /// What the device was seen to write, and whether that or `io_capacity_max` is less than is
    /// needed.
    fn outlook_at(&self, now: &FlushSample<'_>, need: &Need) -> Outlook {
        let paced = self.depth.proven_pages_per_s();
        let Some(device) = self.cost.pages_per_s().map(|pages| pages.min(paced)) else {
            return Outlook::default();
        };
        let cap = f64::from(now.settings.io_capacity_max.max(1));
        let is_capped = !now.settings.flush_sync && cap < device;
        let bound = if need.pages_per_s < if is_capped { cap } else { device } {
            Bound::Nothing
        } else if is_capped {
            Bound::IoCapacityMax
        } else {
            Bound::Device
        };
        Outlook { pages_per_s: device as u64, raised_pages_per_s: 0, bound }
    }

    /// Takes the sample and the result of the last action into the averages.
    fn observe(&mut self, now: &FlushSample<'_>, last: ActionOutcome) -> Pace {
        // The pace follows the latest rate when that is greater: a small redo is full long before
        // an average over the pace of a quiet time would notice.
        let rate_bytes = rate_bytes(now);
        let latest = self.redo.latest_bytes_per_s(now.now_us, now.lsn, rate_bytes);
        let pace = Pace::of(now, self.redo.bytes_per_s().max(latest));
        self.redo.observe(now.now_us, now.lsn, pace.reach_us, rate_bytes);
        self.drain.observe(now.now_us, now.checkpoint, pace.drain_reach_us);
        let seen = self.redo.bytes_per_s().max(latest);
        self.observe_round(now, seen, pace.drain_reach_us);
        if let Some((pages, took_us)) = self.order.observe(now, last) {
            self.cost.observe(pages, took_us);
        }
        self.supply.observe(now, last);
        Pace::of(now, self.redo.bytes_per_s())
    }

    /// Takes the delay at the end of the time since the last look: the checkpoint moves at looks.
    fn observe_round(&mut self, now: &FlushSample<'_>, bytes_per_s: f64, reach_us: u64) {
        let Some((last_us, last_checkpoint)) = self.last else { return };
        let delay_us = self.rule.delay_us(now.lsn.since(last_checkpoint));
        let dt_us = now.now_us.saturating_sub(last_us);
        let seen = DelayedRate { bytes_per_s, delay_us, dt_us };
        self.round.observe(seen, width(now) * DELAY_AT_SETTLED, reach_us);
    }

    /// Lets what is needed grow by the time that passed, up to what two periods need.
    fn gather(&mut self, now: &FlushSample<'_>, pace: &Pace, need: &Need) {
        if need.pages_per_s.is_infinite() {
            self.credit = f64::INFINITY;
            return;
        }
        let period_us = pace.period_us(need.pages_per_s);
        // The first look finds what opening left: it does not wait for a period to pass.
        let passed_us =
            self.last.map_or(period_us, |(last_us, _)| now.now_us.saturating_sub(last_us) as f64);
        let most = 2.0 * need.pages_per_s * period_us / 1e6;
        self.credit = (self.credit + need.pages_per_s * passed_us / 1e6).min(most);
    }

    fn choose(
        &mut self,
        now: &FlushSample<'_>,
        last: ActionOutcome,
        pace: &Pace,
        need: &Need,
    ) -> Action {
        if self.redo_sync.is_due(now) {
            return Action::SyncRedo;
        }
        let due = self.due_pages(pace, need);
        let was_lru = matches!(self.last_action, Action::Lru { .. });
        // Frames come first, but not twice in a row while redo waits as well.
        let is_turn = !was_lru || (due == 0.0 && last.freed > 0);
        if is_turn && let Some(pages) = self.supply.wanted(now) {
            return Action::Lru { pages };
        }
        // Pages that could not be written, being in use, and a checkpoint that did not help are not
        // requested again without a pause.
        let flushed_nothing = self.order.takes_fruitless();
        if !flushed_nothing && due > 0.0 && self.order.has_room(now) {
            return self.flush(now, pace, need, due);
        }
        let was_checkpoint = self.last_action == Action::Checkpoint;
        if !was_checkpoint && self.wants_checkpoint(now, pace) {
            return Action::Checkpoint;
        }
        self.sleep(now, pace, need, flushed_nothing || was_checkpoint)
    }

    /// Pages to flush now: 0 until a period's worth has gathered.
    fn due_pages(&self, pace: &Pace, need: &Need) -> f64 {
        let batch = need.pages_per_s * pace.period_us(need.pages_per_s) / 1e6;
        if need.pages_per_s > 0.0 && self.credit >= batch { self.credit.max(1.0) } else { 0.0 }
    }

    fn flush(&mut self, now: &FlushSample<'_>, pace: &Pace, need: &Need, due: f64) -> Action {
        // What the device writes in the time of a batch, so that the checkpoint moves often.
        let most = self.cost.pages_in(pace.batch_us).unwrap_or(PAGES_WORTH_SYNCS);
        let pages = due.min(most).clamp(1.0, f64::from(u32::MAX)) as u32;
        let until = match need.cause {
            Cause::Background => now.behind_all(),
            _ => Ages::of(now).lsn_after(f64::from(pages)),
        };
        self.credit = (self.credit - f64::from(pages)).max(0.0);
        self.order.begin(pages);
        let (furious, checkpoints) = (need.is_furious(), true);
        Action::Flush { pages, until, furious, cause: need.cause, checkpoints }
    }

    /// Whether a checkpoint alone would free enough, or is all that is left to do.
    fn wants_checkpoint(&self, now: &FlushSample<'_>, pace: &Pace) -> bool {
        let freed = now.could_checkpoint().since(now.checkpoint) as f64;
        freed >= pace.set_age / CHECKPOINTS_TO_SET || (freed > 0.0 && is_idle(&self.redo))
    }

    fn sleep(&self, now: &FlushSample<'_>, pace: &Pace, need: &Need, empty: bool) -> Action {
        let mut us = pace.loop_us;
        if is_idle(&self.redo) && now.dirty_pages == 0 {
            us = IDLE_SLEEP_US.min(now.settings.flush_log_at_timeout_us as f64).max(us);
        } else if empty {
            us = us.min(NOTHING_US);
        } else if self.due_pages(pace, need) > 0.0 {
            // Only the order that is being written is in the way, and its end wakes the cleaner.
            us = us.min(self.order_look_us(now));
        } else if need.pages_per_s > 0.0 {
            let batch = need.pages_per_s * pace.period_us(need.pages_per_s) / 1e6;
            us = us.min((batch - self.credit).max(0.0) / need.pages_per_s * 1e6);
        }
        let until_us = now.now_us.saturating_add(us.max(1.0) as u64);
        Action::Sleep { until_us, firm: false }
    }

    /// Time until the next look at the pages that are being written, in microseconds.
    fn order_look_us(&self, now: &FlushSample<'_>) -> f64 {
        let pages = f64::from(now.lanes.list_pages);
        let took_us = self.cost.pages_per_s().map_or(0.0, |per_s| pages * 1e6 / per_s.max(1.0));
        (took_us / LOOKS_PER_ORDER).clamp(ORDER_LOOK_US_MIN, ORDER_LOOK_US_MAX)
    }

    /// Delays from the async limit to the maximum, on the scale of what draining that takes.
    fn rule_for(&self, now: &FlushSample<'_>) -> AdmitRule {
        let limits = now.limits;
        let drain = self.drain.bytes_per_s();
        let bytes = self.round.bytes().map_or(width(now), |round| round / DELAY_AT_SETTLED);
        let span_us = if drain > 0.0 {
            (bytes * 1e6 / drain).clamp(SPAN_US_MIN, SPAN_US_MAX) as u64
        } else {
            SPAN_US_FIRST
        };
        let rule = AdmitRule::wall(limits.max_age);
        let delay_age = self.sustained.delay_age(&limits);
        AdmitRule { delay_age, span_us, pace: self.sustained.pace(), ..rule }
    }
}

/// Redo between the async limit and the maximum, in bytes.
fn width(now: &FlushSample<'_>) -> f64 {
    now.limits.max_age.saturating_sub(now.limits.async_age) as f64
}

/// Free frames cover the demand of this long, in microseconds: a batch that writes cold pages.
const COVERED_US: f64 = 50_000.0;

/// How far the average of the demand reaches back, in microseconds.
const REACH_US: u64 = 200_000;

/// More frames are freed when fewer than this share of the wanted ones is left.
const REFILL_SHARE: f64 = 0.75;

/// The most frames freed in one action, so that redo is checked in between.
const FRAMES_MAX: f64 = 4096.0;

/// Watches the free frames.
#[derive(Clone, Copy, Debug, Default)]
struct Supply {
    demand: FrameDemand,
}

impl Supply {
    /// Takes in a sample and what the last action freed.
    pub fn observe(&mut self, now: &FlushSample<'_>, last: ActionOutcome) {
        self.demand.observe(now.now_us, now.free_frames, u64::from(last.freed), REACH_US);
    }

    /// Frames to free now, when they are short.
    pub fn wanted(&self, now: &FlushSample<'_>) -> Option<u32> {
        let most = now.free_frames_most() as f64;
        let depth = f64::from(now.settings.lru_scan_depth);
        let covered = self.demand.frames_per_s() * COVERED_US / 1e6;
        let target = depth.max(covered).min(most);
        let free = now.free_frames as f64 + f64::from(now.lanes.cold_frames);
        let is_short = free < target * REFILL_SHARE;
        is_short.then(|| (target - free).clamp(1.0, FRAMES_MAX) as u32)
    }
}

/// Frames taken from the free ones per second, averaged.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FrameDemand {
    last: Option<(u64, u64)>,
    average: Average,
}

impl FrameDemand {
    /// Takes in the free frames at a time, and how many became free since the last time.
    pub fn observe(&mut self, now_us: u64, free_frames: u64, freed: u64, reach_us: u64) {
        if let Some((last_us, last_free)) = self.last {
            let dt_us = now_us.saturating_sub(last_us);
            let taken = last_free.saturating_add(freed).saturating_sub(free_frames);
            if dt_us == 0 {
                return;
            }
            self.average.take(taken as f64 * 1e6 / dt_us as f64, dt_us, reach_us);
        }
        self.last = Some((now_us, free_frames));
    }

    /// Frames per second.
    #[must_use]
    pub fn frames_per_s(&self) -> f64 {
        self.average.value()
    }
}

/// Redo freed per second, averaged.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DrainRate {
    last: Option<(u64, Lsn)>,
    average: Average,
}

impl DrainRate {
    /// Takes in the checkpoint at a time; `reach_us` is how far the average reaches back.
    pub fn observe(&mut self, now_us: u64, checkpoint: Lsn, reach_us: u64) {
        if let Some((last_us, last)) = self.last {
            let dt_us = now_us.saturating_sub(last_us);
            if dt_us == 0 {
                return;
            }
            let bytes = checkpoint.since(last);
            self.average.take(bytes as f64 * 1e6 / dt_us as f64, dt_us, reach_us);
        }
        self.last = Some((now_us, checkpoint));
    }

    /// Redo freed, in bytes per second of time.
    #[must_use]
    pub fn bytes_per_s(&self) -> f64 {
        self.average.value()
    }
}

/// Pages that were ordered last.
#[derive(Clone, Copy, Debug, Default)]
struct ListOrder {
    pages: u32,
    /// What was written since then, and how long that took.
    written: u32,
    took_us: u64,
    is_open: bool,
    /// Nothing was written, and no failure was reported.
    is_fruitless: bool,
}

impl ListOrder {
    /// So many pages are ordered.
    pub fn begin(&mut self, pages: u32) {
        let is_added = self.is_open;
        *self = Self {
            pages: if is_added { self.pages.saturating_add(pages) } else { pages },
            is_open: true,
            is_fruitless: false,
            ..if is_added { *self } else { Self::default() }
        };
    }

    /// Takes what was done since the last look. Once everything is, or nothing more was there to
    /// do: pages and time of it.
    pub fn observe(&mut self, now: &FlushSample<'_>, last: ActionOutcome) -> Option<(u32, u64)> {
        if !self.is_open {
            return None;
        }
        self.written = self.written.saturating_add(last.flushed);
        self.took_us = self.took_us.saturating_add(last.took_us);
        if now.lanes.list_pages > 0 && self.written < self.pages {
            return None;
        }
        let done = (self.written, self.took_us);
        *self = Self { is_fruitless: self.written == 0, ..Self::default() };
        Some(done)
    }

    /// Whether an order came to its end that wrote nothing; once.
    pub fn takes_fruitless(&mut self) -> bool {
        std::mem::take(&mut self.is_fruitless)
    }

    /// Whether more may be ordered: the disk always has the next pages at hand, and little stands
    /// before what the next look finds more urgent.
    pub fn has_room(&self, now: &FlushSample<'_>) -> bool {
        !self.is_open || now.lanes.list_pages <= self.pages / 2
    }
}

// How many pages per second should leave, and why.

/// Without any redo for this long the engine is idle, in microseconds.
const IDLE_US: u64 = 1_000_000;

/// Without a low-water mark, flushing for the share of dirty pages begins at this share of the
/// maximum.
const DIRTY_BEGIN_SHARE: f64 = 0.875;

/// What should be flushed.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Need {
    /// Pages per second; without bound when furious.
    pub pages_per_s: f64,
    /// Why.
    pub cause: Cause,
}

impl Need {
    /// The greatest of all needs.
    /// `most_per_s` is what the device is known to write, in pages per second.
    pub fn of(
        now: &FlushSample<'_>,
        pace: &Pace,
        redo: &RedoRate,
        most_per_s: Option<f64>,
    ) -> Need {
        if now.dirty_pages == 0 {
            return Need { pages_per_s: 0.0, cause: Cause::Background };
        }
        let cap = f64::from(now.settings.io_capacity_max.max(1));
        let age = now.modified_age() as f64;
        if now.settings.flush_sync && age >= now.limits.sync_age as f64 {
            return Need { pages_per_s: f64::INFINITY, cause: Cause::Sync };
        }
        let for_age = for_age(now, pace, redo, most_per_s).min(cap * stretch(now));
        let background = for_dirty(now).max(for_idle(now, redo)).min(cap);
        if for_age >= background {
            return Need { pages_per_s: for_age, cause: Cause::Adaptive };
        }
        Need { pages_per_s: background, cause: Cause::Background }
    }

    /// Whether redo is about to run out.
    pub fn is_furious(&self) -> bool {
        self.cause == Cause::Sync
    }
}

/// Whether nothing has changed for a while.
fn is_idle(redo: &RedoRate) -> bool {
    redo.still_us() >= IDLE_US
}

/// How far ahead deadlines count, as a share of the time to fill.
const HORIZON: f64 = 0.5;

/// Share of what the device writes from which on all deadlines count.
const CATCHES_UP: f64 = 0.7;

/// Pages per second that hold the age.
fn for_age(now: &FlushSample<'_>, pace: &Pace, redo: &RedoRate, most_per_s: Option<f64>) -> f64 {
    let age = now.modified_age() as f64;
    let async_age = now.limits.async_age as f64;
    let cap = f64::from(now.settings.io_capacity_max.max(1));
    if age >= async_age {
        // Past the async limit writers are slowed down, so their rate does not show what is needed:
        // everything that is allowed goes into freeing redo.
        return f64::INFINITY;
    }
    let low = now.limits.capacity as f64 * now.settings.adaptive_flushing_lwm / 100.0;
    if !now.settings.adaptive_flushing {
        return 0.0;
    }
    let is_low = age < low.min(pace.set_age);
    let late_us = (pace.fill_us / 16.0).clamp(pace.loop_us, 1e6);
    let rate = |horizon| Ages::of(now).rate_for(pace.set_age, redo.bytes_per_s(), late_us, horizon);
    // Most pages that load dirties at first come due together. What the device could not catch up
    // with later has to begin now; what it can may well be changed again.
    let all = rate(1.0);
    let is_much = most_per_s.map_or(!is_low, |most| all >= most * CATCHES_UP);
    let held = match (is_much, is_low) {
        (true, _) => all,
        (false, true) => return 0.0,
        (false, false) => rate(HORIZON),
    };
    // Without a step to what is done past the async limit; of no weight where the age is held.
    let over = ((age - pace.set_age) / (async_age - pace.set_age).max(1.0)).max(0.0);
    held.max(cap * over.powi(3))
}

/// By how much the cap is exceeded: not at all on three quarters of the way from the async to the
/// sync limit, without bound at the sync limit.
fn stretch(now: &FlushSample<'_>) -> f64 {
    if !now.settings.flush_sync {
        return 1.0;
    }
    let sync_age = now.limits.sync_age as f64;
    let begin = now.limits.async_age as f64 * 0.25 + sync_age * 0.75;
    let left = (sync_age - now.modified_age() as f64) / (sync_age - begin).max(1.0);
    1.0 / left.clamp(1e-3, 1.0)
}

/// Pages per second for the share of dirty pages: nothing at the low-water mark, `io_capacity` at
/// the maximum, `io_capacity_max` when all are dirty.
fn for_dirty(now: &FlushSample<'_>) -> f64 {
    let settings = &now.settings;
    let dirty_pct = now.dirty_pct();
    let most = settings.max_dirty_pages_pct;
    let begin = match settings.max_dirty_pages_pct_lwm {
        low if low > 0.0 => low.min(most),
        _ => most * DIRTY_BEGIN_SHARE,
    };
    let share = |from: f64, to: f64| ((dirty_pct - from) / (to - from).max(1e-9)).clamp(0.0, 1.0);
    let capacity = f64::from(settings.io_capacity);
    let beyond = (f64::from(settings.io_capacity_max) - capacity).max(0.0);
    capacity * share(begin, most) + beyond * share(most, 100.0)
}

/// Pages per second while nothing changes.
fn for_idle(now: &FlushSample<'_>, redo: &RedoRate) -> f64 {
    if !is_idle(redo) {
        return 0.0;
    }
    f64::from(now.settings.io_capacity) * now.settings.idle_flush_pct / 100.0
}

// The times of the control loop, all taken from how long the redo takes to fill.
//
// A redo of 64 KiB fills in milliseconds, one of 2 GiB in minutes: with every time a share of
// that, one policy behaves alike on both.

/// The age that is held lies this share of the way between the async limit and the maximum below
/// the async limit: far enough for the wobble of batches, near enough that pages gather changes
/// before they are written.
const SET_SHARE: f64 = 0.45;

/// A loop is at most this share of the time to fill, so that a batch moves the age by little.
const LOOPS_TO_FILL: f64 = 32.0;
const LOOP_US_MIN: f64 = 500.0;
const LOOP_US_MAX: f64 = 100_000.0;

/// Averages reach back at most this share of the time to fill: a load that changes is followed
/// well before it has filled the redo.
const REACHES_TO_FILL: f64 = 4.0;

/// What flushing frees is averaged over this many times the time to fill. Pages flushed while redo
/// is slow are dirtied again close together, and come due close together when redo of that time is
/// the oldest: a scale of delays that followed the drain faster would keep such a wave going.
const DRAIN_REACH_FILLS: f64 = 2.0;
const DRAIN_REACH_US_MAX: f64 = 60_000_000.0;

/// A batch should take about this share of the time to fill, in microseconds: after it the
/// checkpoint moves.
const BATCH_US_MIN: f64 = 1_000.0;
const BATCH_US_MAX: f64 = 50_000.0;
const BATCHES_TO_FILL: f64 = 16.0;

/// A rate of redo is measured over at least this share of the set-point.
const RATES_TO_SET: f64 = 64.0;

/// Time to fill when no redo is produced, in microseconds: about eleven days.
const FILL_US_MAX: f64 = 1e12;

/// The set-point and the times of one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Pace {
    /// Age of the oldest change that is held, in bytes.
    pub set_age: f64,
    /// Time in which redo of that age is produced, in microseconds.
    pub fill_us: f64,
    /// Time between two looks, in microseconds.
    pub loop_us: f64,
    /// How far averages reach back, in microseconds.
    pub reach_us: u64,
    /// How far the average of what flushing frees reaches back, in microseconds.
    pub drain_reach_us: u64,
    /// How long a batch should take at most, in microseconds.
    pub batch_us: f64,
}

/// The least redo of which a rate is taken, in bytes.
fn rate_bytes(now: &FlushSample<'_>) -> f64 {
    set_age(&now.limits) / RATES_TO_SET
}

fn set_age(limits: &AgeLimits) -> f64 {
    let width = limits.max_age.saturating_sub(limits.async_age) as f64;
    (limits.async_age as f64 - width * SET_SHARE).max(1.0)
}

impl Pace {
    /// The pace at a rate of redo in bytes per second.
    pub fn of(now: &FlushSample<'_>, redo_bytes_per_s: f64) -> Pace {
        let set_age = set_age(&now.limits);
        let fill_us = (set_age * 1e6 / redo_bytes_per_s.max(1e-3)).min(FILL_US_MAX);
        let loop_us = (fill_us / LOOPS_TO_FILL).clamp(LOOP_US_MIN, LOOP_US_MAX);
        let loops = f64::from(now.settings.flushing_avg_loops.max(1));
        let reach_us = (loops * loop_us).min(fill_us / REACHES_TO_FILL).max(loop_us) as u64;
        let batch_us = (fill_us / BATCHES_TO_FILL).clamp(BATCH_US_MIN, BATCH_US_MAX);
        let drain_reach_us = (fill_us * DRAIN_REACH_FILLS).min(DRAIN_REACH_US_MAX) as u64;
        Pace { set_age, fill_us, loop_us, reach_us, drain_reach_us, batch_us }
    }

    /// Time over which a rate of pages per second gathers a batch, in microseconds: long enough
    /// for a batch worth its syncs, as long as the age does not feel it.
    pub fn period_us(&self, pages_per_s: f64) -> f64 {
        let longest = (self.fill_us / LOOPS_TO_FILL).min(1e6).max(self.loop_us);
        (PAGES_WORTH_SYNCS * 1e6 / pages_per_s.max(1e-3)).clamp(self.loop_us, longest)
    }
}

/// Pages that are worth the syncs of a batch, where there is time to gather them.
const PAGES_WORTH_SYNCS: f64 = 64.0;

#[cfg(test)]
mod demand_tests {
    use super::*;

    #[test]
    fn what_was_freed_and_is_gone_was_taken() {
        let mut demand = FrameDemand::default();
        for at in 0..10 {
            demand.observe(at * 1000, 64, 5, 1000);
        }
        assert!((demand.frames_per_s() - 5000.0).abs() < 1.0, "{demand:?}");
    }
}

#[cfg(test)]
mod drain_rate_tests {
    use super::*;

    #[test]
    fn the_rate_is_progress_of_the_checkpoint_over_time() {
        let mut rate = DrainRate::default();
        for at in 0..50 {
            rate.observe(at * 100_000, Lsn(at * 1_000_000), 1_000_000);
        }
        assert!((rate.bytes_per_s() - 1e7).abs() < 1.0, "{rate:?}");
        for at in 50..200 {
            rate.observe(at * 100_000, Lsn(49_000_000), 1_000_000);
        }
        assert!(rate.bytes_per_s() < 100.0, "{rate:?}");
    }
}
