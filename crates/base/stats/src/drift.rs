//! Whether a rate ended as it began: the last third of a window against the first.
//!
//! Purpose: say in plain numbers by how much a long run slowed down or sped up. Method: each third
//! gets its mean and interval as any figure does; the change is their ratio. Invariant: pure; it
//! decides no verdict. Whether a rate is steady is judged from its shapes, of which a straight
//! line over the whole window is one.

use serde::{Deserialize, Serialize};

use crate::{Interval, estimate, loss_pct};

/// Fewest slices of a third.
const SLICES_MIN: usize = 4;

/// The last third of a window against the first.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Drift {
    /// Mean per second in the first third.
    pub first_tps: f64,
    /// Mean per second in the last third.
    pub last_tps: f64,
    /// By how much the last third is above the first, in percent; negative where it is below.
    pub change_pct: f64,
    /// Its 95 % interval; null where a third is too short for one.
    pub change_pct_ci95: Option<Interval>,
    /// Independent samples in the third that has fewer.
    pub change_pct_n: u64,
}

impl Drift {
    /// Whether the change is beyond its interval.
    pub fn is_significant(&self) -> bool {
        self.change_pct_ci95.is_some_and(|[low, high]| low > 0.0 || high < 0.0)
    }
}

/// The drift of counts per slice of `width_s` seconds. `None` for a series of less than twelve
/// slices, or where nothing was counted in one of the thirds.
pub fn drift(counts: &[f64], width_s: f64) -> Option<Drift> {
    let third = counts.len() / 3;
    if third < SLICES_MIN || width_s <= 0.0 {
        return None;
    }
    let mean_of = |slices: &[f64]| Some(estimate(slices)?.scaled(1.0 / width_s));
    let (first, last) = (mean_of(&counts[..third])?, mean_of(&counts[counts.len() - third..])?);
    let change = loss_pct(&first, &last).ok()?.scaled(-1.0);
    Some(Drift {
        first_tps: first.value,
        last_tps: last.value,
        change_pct: change.value,
        change_pct_ci95: change.ci95,
        change_pct_n: change.n,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use crate::simulate::{LEVEL, ProcessKind, series};

    #[test]
    fn a_rate_that_falls_is_told_with_its_size() {
        let mut rng = Random::new(5);
        // From 1,100 to 900 per slice of a tenth of a second: thirds lie 2/3 of that apart.
        let counts: Vec<f64> =
            (0..900).map(|at| 1_100.0 - 200.0 * at as f64 / 900.0 + 20.0 * rng.normal()).collect();
        let found = drift(&counts, 0.1).unwrap();
        assert!((found.first_tps - 10_666.7).abs() < 60.0, "{found:?}");
        assert!((found.last_tps - 9_333.3).abs() < 60.0, "{found:?}");
        assert!((found.change_pct + 12.5).abs() < 1.0 && found.is_significant(), "{found:?}");
        let [low, high] = found.change_pct_ci95.unwrap();
        assert!(low <= found.change_pct && found.change_pct <= high && found.change_pct_n >= 30);
    }

    #[test]
    fn noise_is_rarely_taken_for_a_drift() {
        for kind in [ProcessKind::White, ProcessKind::Autocorrelated(0.5)] {
            let mut rng = Random::new(6);
            let drifts = |_| drift(&series(&mut rng, kind, 600).0, 0.1).unwrap().is_significant();
            let found = (0..400).map(drifts).filter(|is_significant| *is_significant).count();
            assert!(found <= 40, "{kind:?}: {found} of 400 at a level of {LEVEL}");
        }
    }

    #[test]
    fn nothing_is_said_of_nothing() {
        assert_eq!(drift(&[], 0.1), None);
        assert_eq!(drift(&[5.0; 11], 0.1), None);
        assert_eq!(drift(&[0.0; 100], 0.1), None);
        assert_eq!(drift(&[5.0; 100], 0.0), None);
        let even = drift(&[5.0; 100], 0.1).unwrap();
        assert!((even.first_tps - 50.0).abs() < 1e-9 && !even.is_significant(), "{even:?}");
    }
}
