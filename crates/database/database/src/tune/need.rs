//! Whether a server needs to be tuned, and the reason where it does not.
//!
//! Method: what counts is how long the redo lasts at its rate, and how many pages have to be
//! written meanwhile. Below a hundred pages per second, the least that a server can be set to
//! write, every server copes with its own settings. Invariant: the bounds of beginning and ending
//! are apart, so that a load between them is neither taken over nor given back again and again.

use std::fmt;

use crate::tune::lever::Lever;
use crate::tune::monitor::Vitals;

/// A server is tuned if its redo reaches the set-point within so many seconds, from this share of
/// the age's limit on: an age that stays below it needs no help.
const BEGIN_S: f64 = 300.0;
const BEGIN_SHARE: f64 = 0.1;
/// Pages per second from which on it is, and below which it is not for longer than a minute.
const BEGIN_PAGES_PER_S: f64 = 125.0;
const END_PAGES_PER_S: f64 = 100.0;
/// One that stalls with so much of its redo used is, whatever it writes.
const STALLED_SHARE: f64 = 0.75;
/// It is left alone when the age was below this share, or few pages were to be written, for so many
/// seconds.
const END_SHARE: f64 = 0.08;
const END_S: f64 = 60.0;
/// A redo that goes round in less than so many seconds, for so many samples, is too small to be
/// tuned; not any more when it takes so many times as long.
const ROUND_S_LEAST: f64 = 5.0;
const ROUND_SAMPLES: u32 = 10;
const ROUND_ENOUGH: f64 = 1.5;
/// A redo should last for so many seconds; `watch` advises the same.
const ROUND_S_WANTED: f64 = 300.0;
const QUARTER_GIB: f64 = 268_435_456.0;
const MIB: f64 = 1_048_576.0;

/// Why a server has its own settings.
#[derive(Clone, Debug, PartialEq)]
pub enum Rest {
    /// Its redo does not run out.
    Redo,
    /// It writes too few pages per second.
    FewPages(f64),
    /// Its redo goes round in so many seconds, and should have so many bytes.
    SmallRedo {
        /// Seconds.
        round_s: f64,
        /// What would do, in bytes.
        wanted_bytes: f64,
    },
    /// Tuned it wrote more pages per transaction than before, when it did not stall either.
    MorePages {
        /// Pages per transaction before.
        before: f64,
        /// And tuned.
        tuned: f64,
    },
    /// The user has set it, until a minute of the day.
    QuietHours(u32),
    /// So many pages may be written in a day, and were.
    DayIsSpent(f64),
    /// Another user has set this.
    Taken(Lever),
}

impl fmt::Display for Rest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Redo => f.write_str("its redo does not run out"),
            Self::FewPages(pages) => write!(
                f,
                "{pages:.0} pages/s keep its redo free, and up to {END_PAGES_PER_S:.0} it does that \
                 itself"
            ),
            Self::SmallRedo { round_s, wanted_bytes } => write!(
                f,
                "the redo goes round in {round_s:.1} s; enlarge it to {:.0}M",
                wanted_bytes / MIB
            ),
            Self::MorePages { before, tuned } => write!(
                f,
                "tuned it wrote {tuned:.2} pages per transaction, {before:.2} before, when it did \
                 not stall either"
            ),
            Self::QuietHours(until) => {
                write!(f, "quiet hours until {:02}:{:02} UTC", until / 60 % 24, until % 60)
            }
            Self::DayIsSpent(pages) => {
                write!(
                    f,
                    "the {pages:.0} pages of this day are written; it is tuned from 00:00 UTC"
                )
            }
            Self::Taken(lever) => write!(f, "somebody else set {}", lever.name()),
        }
    }
}

/// Checks a server, tuned or not.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Need {
    low_s: f64,
    few_s: f64,
    short_rounds: u32,
    long_rounds: u32,
    is_small: bool,
}

impl Need {
    /// Takes in the present state.
    pub fn take(&mut self, now: &Vitals) {
        let count = |holds: bool, sum: f64| if holds { sum + now.dt_s } else { 0.0 };
        self.low_s = count(now.age_bytes < END_SHARE * now.limit_bytes, self.low_s);
        self.few_s = count(now.even_pages_per_s() < END_PAGES_PER_S, self.few_s);
        let count = |holds: bool, sum: u32| if holds { sum.saturating_add(1) } else { 0 };
        let round_s = round_s(now);
        self.short_rounds = count(round_s < ROUND_S_LEAST, self.short_rounds);
        self.long_rounds = count(round_s >= ROUND_S_LEAST * ROUND_ENOUGH, self.long_rounds);
        self.is_small = match self.is_small {
            true => self.long_rounds < ROUND_SAMPLES,
            false => self.short_rounds >= ROUND_SAMPLES,
        };
    }

