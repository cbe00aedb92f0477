//! Many tests at once: p values adjusted for their number.
//!
//! Purpose: a study tests hundreds of contrasts, and 5 % of those that are nothing would be
//! reported as something. Two remedies, both on p values of one family of tests:
//! - [`holm`]: the chance of one false alarm or more stays below the level, whatever the dependence
//!   (Holm, A simple sequentially rejective multiple test procedure, Scandinavian Journal of
//!   Statistics 6, 1979). For few tests, when a single false alarm spoils the answer.
//! - [`benjamini_hochberg`]: of what is reported, the expected share of false alarms stays below
//!   the level (Benjamini and Hochberg, Controlling the false discovery rate, Journal of the Royal
//!   Statistical Society B 57, 1995); proven for independent and positively dependent tests. For
//!   long lists that are read as lists.
//!
//! Invariants: adjusted values are in the order given, never below the raw ones and never above 1.
//! An adjusted value at or below [`ERROR_RATE`] is what counts. It makes no intervals.

use crate::student::{t95, two_sided};

/// Error rate of every conclusion: that of the 95 % interval.
pub const ERROR_RATE: f64 = 0.05;

/// Holm's adjusted p values.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let (order, mut adjusted) = (rising(p_values), vec![1.0; p_values.len()]);
    let mut highest = 0.0f64;
    for (rank, &at) in order.iter().enumerate() {
        highest = highest.max(p_values[at] * (order.len() - rank) as f64).min(1.0);
        adjusted[at] = highest;
    }
    adjusted
}

/// The same where some are not known.
pub fn holm_of_known(p_values: impl Iterator<Item = Option<f64>>) -> Vec<Option<f64>> {
    let all: Vec<Option<f64>> = p_values.collect();
    let mut adjusted = holm(&all.iter().copied().flatten().collect::<Vec<_>>()).into_iter();
    all.into_iter().map(|p| p.and_then(|_| adjusted.next())).collect()
}

/// Adjusted p values of Benjamini and Hochberg.
pub fn benjamini_hochberg(p_values: &[f64]) -> Vec<f64> {
    let (order, mut adjusted) = (rising(p_values), vec![1.0; p_values.len()]);
    let mut lowest = 1.0f64;
    for (rank, &at) in order.iter().enumerate().rev() {
        lowest = lowest.min(p_values[at] * order.len() as f64 / (rank + 1) as f64);
        adjusted[at] = lowest;
    }
    adjusted
}

/// Indexes by rising p value.
fn rising(p_values: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    order
}

/// Probability that chance alone brings an estimate at least so far from 0, of which the 95 %
/// interval has this half width and rests on so many degrees of freedom. At or below [`ERROR_RATE`]
/// exactly when the interval does not hold 0.
pub(crate) fn p_value(estimate: f64, half_width: f64, freedom: f64) -> f64 {
    if estimate == 0.0 {
        return 1.0;
    }
    two_sided(estimate.abs() / half_width * t95(freedom), freedom)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn close(got: &[f64], want: &[f64]) {
        assert_eq!(got.len(), want.len());
        for (got, want) in got.iter().zip(want) {
            assert!((got - want).abs() < 1e-12, "{got} for {want}");
        }
    }

    #[test]
    fn adjusts_as_computed_by_hand() {
        let raw = [0.03, 0.01, 0.04, 0.5];
        close(&holm(&raw), &[0.09, 0.04, 0.09, 0.5]);
        close(&benjamini_hochberg(&raw), &[0.16 / 3.0, 0.04, 0.16 / 3.0, 0.5]);
        assert!(holm(&[]).is_empty() && benjamini_hochberg(&[]).is_empty());
        close(&holm(&[0.2]), &[0.2]);
        close(&benjamini_hochberg(&[0.9, 0.8]), &[0.9, 0.9]);
    }

    #[test]
    fn the_p_value_turns_where_the_interval_touches_zero() {
        for freedom in [1.0, 2.0, 7.5, 60.0] {
            assert!((p_value(0.3, 0.3, freedom) - ERROR_RATE).abs() < 1e-6, "{freedom}");
            assert!(
                p_value(-0.31, 0.3, freedom) < ERROR_RATE
                    && p_value(0.29, 0.3, freedom) > ERROR_RATE
            );
        }
        assert_eq!((p_value(0.0, 0.0, 3.0), p_value(1.0, 0.0, 3.0)), (1.0, 0.0));
    }

    /// p values of `tests` t tests on 4 values each; the first `real` of them have an effect.
    fn tested(rng: &mut Random, tests: usize, real: usize) -> Vec<f64> {
        let one = |at: usize| {
            let effect = if at < real { 4.0 } else { 0.0 };
            let values: Vec<f64> = (0..4).map(|_| effect + rng.normal()).collect();
            let (mean, half_width) = crate::combine::mean_and_half_width(&values);
            p_value(mean, half_width, 3.0)
        };
        (0..tests).map(one).collect()
    }

    #[test]
    fn all_null_families_rarely_raise_an_alarm() {
        let (mut rng, mut raw, mut by_holm, mut by_bh) = (Random::new(31), 0, 0, 0);
        for _ in 0..2_000 {
            let p_values = tested(&mut rng, 40, 0);
            let alarms = |p: &[f64]| u32::from(p.iter().any(|&p| p <= ERROR_RATE));
            raw += alarms(&p_values);
            by_holm += alarms(&holm(&p_values));
            by_bh += alarms(&benjamini_hochberg(&p_values));
        }
        println!("families of 40 with an alarm, of 2000: raw {raw}, Holm {by_holm}, BH {by_bh}");
        assert!(raw > 1_600, "without a remedy most families have one: {raw}");
        assert!((70..=130).contains(&by_holm) && (70..=130).contains(&by_bh));
    }

    #[test]
    fn of_what_benjamini_and_hochberg_report_few_are_false() {
        let (mut rng, mut share, mut found, mut more) = (Random::new(32), 0.0, 0, 0);
        for _ in 0..1_000 {
            let p_values = tested(&mut rng, 40, 20);
            let reported: Vec<usize> = {
                let adjusted = benjamini_hochberg(&p_values);
                (0..40).filter(|&at| adjusted[at] <= ERROR_RATE).collect()
            };
            let wrong = reported.iter().filter(|&&at| at >= 20).count();
            share += wrong as f64 / reported.len().max(1) as f64 / 1_000.0;
            found += reported.len() - wrong;
            more += holm(&p_values).iter().filter(|&&p| p <= ERROR_RATE).count();
        }
        println!("share of false reports {share:.3}; {found} found, {more} by Holm");
        assert!((0.015..=0.035).contains(&share), "half are null, so 2.5 % is expected: {share}");
        assert!(found > more, "the list is longer than Holm's");
    }

    #[test]
    fn p_values_of_nothing_are_uniform() {
        let mut rng = Random::new(33);
        let p_values = tested(&mut rng, 4_000, 0);
        for share in [0.01, 0.05, 0.5] {
            let below = p_values.iter().filter(|&&p| p <= share).count() as f64 / 4_000.0;
            assert!((below - share).abs() < 0.03 * (share + 0.15), "{share}: {below}");
        }
    }
}
