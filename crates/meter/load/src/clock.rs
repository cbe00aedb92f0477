//! Time for the measuring loop.
//!
//! Purpose: one clock for every worker, thread or process, cheap enough to read twice per request.
//! Invariant: ticks never run backwards within a worker, and a clock converts its ticks to
//! nanoseconds. Which clock is used is decided once per program and stated.

#![allow(unsafe_code)]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use iostrata_stats::{Measured, Verdicts, estimate};
use rustix::time::{ClockId, clock_gettime};
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
const SPIN_NS: u64 = 60_000;

/// Sleeps until shortly before `until`, then spins; for clocks of real time.
fn sleep_then_spin<C: Clock>(clock: &C, until: Ticks) -> u64 {
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
    FACTS.get_or_init(calibrate)
}

// CLOCK_MONOTONIC, for machines whose time stamp counter cannot be trusted.

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

// The processor's time stamp counter, checked against CLOCK_MONOTONIC_RAW.
//
// Invariant: it is used only where the processor reports that it runs at a constant rate, the
// kernel itself trusts it, and two calibrations agree; otherwise the reason is kept and
// CLOCK_MONOTONIC used. It does not correct for reordering: a stamp may be a few nanoseconds early,
// the same for every request.

/// Two calibrations may disagree by this much, in parts per million.
const DISAGREEMENT_PPM_MAX: f64 = 100.0;
/// Length of one calibration.
const CALIBRATION: Duration = Duration::from_millis(12);

/// Ticks of the time stamp counter.
#[derive(Clone, Copy, Debug)]
pub struct TscClock {
    ns_per_tick: f64,
    /// Nanoseconds per tick in units of 2^-32, for the loop.
    ns_per_tick_fixed: u64,
}

impl TscClock {
    /// A clock of a known rate: nanoseconds per tick.
    pub fn new(ns_per_tick: f64) -> Self {
        assert!((0.01..1000.0).contains(&ns_per_tick), "{ns_per_tick} ns per tick");
        Self { ns_per_tick, ns_per_tick_fixed: (ns_per_tick * 4_294_967_296.0) as u64 }
    }
}

impl Clock for TscClock {
    #[inline(always)]
    fn now(&self) -> Ticks {
        read_counter()
    }

    #[inline(always)]
    fn to_ns(&self, ticks: Ticks) -> u64 {
        ((u128::from(ticks) * u128::from(self.ns_per_tick_fixed)) >> 32) as u64
    }

    fn ticks_in(&self, ns: u64) -> Ticks {
        (ns as f64 / self.ns_per_tick) as Ticks
    }

