//! What to expect when the same is measured again.
//!
//! Purpose: the interval of a window holds the mean of that window. A shared machine is a little
//! faster or slower some minutes later, and the statistics of one window cannot show by how much.
//! Earlier runs do: from their spread comes an interval for the next one.
//! Method: rates are compared on a logarithmic scale. The variance from run to run is that of the
//! runs so far, together with an assumption that counts as much as [`ASSUMED_FREEDOM`] runs: the
//! error of this window, what moved slowly within it, and a drift of [`ASSUMED_DRIFT`]. Where runs
//! are like those just before them, they count as fewer. The interval is Student's t for one more
//! run. With runs at hand they decide; without any it is wide.
//! Invariant: it holds the value itself and is never narrower than the interval of the window. It
//! has no notion of time: the caller passes runs that are recent enough to predict the next hour.

use serde::{Deserialize, Serialize};

use crate::noise::{batch_means, lag1, mean};
use crate::student::t95;
use crate::{Interval, Measured};

/// Relative drift of a machine of which nothing is known.
const ASSUMED_DRIFT: f64 = 0.05;
/// Earlier runs that the assumption counts for.
const ASSUMED_FREEDOM: f64 = 2.0;
/// Runs from which on it shows whether neighbours are alike.
const NEIGHBOURS_MIN: usize = 5;
/// Parts of a window whose means show what moves slowly within it.
const PARTS: usize = 4;

/// The interval for another run, and what it rests on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Repeat {
    /// Holds the mean of a run of the same length within the next hour, in 95 of 100 cases.
    pub ci95: Interval,
    /// Earlier runs of the same workload on this host and path behind it; with none it rests on
    /// an assumed drift of 5 % and on what moved within this window.
    pub earlier_runs: u64,
}

/// What a run of the same length is expected to measure. `slices` are counts per equal slice of
/// this window, `earlier` the values of recent runs of the same, in their order. `None` when the
/// value is not positive.
pub fn repeat(this: &Measured, slices: &[f64], earlier: &[f64]) -> Option<Repeat> {
    if this.value <= 0.0 {
        return None;
    }
    let known = earlier.iter().copied().filter(|value| value.is_finite() && *value > 0.0);
    let logs: Vec<f64> = known.chain([this.value]).map(f64::ln).collect();
    let mean = mean(&logs);
    let runs = independent(&logs);
    // The spread of n runs around their own mean is the machine's spread, less the spread of the
    // mean.
    let square = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / logs.len() as f64;
    let between = if runs > 1.0 { square / (1.0 - 1.0 / runs) } else { 0.0 };
    let error = this.relative_half_width().min(1.0) / 1.96;
    let assumed = ASSUMED_DRIFT.powi(2) + error.powi(2) + slow_variance(slices, error);
    let freedom = ASSUMED_FREEDOM + runs - 1.0;
    let variance = (ASSUMED_FREEDOM * assumed + (runs - 1.0) * between) / freedom;
    let half_width = t95(freedom) * (variance * (1.0 + 1.0 / runs)).sqrt();
    let [low, high] = this.ci95.unwrap_or([this.value; 2]);
    let ci95 = [(mean - half_width).exp().min(low), (mean + half_width).exp().max(high)];
    Some(Repeat { ci95, earlier_runs: earlier.len() as u64 })
}

/// How many independent runs these are worth, by the correlation of neighbours.
fn independent(logs: &[f64]) -> f64 {
    let n = logs.len() as f64;
    if logs.len() < NEIGHBOURS_MIN || logs.iter().all(|log| *log == logs[0]) {
        return n;
    }
    // The correlation of few is too low by about (1 + 3 rho) / n (Kendall, 1954).
    let found = lag1(logs);
    let rho = (found + (1.0 + 3.0 * found.max(0.0)) / n).clamp(0.0, 0.9);
    (n * (1.0 - rho) / (1.0 + rho)).max(1.5)
}

