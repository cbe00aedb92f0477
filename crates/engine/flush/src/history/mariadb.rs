//! The page cleaner of MariaDB 10.5 and later.
//!
//! With `max_dirty_pages_pct_lwm = 0`, its default, it sleeps until the redo is nearly full: at the
//! async limit a commit wakes it. With another value it follows MySQL 5.7.

use iostrata_page::Lsn;

use super::averages::{Averages, Over};
use super::generation::{Generation, Portion};
use super::mysql_57::{Terms, pages_for_redo};
use super::percent::AgeFactor;
use crate::{AdmitRule, FlushSample, Ladder};

/// The page cleaner with one thread and one list.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mariadb {
    averages: Averages,
    has_run: bool,
}

impl Mariadb {
    /// Whether pages are flushed before a limit is met.
    fn is_awake(now: &FlushSample<'_>, ladder: &Ladder) -> bool {
        let settings = &now.settings;
        let (low, dirty) = (settings.max_dirty_pages_pct_lwm, now.dirty_pct());
        if low == 0.0 {
            // Nobody wakes it for age below the async limit.
            return dirty >= settings.max_dirty_pages_pct;
        }
        dirty >= low || now.modified_age() > ladder.low_water
    }

    fn adaptive(&mut self, now: &FlushSample<'_>, ladder: &Ladder, flushed: u64) -> u64 {
        let settings = &now.settings;
        let (io, most) = (u64::from(settings.io_capacity), u64::from(settings.io_capacity_max));
        let pct_lsn = AgeFactor::Legacy.of(now, ladder, false);
        let (max, dirty) = (settings.max_dirty_pages_pct, now.dirty_pct());
        let times = |ratio: f64| (ratio * io as f64) as u64;
        let is_first = !std::mem::replace(&mut self.has_run, true);
        self.averages.pass(now, flushed, Over::Seconds);
        if is_first || pct_lsn == 0 {
            let share = if max > 1.0 { times(dirty / max) } else { io };
            return match now.dirty_pages {
                all if all <= io => all,
                all if share < all => io,
                all => all.min(most),
            };
        }
        let ratio = if settings.max_dirty_pages_pct_lwm == 0.0 || max == 0.0 {
            1.0
        } else {
            (pct_lsn as f64 / 100.0).max(dirty / max)
        };
        let for_redo = pages_for_redo(now, self.averages.lsn_rate).min(most / 3);
        let average = self.averages.pages_rate;
        Terms { share: times(ratio), average, for_redo }.mean(most)
    }
}

impl Generation for Mariadb {
    fn ladder(&self, now: &FlushSample<'_>) -> Ladder {
        Ladder::of(Ladder::mariadb, now)
    }

    fn rule(&self, ladder: &Ladder) -> AdmitRule {
        AdmitRule { flush_age: ladder.async_age, ..ladder.wall() }
    }

    fn recommend(&mut self, now: &FlushSample<'_>, ladder: &Ladder, flushed: u64) -> Portion {
        let nothing = Portion { pages: 0, until: now.lsn };
        let settings = &now.settings;
        if now.modified_age() >= ladder.async_age {
            let pages = u64::from(settings.io_capacity_max);
            return Portion { pages, until: beyond_async(now, ladder) };
        }
        if !Self::is_awake(now, ladder) {
            return nothing;
        }
        let pages = if settings.adaptive_flushing {
            self.adaptive(now, ladder, flushed)
        } else {
            u64::from(settings.io_capacity)
        };
        Portion { pages, until: now.behind_all() }
    }

    /// At the wall batches of `io_capacity_max` follow each other, each with its checkpoint.
    fn furious(&mut self, now: &FlushSample<'_>, ladder: &Ladder) -> Option<Portion> {
        let is_full = now.checkpoint_age() >= ladder.wait_age && now.settings.flush_sync;
        let pages = u64::from(now.settings.io_capacity_max.max(1));
        is_full.then(|| Portion { pages, until: beyond_async(now, ladder) })
    }

    fn sleeps_firmly(&self) -> bool {
        false
    }

    /// Between the two limits it does not sleep.
    fn skips_sleep(&self, now: &FlushSample<'_>, ladder: &Ladder) -> bool {
        now.modified_age() >= ladder.async_age
    }

    fn idle_pct(&self, now: &FlushSample<'_>) -> f64 {
        // With the default of 0 it sleeps on; others' requests go first.
        if now.settings.max_dirty_pages_pct_lwm == 0.0 || now.pending_ios > 0 { 0.0 } else { 100.0 }
    }

    fn checkpoint_s(&self) -> Option<u64> {
        None
    }
}

/// Up to here pages are older than the async limit.
fn beyond_async(now: &FlushSample<'_>, ladder: &Ladder) -> Lsn {
    Lsn(now.lsn.0.saturating_sub(ladder.async_age)).plus(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FlushSettings;

    /// Pages that a pass flushes at an age, with a tenth of the pool dirty.
    fn at(age: u64, lwm: f64) -> u64 {
        let settings = FlushSettings {
            io_capacity: 200,
            io_capacity_max: 2000,
            max_dirty_pages_pct_lwm: lwm,
            ..FlushSettings::default()
        };
        let (lsn, oldest) = (Lsn(100_000), Some(Lsn(100_000 - age)));
        let ages = [(Lsn(0), 5_000)];
        let now = FlushSample {
            lsn,
            oldest,
            settings,
            dirty_pages: 5_000,
            frames: 50_000,
            age_histogram: &ages,
            ..FlushSample::default()
        };
        let ladder = Ladder { low_water: 100, async_age: 900, wait_age: 1000, ..Ladder::default() };
        let mut cleaner = Mariadb { has_run: true, ..Mariadb::default() };
        cleaner.recommend(&now, &ladder, 0).pages
    }

    #[test]
    fn with_its_default_it_sleeps_up_to_the_async_limit() {
        assert_eq!([50, 101, 500, 899, 900].map(|age| at(age, 0.0)), [0, 0, 0, 0, 2000]);
    }

    #[test]
    fn a_low_water_mark_of_almost_nothing_wakes_it() {
        assert!(at(500, 0.001) > 200, "{}", at(500, 0.001));
        assert_eq!(at(50, 0.001), 200, "io_capacity while the redo is empty");
    }
}
