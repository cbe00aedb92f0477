//! The estimated effects of plans whose effects are known.

use super::*;
use crate::measured::around;
use crate::random::Random;
use crate::{Verdict, allowed_pct};

/// Figures of a plan with so many levels per factor; the own intervals are narrow.
pub(super) fn plan_of(
    sizes: &[usize],
    replicates: u32,
    mut value: impl FnMut(&[usize], u32) -> f64,
) -> Vec<Observation> {
    let cells: usize = sizes.iter().product();
    let mut all = Vec::new();
    for replicate in 0..replicates {
        for cell in 0..cells {
            let mut left = cell;
            let of = |size: &usize| {
                let level = left % size;
                left /= size;
                level
            };
            let levels: Vec<usize> = sizes.iter().map(of).collect();
            let value = value(&levels, replicate);
            let ci95 = [value * 0.9999, value * 1.0001];
            let value = Measured::new(value, ci95, 30, Verdicts::none());
            all.push(Observation { levels, replicate, value });
        }
    }
    all
}

fn change(factor: usize, from: usize, to: usize) -> LevelChange {
    LevelChange { factor, from, to }
}

/// The main effect of a change.
fn main(found: &Effects, change: LevelChange) -> &Effect {
    &found.main.iter().find(|main| main.change == change).unwrap().effect
}

/// 3 x 2 x 4 levels: the second factor halves, but at the last level of the third it does nothing.
fn known(rng: &mut Random, levels: &[usize]) -> f64 {
    let halved = levels[1] == 1 && levels[2] != 3;
    let first = [1.0, 1.2, 1.0][levels[0]];
    let second = if halved { 0.5 } else { 1.0 };
    1e4 * first * second * (0.02 * rng.normal()).exp()
}

fn known_plan(seed: u64) -> Vec<Observation> {
    let mut rng = Random::new(seed);
    let mut drift = Random::new(seed + 1);
    let drifts = [0, 1, 2, 3].map(|_| (0.3 * drift.normal()).exp());
    plan_of(&[3, 2, 4], 4, |levels, replicate| drifts[replicate as usize] * known(&mut rng, levels))
}

#[test]
fn two_cells_that_differ_still_show_one_direction() {
    let found = |elsewhere: f64, replicates: u32| {
        let mut rng = Random::new(5);
        let plan = plan_of(&[2, 2], replicates, |levels, _| {
            let ratio = [1.0, [0.28, elsewhere][levels[1]]][levels[0]];
            ratio * (0.05 * rng.normal()).exp()
        });
        main(&effects(&plan).unwrap(), change(0, 0, 1)).clone()
    };
    let lower = found(0.14, 4);
    assert_eq!(lower.conclusion, Conclusion::NoMeasurableDifference, "of two cells: {lower:?}");
    assert!(lower.is_everywhere && lower.ratio.ci95.unwrap()[1] > 1.0, "{lower:?}");
    assert!(!found(1.0, 4).is_everywhere && !found(3.0, 4).is_everywhere);
    assert!(!found(0.14, 2).is_everywhere, "two pairs in a cell conclude nothing");
    let weak = found(0.93, 4);
    assert!(weak.cell_range[1] < 1.0 && !weak.is_everywhere, "within its noise: {weak:?}");
}

#[test]
fn finds_known_effects_and_no_others() {
    let found = effects(&known_plan(1)).unwrap();
    assert_eq!((found.main.len(), found.interactions.len()), (10, 27));
    let first = main(&found, change(0, 0, 1));
    assert_eq!((first.conclusion, first.ratio.n, first.cells), (Conclusion::Higher, 32, 8));
    assert!((first.ratio.value - 1.2).abs() < 0.02, "{first:?}");
    let none = main(&found, change(0, 0, 2));
    assert_eq!(none.conclusion, Conclusion::NoMeasurableDifference);
    assert!(allowed_pct(none.ratio.ci95.unwrap()) < 3.0, "{none:?}");
    let mattering: Vec<(LevelChange, LevelChange)> =
        found.mattering().map(|one| (one.change, one.altered_by)).collect();
    assert_eq!(mattering.len(), 3, "{mattering:?}");
    for from in 0..3 {
        assert!(mattering.contains(&(change(1, 0, 1), change(2, from, 3))), "{mattering:?}");
    }
    let largest = &found.interactions[0].effect;
    assert!((largest.ratio.value - 2.0).abs() < 0.1 && largest.cells == 3, "{largest:?}");
}

