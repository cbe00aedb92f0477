//! How many pages are in flight to the disk at once: the output of the feedback loop.
//!
//! A page that waits at the device stands before the redo write of a commit. So there are as many
//! as bring more pages per second, as long as redo writes take little longer than without them:
//! one to four where a volume is held to 1,500 requests per second, hundreds on a fast drive.

use crate::flush::average::Average;
use crate::flush::page_rate::{PageRate, RedoWrites};
use crate::flush::{BATCH_PAGES, FlushSample, WritePace};

/// Pages in flight at first, and at most.
const FIRST: f64 = 4.0;
const MOST: f64 = 512.0;

/// A step up, and one down. Where seeks cost, a little more depth brings less than one look can
/// measure.
const UP: f64 = 4.0;
const DOWN: f64 = 0.7;

/// A step up has to bring this many times the pages per second, and steps down in a row to leave
/// this many, or the last is taken back.
const GAIN: f64 = 1.1;
const LEFT: f64 = 0.95;

/// Steps down that left less than this all together are taken back.
const LOST: f64 = 0.85;

/// After a step that was taken back none is tried for so many looks.
const REST_LOOKS: u32 = 20;

/// Redo writes that take so much longer on average, with few pages in flight, wait for the volume's
/// limit: one in ten of them stands still for tens of milliseconds then, and no other.
const LATE_US: f64 = 1_500.0;

/// Redo writes that take this many times as long as the pages in flight wait for the limit.
const BEYOND_PAGES: f64 = 2.0;

/// A step is judged by looks since there was last less to write, by so many at least.
const FULL_LOOKS: u32 = 3;

/// Where a step up brought nothing, as few as at first are tried, and again after so many looks:
/// that they do as well soon shows a volume held to a rate, and where seeks cost it is a loss.
const FEW_REST_LOOKS: u32 = 600;

/// A look takes this long at least, and this many pages.
const LOOK_US: u64 = 100_000;
const LOOK_PAGES: u64 = 64;

/// A step is judged by so many pages, once the batches that began before it are at their end, and
/// what it is judged by is averaged over this time, in microseconds.
const SETTLING_PAGES: u64 = BATCH_PAGES as u64;
const TRIAL_PAGES: u64 = 2 * SETTLING_PAGES;
const USUAL_US: u64 = 1_000_000;

/// Redo writes may take this many times as long as the quickest of late, or this much longer.
const SLOWER_TIMES: f64 = 3.0;
const SLOWER_US: f64 = 1_000.0;

/// Share of the samples at which there may have been nothing to write: between two orders.
const IDLE_SHARE: f64 = 0.25;

/// What is known of the quickest fades by so much each look: a device may become slower.
const FADES: f64 = 1.0005;

/// Totals at a look.
#[derive(Clone, Copy, Debug)]
struct Totals {
    at_us: u64,
    pages: u64,
    redo_writes: u64,
    redo_write_us: u64,
    stalled: u64,
}

/// A step that is being tried: what there was before it.
#[derive(Clone, Copy, Debug)]
struct Trial {
    pages: f64,
    pages_per_s: f64,
    is_up: bool,
    has_settled: bool,
}

impl Trial {
    fn has_failed(&self, pages_per_s: f64) -> bool {
        pages_per_s < self.pages_per_s * if self.is_up { GAIN } else { LEFT }
    }
}

/// Pages in flight, found by steps.
#[derive(Clone, Copy, Debug)]
pub struct Depth {
    pages: f64,
    last: Option<Totals>,
    /// Samples since the last look, and those of them at which there was nothing to write.
    samples: u32,
    idle_samples: u32,
    /// Mean time of redo writes while they were quickest.
    quickest_us: Option<f64>,
    /// Pages per second at this depth.
    usual: Average,
    /// The step that is being tried.
    trial: Option<Trial>,
    /// Whether a step down is tried next: up and down take turns once neither helps.
    tries_down: bool,
    /// Depth and pages per second before the first of the steps down in a row.
    before_down: Option<(f64, f64)>,
    /// Whether the last step up brought nothing: requests wait before the device, not for it.
    is_limited: bool,
    rest_looks: u32,
    /// Looks for which as few as at first are not tried.
    few_rest_looks: u32,
    /// Where a few pages in flight are as many as bring anything.
    rate: PageRate,
}

