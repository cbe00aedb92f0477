//! Step: the level changes at one slice and stays.
//!
//! Method: binary segmentation. In each segment between known steps, the split with the largest
//! likelihood ratio of two levels against one (the CUSUM statistic scaled by its spread; Sen and
//! Srivastava 1975); it counts when its Student t against the long-run variance of what is left
//! exceeds a bound set for the search over all splits.

use crate::noise::{Taken, mean, mean_error};
use crate::student::is_beyond;

/// Chance of a false alarm at one split; a series has some twenty splits that differ much.
const ALPHA: f64 = 0.000_1;
/// Steps that are looked for together when none shows alone.
const TOGETHER_MAX: usize = 4;
/// Fewest standard errors that each of them must measure.
const TOGETHER_ERRORS: f64 = 6.0;
/// Share of the sum of squares that they must explain.
const TOGETHER_EXPLAIN: f64 = 0.4;
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
    let best = strongest_split(series, cuts)?;
    let mut edges = cuts.to_vec();
    edges.push(best.at);
    edges.sort_unstable();
    let error = mean_error(&less_levels(series, &edges), &taken.and_slow(1))?;
    let t = (best.explained / error.long_run_variance(series.len())).sqrt();
    is_beyond(t, ALPHA, error.freedom).then_some(best)
}

/// New cuts that only show together: with one step of a staircase or one edge of a long dip taken
/// out, the rest still looks like slow noise and hides it. They must explain much of the series and
/// every one must be far beyond the noise that is left.
pub(crate) fn best_staircase(series: &[f64], cuts: &[usize], taken: &Taken) -> Option<Vec<usize>> {
    let total: f64 = series.iter().map(|value| value * value).sum();
    let (mut edges, mut left) = (cuts.to_vec(), series.to_vec());
    for more in 1..=TOGETHER_MAX {
        edges.push(strongest_split(&left, &edges)?.at);
        edges.sort_unstable();
        left = less_levels(series, &edges);
        let unexplained: f64 = left.iter().map(|value| value * value).sum();
        if more < 2 || unexplained > (1.0 - TOGETHER_EXPLAIN) * total {
            continue;
        }
        let error = mean_error(&left, &taken.and_slow(more))?;
        let t = smallest_edge(series, &edges, error.long_run_variance(series.len()));
        if t > TOGETHER_ERRORS && is_beyond(t, ALPHA, error.freedom) {
            return Some(edges);
        }
    }
    None
}

/// The split that explains most, of all segments between the cuts.
fn strongest_split(series: &[f64], cuts: &[usize]) -> Option<Split> {
    let shortest = LEVEL_SLICES_MIN.max((series.len() as f64 * LEVEL_SHARE_MIN) as usize);
    let starts = [0].into_iter().chain(cuts.iter().copied());
    let ends = cuts.iter().copied().chain([series.len()]);
    starts
        .zip(ends)
        .filter_map(|(start, end)| split_segment(series, start, end, shortest))
        .max_by(|a, b| a.explained.total_cmp(&b.explained))
}

/// The smallest of the edges in standard errors, `variance` being that of a slice.
fn smallest_edge(series: &[f64], edges: &[usize], variance: f64) -> f64 {
    let all: Vec<usize> =
        [0].into_iter().chain(edges.iter().copied()).chain([series.len()]).collect();
    let size = |edge: &[usize]| {
        let (before, after) = (&series[edge[0]..edge[1]], &series[edge[1]..edge[2]]);
        let spread = 1.0 / before.len() as f64 + 1.0 / after.len() as f64;
        (mean(after) - mean(before)).abs() / (variance * spread).sqrt()
    };
    all.windows(3).map(size).fold(f64::INFINITY, f64::min)
}

/// The series less the mean level of each segment between the edges.
fn less_levels(series: &[f64], edges: &[usize]) -> Vec<f64> {
    let ends = edges.iter().copied().chain([series.len()]);
    let mut left = Vec::with_capacity(series.len());
    for end in ends {
        let segment = &series[left.len()..end];
        let level = mean(segment);
        left.extend(segment.iter().map(|value| value - level));
    }
    left
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
