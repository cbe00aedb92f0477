//! How evenly a rate holds: what a mean hides.
//!
//! Purpose: the worst second relative to the mean, and how long the rate stayed down. Method:
//! windows of one and of two seconds that slide by a tenth of a second over the counts of a series;
//! where its slices are longer, by a slice. Invariant: pure, and a series that is too short to hold
//! two such windows gives no result.

use serde::{Deserialize, Serialize};

/// Windows slide by this.
const STEP_S: f64 = 0.1;
/// Below this share of what is usual a rate counts as down: of the mean of a window, or of the
/// median of the last minute.
pub const DOWN_SHARE: f64 = 0.5;

/// Events of which a window of one second has fewer on average are not judged by the second: chance
/// alone leaves some of many below half the mean.
pub const SECOND_EVENTS_MIN: f64 = 20.0;

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

/// A time in which every window was below half the mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LowSpell {
    /// When it began, in seconds from the start of the series.
    pub start_s: f64,
    /// How long it lasted.
    pub length_s: f64,
    /// Its worst window over the mean.
    pub share_min: f64,
    /// All of its windows over the mean.
    pub share: f64,
}

/// The times in which a rate was below half its mean, in their order. At a low rate windows are
/// longer than a second, so that twenty events are usual in each.
pub fn low_spells(counts: &[f64], width_s: f64) -> Vec<LowSpell> {
    let per_s = counts.iter().sum::<f64>() / (counts.len().max(1) as f64 * width_s);
    let window_s = (SECOND_EVENTS_MIN / per_s).max(1.0);
    Windows::of(counts, width_s, window_s).map_or_else(Vec::new, |windows| windows.low_spells())
}

/// Windows of one length, each a step after the one before.
struct Windows {
    /// Their counts over the mean.
    shares: Vec<f64>,
    window_s: f64,
    step: usize,
    step_s: f64,
    mean: f64,
}

impl Windows {
    /// Those of a series that is long enough for two of them.
    fn of(counts: &[f64], width_s: f64, window_s: f64) -> Option<Self> {
        let slices = slices_in(window_s, width_s)?;
        let step = ((STEP_S / width_s).round() as usize).max(1);
        let mean = counts.iter().sum::<f64>() / counts.len().max(1) as f64;
        if counts.len() < 2 * slices || mean <= 0.0 {
            return None;
        }
        let sums = sliding(counts, slices, step).into_iter();
        let shares = sums.map(|count| count / (mean * slices as f64)).collect();
        Some(Self { shares, window_s, step, step_s: step as f64 * width_s, mean })
    }

    fn low_spells(&self) -> Vec<LowSpell> {
        let mut spells: Vec<LowSpell> = Vec::new();
        let (mut is_down, mut windows) = (false, 0.0);
        for (at, share) in self.shares.iter().copied().enumerate() {
            let was_down = std::mem::replace(&mut is_down, share < DOWN_SHARE);
            match spells.last_mut().filter(|_| was_down && is_down) {
                Some(spell) => {
                    windows += 1.0;
                    spell.share += (share - spell.share) / windows;
                    spell.length_s += self.step_s;
                    spell.share_min = spell.share_min.min(share);
                }
                // A window is low from when half of it lies in the hole.
                None if is_down => {
                    windows = 1.0;
                    spells.push(LowSpell {
                        start_s: if at == 0 {
                            0.0
                        } else {
                            at as f64 * self.step_s + self.window_s / 2.0
                        },
                        length_s: self.step_s,
                        share_min: share,
                        share,
                    });
                }
                None => {}
            }
        }
        spells
    }
}

/// How evenly these counts per slice of `width_s` seconds came. `None` for a series of less than
/// two seconds, of slices longer than one, or of nothing.
pub fn stability(counts: &[f64], width_s: f64) -> Option<Stability> {
    let seconds = Windows::of(counts, width_s, 1.0)?;
    let longest = seconds.low_spells().iter().map(|spell| spell.length_s).fold(0.0, f64::max);
    let Windows { shares, step, mean, .. } = seconds;
    let centre = shares.iter().sum::<f64>() / shares.len() as f64;
    let square = shares.iter().map(|share| (share - centre).powi(2)).sum::<f64>();
    let in_a_second = slices_in(1.0, width_s)?;
    let in_two = slices_in(2.0, width_s).filter(|two| counts.len() >= two + in_a_second);
    let least = |len: usize| {
        let sums = sliding(counts, len, step);
        sums.into_iter().fold(f64::INFINITY, f64::min) / (mean * len as f64)
    };
    Some(Stability {
        min_over_mean_1s: shares.iter().copied().fold(f64::INFINITY, f64::min),
        min_over_mean_2s: in_two.map(least),
        cov_1s: (square / shares.len() as f64).sqrt() / centre.max(f64::MIN_POSITIVE),
        longest_below_half_s: longest,
    })
}