    fn wait(&self, until: Ticks) -> u64 {
        sleep_then_spin(self, until)
    }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn read_counter() -> Ticks {
    // SAFETY: RDTSC has no preconditions in user space on Linux unless a process disables it for
    // itself with prctl, which this program never does.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(target_arch = "aarch64")]
#[inline(always)]
fn read_counter() -> Ticks {
    let ticks: u64;
    // SAFETY: reads the virtual counter, which Linux lets user space read; touches no memory.
    unsafe { std::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack)) };
    ticks
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn read_counter() -> Ticks {
    raw_ns()
}

/// Whether this processor promises a constant rate; the reason if not.
fn promise() -> Result<(), String> {
    if cfg!(target_arch = "aarch64") {
        return Ok(());
    }
    if !cfg!(target_arch = "x86_64") {
        return Err("no counter is known for this processor".to_owned());
    }
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags = cpuinfo.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
    for flag in ["constant_tsc", "nonstop_tsc"] {
        if !flags.split_whitespace().any(|found| found == flag) {
            return Err(format!("the processor does not promise {flag}"));
        }
    }
    let source = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    match std::fs::read_to_string(source) {
        Ok(name) if matches!(name.trim(), "tsc" | "kvm-clock" | "hyperv_clocksource_tsc_page") => {
            Ok(())
        }
        Ok(name) => Err(format!("the kernel keeps time with {}", name.trim())),
        Err(_) => Ok(()),
    }
}

fn raw_ns() -> u64 {
    let now = clock_gettime(ClockId::MonotonicRaw);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Both clocks at the same moment: the closest of a few tries.
fn both() -> (Ticks, u64) {
    let mut best = (0, 0, Ticks::MAX);
    for _ in 0..16 {
        let before = read_counter();
        let raw = raw_ns();
        let after = read_counter();
        let width = after.saturating_sub(before);
        if width < best.2 {
            best = (before + width / 2, raw, width);
        }
    }
    (best.0, best.1)
}

fn rate() -> f64 {
    let (first_ticks, first_ns) = both();
    std::thread::sleep(CALIBRATION);
    let (last_ticks, last_ns) = both();
    (last_ns - first_ns) as f64 / last_ticks.saturating_sub(first_ticks).max(1) as f64
}

/// Calibrates twice and decides which clock is used.
fn calibrate() -> ClockFacts {
    let fallback = |why: String, disagreement_ppm: f64| ClockFacts {
        tsc_ns_per_tick: None,
        fallback: Some(why),
        disagreement_ppm,
        read_ns: read_cost(&MonotonicClock),
    };
    if let Err(why) = promise() {
        return fallback(why, 0.0);
    }
    let (first, second) = (rate(), rate());
    let disagreement_ppm = (first - second).abs() / first * 1e6;
    let plausible = (0.01..1000.0).contains(&first);
    if !plausible || disagreement_ppm > DISAGREEMENT_PPM_MAX {
        return fallback(
            format!("two calibrations disagree by {disagreement_ppm:.0} parts per million"),
            disagreement_ppm,
        );
    }
    let ns_per_tick = (first + second) / 2.0;
    ClockFacts {
        tsc_ns_per_tick: Some(ns_per_tick),
        fallback: None,
        disagreement_ppm,
        read_ns: read_cost(&TscClock::new(ns_per_tick)),
    }
}

/// Mean cost of one reading over a few rounds; a round that something interrupted is left out.
fn read_cost(clock: &impl Clock) -> Measured {
    const ROUNDS: usize = 64;
    const READS: u64 = 500;
    let round = |_| {
        let start = clock.now();
        let mut last = start;
        for _ in 0..READS {
            last = std::hint::black_box(clock.now());
        }
        clock.to_ns(last.saturating_sub(start)) as f64 / READS as f64
    };
    let mut rounds: Vec<f64> = (0..ROUNDS).map(round).collect();
    rounds.sort_by(f64::total_cmp);
    let undisturbed = &rounds[..ROUNDS * 3 / 4];
    match estimate(undisturbed) {
        Some(Measured { value, ci95, n, .. }) => {
            let [low, high] = ci95.unwrap_or([undisturbed[0], undisturbed[0]]);
            Measured::new(value, [low.min(value), high.max(value)], n, Verdicts::none())
        }
        None => Measured::without_interval(rounds[0], 1, Verdicts::none()),
    }
}

// Time that passes only when a test advances it: for tests of the loop itself.

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::clock_facts;

    #[test]
    fn the_chosen_clock_agrees_with_the_kernel() {
        let facts = clock_facts();
        let Some(ns_per_tick) = facts.tsc_ns_per_tick else {
            assert!(facts.fallback.is_some(), "a fallback must say why");
            return;
        };
        let clock = TscClock::new(ns_per_tick);
        let (ticks, raw) = both();
        std::thread::sleep(Duration::from_millis(40));
        let (later_ticks, later_raw) = both();
        let (measured, truth) = (clock.to_ns(later_ticks - ticks), later_raw - raw);
        let error = (measured as f64 - truth as f64).abs() / truth as f64;
        assert!(error < 0.001, "{measured} ns against {truth} ns");
    }

    #[test]
    fn conversion_is_exact_to_a_part_in_a_million() {
        let clock = TscClock::new(0.370_37);
        for ns in [1_000_u64, 1_000_000, 3_600_000_000_000] {
            let there_and_back = clock.to_ns(clock.ticks_in(ns));
            assert!(there_and_back.abs_diff(ns) <= 2 + ns / 1_000_000, "{ns} -> {there_and_back}");
        }
    }
}
