//! How fast redo is produced.

use iostrata_page::Lsn;

use crate::average::Average;

/// Redo produced per second, averaged.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RedoRate {
    last: Option<(u64, Lsn)>,
    average: Average,
    still_us: u64,
}

impl RedoRate {
    /// Takes in the end of the redo at a time; `reach_us` is how far the average reaches back.
    pub fn observe(&mut self, now_us: u64, lsn: Lsn, reach_us: u64) {
        if let Some((last_us, last_lsn)) = self.last {
            let dt_us = now_us.saturating_sub(last_us);
            if dt_us == 0 {
                return;
            }
            let bytes = lsn.since(last_lsn);
            self.average.take(bytes as f64 * 1e6 / dt_us as f64, dt_us, reach_us);
            self.still_us = if bytes == 0 { self.still_us.saturating_add(dt_us) } else { 0 };
        }
        self.last = Some((now_us, lsn));
    }

    /// Bytes per second; 0 before the second observation.
    #[must_use]
    pub fn bytes_per_s(&self) -> f64 {
        self.average.value()
    }

    /// Bytes per second since the last observation, which is not averaged and not taken in.
    #[must_use]
    pub fn latest_bytes_per_s(&self, now_us: u64, lsn: Lsn) -> f64 {
        let Some((last_us, last_lsn)) = self.last else { return 0.0 };
        let dt_us = now_us.saturating_sub(last_us).max(1);
        lsn.since(last_lsn) as f64 * 1e6 / dt_us as f64
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
    fn the_rate_is_bytes_over_time() {
        let mut rate = RedoRate::default();
        for at in 0..20 {
            rate.observe(at * 1000, Lsn(5000 + at * 300), 10_000);
        }
        assert!((rate.bytes_per_s() - 300_000.0).abs() < 1.0, "{rate:?}");
        assert_eq!(rate.still_us(), 0);
    }

    #[test]
    fn stillness_is_timed_and_ends_with_the_first_byte() {
        let mut rate = RedoRate::default();
        rate.observe(0, Lsn(100), 1000);
        rate.observe(400, Lsn(100), 1000);
        rate.observe(900, Lsn(100), 1000);
        assert_eq!(rate.still_us(), 900);
        rate.observe(901, Lsn(101), 1000);
        assert_eq!(rate.still_us(), 0);
    }
}
