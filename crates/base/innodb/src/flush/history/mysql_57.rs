//! The page cleaner of MySQL 5.7, and that of 8.0.30 and 8.4.
//!
//! Three terms are averaged: the share of `io_capacity`, the pages flushed so far, and the pages
//! that hold the redo of the next three seconds.

use crate::Lsn;

use super::averages::{Averages, Over};
use super::generation::{Generation, Portion};
use super::percent::{AgeFactor, for_dirty};
use super::strategy::percent_of;
use crate::flush::ages::Ages;
use crate::flush::{AdmitRule, FlushSample, Ladder, UserWork};

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
            // Who passes the sync limit wakes the cleaner and goes on.
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
