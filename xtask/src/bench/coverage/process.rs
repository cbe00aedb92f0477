//! Processes that rates and latencies follow in practice, whose truth is known.
//!
//! Invariant: the same random numbers give the same series on every machine.

use std::fmt;

use iostrata_stats::{LatencyHistogram, Measured, Random, Verdicts};

/// Mean of every process, in requests per slice.
pub const LEVEL: f64 = 1_000.0;
/// Standard deviation of its noise.
const NOISE: f64 = 150.0;

/// How a rate moves from slice to slice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Process {
    /// Independent noise.
    White,
    /// Noise with this correlation of neighbours.
    Autocorrelated(f64),
    /// Values with a tail of this power.
    Pareto(f64),
    /// Two rates, 20 % above and 20 % below the mean; a slice keeps its rate for so many on
    /// average.
    TwoRates(f64),
    /// A rate that stands for so many slices in each so many, at a random place.
    Stalls(usize, usize),
    /// Noise of all time scales (1/f).
    Flicker,
    /// A sine with so many slices per cycle.
    Wave(f64),
}

impl Process {
    /// Those of the table.
    pub const ALL: [Self; 13] = [
        Self::White,
        Self::Autocorrelated(0.8),
        Self::Autocorrelated(0.95),
        Self::Autocorrelated(0.99),
        Self::Pareto(2.2),
        Self::Pareto(1.5),
        Self::TwoRates(10.0),
        Self::TwoRates(100.0),
        Self::Stalls(10, 300),
        Self::Stalls(50, 1_000),
        Self::Flicker,
        Self::Wave(12.0),
        Self::Wave(170.0),
    ];

    /// Whether a window shows what the process does: no window knows of what comes more rarely than
    /// it lasts, or of a mean that hangs on values rarer than it has.
    #[cfg(test)]
    pub fn shows_itself(self) -> bool {
        match self {
            Self::Stalls(_, every) => every < 100,
            Self::Pareto(power) => power > 2.5,
            Self::TwoRates(stay) => stay < 50.0,
            Self::Autocorrelated(rho) => rho < 0.97,
            Self::Flicker => false,
            Self::White | Self::Wave(_) => true,
        }
    }

    /// A series of so many slices.
    pub fn series(self, rng: &mut Random, slices: usize) -> Vec<f64> {
        match self {
            Self::White => noisy(&autocorrelated(rng, slices, 0.0)),
            Self::Autocorrelated(rho) => noisy(&autocorrelated(rng, slices, rho)),
            Self::Pareto(power) => {
                let mean = power / (power - 1.0);
                (0..slices).map(|_| LEVEL / mean * rng.uniform().powf(-1.0 / power)).collect()
            }
            Self::TwoRates(stay) => {
                let mut sign = if rng.uniform() < 0.5 { 1.0 } else { -1.0 };
                let mut next = || {
                    sign = if rng.uniform() < 1.0 / stay { -sign } else { sign };
                    LEVEL * (1.0 + 0.2 * sign) + 0.3 * NOISE * rng.normal()
                };
                (0..slices).map(|_| next()).collect()
            }
            Self::Stalls(lasts, every) => {
                let busy = LEVEL * every as f64 / (every - lasts) as f64;
                let first = rng.below(every as u64) as usize;
                let is_stalled = |at: usize| (at + first) % every < lasts;
                let noise = autocorrelated(rng, slices, 0.3);
                let value = |(at, noise): (usize, &f64)| match is_stalled(at) {
                    true => 0.0,
                    false => busy + 0.5 * NOISE * noise,
                };
                noise.iter().enumerate().map(value).collect()
            }
            Self::Flicker => {
                let parts = [0.5, 0.9, 0.98, 0.996].map(|rho| autocorrelated(rng, slices, rho));
                let sum = |at: usize| parts.iter().map(|part| part[at]).sum::<f64>() / 2.0;
                noisy(&(0..slices).map(sum).collect::<Vec<f64>>())
            }
            Self::Wave(period) => {
                let phase = rng.uniform();
                let noise = noisy(&autocorrelated(rng, slices, 0.3));
                let turn = |at: usize| std::f64::consts::TAU * (phase + at as f64 / period);
                (0..).zip(noise).map(|(at, value)| value + 0.2 * LEVEL * turn(at).sin()).collect()
            }
        }
    }
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::White => write!(f, "independent noise"),
            Self::Autocorrelated(rho) => write!(f, "correlation of neighbours {rho}"),
            Self::Pareto(power) => write!(f, "Pareto, power {power}"),
            Self::TwoRates(stay) => write!(f, "two rates, each for {stay} slices"),
            Self::Stalls(lasts, every) => write!(f, "stall of {lasts} slices in each {every}"),
            Self::Flicker => write!(f, "1/f noise"),
            Self::Wave(period) => write!(f, "wave of {period} slices"),
        }
    }
}