impl Default for Depth {
    fn default() -> Self {
        let (last, quickest_us, trial) = (None, None, None);
        let (samples, idle_samples) = (0, 0);
        let (tries_down, rest_looks, few_rest_looks) = (false, 0, 0);
        let (before_down, is_limited) = (None, false);
        let usual = Average::default();
        let rate = PageRate::default();
        Self {
            pages: FIRST,
            last,
            samples,
            idle_samples,
            quickest_us,
            usual,
            trial,
            tries_down,
            before_down,
            is_limited,
            rest_looks,
            few_rest_looks,
            rate,
        }
    }
}

impl Depth {
    /// Pages that may be in flight.
    #[must_use]
    pub fn pages(&self) -> u32 {
        self.pages.round().clamp(1.0, MOST) as u32
    }

    /// How fast pages are to be written. Where there is a rate, that keeps the queue short, and a
    /// few may be in flight: one alone waits for a busy processor each time.
    #[must_use]
    pub fn write_pace(&self) -> WritePace {
        let pages_per_s = self.rate.pages_per_s();
        let least = if pages_per_s.is_finite() { FIRST as u32 } else { 1 };
        WritePace { in_flight: self.pages().max(least), pages_per_s }
    }

    /// The rate that pages keep to, once redo writes have stayed quick at it for long: writers are
    /// not slowed down for a rate that is only tried.
    #[must_use]
    pub fn proven_pages_per_s(&self) -> f64 {
        if self.rate.has_calmed() { self.rate.pages_per_s() } else { f64::INFINITY }
    }

    /// Takes a sample. The depth grows when fewer pages than `wanted_per_s` are written. Redo
    /// writes may take `spare_us` longer without slowing any thread down.
    pub fn observe(&mut self, now: &FlushSample<'_>, wanted_per_s: f64, spare_us: f64) {
        let totals = Totals {
            at_us: now.now_us,
            pages: now.list_flushed.saturating_add(now.lru_flushed),
            redo_writes: now.redo_writes,
            redo_write_us: now.redo_write_us,
            stalled: now.stalled_redo_writes,
        };
        let is_idle = now.lanes.list_pages == 0 && now.lanes.cold_frames == 0;
        self.samples += 1;
        self.idle_samples += u32::from(is_idle);
        let Some(last) = self.last else {
            self.begin_look(totals);
            return;
        };
        let took_us = totals.at_us.saturating_sub(last.at_us);
        let pages = totals.pages.saturating_sub(last.pages);
        if took_us < LOOK_US || pages < self.look_pages() && took_us < 10 * LOOK_US {
            return;
        }
        if let Some(trial) = self.trial.as_mut().filter(|trial| !trial.has_settled) {
            trial.has_settled = true;
            self.begin_look(totals);
            return;
        }
        let pages_per_s = pages as f64 * 1e6 / took_us as f64;
        let redo_us = redo_write_us(&last, &totals);
        self.learn_quickest(redo_us);
        let is_slow = self.pages > 1.0 && self.is_slower(redo_us, SLOWER_US.max(spare_us));
        self.observe_rate(pages_per_s, wanted_per_s, redo_us, (&last, &totals));
        match self.is_full() {
            true => self.usual.take(pages_per_s, took_us, USUAL_US),
            // What was written of less is nothing that a step up could be judged by.
            false => {
                self.usual = Average::default();
                self.rest_looks = self.rest_looks.max(FULL_LOOKS);
            }
        }
        self.step(pages_per_s, wanted_per_s, is_slow);
        self.begin_look(totals);
    }

    /// Looks for a rate where a few pages in flight are as many as bring anything. Once there is
    /// one, it keeps the queue short, and depth has nothing left to do.
    fn observe_rate(
        &mut self,
        pages_per_s: f64,
        wanted_per_s: f64,
        redo_us: Option<f64>,
        (last, now): (&Totals, &Totals),
    ) {
        let was_free = self.rate.pages_per_s().is_infinite();
        let is_before_device = self.is_limited || self.waits_beyond_pages(redo_us, pages_per_s);
        if was_free && !(is_before_device && self.pages <= FIRST) {
            return;
        }
        // Fewer pages than redo writes are not what is in their way.
        let is_beside = now.pages.saturating_sub(last.pages)
            >= now.redo_writes.saturating_sub(last.redo_writes);
        // Where the rate was good for long it is the limit only where some of them stood still:
        // all are slow alike where the processors are late.
        let is_limit = !self.rate.has_calmed() || now.stalled > last.stalled;
        let redo = match is_beside && is_limit {
            true if self.is_slower(redo_us, LATE_US) => RedoWrites::Late,
            true if self.is_slower(redo_us, SLOWER_US) => RedoWrites::Slower,
            _ => RedoWrites::Quick,
        };
        self.rate.observe(pages_per_s, wanted_per_s, now.at_us.saturating_sub(last.at_us), redo);
        if was_free && self.rate.pages_per_s().is_finite() {
            (self.pages, self.trial, self.before_down) = (1.0, None, None);
        }
    }

