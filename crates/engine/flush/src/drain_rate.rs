//! How fast flushing frees redo, and how fast pages are written.

use iostrata_page::Lsn;

use crate::average::Average;

/// Redo freed per second, and pages written per second of writing; both averaged.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DrainRate {
    last: Option<(u64, Lsn)>,
    bytes: Average,
    pages: Average,
}

/// Time of writing that the average of pages reaches back, in microseconds.
const WRITING_REACH_US: u64 = 500_000;

impl DrainRate {
    /// Takes in the checkpoint at a time; `reach_us` is how far the average reaches back.
    pub fn observe(&mut self, now_us: u64, checkpoint: Lsn, reach_us: u64) {
        if let Some((last_us, last)) = self.last {
            let dt_us = now_us.saturating_sub(last_us);
            if dt_us == 0 {
                return;
            }
            let bytes = checkpoint.since(last);
            self.bytes.take(bytes as f64 * 1e6 / dt_us as f64, dt_us, reach_us);
        }
        self.last = Some((now_us, checkpoint));
    }

    /// Takes in a batch of pages and how long it took.
    pub fn observe_batch(&mut self, pages: u32, took_us: u64) {
        if pages > 0 {
            let took_us = took_us.max(1);
            self.pages.take(f64::from(pages) * 1e6 / took_us as f64, took_us, WRITING_REACH_US);
        }
    }

    /// Redo freed, in bytes per second of time.
    #[must_use]
    pub fn bytes_per_s(&self) -> f64 {
        self.bytes.value()
    }

    /// Pages written, per second of writing: what the device gives in batches as they were.
    #[must_use]
    pub fn pages_per_s(&self) -> f64 {
        self.pages.value()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redo_freed_counts_over_time_and_pages_over_time_of_writing() {
        let mut rate = DrainRate::default();
        for at in 0..50 {
            rate.observe(at * 100_000, Lsn(at * 1_000_000), 1_000_000);
            rate.observe_batch(20, 10_000);
        }
        assert!((rate.bytes_per_s() - 1e7).abs() < 1.0, "{rate:?}");
        assert!((rate.pages_per_s() - 2000.0).abs() < 1.0, "{rate:?}");
    }

    #[test]
    fn a_batch_of_nothing_says_nothing() {
        let mut rate = DrainRate::default();
        rate.observe_batch(0, 1000);
        assert_eq!(rate, DrainRate::default());
    }
}
