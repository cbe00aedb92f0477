//! CLOCK_MONOTONIC, for machines whose time stamp counter cannot be trusted.

use rustix::time::{ClockId, clock_gettime};

use super::{Clock, Ticks, sleep_then_spin};

/// Nanoseconds of CLOCK_MONOTONIC; every figure taken with it carries `clock_fallback`.
#[derive(Clone, Copy, Debug)]
pub struct MonotonicClock;

impl Clock for MonotonicClock {
    #[inline]
    fn now(&self) -> Ticks {
        let now = clock_gettime(ClockId::Monotonic);
        now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
    }

    #[inline]
    fn to_ns(&self, ticks: Ticks) -> u64 {
        ticks
    }

    fn ticks_in(&self, ns: u64) -> Ticks {
        ns
    }

    fn wait(&self, until: Ticks) -> u64 {
        sleep_then_spin(self, until)
    }
}
