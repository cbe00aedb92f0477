//! Holding writers back for purge.
//!
//! Invariant: set by purge, read by every writer. How long it is, `flush` says.

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
