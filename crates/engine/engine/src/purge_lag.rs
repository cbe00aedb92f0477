//! Holding writers back for purge.
//!
//! Invariant: the delay is that of MySQL 8.4, set by purge and read by every writer.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How long writers are held back for each row, so that purge keeps up.
#[derive(Debug, Default)]
pub(crate) struct PurgeLag {
    delay_us: AtomicU64,
}

impl PurgeLag {
    /// From now on so long, in microseconds.
    pub fn set(&self, delay_us: u64) {
        self.delay_us.store(delay_us, Ordering::Relaxed);
    }

    /// Holds a writer back before it writes a row.
    #[inline]
    pub fn delay_writer(&self) {
        let delay_us = self.delay_us.load(Ordering::Relaxed);
        if delay_us > 0 {
            std::thread::sleep(Duration::from_micros(delay_us));
        }
    }
}

/// The delay of MySQL 8.4 for each row written, in microseconds: none up to `max_purge_lag`
/// commits, then rising with the history, at most `max_delay_us`. As there, a cap of 0 means none.
pub(crate) fn delay_us(history: u64, max_lag: u64, busy: u64, max_delay_us: u64) -> u64 {
    if max_lag == 0 || history <= busy {
        return 0;
    }
    let ratio = history as f64 / max_lag as f64;
    if ratio <= 1.0 {
        return 0;
    }
    (((ratio - 0.9995) * 10_000.0) as u64).min(max_delay_us)
}

#[cfg(test)]
mod tests {
    use super::delay_us;

    #[test]
    fn the_delay_is_that_of_mysql_8_4() {
        assert_eq!(delay_us(1_000_000, 0, 300, 1_000_000), 0, "no limit, no delay");
        assert_eq!(delay_us(1_000, 1_000, 300, 1_000_000), 0, "up to the limit");
        assert_eq!(delay_us(1_500, 1_000, 300, 1_000_000), 5_004, "cut off, as there");
        assert_eq!(delay_us(2_000, 1_000, 300, 1_000_000), 10_005);
        assert_eq!(delay_us(2_000, 1_000, 300, 500), 500, "at most the cap");
        assert_eq!(delay_us(2_000, 1_000, 300, 0), 0, "a cap of 0 keeps the delay off");
        assert_eq!(delay_us(2_000, 1_000, 4_000, 1_000_000), 0, "purge is not behind a batch");
    }
}
