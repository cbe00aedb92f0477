//! Quantiles of Student's t distribution.
//!
//! Invariant: degrees of freedom may be fractional and are at least 1; the result is finite.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// Half width of the 95 % interval in standard errors, for a standard error with so many degrees
/// of freedom.
pub(crate) fn t95(freedom: f64) -> f64 {
    student(freedom).inverse_cdf(0.975)
}

/// The same of the 99 % interval.
pub(crate) fn t99(freedom: f64) -> f64 {
    student(freedom).inverse_cdf(0.995)
}

/// Whether |t| is larger than chance makes it with probability `alpha` (at most 0.04).
pub(crate) fn is_beyond(t: f64, alpha: f64, freedom: f64) -> bool {
    assert!(alpha > 0.0 && alpha <= 0.04, "a small probability, not {alpha}");
    // Most calls end here: below the normal distribution's bound for 5 %, no freedom helps.
    t.abs() > 1.96 && two_sided(t.abs(), freedom) < alpha
}

/// Chance of a |t| at least so large.
pub(crate) fn two_sided(t: f64, freedom: f64) -> f64 {
    (2.0 * student(freedom).sf(t)).min(1.0)
}

/// The distribution; freedom is clamped to where it is finite and to where it is normal enough (a
/// difference under 0.01 %).
fn student(freedom: f64) -> StudentsT {
    let freedom = freedom.clamp(1.0, 100_000.0);
    match StudentsT::new(0.0, 1.0, freedom) {
        Ok(t) => t,
        Err(error) => unreachable!("scale 1 and freedom {freedom} are valid: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_printed_tables() {
        for (freedom, want) in
            [(1.0, 12.706), (2.0, 4.303), (5.0, 2.571), (29.0, 2.045), (1e4, 1.960)]
        {
            assert!((t95(freedom) - want).abs() < 0.0006, "{freedom}: {}", t95(freedom));
        }
        assert!((t99(3.0) - 5.841).abs() < 0.0006, "{}", t99(3.0));
        assert!(is_beyond(3.170, 0.01, 10.0) && !is_beyond(-3.168, 0.01, 10.0));
        assert!(is_beyond(f64::INFINITY, 0.001, 3.0) && !is_beyond(f64::NAN, 0.001, 3.0));
        assert!(t95(0.1).is_finite() && t95(f64::INFINITY).is_finite());
    }
}
