//! How many pages per second hold the age at its set-point.
//!
//! Method: each dirty page has to be written before the redo since its oldest change is as long as
//! the set-point. The least steady rate at which none is late is what is needed (Yao, Demers and
//! Shenker, 1995). So a burst of pages that became dirty together is written over all the time that
//! is left, and does not come back as a burst one round of the redo later.

use iostrata_innodb::flush::Ages;

use crate::tune::generation::Generation;
use crate::tune::monitor::Vitals;
use crate::tune::pinned::AT_ASYNC;

/// The pace follows what is wanted within so many seconds, and when the age is urgent.
const FOLLOW_S: f64 = 3.0;
const FOLLOW_URGENT_S: f64 = 1.0;
/// Above this share of the set-point it is urgent.
const URGENT: f64 = 1.04;
/// What is late is due within this share of a round of the redo, in seconds between these bounds.
const LATE_SHARE: f64 = 0.15;
const LATE_S: (f64, f64) = (2.0, 15.0);
/// Ratio of what the server writes to what it is requested: seconds of the average, and its bounds.
const EFFECT_S: f64 = 15.0;
const EFFECT: (f64, f64) = (0.5, 1.2);

/// Finds the pace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SteadyPace {
    /// Pages per second that should be written; absent before the first step.
    wanted: Option<f64>,
    effect: f64,
}

impl Default for SteadyPace {
    fn default() -> Self {
        Self { wanted: None, effect: 1.0 }
    }
}

impl SteadyPace {
    /// Takes one step; returns the pages per second to request of the server. The ratio of what it
    /// writes to the request is learned where it `learns`.
    pub fn step(
        &mut self,
        now: &Vitals,
        ages: &Ages<'_>,
        set_point_bytes: f64,
        (generation, learns): (Generation, bool),
    ) -> f64 {
        let x = now.modified_bytes / set_point_bytes;
        if learns {
            self.learn_effect(now);
        }
        let late_s = (now.seconds_of(set_point_bytes) * LATE_SHARE).clamp(LATE_S.0, LATE_S.1);
        let need = match generation.obeys(now) {
            true => ages.rate_for(set_point_bytes, now.redo_bytes_per_s, late_s * 1e6, 1.0),
            // What is late cannot be caught up with now. Requesting it would cause a burst in the
            // first second in which the server obeys again.
            false => AT_ASYNC * now.even_pages_per_s(),
        };
        let wanted = match self.wanted {
            None => need,
            // Another load has begun.
            Some(was) if now.surges => need.max(was),
            // Nothing is learned of a load that pauses; it may go on at any time.
            Some(was) if now.still_s > 1.0 && x < URGENT => was,
            Some(was) => {
                let is_urgent = x > URGENT && need > was;
                let follow_s = if is_urgent { FOLLOW_URGENT_S } else { FOLLOW_S };
                was + (need - was) * now.dt_s / (now.dt_s + follow_s)
            }
        };
        self.wanted = Some(wanted);
        generation.asked(wanted / self.effect, now)
    }

    /// The share of what was wanted that could be requested in the end.
    pub fn bounded(&mut self, share: f64) {
        self.wanted = self.wanted.map(|wanted| wanted * share);
    }

    fn learn_effect(&mut self, now: &Vitals) {
        let Some(wanted) = self.wanted.filter(|wanted| *wanted >= 1.0) else { return };
        // A server cannot write what is not there.
        if now.dirty_pages < 2.0 * wanted || now.still_s > 1.0 {
            return;
        }
        let seen = (now.written_per_s / (wanted / self.effect)).clamp(EFFECT.0, EFFECT.1);
        self.effect += (seen - self.effect) * now.dt_s / (now.dt_s + EFFECT_S);
    }
}

#[cfg(test)]
mod tests {
    use iostrata_innodb::Lsn;

    use super::*;

    const SET_POINT: f64 = 60e6;

    /// 20,000 pages over so many set-points of redo, 3 MB/s.
    fn vitals(x: f64) -> Vitals {
        Vitals {
            age_bytes: SET_POINT * x,
            modified_bytes: SET_POINT * x,
            limit_bytes: 80e6,
            redo_bytes_per_s: 3e6,
            written_per_s: 1000.0,
            dirty_pages: 20_000.0,
            dt_s: 1.0,
            ..Vitals::default()
        }
    }

    fn step(pace: &mut SteadyPace, now: &Vitals) -> f64 {
        let end = Lsn(1_000_000_000);
        let oldest = Lsn(end.0 - now.age_bytes as u64);
        let even: Vec<(Lsn, u32)> =
            (0..100).map(|at| (oldest.plus(now.age_bytes as u64 / 100 * at), 200)).collect();
        pace.step(now, &Ages::between(&even, oldest, end), SET_POINT, (Generation::MariaDb, true))
    }

    #[test]
    fn in_balance_all_dirty_pages_go_once_a_round() {
        for x in [0.3, 0.6, 0.9] {
            let found = step(&mut SteadyPace::default(), &vitals(x));
            assert!((found - 1000.0).abs() < 5.0, "{x}: {found}");
        }
        let late = step(&mut SteadyPace::default(), &vitals(1.2));
        assert!(late > 1100.0, "{late}");
    }

    #[test]
    fn a_burst_of_pages_is_written_over_the_time_that_is_left() {
        let mut pace = SteadyPace::default();
        let (oldest, end) = (Lsn(0), Lsn(15_000_000));
        let burst = [(Lsn(0), 9_000), (Lsn(6_000_000), 100)];
        let now = Vitals { dirty_pages: 9_100.0, ..vitals(0.25) };
        let ages = Ages::between(&burst, oldest, end);
        let found = pace.step(&now, &ages, SET_POINT, (Generation::MariaDb, true));
        // They end at 6 MB, are 60 MB old at 66 MB, which is 51 MB or 17 s away.
        assert!((found - 9_000.0 / 17.0).abs() < 1.0, "{found}");
    }

    #[test]
    fn a_step_is_followed_slowly_and_a_pause_not_at_all() {
        let mut pace = SteadyPace::default();
        step(&mut pace, &vitals(0.9));
        let doubled = Vitals { redo_bytes_per_s: 6e6, ..vitals(0.9) };
        let first = step(&mut pace, &doubled);
        assert!((1100.0..1500.0).contains(&first), "{first}");
        let paused = Vitals { redo_bytes_per_s: 1e3, still_s: 9.0, ..vitals(0.9) };
        let held = step(&mut pace, &paused);
        assert!((held / first - 1.0).abs() < 0.05, "{held} {first}");
    }

    #[test]
    fn a_server_that_writes_less_than_asked_is_asked_for_more() {
        let mut pace = SteadyPace::default();
        let half = Vitals { written_per_s: 700.0, ..vitals(0.9) };
        let asked = (0..200).map(|_| step(&mut pace, &half)).last().unwrap();
        assert!(asked > 1250.0, "{asked}");
    }
}
