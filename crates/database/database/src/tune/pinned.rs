//! What a server may write while its age is held at the async limit by itself.
//!
//! Method: above that limit a MariaDB writes the pages that lie behind it and no others, whatever
//! `innodb_io_capacity` is, so that the age stays there. Where dirty pages lie close in the redo it
//! has many to write and commits are slow; where they lie far apart it has few and commits are
//! fast; each makes the next round of the redo as uneven as this one. The only setting that it
//! follows is how much it may write at most. That is held at the least rate at which a close
//! stretch is written before it comes to the wall: commits are the faster, the stretch becomes the
//! longer, and the swings die down within a few rounds.
//!
//! How fast redo comes depends on what is written beside it. A line through both, second by second,
//! says what it will be.

use iostrata_innodb::flush::Ages;

use crate::tune::monitor::Vitals;

/// The line is through so many seconds of late, and known after so many.
const LINE_S: f64 = 60.0;
const KNOWN_S: f64 = 8.0;
/// Pages are late from this share of the wall on, and due within so many microseconds then.
const WALL_SHARE: f64 = 0.96;
const LATE_US: f64 = 2e6;
/// What may be written at the async limit at least, over what all dirty pages take once a round,
/// and what comes to that on the way to the wall: the age rests in between.
pub(crate) const AT_ASYNC: f64 = 0.9;
const UP_TO_WALL: f64 = 0.3;
/// Of what was written in the last second so much may be at least: a line of few seconds errs.
const DOWN_TO: f64 = 0.7;

/// Finds it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PinnedPace {
    seen_s: f64,
    /// Weighted sums of the time, of pages written per second, of bytes of redo per second, of the
    /// squares of the former and of the products of both.
    sums: [f64; 5],
    /// Pages per second and bytes per second of the last sample.
    last: (f64, f64),
}

impl PinnedPace {
    /// Takes in what goes on, at any age.
    pub fn take(&mut self, now: &Vitals) {
        let Some(pages) = now.done.written.filter(|_| now.dt_s > 0.0) else { return };
        let (pages, bytes) = (pages / now.dt_s, now.done.redo_bytes / now.dt_s);
        let keep = (-now.dt_s / LINE_S).exp();
        let more = [1.0, pages, bytes, pages * pages, pages * bytes];
        for (sum, more) in self.sums.iter_mut().zip(more) {
            *sum = *sum * keep + more * now.dt_s;
        }
        self.last = (pages, bytes);
        self.seen_s += now.dt_s;
    }

    /// Bytes of redo per second while nothing is written, and by how many they are fewer for each
    /// page per second.
    fn line(&self) -> (f64, f64) {
        let [_, pages, bytes, squares, products] =
            self.sums.map(|sum| sum / self.sums[0].max(1e-3));
        let (variance, together) = (squares - pages * pages, products - pages * bytes);
        let slope = if variance > 1.0 { (-together / variance).max(0.0) } else { 0.0 };
        (bytes + slope * pages, slope)
    }

    /// Pages per second to write at most.
    pub fn most(&self, now: &Vitals, ages: &Ages<'_>) -> f64 {
        let (alone, slope) = self.line();
        // A load that has grown makes more than the line says.
        let alone = if now.surges { alone.max(self.last.1 + slope * self.last.0) } else { alone };
        // Pages that are asked for slow down the redo, and so are due the later.
        let slowed = |rate: f64| rate / (1.0 + rate * slope / alone.max(1.0));
        let wall = WALL_SHARE * now.limit_bytes;
        let in_time = slowed(ages.rate_for(wall, alone, LATE_US, 1.0));
        let even = slowed(now.dirty_pages * alone / now.modified_bytes.max(1.0));
        let room = now
            .async_bytes
            .map_or(0.0, |limit| (now.age_bytes - limit) / (now.limit_bytes - limit).max(1.0));
        let at_rest = even * (AT_ASYNC + UP_TO_WALL * room.clamp(0.0, 1.0));
        in_time.max(at_rest).max(DOWN_TO * self.last.0)
    }

    /// Whether the line can be relied on yet.
    pub fn is_known(&self) -> bool {
        self.seen_s >= KNOWN_S
    }
}

#[cfg(test)]
mod tests {
    use iostrata_innodb::Lsn;

    use super::*;
    use crate::tune::monitor::WorkDone;

    const MB: u64 = 1_000_000;

    /// A second of so many pages and bytes of redo, at an age.
    fn second(age_mb: u64, written: f64, redo_bytes: f64) -> Vitals {
        Vitals {
            age_bytes: (age_mb * MB) as f64,
            modified_bytes: (age_mb * MB) as f64,
            limit_bytes: 90e6,
            async_bytes: Some(80e6),
            dirty_pages: 200.0 * age_mb as f64,
            done: WorkDone { redo_bytes, written: Some(written), ..WorkDone::default() },
            dt_s: 1.0,
            ..Vitals::default()
        }
    }

    /// 200 pages in each megabyte of redo.
    fn even(age_mb: u64) -> Vec<(Lsn, u32)> {
        (0..age_mb).map(|at| (Lsn(at * MB), 200)).collect()
    }

    /// What may be written, of pages by age.
    fn most(pace: &PinnedPace, now: &Vitals, pages: &[(Lsn, u32)]) -> f64 {
        pace.most(now, &Ages::between(pages, Lsn(0), Lsn(now.age_bytes as u64)))
    }

    #[test]
    fn a_close_stretch_is_written_before_it_comes_to_the_wall() {
        let mut pace = PinnedPace::default();
        assert!(!pace.is_known());
        // Each page that is written takes the time of 2.5 KB of redo.
        let redo = |pages: f64| 4e6 - 2500.0 * pages;
        for pages in [200.0, 1200.0, 700.0].into_iter().cycle().take(60) {
            pace.take(&second(80, pages, redo(pages)));
        }
        assert!(pace.is_known());
        let stretch = [(Lsn(0), 10_000), (Lsn(4 * MB), 1_000)];
        let found = most(&pace, &second(80, 700.0, 0.0), &stretch);
        // Its end is 76 MB old, and 10.4 MB of redo from where it would be late.
        let until_s = 10.4e6 / redo(found);
        assert!((found * until_s / 10_000.0 - 1.0).abs() < 0.01, "{found}");
    }

    #[test]
    fn even_pages_rest_between_the_async_limit_and_the_wall() {
        let mut pace = PinnedPace::default();
        (0..60).for_each(|_| pace.take(&second(80, 800.0, 4e6)));
        let most = [70, 80, 83, 85, 90].map(|age_mb| {
            let now = second(age_mb, 800.0, 4e6);
            most(&pace, &now, &even(age_mb)).round()
        });
        assert!(most[..2].iter().all(|pages| *pages < 800.0), "the age grows: {most:?}");
        assert_eq!(most[2], 792.0);
        assert!(most[3] > 800.0 && most[4] > 950.0, "it falls: {most:?}");
    }

    #[test]
    fn a_load_that_has_grown_is_written_for_at_once() {
        let mut pace = PinnedPace::default();
        (0..60).for_each(|_| pace.take(&second(80, 800.0, 4e6)));
        pace.take(&second(80, 800.0, 8e6));
        let calm = most(&pace, &second(80, 800.0, 8e6), &even(80));
        let surges = Vitals { surges: true, ..second(80, 800.0, 8e6) };
        let found = most(&pace, &surges, &even(80));
        assert!(calm < 800.0 && found > 1400.0, "{calm} {found}");
    }
}
