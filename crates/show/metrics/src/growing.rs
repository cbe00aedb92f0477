//! Totals of rates. Invariant: none ever falls, and one that is never told stays absent.

/// Adds a rate over so many seconds, where it is told.
pub(crate) fn grow(total: &mut Option<f64>, rate: Option<f64>, length_s: f64) {
    if let Some(rate) = rate.filter(|rate| rate.is_finite()) {
        *total = Some(total.unwrap_or(0.0) + rate.max(0.0) * length_s);
    }
}
