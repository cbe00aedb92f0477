//! Time that passes only when somebody says so: for tests of the loop itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Clock, Ticks};

/// A clock of nanoseconds that stands still between [`VirtualClock::advance`] calls and jumps when
/// waited on. Clones share the time.
#[derive(Clone, Debug, Default)]
pub struct VirtualClock {
    now_ns: Arc<AtomicU64>,
}

impl VirtualClock {
    /// Lets time pass.
    pub fn advance(&self, ns: u64) {
        self.now_ns.fetch_add(ns, Ordering::Relaxed);
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Ticks {
        self.now_ns.load(Ordering::Relaxed)
    }

    fn to_ns(&self, ticks: Ticks) -> u64 {
        ticks
    }

    fn ticks_in(&self, ns: u64) -> Ticks {
        ns
    }

    fn wait(&self, until: Ticks) -> u64 {
        self.now_ns.fetch_max(until, Ordering::Relaxed);
        0
    }
}