    fn look_pages(&self) -> u64 {
        match self.trial {
            Some(Trial { has_settled: false, .. }) => SETTLING_PAGES,
            Some(_) => TRIAL_PAGES,
            None => LOOK_PAGES,
        }
    }

    fn begin_look(&mut self, totals: Totals) {
        self.last = Some(totals);
        (self.samples, self.idle_samples) = (0, 0);
    }

    /// Whether there was something to write nearly all the time since the last look.
    fn is_full(&self) -> bool {
        f64::from(self.idle_samples) <= f64::from(self.samples) * IDLE_SHARE
    }

    /// Whether the next step down goes to as few as at first.
    fn tries_few(&self) -> bool {
        self.is_limited && self.pages > FIRST && self.few_rest_looks == 0
    }

    fn step(&mut self, pages_per_s: f64, wanted_per_s: f64, is_slow: bool) {
        self.few_rest_looks = self.few_rest_looks.saturating_sub(1);
        let trial = self.trial.take();
        // Pages that are wanted and late are not given up for redo writes: where seeks cost, many
        // in flight are written in less time than one after the other.
        let is_late = self.is_full() && pages_per_s < wanted_per_s;
        if is_slow && !is_late {
            self.pages = (self.pages * DOWN).max(1.0);
            self.rest_looks = REST_LOOKS;
            return;
        }
        if let Some(trial) = trial.filter(|_| self.is_full()) {
            let has_failed = trial.has_failed(pages_per_s);
            if has_failed {
                (self.pages, self.rest_looks) = (trial.pages, REST_LOOKS);
            }
            if trial.is_up {
                self.is_limited = has_failed;
            }
            if self.tries_few() {
                self.rest_looks = 0;
            }
            self.before_down = match trial.is_up {
                true => None,
                false => self.before_down.or(Some((trial.pages, trial.pages_per_s))),
            };
            // What helped is tried again, what did not is not.
            self.tries_down = trial.is_up == has_failed;
            return;
        }
        if let Some((pages, pages_per_s)) = self.before_down
            && is_late
            && self.usual.value() < pages_per_s * LOST
        {
            // What one look could not show, many do: too few are in flight now.
            (self.pages, self.before_down, self.usual) = (pages, None, Average::default());
            self.rest_looks = REST_LOOKS;
            return;
        }
        self.rest_looks = self.rest_looks.saturating_sub(1);
        // Where there is a rate, requests wait before the device, and more of them bring nothing.
        let is_free = self.rate.pages_per_s().is_infinite();
        if is_late && (is_free || is_slow) && self.rest_looks == 0 {
            let is_up = is_free && !self.tries_down;
            let before = self.before_down.filter(|_| !is_up);
            let pages_per_s = before.map_or(self.usual.value(), |before| before.1);
            let trial = Trial { pages: self.pages, pages_per_s, is_up, has_settled: false };
            (self.trial, self.usual) = (Some(trial), Average::default());
            self.pages = match is_up {
                true => (self.pages * UP).ceil().min(MOST),
                false if self.tries_few() => {
                    self.few_rest_looks = FEW_REST_LOOKS;
                    FIRST
                }
                false => (self.pages * DOWN).floor().max(1.0),
            };
        }
    }

    /// Learns what redo writes take at best.
    fn learn_quickest(&mut self, redo_us: Option<f64>) {
        let Some(us) = redo_us else { return };
        self.quickest_us = Some(self.quickest_us.map_or(us, |known| (known * FADES).min(us)));
    }

