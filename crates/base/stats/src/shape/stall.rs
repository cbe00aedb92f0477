//! Stalls: a run of slices near zero amid a rate that is not.
//!
//! Method: a slice is near zero below a tenth of the median. A run of such slices is a stall when
//! noise alone would hardly make it: with `p` the share of near-zero slices outside the run and `q`
//! the chance that one follows another there, a run of `L` is expected `n p q^(L-1)` times.
//! A single slice must besides lie far below the usual spread.

/// A slice below this share of the median is near zero.
const NEAR_ZERO: f64 = 0.1;
/// Expected number of such runs by chance above which a run is no stall.
const BY_CHANCE_MAX: f64 = 0.005;
/// Distance below the median, in robust standard deviations, that a single slice must have.
const SINGLE_DISTANCE: f64 = 6.0;

/// A run of slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) at: usize,
    pub(crate) slices: usize,
}

/// Every stall, in order; none when the series is not positive on the whole.
pub(crate) fn find(slices: &[f64]) -> Vec<Run> {
    if slices.len() < 8 {
        return Vec::new();
    }
    let centre = median(slices.to_vec());
    if centre <= 0.0 {
        return Vec::new();
    }
    let near_zero: Vec<bool> = slices.iter().map(|&value| value < NEAR_ZERO * centre).collect();
    let runs = runs(&near_zero);
    if runs.is_empty() {
        return runs;
    }
    let spread = 1.4826 * median(slices.iter().map(|value| (value - centre).abs()).collect());
    if centre * (1.0 - NEAR_ZERO) > SINGLE_DISTANCE * spread {
        return runs;
    }
    let improbable =
        |run: &&Run| run.slices > 1 && by_chance(&runs, **run, slices.len()) < BY_CHANCE_MAX;
    runs.iter().filter(improbable).copied().collect()
}

/// Maximal runs of near-zero slices.
fn runs(near_zero: &[bool]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for (at, _) in near_zero.iter().enumerate().filter(|(_, low)| **low) {
        match runs.last_mut() {
            Some(run) if run.at + run.slices == at => run.slices += 1,
            _ => runs.push(Run { at, slices: 1 }),
        }
    }
    runs
}

/// How many runs at least as long as `run` chance would make, judged by the other runs.
fn by_chance(runs: &[Run], run: Run, slices: usize) -> f64 {
    let others = runs.iter().filter(|other| **other != run);
    let (count, low) = others.fold((0, 0), |(n, sum), other| (n + 1, sum + other.slices));
    let usual = (slices - run.slices) as f64;
    let share = (low as f64 + 0.5) / (usual + 1.0);
    let follows = (low as f64 - f64::from(count) + 0.5) / (low as f64 + 1.0);
    usual * share * follows.max(share).powi(run.slices as i32 - 1)
}

/// The middle value; 0 of nothing.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    let middle = values.len() / 2;
    *values.select_nth_unstable_by(middle, f64::total_cmp).1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn finds_where_and_how_long() {
        let mut rng = Random::new(1);
        let mut slices: Vec<f64> = (0..400).map(|_| 1_000.0 + 100.0 * rng.normal()).collect();
        slices[150..170].fill(0.0);
        slices[300] = 3.0;
        assert_eq!(find(&slices), [Run { at: 150, slices: 20 }, Run { at: 300, slices: 1 }]);
    }

    #[test]
    fn a_slow_disk_with_empty_slices_does_not_stall_until_it_does() {
        let mut rng = Random::new(2);
        let mut alarms = 0;
        for _ in 0..500 {
            // One request per slice on average: a third of the slices is empty.
            let mut slices = vec![0.0; 500];
            (0..500).for_each(|_| slices[rng.below(500) as usize] += 1.0);
            alarms += usize::from(!find(&slices).is_empty());
            slices[200..240].fill(0.0);
            assert!(find(&slices).iter().any(|run| run.at <= 200 && run.slices >= 40));
        }
        assert!(alarms <= 10, "{alarms} false stalls in 500 series");
    }

    #[test]
    fn an_idle_series_has_none() {
        assert_eq!(find(&[0.0; 100]), []);
    }
}
