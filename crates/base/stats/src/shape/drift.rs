//! Drift: a straight line over the whole window.
//!
//! Method: least-squares slope, tested by Student's t against the long-run variance of what is
//! left when the line is taken out (so that autocorrelation is not taken for a drift).

use crate::noise::{Taken, mean_error};
use crate::student::is_beyond;

/// Chance of a false alarm that one test may have.
const ALPHA: f64 = 0.002;

/// Sum of squares that a line explains in a series of mean 0, if it is significant. `taken` was
/// taken from the series before.
pub(crate) fn explained(series: &[f64], taken: &Taken) -> Option<f64> {
    let line = column(series.len());
    let square: f64 = line.iter().map(|value| value * value).sum();
    if square == 0.0 {
        return None;
    }
    let slope = line.iter().zip(series).map(|(at, value)| at * value).sum::<f64>() / square;
    let left: Vec<f64> = series.iter().zip(&line).map(|(value, at)| value - slope * at).collect();
    let error = mean_error(&left, &taken.and_slow(1))?;
    let slope_error = (error.long_run_variance(series.len()) / square).sqrt();
    is_beyond(slope / slope_error, ALPHA, error.freedom).then_some(slope * slope * square)
}

/// The line: one unit of rise over the whole window, mean 0.
pub(crate) fn column(slices: usize) -> Vec<f64> {
    let span = slices as f64;
    (0..slices).map(|at| (at as f64 + 0.5) / span - 0.5).collect()
}
