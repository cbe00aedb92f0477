//! The page cleaner of MySQL 5.6, and Percona's with its way of weighing the age.
//!
//! The averages over 30 passes are 0 until 30 passes were made, and what is flushed is limited by
//! the redo that is made per second on average: so at first nothing is flushed for age.

use crate::Lsn;

use super::averages::{Averages, Over};
use super::generation::{Generation, Portion, Rest};
use super::percent::{AgeFactor, for_dirty};
use super::strategy::percent_of;
use crate::flush::{AdmitRule, FlushSample, Ladder, UserWork};

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

#[cfg(test)]
mod tests {
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