/// Relative variance between the parts of a window, beyond what its noise explains.
fn slow_variance(slices: &[f64], error: f64) -> f64 {
    let part = slices.len() / PARTS;
    if part == 0 {
        return 0.0;
    }
    let means = batch_means(&slices[..part * PARTS], part);
    let mean = mean(&means);
    if mean <= 0.0 {
        return 0.0;
    }
    let squares: f64 = means.iter().map(|one| (one / mean - 1.0).powi(2)).sum();
    (squares / (PARTS - 1) as f64 - PARTS as f64 * error.powi(2)).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use crate::simulate::{NOISE, autocorrelated};
    use crate::{Verdicts, estimate};

    const RUNS: usize = 30;
    const SLICES: usize = 400;

    fn run(level: f64, rng: &mut Random) -> (Measured, Vec<f64>) {
        let noise = autocorrelated(rng, SLICES, 0.3);
        let slices: Vec<f64> = noise.iter().map(|one| level + NOISE * one).collect();
        (estimate(&slices).unwrap(), slices)
    }

    /// Shares of intervals that hold the other runs' means: of the windows, and of the repeats.
    /// Runs follow each other on a machine that is faster and slower by `drift`, slowly: `rho` is
    /// the correlation of its level from one run to the next.
    fn shares(drift: f64, rho: f64, seed: u64) -> [f64; 2] {
        let mut rng = Random::new(seed);
        let (mut held, mut all) = ([0; 2], 0);
        for _ in 0..40 {
            let levels = autocorrelated(&mut rng, RUNS, rho);
            let runs: Vec<_> =
                levels.iter().map(|level| run(1_000.0 * (drift * level).exp(), &mut rng)).collect();
            let values: Vec<f64> = runs.iter().map(|(one, _)| one.value).collect();
            for (at, (this, slices)) in runs.iter().enumerate() {
                let again = repeat(this, slices, &values[..at]).unwrap().ci95;
                for (other, value) in values.iter().enumerate() {
                    let holds =
                        |[low, high]: Interval| usize::from(low <= *value && *value <= high);
                    if other != at {
                        held[0] += holds(this.ci95.unwrap());
                        held[1] += holds(again);
                        all += 1;
                    }
                }
            }
        }
        held.map(|held| held as f64 / all as f64)
    }

    #[test]
    fn repeats_on_a_drifting_machine_fall_in() {
        for (seed, (drift, rho)) in
            [(0.03, 0.0), (0.05, 0.5), (0.1, 0.0), (0.1, 0.8), (0.2, 0.5)].into_iter().enumerate()
        {
            let [window, again] = shares(drift, rho, seed as u64);
            println!(
                "coverage of repeats, drift {drift}, rho {rho}: {:.1} %, of the window {:.1} %",
                100.0 * again,
                100.0 * window
            );
            assert!((0.92..=0.993).contains(&again), "drift {drift}, rho {rho}: {again} held");
            assert!(window < 0.75, "the window's own interval says nothing of repeats: {window}");
        }
    }

    #[test]
    fn a_steady_machine_is_known_after_some_runs() {
        let mut rng = Random::new(9);
        let (this, slices) = run(1_000.0, &mut rng);
        let width = |earlier: &[f64]| {
            let [low, high] = repeat(&this, &slices, earlier).unwrap().ci95;
            (high - low) / 2.0 / this.value
        };
        let alone = width(&[]);
        let known: Vec<f64> = (0..30).map(|_| run(1_000.0, &mut rng).0.value).collect();
        assert!((0.2..0.5).contains(&alone), "{alone}");
        assert!(width(&known) < 0.2 * alone + 0.03, "{} of {alone}", width(&known));
    }

    #[test]
    fn it_holds_the_value_and_the_window() {
        let this = Measured::new(500.0, [400.0, 600.0], 30, Verdicts::none());
        let found = repeat(&this, &[], &[1_000.0; 9]).unwrap();
        assert_eq!(found.earlier_runs, 9);
        assert!(found.ci95[0] <= 400.0 && found.ci95[1] >= 1_000.0, "{found:?}");
        let none = Measured::without_interval(0.0, 0, Verdicts::none());
        assert_eq!(repeat(&none, &[], &[5.0]), None);
        let bare = Measured::without_interval(500.0, 3, Verdicts::none());
        let [low, high] = repeat(&bare, &[], &[]).unwrap().ci95;
        assert!(low < 200.0 && high > 1_000.0, "{low} {high}");
    }
}
