//! The page cleaner of MariaDB 10.5 and later.
//!
//! With `max_dirty_pages_pct_lwm = 0`, its default, it sleeps until the redo is nearly full: at the
//! async limit a commit wakes it. Once awake it flushes until the redo is below
//! `adaptive_flushing_lwm`, and only then sleeps again. With another value it follows MySQL 5.7.

use crate::Lsn;

use super::page_cleaner::{AgeFactor, Averages, Generation, Over, Portion, Terms, pages_for_redo};
use crate::flush::{AdmitRule, FlushSample, Ladder};

/// The page cleaner with one thread and one list.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mariadb {
    averages: Averages,
    has_run: bool,
    is_awake: bool,
}

impl Mariadb {
    /// Whether pages are flushed now, and until when: see `is_awake`.
    fn wakes(&mut self, now: &FlushSample<'_>, ladder: &Ladder) -> bool {
        let settings = &now.settings;
        let (low, dirty, age) =
            (settings.max_dirty_pages_pct_lwm, now.dirty_pct(), now.modified_age());
        let is_old = age > ladder.low_water;
        self.is_awake = if low == 0.0 {
            // Age below the async limit does not wake it; awake it sees the age each second.
            let is_woken = age >= ladder.async_age || dirty >= settings.max_dirty_pages_pct;
            is_woken || (self.is_awake && is_old)
        } else {
            dirty >= low || is_old
        };
        self.is_awake
    }

    fn adaptive(&mut self, now: &FlushSample<'_>, ladder: &Ladder, flushed: u64, cap: u64) -> u64 {
        let settings = &now.settings;
        let (io, most) = (u64::from(settings.io_capacity), u64::from(settings.io_capacity_max));
        let pct_lsn = AgeFactor::Legacy.of(now, ladder, false);
        let (max, dirty) = (settings.max_dirty_pages_pct, now.dirty_pct());
        let times = |ratio: f64| (ratio * io as f64) as u64;
        let is_first = !std::mem::replace(&mut self.has_run, true);
        if is_first || pct_lsn == 0 {
            self.averages.begin(now);
            let share = times(if max > 1.0 { dirty / max } else { dirty });
            return match now.dirty_pages {
                all if all <= io => all,
                all if share < all => io,
                all => all.min(cap),
            };
        }
        self.averages.pass(now, flushed, Over::Seconds);
        // Below the low water mark it takes the whole of `io_capacity`, as without a mark.
        let low = settings.max_dirty_pages_pct_lwm;
        let ratio = if low == 0.0 || dirty < low || max == 0.0 {
            1.0
        } else {
            (pct_lsn as f64 / 100.0).max(dirty / max)
        };
        let for_redo = pages_for_redo(now, self.averages.lsn_rate).min(most / 3);
        let average = self.averages.pages_rate;
        Terms { share: times(ratio), average, for_redo }.mean(cap)
    }
}

impl Generation for Mariadb {
    fn ladder(&self, now: &FlushSample<'_>) -> Ladder {
        Ladder::of(Ladder::mariadb, now)
    }

    fn rule(&self, ladder: &Ladder) -> AdmitRule {
        AdmitRule { flush_age: ladder.async_age, ..ladder.wall() }
    }

    fn recommend(
        &mut self,
        now: &FlushSample<'_>,
        ladder: &Ladder,
        flushed: u64,
        cap: u64,
    ) -> Portion {
        let nothing = Portion { pages: 0, until: now.lsn };
        let settings = &now.settings;
        if !self.wakes(now, ladder) {
            return nothing;
        }
        if now.modified_age() >= ladder.async_age {
            return Portion { pages: cap, until: beyond_async(now, ladder) };
        }
        let pages = if settings.adaptive_flushing {
            self.adaptive(now, ladder, flushed, cap)
        } else {
            u64::from(settings.io_capacity)
        };
        Portion { pages, until: now.behind_all() }
    }

    /// At the wall batches of `io_capacity_max` follow each other, each with its checkpoint.
    fn furious(&mut self, now: &FlushSample<'_>, ladder: &Ladder, cap: u64) -> Option<Portion> {
        let is_full = now.checkpoint_age() >= ladder.wait_age && now.settings.flush_sync;
        self.is_awake |= is_full;
        let pages = cap.max(1);
        is_full.then(|| Portion { pages, until: beyond_async(now, ladder) })
    }