fn noisy(noise: &[f64]) -> Vec<f64> {
    noise.iter().map(|noise| LEVEL + NOISE * noise).collect()
}

/// First-order autoregressive noise of unit variance, in its stationary state.
fn autocorrelated(rng: &mut Random, slices: usize, rho: f64) -> Vec<f64> {
    let mut state = rng.normal();
    let fresh = (1.0 - rho * rho).sqrt();
    let mut next = || {
        let now = state;
        state = rho * now + fresh * rng.normal();
        now
    };
    (0..slices).map(|_| next()).collect()
}

/// Requests that are due in each millisecond.
const DUE: usize = 20;
/// Mean of their service time, in microseconds.
const SERVICE_US: f64 = 100.0;

/// Response times of a window of so many milliseconds: while it stalls, which begins at random, all
/// that are due wait for the end. With the mean and its interval, as a window has it.
pub fn stalled_latencies(
    rng: &mut Random,
    [stall_ms, every_ms]: [usize; 2],
    window_ms: usize,
) -> (LatencyHistogram, Measured) {
    let mut histogram = LatencyHistogram::default();
    let mut slowest = vec![0; window_ms];
    let (mut sums, mut counts) = (vec![0.0; window_ms], vec![0.0; window_ms]);
    let mut slice = 0;
    while slice < window_ms {
        let begins = stall_ms > 0 && rng.uniform() < 1.0 / every_ms as f64;
        let lasts = if begins { stall_ms } else { 1 };
        // What stalls beyond the end of a window ends in none of its slices.
        let end = slice + lasts - 1;
        for due in 0..lasts * DUE {
            let waits_us =
                if begins { 1e3 * (lasts as f64 - due as f64 / DUE as f64) } else { 0.0 };
            let us = waits_us + SERVICE_US * rng.exponential();
            if end < window_ms {
                let ns = (1e3 * us) as u64 + 1;
                histogram.record_ns(ns);
                slowest[end] = slowest[end].max(ns);
                sums[end] += us;
                counts[end] += 1.0;
            }
        }
        slice += lasts;
    }
    histogram.note_slices(&slowest);
    let none = Measured::without_interval(0.0, 0, Verdicts::none());
    let mean = iostrata_stats::estimate_ratio(&sums, &counts);
    (histogram, mean.map_or(none, |mean| mean.measured()))
}

/// A percentile of these response times.
pub fn stalled_percentile_us([stall_ms, every_ms]: [usize; 2], percent: f64) -> f64 {
    let stalled = stall_ms as f64 / (stall_ms + every_ms - 1).max(1) as f64;
    let beyond = |us: f64| {
        let served = (-us / SERVICE_US).exp();
        let waiting = 1.0 - (us - SERVICE_US).max(0.0) / (1e3 * stall_ms as f64).max(1e-9);
        (1.0 - stalled) * served + stalled * waiting.clamp(0.0, 1.0)
    };
    let (mut low, mut high) = (0.0, 1e6);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if beyond(middle) > 1.0 - percent / 100.0 { low = middle } else { high = middle }
    }
    low
}