#[test]
fn an_effect_that_varies_says_so() {
    let found = effects(&known_plan(2)).unwrap();
    let halving = main(&found, change(1, 0, 1));
    let mean = 0.5f64.powf(0.75);
    let [low, high] = halving.ratio.ci95.unwrap();
    assert!(low < mean && mean < high && high / low > 1.2, "wide, for it varies: {halving:?}");
    let [min, max] = halving.cell_range;
    assert!((min - 0.5).abs() < 0.04 && (max - 1.0).abs() < 0.08, "{halving:?}");
}

#[test]
fn scale_and_order_change_nothing() {
    let plan = known_plan(3);
    let found = effects(&plan).unwrap();
    let mut shuffled = plan.clone();
    let mut rng = Random::new(9);
    (1..shuffled.len()).for_each(|at| shuffled.swap(at, rng.below(at as u64 + 1) as usize));
    assert_ne!(shuffled, plan);
    assert_eq!(effects(&shuffled).unwrap(), found);
    for factor in [1e-9, 0.37, 1e12] {
        let mut scaled = plan.clone();
        scaled.iter_mut().for_each(|one| one.value = one.value.scaled(factor));
        let scaled = effects(&scaled).unwrap();
        for (one, other) in found.main.iter().zip(&scaled.main) {
            assert!((one.effect.ratio.value / other.effect.ratio.value - 1.0).abs() < 1e-9);
            let ends = |effect: &Effect| effect.ratio.ci95.unwrap();
            let (one, other) = (&one.effect, &other.effect);
            assert!((ends(one)[0] / ends(other)[0] - 1.0).abs() < 1e-9, "{factor}");
            assert_eq!(one.conclusion, other.conclusion);
        }
        assert_eq!(scaled.mattering().count(), found.mattering().count());
    }
}

#[test]
fn the_other_way_round_is_the_inverse() {
    let plan = known_plan(4);
    let mut swapped = plan.clone();
    swapped.iter_mut().for_each(|one| one.levels[1] = 1 - one.levels[1]);
    let of = |plan: &[Observation]| main(&effects(plan).unwrap(), change(1, 0, 1)).clone();
    let (one, other) = (of(&plan), of(&swapped));
    assert!((one.ratio.value * other.ratio.value - 1.0).abs() < 1e-9);
    assert!((one.ratio.ci95.unwrap()[0] * other.ratio.ci95.unwrap()[1] - 1.0).abs() < 1e-9);
}

#[test]
fn holes_do_not_bias() {
    // The third factor matters ten times as much as the first, and cells are missing unevenly.
    let mut rng = Random::new(5);
    let mut plan = plan_of(&[2, 2, 4], 3, |levels, replicate| {
        let large = 10f64.powi(levels[2] as i32);
        large * [1.0, 1.1][levels[0]] * f64::from(replicate + 1) * (0.01 * rng.normal()).exp()
    });
    plan.retain(|one| !(one.levels[0] == 1 && one.levels[2] == 3 || one.levels == [0, 1, 1]));
    plan.retain(|one| one.replicate != 2 || one.levels != [1, 0, 0]);
    let found = effects(&plan).unwrap();
    let effect = main(&found, change(0, 0, 1));
    assert_eq!((effect.cells, effect.ratio.n), (5, 14));
    assert!((effect.ratio.value - 1.1).abs() < 0.015 && effect.conclusion == Conclusion::Higher);
    let excluded = |one: &Interaction| one.change.factor == 0 && one.altered_by.to == 3;
    assert!(!found.interactions.iter().any(excluded), "no cells match");
}