    /// They wait until the cleaner signals free frames.
    fn users_free_frames(&self) -> bool {
        false
    }

    fn sees_few_frames(&mut self) {
        self.is_awake = true;
    }

    fn idle_pct(&self, now: &FlushSample<'_>) -> f64 {
        // With the default of 0 it sleeps on; pages that a thread waits for go first.
        let is_held = now.settings.max_dirty_pages_pct_lwm == 0.0 || now.pending_reads > 0;
        if is_held { 0.0 } else { 100.0 }
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
    use crate::flush::FlushSettings;

    /// Pages that a pass of this cleaner flushes at an age, with a tenth of the pool dirty.
    fn pass(cleaner: &mut Mariadb, age: u64, lwm: f64) -> u64 {
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
        cleaner.recommend(&now, &ladder, 0, 2000).pages
    }

    /// As `pass`, of one that sleeps.
    fn at(age: u64, lwm: f64) -> u64 {
        pass(&mut Mariadb { has_run: true, ..Mariadb::default() }, age, lwm)
    }

    #[test]
    fn with_its_default_it_sleeps_up_to_the_async_limit() {
        assert_eq!([50, 101, 500, 899, 900].map(|age| at(age, 0.0)), [0, 0, 0, 0, 2000]);
    }

    #[test]
    fn once_awake_it_flushes_down_to_the_low_water() {
        let mut cleaner = Mariadb { has_run: true, ..Mariadb::default() };
        let mut pages = |age| pass(&mut cleaner, age, 0.0);
        assert_eq!(pages(900), 2000, "woken");
        assert!(pages(500) > 0 && pages(101) > 0, "awake");
        assert_eq!((pages(100), pages(500)), (0, 0), "it sleeps again, and is not woken for that");
        cleaner.sees_few_frames();
        assert!(
            pass(&mut cleaner, 500, 0.0) > 0,
            "the age is checked as well when frames are freed"
        );
    }

    #[test]
    fn a_low_water_mark_of_almost_nothing_wakes_it() {
        assert!(at(500, 0.001) > 200, "{}", at(500, 0.001));
        assert_eq!(at(50, 0.001), 200, "io_capacity while the redo is empty");
    }

    #[test]
    fn below_the_low_water_mark_age_does_not_scale_what_it_flushes() {
        // A tenth is dirty: beyond a mark of 5 percent and below one of 20.
        let (beyond, below) = (at(500, 5.0), at(500, 20.0));
        assert!(beyond > 2 * below && below > 0, "{beyond} beyond the mark, {below} below");
    }

    #[test]
    fn its_averages_begin_where_the_age_begins_to_count() {
        let mut cleaner = Mariadb::default();
        let settings = FlushSettings { max_dirty_pages_pct_lwm: 1.0, ..FlushSettings::default() };
        let ladder = Ladder { low_water: 100, async_age: 90_000, ..Ladder::default() };
        let mut look = |second: u64, age: u64| {
            let lsn = Lsn(100_000 + second * 600);
            let oldest = Some(Lsn(lsn.0 - age));
            let (now_us, dirty_pages, frames) = (second * 1_000_000, 5_000, 50_000);
            let now = FlushSample {
                now_us,
                lsn,
                oldest,
                settings,
                dirty_pages,
                frames,
                ..FlushSample::default()
            };
            cleaner.recommend(&now, &ladder, 90, 2000);
            cleaner.averages.lsn_rate
        };
        let young: Vec<u64> = (0..40).map(|second| look(second, 50)).collect();
        assert!(young.iter().all(|rate| *rate == 0), "{young:?}");
        let old: Vec<u64> = (40..70).map(|second| look(second, 50_000)).collect();
        assert_eq!((old[28], old[29]), (0, 300), "after thirty passes from then on");
    }

    #[test]
    fn without_commits_only_reads_keep_it_from_flushing() {
        let settings = FlushSettings { max_dirty_pages_pct_lwm: 1.0, ..FlushSettings::default() };
        let idle = FlushSample { settings, ..FlushSample::default() };
        let pct = |now: FlushSample<'_>| Mariadb::default().idle_pct(&now);
        assert_eq!(pct(FlushSample { pending_writes: 9, ..idle }), 100.0);
        assert_eq!(pct(FlushSample { pending_reads: 1, ..idle }), 0.0);
    }
}
