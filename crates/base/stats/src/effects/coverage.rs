//! Do the intervals of effects hold the truth 95 times in 100, and how often is nothing reported as
//! something?
//!
//! 2,000 simulated studies of each kind; `cargo test -p iostrata-stats effects -- --nocapture`
//! prints the shares. A share's own standard error is 0.5 %.

use super::tests::plan_of;
use super::{Effect, Effects, LevelChange, Observation, Plan, effect_of, effects};
use crate::random::Random;

const STUDIES: u32 = 2_000;

/// How the figures of a study come about. All sizes are standard deviations of logarithms.
#[derive(Clone, Copy, Debug)]
struct Noise {
    /// Of each figure.
    white: f64,
    /// Common to all figures of a replicate.
    drift: f64,
    /// Of the first factor's effect from cell to cell of the others.
    over_cells: f64,
    /// Of the first factor's effect from replicate to replicate.
    over_replicates: f64,
    /// Share of figures that are missing.
    holes: f64,
    /// Half width of the figures' own intervals, as a share of what their noise requires.
    own_interval: f64,
}

const WHITE: Noise = Noise {
    white: 0.03,
    drift: 0.0,
    over_cells: 0.0,
    over_replicates: 0.0,
    holes: 0.0,
    own_interval: 0.0,
};

/// A study of 2 levels x `cells` with a true effect of 1.1.
fn study(rng: &mut Random, cells: usize, replicates: u32, noise: Noise) -> Vec<Observation> {
    let draw = |rng: &mut Random, size: f64, count: usize| -> Vec<f64> {
        (0..count).map(|_| size * rng.normal()).collect()
    };
    let drifts = draw(rng, noise.drift, replicates as usize);
    let by_cell = draw(rng, noise.over_cells, cells);
    let by_replicate = draw(rng, noise.over_replicates, replicates as usize);
    let mut plan = plan_of(&[2, cells], replicates, |levels, replicate| {
        let replicate = replicate as usize;
        let effect = 1.1f64.ln() + by_cell[levels[1]] + by_replicate[replicate];
        let common = drifts[replicate] + levels[1] as f64;
        (common + levels[0] as f64 * effect + noise.white * rng.normal()).exp()
    });
    let half_width = 1.96 * noise.white * noise.own_interval;
    for one in &mut plan {
        one.value.ci95 =
            Some([1.0 - half_width, 1.0 + half_width].map(|end| end * one.value.value));
    }
    plan.retain(|_| noise.holes == 0.0 || rng.uniform() > noise.holes);
    plan
}

/// The effect of the first factor alone.
fn main_effect(observations: &[Observation]) -> Effect {
    let change = LevelChange { factor: 0, from: 0, to: 1 };
    effect_of(&Plan::of(observations).unwrap(), &[change]).unwrap()
}

fn holds(effect: &Effect, truth: f64) -> bool {
    let [low, high] = effect.ratio.ci95.unwrap();
    (low..=high).contains(&truth)
}

/// Share in percent of main effects whose interval holds the truth.
fn held(seed: u64, cells: usize, replicates: u32, noise: Noise) -> f64 {
    let mut rng = Random::new(seed);
    let held = (0..STUDIES)
        .filter(|_| holds(&main_effect(&study(&mut rng, cells, replicates, noise)), 1.1));
    100.0 * held.count() as f64 / f64::from(STUDIES)
}

fn check(noise: Noise, sizes: &[(usize, u32)], allowed: std::ops::RangeInclusive<f64>) {
    for &(cells, replicates) in sizes {
        let share = held(cells as u64 * 100 + u64::from(replicates), cells, replicates, noise);
        println!("main effect, {cells} cells, {replicates} replicates: {share:.1} %, {noise:?}");
        assert!(allowed.contains(&share), "{cells} cells, {replicates}: {share:.1} %, {noise:?}");
    }
}

const SIZES: [(usize, u32); 5] = [(1, 4), (2, 3), (4, 3), (6, 4), (18, 3)];

#[test]
fn main_effects_hold_the_truth_under_white_noise() {
    check(WHITE, &SIZES, 93.0..=97.5);
}

#[test]
fn main_effects_hold_the_truth_when_replicates_drift() {
    check(Noise { drift: 0.3, ..WHITE }, &SIZES, 93.0..=97.5);
}

#[test]
fn main_effects_hold_the_truth_when_the_effect_varies() {
    let sizes = [(4, 3), (6, 4), (18, 3)];
    check(Noise { over_cells: 0.04, drift: 0.3, ..WHITE }, &sizes, 92.0..=97.5);
    check(Noise { over_cells: 0.2, ..WHITE }, &sizes, 93.0..=97.0);
    check(Noise { over_replicates: 0.04, ..WHITE }, &sizes, 91.0..=97.0);
    check(Noise { over_cells: 0.04, over_replicates: 0.04, ..WHITE }, &sizes, 92.0..=97.5);
}