#[test]
fn two_replicates_conclude_nothing_and_one_pair_has_no_interval() {
    let found = effects(&plan_of(&[2, 6], 2, |levels, _| [1.0, 9.0][levels[0]])).unwrap();
    let effect = main(&found, change(0, 0, 1));
    assert_eq!((effect.conclusion, effect.ratio.n), (Conclusion::TooFewPairs, 12));
    assert_eq!((effect.p_adjusted, found.mattering().count()), (None, 0));
    assert!(effect.ratio.ci95.is_some());
    let single = effects(&plan_of(&[2], 1, |levels, _| [1.0, 9.0][levels[0]])).unwrap();
    assert_eq!((single.main[0].effect.ratio.ci95, single.main[0].effect.ratio.n), (None, 1));
}

#[test]
fn exact_figures_have_no_interaction_of_rounding() {
    let exact = |levels: &[usize], _: u32| [3.0, 7.0][levels[0]] * [1.1, 1.3, 1.7][levels[1]];
    let mut plan = plan_of(&[2, 3], 3, exact);
    plan.iter_mut().for_each(|one| one.value.ci95 = None);
    let found = effects(&plan).unwrap();
    let conclusions: Vec<Conclusion> =
        found.interactions.iter().map(|one| one.effect.conclusion).collect();
    assert_eq!(conclusions, [Conclusion::NoMeasurableDifference; 3]);
    assert!(found.main.iter().all(|one| one.effect.conclusion == Conclusion::Higher));
}

#[test]
fn a_small_interaction_is_seen_and_does_not_matter() {
    let mut rng = Random::new(6);
    let mut of = |both: f64| {
        let plan = plan_of(&[2, 2], 4, |levels, _| {
            let both = if levels == [1, 1] { both } else { 1.0 };
            both * (1e-4 * rng.normal()).exp()
        });
        let found = effects(&plan).unwrap().interactions.remove(0);
        (found.effect.conclusion, found.matters)
    };
    assert_eq!(of(1.03), (Conclusion::Higher, false));
    assert_eq!(of(0.97), (Conclusion::Lower, false));
    assert_eq!(of(1.07), (Conclusion::Higher, true));
}

#[test]
fn own_intervals_and_verdicts_travel() {
    let mut plan = plan_of(&[2, 3], 3, |levels, _| [100.0, 103.0][levels[0]]);
    plan[0].value.verdicts.add(Verdict::Steal);
    let of = |plan: &[Observation]| effects(plan).unwrap().main[0].effect.clone();
    assert_eq!(of(&plan).conclusion, Conclusion::Higher);
    assert!(of(&plan).ratio.verdicts.has(Verdict::Steal));
    for one in &mut plan {
        one.value.ci95 = Some(around(one.value.value, one.value.value * 0.1));
    }
    let wide = of(&plan);
    assert_eq!(wide.conclusion, Conclusion::NoMeasurableDifference);
    let half_width = (wide.ratio.ci95.unwrap()[1] / wide.ratio.value).ln();
    assert!((half_width - 0.1 * 18f64.sqrt() / 9.0).abs() < 1e-9, "{half_width}");
}

#[test]
fn refuses_what_is_not_one_plan() {
    let plan = plan_of(&[2, 2], 1, |_, _| 1.0);
    let refuses = |change: &dyn Fn(&mut Vec<Observation>)| {
        let mut plan = plan.clone();
        change(&mut plan);
        effects(&plan).is_none()
    };
    assert!(!refuses(&|_| {}) && refuses(&Vec::clear), "no observations");
    assert!(refuses(&|plan| plan[3].levels = vec![0]), "fewer factors");
    assert!(refuses(&|plan| plan[3].levels = vec![0, 0]), "two figures in a replicate");
    for value in [0.0, -1.0] {
        assert!(refuses(&|plan| plan[3].value.value = value), "no ratio can be taken to {value}");
    }
}
