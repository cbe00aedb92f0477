//! Does the 95 % interval hold the truth 95 times in 100?
//!
//! 2,000 simulated series of each kind, at a fixed length and with adaptive stopping. The share
//! held is printed (`cargo test -p iostrata-stats coverage -- --nocapture`) and must lie within 93
//! to 97 %, of waves above 93 %; its own standard error is 0.5 %. `estimate` defines the true value
//! of each kind. Adaptive series are counted whether the rule stopped them or time ran out, as a
//! user sees them; drifts and steps mostly run out of time, because the rule does not stop while
//! they last.

use ProcessKind::{Autocorrelated, Drift, Exponential, Poisson, Step, Wave, White};

use crate::random::Random;
use crate::simulate::{LEVEL, NOISE, ProcessKind, series, series_waving, truth};
use crate::{Stop, StoppingRule, estimate};

const SERIES: usize = 2_000;

/// Slices after which time runs out in an adaptive measurement.
const TIME_OUT: usize = 1_500;

/// Prints and checks the share of intervals that held the truth.
fn check(kind: ProcessKind, how: &str, held: usize) {
    let share = 100.0 * held as f64 / SERIES as f64;
    println!("coverage {kind:?}, {how}: {share:.1} % of {SERIES}");
    // Batch means take a wave that is not taken out for noise: the interval is wide.
    let most = if matches!(kind, Wave(_)) { 100.0 } else { 97.0 };
    assert!((93.0..=most).contains(&share), "{kind:?}, {how}: {share:.1} % held");
}

/// Intervals of series of 300 to 1,200 slices that hold the truth.
fn fixed_length(kind: ProcessKind, seed: u64) {
    let mut rng = Random::new(seed);
    let held = (0..SERIES).filter(|_| {
        let length = 300 + rng.below(900) as usize;
        let (slices, levels) = series(&mut rng, kind, length);
        let [low, high] = estimate(&slices).unwrap().ci95.unwrap();
        (low..=high).contains(&truth(kind, &levels))
    });
    check(kind, "fixed length", held.count());
}

/// Intervals of series that stop when precise enough. The target precision would need 100 to 500
/// slices if the noise were known; `rho` is the autocorrelation of the noise.
fn adaptive(kind: ProcessKind, rho: f64, seed: u64) {
    let mut rng = Random::new(seed);
    let (mut stopped, mut used) = (0, 0);
    let held = (0..SERIES).filter(|_| {
        let (slices, levels) = series_waving(&mut rng, kind, TIME_OUT, 40.0);
        let needed = 100.0 * (rng.uniform() * 5f64.ln()).exp();
        let precision = 1.96 * NOISE / LEVEL * ((1.0 + rho) / (1.0 - rho) / needed).sqrt();
        let rule = StoppingRule::new(precision, 100);
        let end = end_of(&rule, &slices);
        stopped += usize::from(end.is_some());
        let length = end.unwrap_or(TIME_OUT);
        used += length;
        let [low, high] = rule.estimate(&slices[..length]).unwrap().ci95.unwrap();
        (low..=high).contains(&truth(kind, &levels[..length]))
    });
    let held = held.count();
    let (share, mean) = (100.0 * stopped as f64 / SERIES as f64, used / SERIES);
    check(kind, &format!("adaptive ({share:.0} % stopped, {mean} slices)"), held);
}

/// Where the rule stops a series.
fn end_of(rule: &StoppingRule, slices: &[f64]) -> Option<usize> {
    std::iter::successors(Some(rule.next_check(0)), |&moment| Some(rule.next_check(moment)))
        .take_while(|&moment| moment <= slices.len())
        .find(|&moment| rule.decide(&slices[..moment]) == Stop::Enough)
}

#[test]
fn fixed_white_and_skewed_noise() {
    fixed_length(White, 1);
    fixed_length(Exponential, 2);
    fixed_length(Poisson(2.0), 3);
}

#[test]
fn fixed_autocorrelated_noise() {
    fixed_length(Autocorrelated(0.3), 4);
    fixed_length(Autocorrelated(0.5), 5);
    fixed_length(Autocorrelated(0.8), 6);
}

#[test]
fn fixed_drifts() {
    fixed_length(Drift(0.0), 7);
    fixed_length(Drift(0.5), 8);
}

#[test]
fn fixed_steps() {
    fixed_length(Step(0.0), 9);
    fixed_length(Step(0.5), 10);
}

#[test]
fn fixed_waves() {
    fixed_length(Wave(0.0), 11);
    fixed_length(Wave(0.5), 12);
}

#[test]
fn adaptive_white_noise() {
    adaptive(White, 0.0, 13);
}

#[test]
fn adaptive_autocorrelated_noise() {
    adaptive(Autocorrelated(0.5), 0.5, 14);
    adaptive(Autocorrelated(0.8), 0.8, 15);
}

#[test]
fn adaptive_drifts_and_steps() {
    adaptive(Drift(0.3), 0.3, 16);
    adaptive(Step(0.3), 0.3, 17);
}

#[test]
fn adaptive_waves() {
    adaptive(Wave(0.3), 0.3, 18);
}