/// The worst second over the mean of those that count, and their share of all. `counts_when` gets
/// the start and the end of each window of one second, in seconds from the start of the series.
pub fn worst_of_seconds(
    counts: &[f64],
    width_s: f64,
    counts_when: impl Fn(f64, f64) -> bool,
) -> Option<(f64, f64)> {
    let Windows { shares, step_s, .. } = Windows::of(counts, width_s, 1.0)?;
    let begins_s = |at: usize| at as f64 * step_s;
    let kept: Vec<f64> = shares
        .iter()
        .enumerate()
        .filter(|(at, _)| counts_when(begins_s(*at), begins_s(*at) + 1.0))
        .map(|(_, share)| *share)
        .collect();
    let mean = kept.iter().sum::<f64>() / kept.len().max(1) as f64;
    let worst = kept.iter().copied().fold(f64::INFINITY, f64::min);
    (mean > 0.0).then(|| (worst / mean, kept.len() as f64 / shares.len() as f64))
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
    fn seconds_that_do_not_count_are_neither_the_worst_nor_in_the_mean() {
        let mut counts = vec![100.0; 300];
        counts[100..150].fill(10.0);
        counts[250] = 50.0;
        let (worst, share) = worst_of_seconds(&counts, 0.1, |_, _| true).unwrap();
        let all = stability(&counts, 0.1).unwrap().min_over_mean_1s;
        assert!((worst - all).abs() < 0.01 && share == 1.0, "{worst} {all} {share}");
        let quiet = |from_s: f64, to_s: f64| to_s <= 10.0 || from_s >= 15.0;
        let (worst, share) = worst_of_seconds(&counts, 0.1, quiet).unwrap();
        assert!((worst - 0.95).abs() < 0.01, "{worst}");
        assert!((0.75..0.85).contains(&share), "{share}");
        assert_eq!(worst_of_seconds(&counts, 0.1, |_, _| false), None);
        assert_eq!(worst_of_seconds(&counts[..15], 0.1, |_, _| true), None, "too short");
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
            let [spell] = low_spells(&counts, 0.1)[..] else { panic!("one stall of {stall_s}") };
            assert!((spell.start_s - 23.7).abs() < 0.11, "{spell:?}");
            assert_eq!(spell.length_s, found.longest_below_half_s);
            assert_eq!(spell.share_min, found.min_over_mean_1s);
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
    fn every_stall_is_found_where_it_was() {
        let mut counts = vec![100.0; 600];
        counts[..20].fill(0.0);
        counts[300..340].fill(10.0);
        counts[580..].fill(0.0);
        let found = low_spells(&counts, 0.1);
        let starts: Vec<f64> = found.iter().map(|spell| spell.start_s).collect();
        assert_eq!(found.len(), 3, "{found:?}");
        // What is left of the rate in the second hole makes it a little shorter.
        for (start_s, expected_s) in starts.into_iter().zip([0.0, 30.1, 58.0]) {
            assert!((start_s - expected_s).abs() < 0.11, "{found:?}");
        }
        let slow: Vec<f64> = counts.iter().map(|count| count / 1_000.0).collect();
        assert_eq!(low_spells(&slow, 0.1), [], "20 s are no time where 20 s have 20 events");
        let slow: Vec<f64> = counts.iter().map(|count| count / 100.0).collect();
        assert_eq!(low_spells(&slow, 0.1).len(), 3, "in windows of 2.4 s");
        // Windows that reach into it from both sides have more.
        assert!((0.1..0.25).contains(&found[1].share), "{found:?}");
        assert_eq!(low_spells(&[100.0; 600], 0.1), []);
        assert_eq!(low_spells(&[], 0.1), []);
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