    /// Forgets for how long it was calm.
    pub fn begin(&mut self) {
        (self.low_s, self.few_s) = (0.0, 0.0);
    }

    /// Why a server is left alone whose set-point is at so many bytes.
    pub fn rest(
        &self,
        now: &Vitals,
        set_point: f64,
        is_stalled: bool,
        active: bool,
    ) -> Option<Rest> {
        let round_s = round_s(now);
        if self.is_small || (!active && round_s < ROUND_S_LEAST) {
            return Some(small(now, round_s));
        }
        let even = now.even_pages_per_s();
        if active {
            let is_few = self.few_s >= END_S;
            return is_few
                .then_some(Rest::FewPages(even))
                .or_else(|| (self.low_s >= END_S).then_some(Rest::Redo));
        }
        // What became dirty a moment ago is no evidence about a whole round.
        let share = now.modified_bytes / now.limit_bytes;
        let left_s = now.seconds_of(set_point - now.age_bytes);
        if share <= BEGIN_SHARE || left_s >= BEGIN_S || now.still_s >= 1.0 {
            return Some(Rest::Redo);
        }
        let is_full = is_stalled && share >= STALLED_SHARE;
        (even < BEGIN_PAGES_PER_S && !is_full).then_some(Rest::FewPages(even))
    }
}

fn round_s(now: &Vitals) -> f64 {
    now.seconds_of(now.limit_bytes)
}

fn small(now: &Vitals, round_s: f64) -> Rest {
    let capacity = now.capacity_bytes.unwrap_or(now.limit_bytes);
    let wanted = ROUND_S_WANTED * now.redo_bytes_per_s * capacity / now.limit_bytes;
    Rest::SmallRedo { round_s, wanted_bytes: (wanted / QUARTER_GIB).ceil() * QUARTER_GIB }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 100 MB of redo at so many MB/s, a part of it used by so many dirty pages.
    fn at(mb_per_s: f64, share: f64, dirty_pages: f64) -> Vitals {
        Vitals {
            age_bytes: 100e6 * share,
            modified_bytes: 100e6 * share,
            limit_bytes: 100e6,
            redo_bytes_per_s: mb_per_s * 1e6,
            dirty_pages,
            dt_s: 1.0,
            ..Vitals::default()
        }
    }

    fn rest(now: &Vitals, is_stalled: bool) -> Option<Rest> {
        Need::default().rest(now, 81e6, is_stalled, false)
    }

    #[test]
    fn what_counts_is_the_time_that_is_left_and_the_pages_of_it() {
        assert_eq!(rest(&at(4.0, 0.2, 5_000.0), false), None);
        assert_eq!(rest(&at(4.0, 0.05, 5_000.0), false), Some(Rest::Redo));
        // Half of the redo is used, and lasts for five minutes more.
        assert_eq!(rest(&at(0.1, 0.5, 90_000.0), false), Some(Rest::Redo));
        assert_eq!(rest(&at(0.1, 0.6, 90_000.0), false), None);
        let few = at(0.065, 0.8, 2_100.0);
        assert!(matches!(rest(&few, false), Some(Rest::FewPages(pages)) if pages < 2.0));
        assert_eq!(rest(&few, true), None, "it stalls");
        let idle = Vitals { still_s: 3.0, ..at(4.0, 0.9, 9_000.0) };
        assert_eq!(rest(&idle, false), Some(Rest::Redo));
    }

    #[test]
    fn a_server_is_given_back_after_a_minute_of_few_pages_or_of_a_low_age() {
        for (now, expected) in
            [(at(4.0, 0.8, 1_000.0), Rest::FewPages(50.0)), (at(4.0, 0.05, 5_000.0), Rest::Redo)]
        {
            let mut need = Need::default();
            let mut after = |seconds: u32, now: &Vitals| {
                (0..seconds).for_each(|_| need.take(now));
                need.rest(now, 81e6, false, true)
            };
            assert_eq!(after(59, &now), None);
            assert_eq!(after(1, &now), Some(expected));
            assert_eq!(after(1, &at(4.0, 0.8, 9_000.0)), None, "it goes on");
        }
    }

    #[test]
    fn a_redo_that_goes_round_in_no_time_is_told_with_the_size_that_it_should_have() {
        let (quick, slow) = (at(29.0, 0.5, 9_000.0), at(12.0, 0.5, 9_000.0));
        let said = rest(&quick, false).unwrap().to_string();
        assert_eq!(said, "the redo goes round in 3.4 s; enlarge it to 8448M");
        let mut need = Need::default();
        let mut after = |samples: u32, now: &Vitals| {
            (0..samples).for_each(|_| need.take(now));
            need.rest(now, 81e6, false, true)
        };
        assert_eq!(after(9, &quick), None, "it may be a moment");
        assert!(after(1, &quick).is_some());
        assert!(after(9, &slow).is_some() && after(1, &slow).is_none());
    }
}
