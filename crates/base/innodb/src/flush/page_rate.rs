//! Pages per second, where even a few pages in flight make the redo wait.
//!
//! A volume that is held to so many requests delays those that come too early, by as much as 100 ms
//! with Linux's limits: also the redo write of a commit. The queue is then before the device, and
//! no depth shortens it. So pages are begun at a rate a little below what the volume takes. That
//! rate is found as TCP finds that of a path: after a step down it rises to what was too much
//! quickly at first and slowly at last, stays there for long, and then tries for more.
//! The curve is that of CUBIC (RFC 9438).

use crate::flush::average::Average;

/// What is left of a rate that was too high.
const LEFT: f64 = 0.96;

/// In this time what was too high is reached again, in microseconds: soon at first, since the first
/// guess is a bad one, and twice as late each time that it was reached.
const BACK_US_FIRST: f64 = 2e6;
const BACK_US_MOST: f64 = 24e6;

/// What is left at least of a rate that was not nearly reached, and of one that was.
const LEAST_LEFT: f64 = 0.7;
const TOO_HIGH: f64 = 0.97;

/// The same until the redo has stayed quick at that rate for long. The first guess is what was
/// written without a rate, also while there was little redo, and a limit that fell may be far
/// below.
const TOO_HIGH_FIRST: f64 = 0.88;

/// The rate stays above this share of the best recent rate at which the redo was quick, where all
/// that was allowed is written: a limit that fell would let less through.
const BEST_LEFT: f64 = 0.5;

/// What was best is half as much after this time, in microseconds.
const BEST_HALVED_US: f64 = 300e6;

/// After so many steps down behind which the redo was not quick for so many looks, it is something
/// else that makes it slow: there is no rate for this time, in microseconds, and for twice as long
/// the next time.
const IN_VAIN_MOST: u32 = 4;
const CALM_LOOKS: u32 = 10;
const BARRED_US_FIRST: f64 = 4e6;
const BARRED_US_MOST: f64 = 60e6;

/// Looks after a step down that are not judged: what waits has to go first.
const REST_LOOKS: u32 = 5;

/// After so many times that there is no limit any more: it rose to twice what was too high.
const FORGOTTEN: f64 = 4.0;

/// Share of the rate that is written where the volume takes it.
const REACHED: f64 = 0.94;

/// What is written is averaged over this time, in microseconds: pages come in batches.
const WRITTEN_US: u64 = 2_000_000;

/// The redo is slow, or the rate not reached, in so many looks in a row before it is too high; or
/// in so many where the redo has stayed quick at it for long, since that is probably something
/// else: disks have their moments. One look is enough beyond what was too high before: each of them
/// lets commits wait.
const SLOW_LOOKS: u32 = 3;
const SLOW_LOOKS_CALMED: u32 = 10;

/// How long redo writes take while pages are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RedoWrites {
    Quick,
    /// As long as behind some pages that are in flight.
    Slower,
    /// As long as the volume's limit delays requests that come too early.
    Late,
}

/// A rate that is not found yet, or found again.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PageRate {
    /// What was too high, in pages per second; nothing before anything was.
    too_high: Option<f64>,
    /// Time since then in which all that was allowed was written, in microseconds.
    held_us: f64,
    back_us: f64,
    slow_looks: u32,
    rest_looks: u32,
    /// Looks in a row at which the redo was quick, and steps down since then for slow redo alone.
    calm_looks: u32,
    in_vain: u32,
    /// Whether there were enough of the former in a row since there is a rate.
    has_calmed: bool,
    /// For how long there has been no rate since then, in microseconds, and how often before.
    barred_us: f64,
    bars: i32,
    /// The best recent rate that was reached while the redo was quick.
    best_per_s: f64,
    /// Pages per second while as many as are allowed are wanted.
    written: Average,
}

impl PageRate {
    /// Pages that may be begun per second; without bound while none were too many.
    pub fn pages_per_s(&self) -> f64 {
        let Some(too_high) = self.too_high else { return f64::INFINITY };
        let times = self.held_us / self.back_us;
        if times > FORGOTTEN {
            return f64::INFINITY;
        }
        let from_there = times - 1.0;
        (too_high * (1.0 + (1.0 - LEFT) * from_there.powi(3))).max(1.0)
    }

    /// Whether redo writes have stayed quick at it for long.
    pub fn has_calmed(&self) -> bool {
        self.has_calmed
    }