#[test]
fn main_effects_hold_the_truth_with_holes() {
    let holes = Noise { holes: 0.15, drift: 0.3, ..WHITE };
    check(holes, &[(6, 4), (18, 3)], 93.0..=98.0);
    check(Noise { over_cells: 0.06, ..holes }, &[(6, 4), (18, 3)], 92.0..=97.0);
    check(Noise { over_replicates: 0.06, ..holes }, &[(6, 4), (18, 3)], 91.0..=97.0);
}

#[test]
fn honest_intervals_of_the_figures_only_widen() {
    check(Noise { own_interval: 1.0, ..WHITE }, &[(4, 3), (18, 3)], 95.0..=99.5);
}

#[test]
fn interactions_hold_the_truth() {
    let (mut rng, mut held) = (Random::new(41), 0);
    for _ in 0..STUDIES {
        let drifts = [0, 1, 2].map(|_| 0.3 * rng.normal());
        let plan = plan_of(&[2, 2, 4], 3, |levels, replicate| {
            let both = if levels[0] + levels[1] == 2 { 0.8f64.ln() } else { 0.0 };
            (drifts[replicate as usize] + both + 0.03 * rng.normal()).exp()
        });
        let found = effects(&plan).unwrap();
        let one = found.interactions.iter().find(|one| one.altered_by.factor == 1).unwrap();
        held += u32::from(holds(&one.effect, 0.8) && one.change.factor == 0);
    }
    let share = 100.0 * f64::from(held) / f64::from(STUDIES);
    println!("interaction of 2 x 2 in 4 cells: {share:.1} %");
    assert!((93.0..=97.5).contains(&share), "{share}");
}

/// How many contrasts of a study are reported.
fn reported(found: &Effects) -> usize {
    let all = found.main.iter().map(|one| &one.effect);
    let all = all.chain(found.interactions.iter().map(|one| &one.effect));
    all.filter(|effect| effect.conclusion.is_difference()).count()
}

/// Share in percent of studies of nothing with an alarm, with one that matters, with a main effect
/// whose own interval excludes 1, and with one that every cell shows. `placement` is what a level
/// of the first factor has in common within a replicate.
fn alarms(sizes: &[usize], replicates: u32, placement: f64) -> [f64; 4] {
    let (mut rng, mut found_any) = (Random::new(42), [0u32; 4]);
    for _ in 0..STUDIES / 2 {
        let mut draw = |size: f64| -> [f64; 16] { std::array::from_fn(|_| size * rng.normal()) };
        let (drifts, placed) = (draw(0.3), draw(placement));
        let plan = plan_of(sizes, replicates, |levels, replicate| {
            let common = drifts[replicate as usize] + placed[levels[0] * 4 + replicate as usize];
            (common + 0.03 * rng.normal()).exp()
        });
        let found = effects(&plan).unwrap();
        found_any[0] += u32::from(reported(&found) > 0);
        found_any[1] += u32::from(found.mattering().count() > 0);
        found_any[2] += u32::from(found.main.iter().any(|one| !holds(&one.effect, 1.0)));
        found_any[3] += u32::from(found.main.iter().any(|one| one.effect.is_everywhere));
    }
    found_any.map(|count| 200.0 * f64::from(count) / f64::from(STUDIES))
}

#[test]
fn a_study_of_nothing_reports_nothing() {
    for (sizes, replicates, placement, allowed) in [
        // Each of the two families has one in 20 times.
        (&[3, 2, 5][..], 3, 0.0, 10.0),
        (&[2, 2][..], 3, 0.0, 10.0),
        (&[2, 3, 2, 2][..], 4, 0.0, 10.0),
        (&[3, 2, 5][..], 3, 0.03, 18.0),
        (&[3, 2, 5][..], 3, 0.1, 12.0),
        (&[2, 2][..], 3, 0.1, 14.0),
    ] {
        let [any, matter, raw, everywhere] = alarms(sizes, replicates, placement);
        println!(
            "{sizes:?}, {placement}: {any:.1} % alarm, {matter:.1} % matter, raw {raw:.1} %, \
             everywhere {everywhere:.1} %"
        );
        assert!(any <= allowed && matter <= allowed, "{sizes:?}, {placement}: {any} {matter}");
        assert!(everywhere <= 5.0, "{sizes:?}, {placement}: {everywhere}");
    }
}
