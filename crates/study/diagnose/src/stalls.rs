//! Pauses that come again and again: moments in which nothing was answered, over all windows of a
//! run, and the period that they keep.
//!
//! Method: a pause is a stretch of a window in which, at its own rate, many answers were due and
//! none came. The moments of all pauses are folded at every period that the run can resolve. Among
//! the periods at which they coincide (Rayleigh's test), theirs is the longest at which most of the
//! moments that it predicts within windows had a pause, too.
//! Invariant: windows that processors, limits or others held back are left out. A pause that keeps
//! no period is not named here.

use std::f64::consts::TAU;

use iostrata_plan::{IoApi, Pacing};
use iostrata_run::{Replicate, Series, StreamFigures};
use iostrata_stats::{Measured, mean_of};

use crate::disturbed::shows_the_device;
use crate::figure::median;
use crate::observed::EventIndex;

/// Shortest pause, in seconds.
const PAUSE_S_MIN: f64 = 0.015;
/// Answers that were due in it at least.
const DUE_MIN: f64 = 8.0;
/// Pauses from which on a period can be determined.
const PAUSES_MIN: usize = 8;
/// Periods that are looked for, in seconds.
const PERIOD_S: [f64; 2] = [0.1, 15.0];
/// Periods of a run that must have been seen.
const CYCLES_MIN: f64 = 4.0;
/// `n R^2` of Rayleigh's test that chance does not reach at any of ten thousand periods.
const RAYLEIGH_MIN: f64 = 18.0;
/// Share of the best period's power from which another is considered: a few pauses of another kind
/// take some of it away.
const AS_GOOD: f64 = 0.6;
/// Share of the predicted pauses that must have been there.
const KEPT_MIN: f64 = 0.6;
/// How far a pause may lie from its moment, as a share of the period.
const AROUND: f64 = 0.1;

/// Pauses that keep a period.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PeriodicPauses {
    /// From one to the next, in seconds.
    pub period_s: f64,
    /// Mean length of the seen pauses, in seconds.
    pub lasts_s: Measured,
    /// Moments within windows at which one was due.
    pub due: u64,
}

/// A stretch of the run, in seconds since its start.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Stretch {
    from_s: f64,
    to_s: f64,
}

impl Stretch {
    fn middle_s(self) -> f64 {
        (self.from_s + self.to_s) / 2.0
    }

    fn lasts_s(self) -> f64 {
        self.to_s - self.from_s
    }
}

/// Looks through the windows of a run.
pub(crate) fn periodic_pauses(log: &EventIndex<'_>) -> Option<PeriodicPauses> {
    let all = log.points().iter().flat_map(|seen| seen.replicates.iter().copied());
    let looked: Vec<(Stretch, Vec<Stretch>)> = all.filter_map(pauses_of).collect();
    let (windows, pauses): (Vec<Stretch>, Vec<Vec<Stretch>>) = looked.into_iter().unzip();
    periodic(&windows, &pauses.concat())
}

fn periodic(windows: &[Stretch], pauses: &[Stretch]) -> Option<PeriodicPauses> {
    if pauses.len() < PAUSES_MIN {
        return None;
    }
    let begun_s = windows.iter().map(|window| window.from_s).reduce(f64::min)?;
    let ended_s = windows.iter().map(|window| window.to_s).reduce(f64::max)?;
    let moments: Vec<f64> = pauses.iter().map(|pause| pause.middle_s() - begun_s).collect();
    let mut beats = beats(&moments, ended_s - begun_s).into_iter();
    beats.find_map(|beat| kept(windows, pauses, Beat { phase_s: beat.phase_s + begun_s, ..beat }))
}

