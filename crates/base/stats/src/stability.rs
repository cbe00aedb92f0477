//! How evenly a rate holds: what a mean hides.
//!
//! Purpose: the worst second beside the mean, and how long the rate stayed down. Method: windows of
//! one and of two seconds that slide by a tenth of a second over the counts of a series; where its
//! slices are longer, by a slice. Invariant: pure, and nothing is said of a series that is too
//! short to hold two such windows.

use serde::{Deserialize, Serialize};

/// Windows slide by this.
const STEP_S: f64 = 0.1;
/// Below this share of the mean a window counts as down.
const DOWN_SHARE: f64 = 0.5;

/// How evenly a rate held.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Stability {
    /// The worst second over the mean: 1 is perfectly even, 0 a second in which nothing completed.
    pub min_over_mean_1s: f64,
    /// The worst two seconds over the mean; absent in a series shorter than three.
    pub min_over_mean_2s: Option<f64>,
    /// Standard deviation over mean of the rates in windows of one second.
    pub cov_1s: f64,
    /// The longest time in seconds for which windows of one second were below half the mean.
    pub longest_below_half_s: f64,
}

/// How evenly these counts per slice of `width_s` seconds came. `None` for a series of less than
/// two seconds, of slices longer than one, or of nothing.
pub fn stability(counts: &[f64], width_s: f64) -> Option<Stability> {
    let in_a_second = slices_in(1.0, width_s)?;
    let step = ((STEP_S / width_s).round() as usize).max(1);
    let mean = counts.iter().sum::<f64>() / counts.len().max(1) as f64;
    if counts.len() < 2 * in_a_second || mean <= 0.0 {
        return None;
    }
    let seconds = sliding(counts, in_a_second, step);
    let shares: Vec<f64> =
        seconds.iter().map(|count| count / (mean * in_a_second as f64)).collect();
    let centre = shares.iter().sum::<f64>() / shares.len() as f64;
    let square = shares.iter().map(|share| (share - centre).powi(2)).sum::<f64>();
    let below = |share: &f64| *share < DOWN_SHARE;
    let longest = shares.split(|share| !below(share)).map(<[f64]>::len).max().unwrap_or(0);
    let in_two = slices_in(2.0, width_s).filter(|two| counts.len() >= two + in_a_second);
    let least = |len: usize| {
        let sums = sliding(counts, len, step);
        sums.into_iter().fold(f64::INFINITY, f64::min) / (mean * len as f64)
    };
    Some(Stability {
        min_over_mean_1s: least(in_a_second),
        min_over_mean_2s: in_two.map(least),
        cov_1s: (square / shares.len() as f64).sqrt() / centre.max(f64::MIN_POSITIVE),
        longest_below_half_s: (longest * step) as f64 * width_s,
    })
}

/// Slices in so many seconds; none where a slice is longer.
fn slices_in(seconds: f64, width_s: f64) -> Option<usize> {
    let slices = (seconds / width_s).round();
    (width_s > 0.0 && slices >= 1.0 && slices.is_finite()).then_some(slices as usize)
}

/// Sums of windows of `len` slices, each a step after the one before.
fn sliding(counts: &[f64], len: usize, step: usize) -> Vec<f64> {
    counts.windows(len).step_by(step).map(|window| window.iter().sum()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_even_rate_has_nothing_to_hide() {
        for width_s in [0.01, 0.1, 0.5, 1.0] {
            let found = stability(&vec![50.0; (30.0 / width_s) as usize], width_s).unwrap();
            assert!((found.min_over_mean_1s - 1.0).abs() < 1e-9, "{found:?}");
            assert!((found.min_over_mean_2s.unwrap() - 1.0).abs() < 1e-9);
            assert!(found.cov_1s < 1e-9 && found.longest_below_half_s == 0.0);
        }
    }

    #[test]
    fn a_stall_is_as_long_as_it_was() {
        for stalled in [6, 10, 25, 73] {
            let mut counts = vec![100.0; 600];
            // Not on the edge of a second.
            counts[237..237 + stalled].fill(0.0);
            let found = stability(&counts, 0.1).unwrap();
            let stall_s = stalled as f64 * 0.1;
            assert!((found.longest_below_half_s - stall_s).abs() < 0.11, "{stall_s}: {found:?}");
            let worst = if stalled >= 10 { 0.0 } else { 0.4 };
            assert!((found.min_over_mean_1s - worst).abs() < 0.01, "{stall_s}: {found:?}");
            assert!(found.min_over_mean_2s.unwrap() >= found.min_over_mean_1s);
            assert!(found.cov_1s > 0.05);
        }
    }

    #[test]
    fn a_dip_between_two_whole_seconds_is_seen() {
        let mut counts = vec![100.0; 300];
        counts[145..155].fill(20.0);
        let found = stability(&counts, 0.1).unwrap();
        assert!((found.min_over_mean_1s - 0.2).abs() < 0.02, "{found:?}");
        assert!((found.min_over_mean_2s.unwrap() - 0.6).abs() < 0.03, "{found:?}");
        assert!((found.longest_below_half_s - 0.7).abs() < 0.2, "{found:?}");
    }

    #[test]
    fn nothing_is_said_of_nothing() {
        assert_eq!(stability(&[], 0.1), None);
        assert_eq!(stability(&[5.0; 19], 0.1), None);
        assert_eq!(stability(&[0.0; 100], 0.1), None);
        assert_eq!(stability(&[5.0; 100], 3.0), None);
        assert_eq!(stability(&[5.0; 100], 0.0), None);
        assert_eq!(stability(&[5.0; 20], 0.1).unwrap().min_over_mean_2s, None);
    }
}
