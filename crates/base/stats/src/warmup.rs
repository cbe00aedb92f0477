//! Where the warm-up at the start of a point ends.
//!
//! Purpose: choose, among positions where the caller can cut, the one after which the rate is what
//! it stays.
//! Method: the cut with the smallest marginal standard error of the rest (MSER; White 1997), if
//! what is cut off differs from the rest more than any equally long piece of the rest does.
//! Invariants: at most a quarter is cut. A stall is never cut off nor cut into: it is part of what
//! the storage does. A drift over the whole window is no warm-up.
//! A higher level at the start that ends within the quarter is cut like any other; a rule about
//! that level (a burst allowance) looks at the whole series first.

use crate::noise::mean;
use crate::shape::{find_stalls, median};

/// How much further than any piece of the rest the cut-off head must lie from the mean of the rest.
/// On a straight line the head of a quarter lies exactly twice as far.
const FURTHER: f64 = 2.2;
/// Share of the median below which the slice after a leading stall shows a ramp, not a stall.
const RAMP_SHARE: f64 = 0.5;

/// The best of the candidate cuts, as a number of slices to leave out at the start; 0 when there is
/// no warm-up. Candidates may come in any order; those beyond a quarter are passed over.
pub fn choose_cut(slices: &[f64], candidates: &[usize]) -> usize {
    let limit = (slices.len() / 4).min(first_stall(slices));
    let score = |cut: usize| marginal_error(&slices[cut..]);
    candidates
        .iter()
        .copied()
        .filter(|&cut| cut > 0 && cut <= limit)
        .map(|cut| (cut, score(cut)))
        .filter(|(_, rest)| *rest < score(0))
        .min_by(|a, b| a.1.total_cmp(&b.1))
        .filter(|(cut, _)| head_differs(slices, *cut))
        .map_or(0, |(cut, _)| cut)
}

/// Where the first stall begins; the length of the series without one. Near-zero slices at the very
/// start that lead into a ramp are no stall.
fn first_stall(slices: &[f64]) -> usize {
    let usual = median(slices.to_vec());
    let is_ramp = |at: usize, length: usize| {
        at == 0 && slices.get(length).is_some_and(|next| *next < RAMP_SHARE * usual)
    };
    find_stalls(slices)
        .iter()
        .find(|run| !is_ramp(run.at, run.slices))
        .map_or(slices.len(), |run| run.at)
}

/// Sum of squares over the square of the length.
fn marginal_error(rest: &[f64]) -> f64 {
    let centre = mean(rest);
    let squares: f64 = rest.iter().map(|value| (value - centre).powi(2)).sum();
    squares / (rest.len() as f64).powi(2)
}

/// Whether the head lies further from the mean of the rest than any equally long piece of it.
fn head_differs(slices: &[f64], cut: usize) -> bool {
    let (head, rest) = slices.split_at(cut);
    let centre = mean(rest);
    let mut sum: f64 = rest[..cut].iter().sum();
    let mut furthest = (sum / cut as f64 - centre).abs();
    for at in cut..rest.len() {
        sum += rest[at] - rest[at - cut];
        furthest = furthest.max((sum / cut as f64 - centre).abs());
    }
    (mean(head) - centre).abs() > FURTHER * furthest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use crate::simulate::{LEVEL, ProcessKind, series};

    const CUTS: [usize; 11] = [0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100];

    fn warming(rng: &mut Random, slices: usize, start: f64, time: f64) -> Vec<f64> {
        let (noise, _) = series(rng, ProcessKind::Autocorrelated(0.3), slices);
        let rise = |at: usize| LEVEL * (start - 1.0) * (-(at as f64) / time).exp();
        noise.iter().enumerate().map(|(at, value)| (value + rise(at)).max(0.0)).collect()
    }

    #[test]
    fn finds_a_slow_start_and_a_fast_one() {
        let mut rng = Random::new(1);
        for start in [0.05, 0.3, 2.0] {
            let mut cuts: Vec<usize> =
                (0..200).map(|_| choose_cut(&warming(&mut rng, 400, start, 15.0), &CUTS)).collect();
            cuts.sort_unstable();
            assert!((20..=80).contains(&cuts[100]), "start {start}: median cut {}", cuts[100]);
            assert!(cuts[20] >= 10, "start {start}: missed {}", cuts[20]);
        }
    }

    #[test]
    fn cuts_nothing_off_a_steady_waving_or_drifting_rate() {
        let mut rng = Random::new(2);
        for kind in [
            ProcessKind::White,
            ProcessKind::Autocorrelated(0.8),
            ProcessKind::Wave(0.3),
            ProcessKind::Drift(0.3),
        ] {
            let cut =
                (0..500).filter(|_| choose_cut(&series(&mut rng, kind, 400).0, &CUTS) > 0).count();
            assert!(cut <= 15, "{kind:?}: {cut} of 500 cut");
        }
    }

    #[test]
    fn never_cuts_more_than_a_quarter() {
        let mut rng = Random::new(3);
        for _ in 0..200 {
            let slices = warming(&mut rng, 200, 0.1, 60.0);
            assert!(choose_cut(&slices, &CUTS) <= 50);
        }
    }

    #[test]
    fn a_stall_is_never_warm_up() {
        let mut rng = Random::new(4);
        for stall in [0..12, 3..30, 20..40] {
            let (mut slices, _) = series(&mut rng, ProcessKind::White, 400);
            slices[stall.clone()].fill(0.0);
            assert!(choose_cut(&slices, &CUTS) <= stall.start, "{stall:?}");
            let mut warm = warming(&mut rng, 400, 0.4, 6.0);
            warm[stall.clone()].fill(0.0);
            assert!(choose_cut(&warm, &CUTS) <= stall.start, "{stall:?} after a warm-up");
        }
    }

    #[test]
    fn copes_with_nothing() {
        assert_eq!(choose_cut(&[], &CUTS), 0);
        assert_eq!(choose_cut(&[1.0; 3], &CUTS), 0);
        assert_eq!(choose_cut(&[1.0; 300], &[]), 0);
        assert_eq!(choose_cut(&[1.0; 300], &[50]), 0);
    }
}
