//! How fast flushing frees redo.

use crate::Lsn;

use crate::flush::average::Average;

/// Redo freed per second, averaged.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DrainRate {
    last: Option<(u64, Lsn)>,
    average: Average,
}

impl DrainRate {
    /// Takes in the checkpoint at a time; `reach_us` is how far the average reaches back.
    pub fn observe(&mut self, now_us: u64, checkpoint: Lsn, reach_us: u64) {
        if let Some((last_us, last)) = self.last {
            let dt_us = now_us.saturating_sub(last_us);
            if dt_us == 0 {
                return;
            }
            let bytes = checkpoint.since(last);
            self.average.take(bytes as f64 * 1e6 / dt_us as f64, dt_us, reach_us);
        }
        self.last = Some((now_us, checkpoint));
    }

    /// Redo freed, in bytes per second of time.
    #[must_use]
    pub fn bytes_per_s(&self) -> f64 {
        self.average.value()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_progress_of_the_checkpoint_over_time() {
        let mut rate = DrainRate::default();
        for at in 0..50 {
            rate.observe(at * 100_000, Lsn(at * 1_000_000), 1_000_000);
        }
        assert!((rate.bytes_per_s() - 1e7).abs() < 1.0, "{rate:?}");
        for at in 50..200 {
            rate.observe(at * 100_000, Lsn(49_000_000), 1_000_000);
        }
        assert!(rate.bytes_per_s() < 100.0, "{rate:?}");
    }
}
