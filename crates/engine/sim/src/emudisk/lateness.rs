//! How much later than the model's moments answers are sent.

use std::sync::atomic::{AtomicU64, Ordering};

/// Later than this is counted as late.
const LATE_NS: u64 = 100_000;

/// Counted without a lock, by every thread that sends.
#[derive(Debug, Default)]
pub(crate) struct Lateness {
    sent: AtomicU64,
    late: AtomicU64,
    sum_ns: AtomicU64,
    max_ns: AtomicU64,
}

impl Lateness {
    pub(crate) fn count(&self, by_ns: u64) {
        self.sent.fetch_add(1, Ordering::Relaxed);
        self.late.fetch_add((by_ns > LATE_NS).into(), Ordering::Relaxed);
        self.sum_ns.fetch_add(by_ns, Ordering::Relaxed);
        self.max_ns.fetch_max(by_ns, Ordering::Relaxed);
    }

    pub(crate) fn late(&self) -> u64 {
        self.late.load(Ordering::Relaxed)
    }

    pub(crate) fn mean_us(&self) -> f64 {
        let sent = self.sent.load(Ordering::Relaxed).max(1);
        self.sum_ns.load(Ordering::Relaxed) as f64 / sent as f64 / 1e3
    }

    pub(crate) fn max_us(&self) -> f64 {
        self.max_ns.load(Ordering::Relaxed) as f64 / 1e3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_averages_over_all_and_counts_the_late() {
        let lateness = Lateness::default();
        assert_eq!(lateness.mean_us(), 0.0);
        [0, 100_000, 101_000].into_iter().for_each(|ns| lateness.count(ns));
        assert_eq!((lateness.late(), lateness.mean_us(), lateness.max_us()), (1, 67.0, 101.0));
    }
}
