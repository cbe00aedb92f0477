//! How fast redo is produced.

use crate::Lsn;

use crate::flush::average::Average;

/// Redo produced per second, averaged.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RedoRate {
    /// Where the redo was last looked at, and where it was when a rate was last taken.
    seen: Option<(u64, Lsn)>,
    taken: (u64, Lsn),
    average: Average,
    still_us: u64,
}

impl RedoRate {
    /// Takes in the end of the redo at a time; `reach_us` is how far the average reaches back. A
    /// rate is that of `least_bytes` at least, or of all that time: commits come in bursts.
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
