//! Rates averaged over time, whatever the spacing of their samples: of anything, and of redo.

use crate::Lsn;

/// An average in which what lies `reach_us` back counts a third of what is new.
///
/// Each sample weighs `dt / (dt + reach)`: the exponential average in its implicit form, which
/// stays between the old value and the new one for every `dt`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Average {
    value: f64,
    weight: f64,
}

impl Average {
    /// Takes in `value`, which held for `dt_us`.
    pub fn take(&mut self, value: f64, dt_us: u64, reach_us: u64) {
        if dt_us == 0 {
            return;
        }
        let share = dt_us as f64 / (dt_us as f64 + reach_us as f64);
        // Until the first samples fill the reach, they count by how much of it they fill: the
        // average is then of what was seen, not of what was seen and of zeros before it.
        self.weight += (1.0 - self.weight) * share;
        self.value += (value - self.value) * share / self.weight;
    }

    /// The average; 0 before the first sample.
    #[must_use]
    pub fn value(&self) -> f64 {
        self.value
    }
}

// How fast redo is produced.

/// Redo produced per second, averaged.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RedoRate {
    /// The position of the redo at the last look, and when a rate was last taken.
    seen: Option<(u64, Lsn)>,
    taken: (u64, Lsn),
    average: Average,
    still_us: u64,
}

impl RedoRate {
    /// Takes in the end of the redo at a time; `reach_us` is how far the average reaches back. A
    /// rate is measured over at least `least_bytes`, or over all that time: commits come in bursts.
    pub fn observe(&mut self, now_us: u64, lsn: Lsn, reach_us: u64, least_bytes: f64) {
        let Some((seen_us, seen)) = self.seen else {
            (self.seen, self.taken) = (Some((now_us, lsn)), (now_us, lsn));
            return;
        };
        let passed_us = now_us.saturating_sub(seen_us);
        if passed_us == 0 {
            return;
        }
        self.still_us = if lsn == seen { self.still_us.saturating_add(passed_us) } else { 0 };
        self.seen = Some((now_us, lsn));
        let (dt_us, bytes) = (now_us.saturating_sub(self.taken.0), lsn.since(self.taken.1) as f64);
        if bytes >= least_bytes || dt_us >= reach_us {
            self.average.take(bytes * 1e6 / dt_us as f64, dt_us, reach_us);
            self.taken = (now_us, lsn);
        }
    }

    /// Bytes per second; 0 before the second observation.
    #[must_use]
    pub fn bytes_per_s(&self) -> f64 {
        self.average.value()
    }

    /// Bytes per second since a rate was last taken, which is not taken in; 0 for fewer than
    /// `least_bytes`.
    #[must_use]
    pub fn latest_bytes_per_s(&self, now_us: u64, lsn: Lsn, least_bytes: f64) -> f64 {
        let (dt_us, bytes) = (now_us.saturating_sub(self.taken.0), lsn.since(self.taken.1) as f64);
        if self.seen.is_none() || bytes < least_bytes {
            return 0.0;
        }
        bytes * 1e6 / dt_us.max(1) as f64
    }

    /// For how long no redo was produced, in microseconds.
    #[must_use]
    pub fn still_us(&self) -> u64 {
        self.still_us
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_value_is_known_at_once() {
        let mut average = Average::default();
        average.take(7.0, 0, 1000);
        assert_eq!(average.value(), 0.0);
        for _ in 0..5 {
            average.take(7.0, 10, 1000);
            assert!((average.value() - 7.0).abs() < 1e-9, "{average:?}");
        }
    }

    #[test]
    fn a_step_is_followed_within_a_few_reaches_at_any_spacing() {
        for spacing_us in [1, 10, 100, 1000, 5000] {
            let mut average = Average::default();
            average.take(1.0, 10_000, 1000);
            let mut passed_us = 0;
            while passed_us < 10_000 {
                average.take(2.0, spacing_us, 1000);
                assert!((1.0..=2.0).contains(&average.value()), "{average:?}");
                passed_us += spacing_us;
            }
            assert!(average.value() > 1.95, "{spacing_us}: {average:?}");
        }
    }
}

#[cfg(test)]
mod redo_rate_tests {
    use super::*;

    #[test]
    fn the_rate_is_bytes_over_time() {
        let mut rate = RedoRate::default();
        for at in 0..20 {
            rate.observe(at * 1000, Lsn(5000 + at * 300), 10_000, 0.0);
        }
        assert!((rate.bytes_per_s() - 300_000.0).abs() < 1.0, "{rate:?}");
        assert_eq!(rate.still_us(), 0);
    }

    #[test]
    fn stillness_is_timed_and_ends_with_the_first_byte() {
        let mut rate = RedoRate::default();
        rate.observe(0, Lsn(100), 1000, 0.0);
        rate.observe(400, Lsn(100), 1000, 0.0);
        rate.observe(900, Lsn(100), 1000, 0.0);
        assert_eq!(rate.still_us(), 900);
        rate.observe(901, Lsn(101), 1000, 0.0);
        assert_eq!(rate.still_us(), 0);
    }
}