/// The pauses that keep a beat, where most pauses that it predicts within windows occurred.
fn kept(windows: &[Stretch], pauses: &[Stretch], beat: Beat) -> Option<PeriodicPauses> {
    let Beat { period_s, phase_s } = beat;
    let is_near = |pause: &&Stretch| {
        let off = (pause.middle_s() - phase_s).rem_euclid(period_s);
        off.min(period_s - off) <= AROUND * period_s
    };
    let lengths: Vec<f64> = pauses.iter().filter(is_near).map(|pause| pause.lasts_s()).collect();
    let typical_s = median(lengths.clone())?;
    let due: usize = windows
        .iter()
        .map(|window| {
            let inside = [window.from_s + typical_s / 2.0, window.to_s - typical_s / 2.0];
            let numbers = inside.map(|at_s| (at_s - phase_s) / period_s);
            (numbers[1].floor() - numbers[0].ceil() + 1.0).max(0.0) as usize
        })
        .sum();
    let seen = lengths.len();
    if due == 0 || seen < 2 || (seen as f64) < KEPT_MIN * due as f64 {
        return None;
    }
    Some(PeriodicPauses { period_s, lasts_s: mean_of(&lengths)?, due: due as u64 })
}

/// A period and the first moment in it.
#[derive(Clone, Copy, Debug)]
struct Beat {
    period_s: f64,
    phase_s: f64,
}

/// The periods at which these moments fall together, the longest first: a fraction of a period is
/// kept as well as the period itself.
fn beats(moments_s: &[f64], span_s: f64) -> Vec<Beat> {
    let n = moments_s.len() as f64;
    let fold = |per_s: f64| {
        let (sine, cosine) = moments_s.iter().fold((0.0, 0.0), |(sine, cosine), at_s| {
            let angle = TAU * per_s * at_s;
            (sine + angle.sin(), cosine + angle.cos())
        });
        ((sine * sine + cosine * cosine) / n, f64::atan2(sine, cosine))
    };
    let step = 1.0 / (8.0 * span_s);
    let first = (1.0 / PERIOD_S[1]).max(CYCLES_MIN / span_s);
    let steps = ((1.0 / PERIOD_S[0] - first) / step).max(0.0) as usize;
    let tried: Vec<f64> = (0..=steps).map(|at| first + at as f64 * step).collect();
    let powers: Vec<f64> = tried.iter().map(|&per_s| fold(per_s).0).collect();
    let best = powers.iter().copied().fold(0.0, f64::max);
    let enough = (AS_GOOD * best).max(RAYLEIGH_MIN.min(0.95 * n));
    let is_peak = |at: usize| {
        let beside = [at.checked_sub(1), Some(at + 1)].into_iter().flatten();
        let higher = beside.filter_map(|at| powers.get(at)).any(|&power| power > powers[at]);
        powers[at] >= enough && !higher
    };
    let peaks = (0..tried.len()).filter(|&at| is_peak(at)).map(|at| {
        let per_s = top(tried[at] - step, tried[at] + step, |per_s| fold(per_s).0);
        let phase_s = fold(per_s).1.rem_euclid(TAU) / TAU / per_s;
        Beat { period_s: 1.0 / per_s, phase_s }
    });
    peaks.collect()
}

/// Where a function that has one top between these has it.
fn top(mut from: f64, mut to: f64, height: impl Fn(f64) -> f64) -> f64 {
    for _ in 0..40 {
        let third = (to - from) / 3.0;
        let [left, right] = [from + third, to - third];
        if height(left) < height(right) { from = left } else { to = right }
    }
    (from + to) / 2.0
}

/// The window of a replicate and the pauses in it; `None` where pauses could not be seen.
fn pauses_of(replicate: &Replicate) -> Option<(Stretch, Vec<Stretch>)> {
    let [planned] = replicate.point.streams.as_slice() else { return None };
    let spec = &planned.spec;
    if !shows_the_device(replicate)
        || !spec.direct
        || spec.api == IoApi::Null
        || spec.pacing != Pacing::Closed
    {
        return None;
    }
    let stream: &StreamFigures = replicate.streams.first()?;
    let counts = counts(&stream.series)?;
    let width_s = stream.series.width_s;
    let window = Stretch {
        from_s: replicate.started_s,
        to_s: replicate.started_s + counts.len() as f64 * width_s,
    };
    let all: f64 = counts.iter().sum();
    // While a pause lasts nothing is counted: the rate is taken from the other slices.
    let busy = counts.iter().filter(|count| **count > 0.0).count() as f64;
    let per_s = all / (busy * width_s);
    // A window too short to distinguish a pause from a slow device is left out.
    if width_s > PAUSE_S_MIN || per_s * PAUSE_S_MIN * 4.0 < DUE_MIN {
        return None;
    }
    let mut pauses = Vec::new();
    let mut empty_from = None;
    for (at, count) in counts.iter().chain([&1.0]).enumerate() {
        match (*count == 0.0, empty_from) {
            (true, None) => empty_from = Some(at),
            (false, Some(from)) => {
                let lasts_s = (at - from) as f64 * width_s;
                let inside = from > 0 && at < counts.len();
                if inside && lasts_s >= PAUSE_S_MIN && lasts_s * per_s >= DUE_MIN {
                    let from_s = window.from_s + from as f64 * width_s;
                    pauses.push(Stretch { from_s, to_s: from_s + lasts_s });
                }
                empty_from = None;
            }
            _ => {}
        }
    }
    Some((window, pauses))
}