    /// Takes a look of `took_us`: the pages per second that were written and wanted, and the redo
    /// writes meanwhile. If the rate is not reached though redo writes are quick, the volume is not
    /// the limit: the processors were busy.
    pub fn observe(&mut self, pages_per_s: f64, wanted_per_s: f64, took_us: u64, redo: RedoWrites) {
        let (was, is_slow) = (self.pages_per_s(), redo == RedoWrites::Late);
        self.rest_looks = self.rest_looks.saturating_sub(1);
        if self.rest_looks > 0 || wanted_per_s < was && was.is_finite() {
            self.written = Average::default();
            return;
        }
        self.written.take(pages_per_s, took_us, WRITTEN_US);
        let pages_per_s = self.written.value();
        let is_reached = was.is_infinite() || pages_per_s >= was * REACHED;
        self.best_per_s *= 0.5_f64.powf(took_us as f64 / BEST_HALVED_US);
        if was.is_finite() && is_reached && redo == RedoWrites::Quick {
            self.best_per_s = self.best_per_s.max(was);
        }
        self.calm_looks = if is_slow { 0 } else { self.calm_looks + 1 };
        if self.calm_looks >= CALM_LOOKS {
            self.in_vain = 0;
            if was.is_finite() {
                (self.has_calmed, self.bars) = (true, 0);
            }
        }
        if self.in_vain >= IN_VAIN_MOST {
            let barred_us = self.barred_us + took_us as f64;
            let most_us = (BARRED_US_FIRST * 2_f64.powi(self.bars)).min(BARRED_US_MOST);
            *self = match barred_us < most_us {
                true => PageRate {
                    barred_us,
                    in_vain: IN_VAIN_MOST,
                    bars: self.bars,
                    ..PageRate::default()
                },
                false => PageRate { bars: self.bars.saturating_add(1), ..PageRate::default() },
            };
            return;
        }
        let is_too_high = is_slow || !is_reached && redo == RedoWrites::Slower;
        self.slow_looks = if is_too_high { self.slow_looks + 1 } else { 0 };
        let known = self.too_high.filter(|too_high| was > *too_high && is_reached);
        let most = if self.has_calmed { SLOW_LOOKS_CALMED } else { SLOW_LOOKS };
        if self.slow_looks >= most || is_slow && known.is_some() {
            let found = self.found_too_high(was, pages_per_s, is_reached);
            self.too_high = Some(known.map_or(found, |known| known.max(found)));
            self.back_us = match (self.has_calmed, self.held_us >= self.back_us) {
                // Far down on few looks: soon up again.
                (false, _) => BACK_US_FIRST,
                (true, true) => (2.0 * self.back_us).min(BACK_US_MOST),
                (true, false) => self.back_us,
            };
            (self.slow_looks, self.held_us, self.rest_looks) = (0, 0.0, REST_LOOKS);
            self.has_calmed &= known.is_some();
            self.in_vain += u32::from(is_reached && was.is_finite());
        } else if is_reached && !is_slow {
            self.held_us += took_us as f64;
        }
    }

