//! Time for the measuring loop.
//!
//! Purpose: one clock for every worker, thread or process, cheap enough to read twice per request.
//! Invariant: ticks never run backwards within a worker, and a clock knows how many nanoseconds its
//! ticks are. Which clock is used is decided once per program and stated.

mod monotonic;
mod tsc;
mod virtual_time;

pub use monotonic::MonotonicClock;
pub use tsc::TscClock;
pub use virtual_time::VirtualClock;

use std::sync::OnceLock;

use iostrata_stats::Measured;
use serde::{Deserialize, Serialize};

/// A moment on a clock. Only moments of the same clock can be compared.
pub type Ticks = u64;

/// A source of time that workers read.
pub trait Clock: Clone + Send + Sync {
    /// Now.
    fn now(&self) -> Ticks;
    /// Nanoseconds in a span of ticks.
    fn to_ns(&self, ticks: Ticks) -> u64;
    /// Ticks in a span of nanoseconds.
    fn ticks_in(&self, ns: u64) -> Ticks;
    /// Returns at `until` or a little later; returns the nanoseconds that were spent spinning.
    fn wait(&self, until: Ticks) -> u64;
}

/// How far ahead of a moment a sleeper wakes up to spin the rest.
pub(crate) const SPIN_NS: u64 = 60_000;

/// Sleeps until shortly before `until`, then spins; for clocks of real time.
pub(crate) fn sleep_then_spin<C: Clock>(clock: &C, until: Ticks) -> u64 {
    loop {
        let left_ns = clock.to_ns(until.saturating_sub(clock.now()));
        if left_ns <= SPIN_NS {
            break;
        }
        std::thread::sleep(std::time::Duration::from_nanos(left_ns - SPIN_NS));
    }
    let spin_start = clock.now();
    while clock.now() < until {
        std::hint::spin_loop();
    }
    clock.to_ns(clock.now().saturating_sub(spin_start))
}

/// Which clock this program uses, and what is known of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClockFacts {
    /// The time stamp counter, with nanoseconds per tick, or absent when it cannot be trusted.
    pub tsc_ns_per_tick: Option<f64>,
    /// Why the time stamp counter is not used.
    pub fallback: Option<String>,
    /// How far two calibrations disagreed, in parts per million.
    pub disagreement_ppm: f64,
    /// Cost of reading the chosen clock, in nanoseconds.
    pub read_ns: Measured,
}

impl ClockFacts {
    /// The chosen clock's name.
    pub fn name(&self) -> &'static str {
        if self.tsc_ns_per_tick.is_some() { "time stamp counter" } else { "CLOCK_MONOTONIC" }
    }
}

/// The facts of this program's clock, found out on first use (about 25 ms).
pub fn clock_facts() -> &'static ClockFacts {
    static FACTS: OnceLock<ClockFacts> = OnceLock::new();
    FACTS.get_or_init(tsc::calibrate)
}