    /// Whether redo writes wait for longer than the pages in flight that may stand before them take
    /// the device: then it is not the device that they wait for.
    fn waits_beyond_pages(&self, redo_us: Option<f64>, pages_per_s: f64) -> bool {
        let pages_us = self.pages * 1e6 / pages_per_s.max(1.0);
        self.is_slower(redo_us, LATE_US.max(BEYOND_PAGES * pages_us))
    }

    /// Whether redo writes take much longer than at best, and by more than `by_us`.
    fn is_slower(&self, redo_us: Option<f64>, by_us: f64) -> bool {
        let (Some(us), Some(quickest_us)) = (redo_us, self.quickest_us) else { return false };
        us > (quickest_us * SLOWER_TIMES).max(quickest_us + by_us)
    }
}

/// Mean time of the redo writes between two looks.
fn redo_write_us(last: &Totals, now: &Totals) -> Option<f64> {
    let writes = now.redo_writes.saturating_sub(last.redo_writes);
    let us = now.redo_write_us.saturating_sub(last.redo_write_us);
    (writes >= 4).then(|| us as f64 / writes as f64)
}

/// Devices of several kinds, and how many pages are in flight on them.
#[cfg(test)]
mod tests {
    use super::*;
    use crate::flush::LanesUse;

    /// A device that takes `most_per_s` requests, each of which takes `alone_us` by itself; redo
    /// writes stand behind the pages in flight.
    fn settled(most_per_s: f64, alone_us: f64, wanted_per_s: f64) -> (u32, f64) {
        settled_on(|_| most_per_s, alone_us, wanted_per_s)
    }

    /// The same, where what the device takes depends on the pages in flight.
    fn settled_on(most_per_s: impl Fn(f64) -> f64, alone_us: f64, wanted_per_s: f64) -> (u32, f64) {
        let (mut depth, mut pages, mut redo_us, mut per_s) = (Depth::default(), 0.0, 0.0, 0.0);
        for look in 1..3000_u64 {
            let in_flight = f64::from(depth.pages());
            let wait_us = (in_flight * 1e6 / most_per_s(in_flight)).max(alone_us);
            per_s = (in_flight * 1e6 / wait_us).min(wanted_per_s);
            let is_full = per_s < wanted_per_s;
            pages += per_s * 0.1;
            redo_us += 20.0 * if is_full { wait_us + alone_us } else { alone_us };
            let now = FlushSample {
                now_us: look * 100_000,
                list_flushed: pages as u64,
                redo_writes: look * 20,
                redo_write_us: redo_us as u64,
                lanes: LanesUse { list_pages: u32::from(is_full), cold_frames: 0 },
                ..FlushSample::default()
            };
            depth.observe(&now, wanted_per_s, 0.0);
        }
        (depth.pages(), per_s)
    }

    #[test]
    fn a_limited_volume_gets_few_and_all_that_it_takes() {
        let (pages, per_s) = settled(1500.0, 200.0, 1e6);
        assert!((1..=4).contains(&pages), "{pages}");
        assert!(per_s > 1400.0, "{per_s}");
    }

    #[test]
    fn a_fast_drive_gets_as_many_as_it_needs() {
        let (pages, per_s) = settled(400_000.0, 80.0, 1e9);
        assert!(per_s > 300_000.0, "{pages} in flight: {per_s}");
    }

    #[test]
    fn a_disk_that_chooses_the_nearest_request_gets_enough_to_choose_from() {
        // 205 writes per second one by one, 412 with 32 in flight, as a disk of 15,000 turns.
        let disk = |in_flight: f64| 205.0 * in_flight.min(32.0).powf(0.2);
        let (pages, per_s) = settled_on(disk, 1000.0, 1000.0);
        assert!(pages >= 16, "{pages}");
        assert!(per_s > 350.0, "{pages} in flight: {per_s}");
    }

    #[test]
    fn what_keeps_up_is_left_alone() {
        let (pages, _) = settled(400_000.0, 80.0, 50_000.0);
        assert_eq!(pages, FIRST as u32);
    }