    /// What is too high when `was` was allowed and so many pages were written.
    fn found_too_high(&self, was: f64, pages_per_s: f64, is_reached: bool) -> f64 {
        let found = match (was.is_finite(), is_reached) {
            (false, _) => pages_per_s,
            (true, true) => {
                let left = if self.has_calmed { TOO_HIGH } else { TOO_HIGH_FIRST };
                (was * left).max(self.best_per_s * BEST_LEFT)
            }
            // What a volume writes beyond its limit is less than what it writes just below.
            (true, false) if pages_per_s < was * LEAST_LEFT => was * LEAST_LEFT,
            (true, false) => was * TOO_HIGH,
        };
        found.max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Observes a volume that takes `most_per_s`, for so many seconds; returns how many looks were
    /// slow.
    fn run(rate: &mut PageRate, most_per_s: f64, seconds: u32) -> u32 {
        let mut slow = 0;
        for _ in 0..seconds * 10 {
            let asked = rate.pages_per_s();
            let is_slow = asked > most_per_s;
            slow += u32::from(is_slow);
            let redo = if is_slow { RedoWrites::Late } else { RedoWrites::Quick };
            rate.observe(asked.min(most_per_s), 1e9, 100_000, redo);
        }
        slow
    }

    #[test]
    fn it_stays_a_little_below_the_limit_and_is_seldom_beyond() {
        let mut rate = PageRate::default();
        run(&mut rate, 1000.0, 10);
        let slow = run(&mut rate, 1000.0, 600);
        assert!(slow <= 3 * 600 / 15 + 12, "{slow} of 6000 looks");
        assert!((930.0..=1000.0).contains(&rate.pages_per_s()), "{rate:?}");
    }

    #[test]
    fn one_late_look_beyond_what_was_too_high_is_enough_and_lowers_nothing() {
        let mut rate = PageRate::default();
        run(&mut rate, 1000.0, 10);
        let too_high = rate.too_high.unwrap();
        let look = |rate: &mut PageRate, redo| {
            rate.observe(rate.pages_per_s(), 1e9, 100_000, redo);
        };
        while rate.pages_per_s() <= too_high {
            look(&mut rate, RedoWrites::Quick);
        }
        look(&mut rate, RedoWrites::Late);
        assert_eq!(rate.too_high, Some(too_high));
        assert!(rate.pages_per_s() < too_high, "{rate:?}");
        // Below it one is chance.
        (0..10).for_each(|_| look(&mut rate, RedoWrites::Quick));
        let before = rate.pages_per_s();
        look(&mut rate, RedoWrites::Late);
        assert!(rate.pages_per_s() >= before, "{rate:?}");
    }

    #[test]
    fn redo_that_is_often_slow_for_other_reasons_does_not_end_the_flushing() {
        let mut rate = PageRate::default();
        run(&mut rate, 1000.0, 60);
        let mut least = f64::INFINITY;
        for look in 0..1200_u32 {
            // Twelve looks of thirty, one after the other, whatever the rate.
            let redo = if look % 30 < 12 { RedoWrites::Late } else { RedoWrites::Quick };
            let asked = rate.pages_per_s().min(1000.0);
            rate.observe(asked, 1e9, 100_000, redo);
            least = rate.pages_per_s().min(least);
        }
        assert!(least > 350.0, "{least}");
    }

    #[test]
    fn it_follows_a_limit_down_within_seconds_and_up_within_two_minutes() {
        let mut rate = PageRate::default();
        run(&mut rate, 1000.0, 60);
        run(&mut rate, 500.0, 4);
        assert!(rate.pages_per_s() < 510.0, "{rate:?}");
        run(&mut rate, 1000.0, 120);
        assert!(rate.pages_per_s() > 900.0, "{rate:?}");
    }

    #[test]
    fn redo_that_is_slow_at_any_rate_costs_little() {
        let (mut rate, mut written) = (PageRate::default(), 0.0);
        for _ in 0..6000 {
            let asked = rate.pages_per_s().min(1000.0);
            rate.observe(asked, 1e9, 100_000, RedoWrites::Late);
            written += asked;
        }
        assert!(written > 6000.0 * 970.0, "{written}");
    }

    #[test]
    fn time_in_which_less_is_wanted_says_nothing() {
        let mut rate = PageRate::default();
        run(&mut rate, 1000.0, 10);
        let before = rate.pages_per_s();
        for _ in 0..1000 {
            rate.observe(10.0, 10.0, 100_000, RedoWrites::Quick);
        }
        assert_eq!(rate.pages_per_s(), before);
    }

    #[test]
    fn a_rate_that_is_not_reached_is_too_high_where_the_redo_waits_behind_pages() {
        let mut rate = PageRate::default();
        run(&mut rate, 1000.0, 10);
        let before = rate.pages_per_s();
        (0..30).for_each(|_| rate.observe(500.0, 1e9, 100_000, RedoWrites::Quick));
        assert!(rate.pages_per_s() >= before, "{rate:?}");
        (0..60).for_each(|_| rate.observe(500.0, 1e9, 100_000, RedoWrites::Slower));
        assert!((450.0..=550.0).contains(&rate.pages_per_s()), "{rate:?}");
    }

    #[test]
    fn a_first_guess_that_is_far_too_high_is_none_after_few_seconds() {
        let mut rate = PageRate::default();
        (0..3).for_each(|_| rate.observe(1500.0, 1e9, 100_000, RedoWrites::Late));
        assert!(rate.pages_per_s() > 1400.0, "{rate:?}");
        for _ in 0..30 {
            // All of it is written, and the redo waits meanwhile.
            let asked = rate.pages_per_s();
            let redo = if asked > 1000.0 { RedoWrites::Late } else { RedoWrites::Quick };
            rate.observe(asked, 1e9, 100_000, redo);
        }
        let found = rate.pages_per_s();
        assert!((800.0..=1000.0).contains(&found), "{rate:?}");
        run(&mut rate, 1000.0, 20);
        assert!(rate.pages_per_s() > 900.0, "{rate:?}");
    }

    #[test]
    fn a_moment_in_which_the_redo_is_slow_changes_no_rate_that_was_good_for_long() {
        let mut rate = PageRate::default();
        run(&mut rate, 1000.0, 60);
        let too_high = rate.too_high;
        let below = rate.pages_per_s() < too_high.unwrap();
        assert!(below, "{rate:?}");
        let look = |rate: &mut PageRate, redo| rate.observe(rate.pages_per_s(), 1e9, 100_000, redo);
        (0..8).for_each(|_| look(&mut rate, RedoWrites::Late));
        look(&mut rate, RedoWrites::Quick);
        assert_eq!(rate.too_high, too_high);
    }
}
