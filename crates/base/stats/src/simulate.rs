//! Simulated series for tests: the kinds of noise that storage shows.
//!
//! Invariant: the same seed gives the same series on every machine. Tests only.

use crate::random::Random;

/// First-order autoregressive noise of unit variance and mean 0, in its stationary state.
pub(crate) fn autocorrelated(rng: &mut Random, slices: usize, rho: f64) -> Vec<f64> {
    let mut state = rng.normal();
    let fresh = (1.0 - rho * rho).sqrt();
    (0..slices)
        .map(|_| {
            let now = state;
            state = rho * state + fresh * rng.normal();
            now
        })
        .collect()
}

/// A kind of process, with a mean that is known.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ProcessKind {
    White,
    Exponential,
    Poisson(f64),
    Autocorrelated(f64),
    Drift(f64),
    Step(f64),
    Wave(f64),
}

/// Mean level of every simulated process, in requests per slice.
pub(crate) const LEVEL: f64 = 1_000.0;
/// Standard deviation of its noise.
pub(crate) const NOISE: f64 = 150.0;

/// A series and the level that its process had at each slice, without the noise. Shapes have a size
/// of 10 to 40 % of the level; steps lie in the middle 70 % of the window; waves have 3.5 cycles in
/// it at least, and 8 slices per cycle at least.
pub(crate) fn series(rng: &mut Random, kind: ProcessKind, slices: usize) -> (Vec<f64>, Vec<f64>) {
    series_waving(rng, kind, slices, slices as f64 / 3.5)
}

/// The same with waves of a period of 8 slices up to a given one.
pub(crate) fn series_waving(
    rng: &mut Random,
    kind: ProcessKind,
    slices: usize,
    period_max: f64,
) -> (Vec<f64>, Vec<f64>) {
    let rho = match kind {
        ProcessKind::Autocorrelated(rho) => rho,
        ProcessKind::Drift(rho) | ProcessKind::Step(rho) | ProcessKind::Wave(rho) => rho,
        _ => 0.0,
    };
    let noise: Vec<f64> = match kind {
        ProcessKind::Exponential => (0..slices).map(|_| rng.exponential() - 1.0).collect(),
        ProcessKind::Poisson(mean) => {
            (0..slices).map(|_| (poisson(rng, mean) - mean) / mean * LEVEL / NOISE).collect()
        }
        _ => autocorrelated(rng, slices, rho),
    };
    let scale = LEVEL * (0.1 + 0.3 * rng.uniform());
    let sign = if rng.uniform() < 0.5 { -1.0 } else { 1.0 };
    let place = 0.15 + 0.7 * rng.uniform();
    let cycles = slices as f64 / (8.0 + rng.uniform() * (period_max - 8.0));
    let phase = rng.uniform();
    let shape = |at: usize| {
        let time = at as f64 / slices as f64;
        let turn = (phase + cycles * time).fract();
        match kind {
            ProcessKind::Drift(_) => sign * scale * (time - 0.5),
            ProcessKind::Step(_) => {
                if time < place {
                    0.0
                } else {
                    sign * scale
                }
            }
            ProcessKind::Wave(_) => scale * (std::f64::consts::TAU * turn).sin(),
            _ => 0.0,
        }
    };
    let shaped: Vec<f64> = (0..slices).map(|at| LEVEL + shape(at)).collect();
    let values = shaped.iter().zip(noise).map(|(level, noise)| level + NOISE * noise).collect();
    (values, shaped)
}

/// What the interval of a series should hold: the long-run mean for noise and waves, the mean of
/// the process over the window for drift and step.
pub(crate) fn truth(kind: ProcessKind, levels: &[f64]) -> f64 {
    match kind {
        ProcessKind::Drift(_) | ProcessKind::Step(_) => {
            levels.iter().sum::<f64>() / levels.len() as f64
        }
        _ => LEVEL,
    }
}

/// A Poisson count (Knuth), for small means.
fn poisson(rng: &mut Random, mean: f64) -> f64 {
    let (mut count, mut time) = (0.0, rng.exponential());
    while time < mean {
        count += 1.0;
        time += rng.exponential();
    }
    count
}
