//! Step: the level changes at one slice and stays.
//!
//! Method: binary segmentation. In each segment between known steps, the split with the largest
//! likelihood ratio of two levels against one (the CUSUM statistic scaled by its spread; Sen and
//! Srivastava 1975); it counts when its Student t against the long-run variance of what is left
//! exceeds a bound set for the search over all splits.

use crate::noise::{Taken, mean, mean_error};
use crate::student::t_two_sided;

/// Chance of a false alarm at one split; a series has some twenty splits that differ much.
const ALPHA: f64 = 0.000_1;
/// A level must last this many slices at least.
const LEVEL_SLICES_MIN: usize = 6;
/// And this share of the window.
const LEVEL_SHARE_MIN: f64 = 0.03;

/// A split that would be a new step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Split {
    /// First slice of the new level.
    pub(crate) at: usize,
    /// Sum of squares it explains.
    pub(crate) explained: f64,
}

/// The best significant split of a series beside the cuts known already (sorted).
pub(crate) fn best_split(series: &[f64], cuts: &[usize], taken: &Taken) -> Option<Split> {
    let shortest = LEVEL_SLICES_MIN.max((series.len() as f64 * LEVEL_SHARE_MIN) as usize);
    let starts = [0].into_iter().chain(cuts.iter().copied());
    let ends = cuts.iter().copied().chain([series.len()]);
    let split = |(start, end): (usize, usize)| split_segment(series, start, end, shortest);
    let (best, start, end) = starts
        .zip(ends)
        .filter_map(|range| split(range).map(|found| (found, range.0, range.1)))
        .max_by(|a, b| a.0.explained.total_cmp(&b.0.explained))?;
    let mut left = series.to_vec();
    for (from, to) in [(start, best.at), (best.at, end)] {
        let level = mean(&series[from..to]);
        left[from..to].iter_mut().for_each(|value| *value -= level);
    }
    let error = mean_error(&left, &taken.and_slow(1))?;
    let t = (best.explained / error.long_run_variance(series.len())).sqrt();
    (t > t_two_sided(ALPHA, error.freedom)).then_some(best)
}

/// The split of `start..end` that explains most, each part at least `shortest` long.
fn split_segment(series: &[f64], start: usize, end: usize, shortest: usize) -> Option<Split> {
    let segment = &series[start..end];
    if segment.len() < 2 * shortest {
        return None;
    }
    let (centre, total) = (mean(segment), segment.len() as f64);
    let (mut sum, mut best) = (0.0, Split { at: start, explained: 0.0 });
    for (index, value) in segment.iter().enumerate().take(segment.len() - shortest) {
        sum += value - centre;
        let before = index + 1;
        let explained = sum * sum * total / (before as f64 * (total - before as f64));
        if before >= shortest && explained > best.explained {
            best = Split { at: start + before, explained };
        }
    }
    (best.explained > 0.0).then_some(best)
}

/// 0 before the step, 1 from it on, less its mean.
pub(crate) fn column(slices: usize, at: usize) -> Vec<f64> {
    let share = (slices - at) as f64 / slices as f64;
    (0..slices).map(|slice| if slice < at { -share } else { 1.0 - share }).collect()
}