/// Answers of all kinds by slice.
fn counts(series: &Series) -> Option<Vec<f64>> {
    let columns = || series.counts.iter().map(|(_, column)| column);
    let slices = columns().map(Vec::len).max().filter(|&slices| slices > 0)?;
    let sum = |at: usize| columns().filter_map(|column| column.get(at)).sum::<u32>();
    Some((0..slices).map(|at| f64::from(sum(at))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Windows of 0.4 s with breaks of 0.1 s, over 100 s.
    fn windows() -> Vec<Stretch> {
        (0..200)
            .map(|at| at as f64 * 0.5)
            .map(|at| Stretch { from_s: at, to_s: at + 0.4 })
            .collect()
    }

    /// The pauses at these moments that fall into windows.
    fn seen(moments: impl Iterator<Item = f64>, lasts_s: f64) -> Vec<Stretch> {
        let all = moments.map(|at_s| Stretch { from_s: at_s, to_s: at_s + lasts_s });
        let within = |pause: &Stretch| {
            windows().iter().any(|w| w.from_s <= pause.from_s && pause.to_s <= w.to_s)
        };
        all.filter(within).collect()
    }

    /// A number of 0 to 1 that looks like chance (splitmix64).
    fn chance(at: usize) -> f64 {
        let mut bits = (at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    #[test]
    fn a_period_is_found_with_its_length() {
        for period_s in [0.37, 1.0, 1.003, 2.7, 6.1] {
            let wobble = |at: usize| at as f64 * period_s + 0.02 * chance(at) * period_s;
            let count = (100.0 / period_s) as usize;
            let found = periodic(&windows(), &seen((0..count).map(wobble), 0.05));
            let found = found.unwrap_or_else(|| panic!("{period_s}"));
            assert!((found.period_s / period_s - 1.0).abs() < 0.01, "{period_s}: {found:?}");
            assert!((found.lasts_s.value - 0.05).abs() < 1e-6 && found.lasts_s.n >= 8, "{found:?}");
        }
    }

    #[test]
    fn pauses_by_chance_keep_no_period() {
        for seed in 0..20 {
            let moments = (0..80).map(|at| 100.0 * chance(at * 31 + seed * 997));
            assert_eq!(periodic(&windows(), &seen(moments, 0.03)), None, "seed {seed}");
        }
        assert_eq!(periodic(&windows(), &[]), None);
    }

    #[test]
    fn a_few_pauses_that_happen_to_fit_are_none() {
        // Ten pauses a second apart at the end of a run that had none before.
        let moments = (88..100).map(|at| f64::from(at) + 0.1);
        assert_eq!(periodic(&windows(), &seen(moments, 0.05)), None);
    }

    /// Others between the moments fall together with them at half the period.
    #[test]
    fn a_few_other_pauses_do_not_hide_the_period() {
        let others = (0..8).map(|at| 7.0 * f64::from(at) + 0.71);
        let moments = (0..100).map(|at| f64::from(at) + 0.21).chain(others);
        let found = periodic(&windows(), &seen(moments, 0.05)).unwrap();
        assert!((found.period_s - 1.0).abs() < 1e-3, "{found:?}");
    }
}