    /// What `settled_on` does, look by look, for redo writes that take `redo_us` at a look.
    fn rate_after(looks: u64, per_s: f64, redo_us: impl Fn(u64) -> f64) -> f64 {
        let (mut depth, mut redo_total_us, mut pages) = (Depth::default(), 0.0, 0.0);
        for look in 1..=looks {
            pages += per_s * 0.1;
            redo_total_us += 20.0 * redo_us(look);
            let now = FlushSample {
                now_us: look * 100_000,
                list_flushed: pages as u64,
                redo_writes: look * 20,
                redo_write_us: redo_total_us as u64,
                lanes: LanesUse { list_pages: 1, cold_frames: 0 },
                ..FlushSample::default()
            };
            // As many as are wanted are written: no step up is ever tried.
            depth.observe(&now, per_s, 0.0);
        }
        depth.write_pace().pages_per_s
    }

    #[test]
    fn redo_that_waits_beyond_the_pages_in_flight_asks_for_a_rate() {
        let waits = |us: f64| move |look: u64| if look < 10 { 500.0 } else { us };
        let rate = rate_after(100, 1000.0, waits(5000.0));
        assert!(rate < 1000.0, "{rate}: behind one page of a millisecond it waits for five");
        let rate = rate_after(100, 200.0, waits(6000.0));
        assert!(rate.is_infinite(), "{rate}: it waits for the page of 5 ms before it");
    }

    /// The rate of a volume that takes 1,000 pages per second, before and after redo writes take 5
    /// ms each for two seconds and a half whatever the rate, with so many of them at a look that
    /// stand still.
    fn rates_around_slow_redo(stalled_at_a_look: u64) -> (f64, f64) {
        let (mut depth, mut pages, mut before) = (Depth::default(), 0.0, 0.0);
        let (mut redo_us, mut stalled) = (0, 0);
        for look in 1..=425_u64 {
            let asked = depth.write_pace().pages_per_s;
            let is_slow = look > 400;
            let is_too_high = look > 10 && asked > 1000.0;
            before = if is_slow { before } else { asked };
            pages += asked.min(1000.0) * 0.1;
            redo_us += 20 * if is_slow || is_too_high { 5_000 } else { 500 };
            stalled += if is_slow { stalled_at_a_look } else { u64::from(is_too_high) };
            let now = FlushSample {
                now_us: look * 100_000,
                list_flushed: pages as u64,
                redo_writes: look * 20,
                redo_write_us: redo_us,
                stalled_redo_writes: stalled,
                lanes: LanesUse { list_pages: 1, cold_frames: 0 },
                ..FlushSample::default()
            };
            depth.observe(&now, 1e6, 0.0);
        }
        (before, depth.write_pace().pages_per_s)
    }

    #[test]
    fn a_rate_that_was_good_for_long_is_lowered_only_where_redo_stands_still() {
        let (before, after) = rates_around_slow_redo(0);
        assert!((900.0..=1000.0).contains(&before), "{before}");
        assert!(after >= before, "{before} to {after}: the processors are late, not the volume");
        let (before, after) = rates_around_slow_redo(1);
        assert!(after < 0.95 * before, "{before} to {after}");
    }

    #[test]
    fn looks_at_little_to_write_judge_no_step_up() {
        let (mut depth, mut pages) = (Depth::default(), 0);
        for look in 1..200_u64 {
            let is_busy = look > 30;
            pages += match look {
                ..=30 => 64,
                31 => 130,
                _ => 150,
            };
            let now = FlushSample {
                now_us: look * 100_000,
                list_flushed: pages,
                lanes: LanesUse { list_pages: u32::from(is_busy), cold_frames: 0 },
                ..FlushSample::default()
            };
            depth.observe(&now, 1e6, 0.0);
            assert!(depth.pages() <= 16, "{depth:?}: 1500 pages per second, whatever the depth");
        }
        assert!(depth.is_limited, "{depth:?}");
        assert!(depth.pages() <= FIRST as u32, "{depth:?}");
    }

    #[test]
    fn a_limited_volume_that_once_let_more_through_is_told_soon() {
        let (mut depth, mut pages, mut look) = (Depth::default(), 0, 0);
        while !(depth.is_limited && depth.pages() <= FIRST as u32) {
            look += 1;
            // Four in flight are 1,200 pages per second at first, and 1,500 later, as any more are.
            pages += if depth.pages() <= 4 && look < 10 { 120 } else { 150 };
            let now = FlushSample {
                now_us: look * 100_000,
                list_flushed: pages,
                lanes: LanesUse { list_pages: 1, cold_frames: 0 },
                ..FlushSample::default()
            };
            depth.observe(&now, 1e6, 0.0);
            assert!(look < 15, "{depth:?}");
        }
    }
}
