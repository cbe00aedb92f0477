//! Quantiles of Student's t distribution.
//!
//! Invariant: degrees of freedom may be fractional and are at least 1; the result is finite.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// Half width of the 95 % interval in standard errors, for a standard error with so many degrees
/// of freedom.
pub(crate) fn t95(freedom: f64) -> f64 {
    t_two_sided(0.05, freedom)
}

/// The value that |t| exceeds with probability `alpha`.
pub(crate) fn t_two_sided(alpha: f64, freedom: f64) -> f64 {
    assert!(alpha > 0.0 && alpha < 1.0, "a probability, not {alpha}");
    // Beyond this the difference from the normal distribution is under 0.01 %.
    let freedom = freedom.clamp(1.0, 100_000.0);
    match StudentsT::new(0.0, 1.0, freedom) {
        Ok(t) => t.inverse_cdf(1.0 - alpha / 2.0),
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
        assert!((t_two_sided(0.01, 10.0) - 3.169).abs() < 0.0006);
        assert!(t95(0.1).is_finite() && t95(f64::INFINITY).is_finite());
    }
}
