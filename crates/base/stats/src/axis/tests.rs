//! Shapes that are known, and how often noise is taken for one.

use super::*;
use crate::Verdicts;
use crate::random::Random;

const LEVELS: [f64; 6] = [1.0, 4.0, 16.0, 64.0, 128.0, 256.0];

/// Figures of a curve with noise of so many percent, and a drift that replicates share.
fn points(rng: &mut Random, curve: &[f64], replicates: u32, noise_pct: f64) -> Vec<AxisPoint> {
    let mut all = Vec::new();
    for replicate in 0..replicates {
        let drift = (0.2 * rng.normal()).exp();
        for (&level, value) in LEVELS.iter().zip(curve) {
            let value = value * drift * (noise_pct / 100.0 * rng.normal()).exp();
            let ci95 = [value * 0.9999, value * 1.0001];
            let value = Measured::new(value, ci95, 30, Verdicts::none());
            all.push(AxisPoint { level, replicate, value });
        }
    }
    all
}

const FLAT: [f64; 6] = [1e4; 6];
const SCALING: [f64; 6] = [1e3, 3e3, 9e3, 2e4, 3.2e4, 5e4];
const SATURATING: [f64; 6] = [1e3, 3e3, 9e3, 9.1e3, 9.0e3, 9.1e3];
const COLLAPSING: [f64; 6] = [1e3, 3e3, 9e3, 8.9e3, 6e3, 4.5e3];

fn shape(seed: u64, curve: &[f64], replicates: u32, noise_pct: f64) -> Axis {
    axis(&points(&mut Random::new(seed), curve, replicates, noise_pct)).unwrap()
}

/// How many of 1,000 curves satisfy a test.
fn count(curve: &[f64], replicates: u32, noise_pct: f64, test: impl Fn(&Axis) -> bool) -> usize {
    let of = |seed: u64| shape(seed, curve, replicates, noise_pct);
    (0..1_000).filter(|&seed| test(&of(seed))).count()
}

#[test]
fn names_the_shapes() {
    let of = |curve: &[f64]| {
        let found = shape(1, curve, 4, 0.5);
        (found.kind, found.at)
    };
    assert_eq!(of(&FLAT), (AxisKind::Flat, None));
    assert_eq!(of(&SCALING), (AxisKind::Scaling, None));
    assert_eq!(of(&SATURATING), (AxisKind::Saturating, Some(16.0)));
    assert_eq!(of(&COLLAPSING), (AxisKind::Collapse, Some(64.0)));
    let change = shape(1, &COLLAPSING, 4, 0.5).change_pct.unwrap();
    let (change, [low, high]) = (change.value, change.ci95.unwrap());
    assert!((change + 50.0).abs() < 1.0, "{change}");
    assert!(low < change && change < high && high - low < 5.0, "{low} {high}");
    let falling: Vec<f64> = SCALING.iter().map(|value| 1e8 / value).collect();
    assert_eq!(of(&falling), (AxisKind::Collapse, Some(1.0)));
}

#[test]
fn a_zigzag_is_not_clear() {
    let zigzag = [1e4, 2e4, 1e4, 2e4, 1e4, 2e4];
    assert_eq!(shape(1, &zigzag, 4, 0.5).kind, AxisKind::NotClear);
    let dip = [1e4, 2e4, 1.8e4, 2e4, 2.1e4, 4e4];
    assert_eq!(shape(1, &dip, 6, 0.5).kind, AxisKind::NotClear);
}

#[test]
fn noise_is_rarely_a_shape_and_never_flat_without_proof() {
    // Whether anything differs does not depend on the size of the noise, only whether it is flat.
    for (replicates, noise_pct) in [(3, 3.0), (5, 20.0)] {
        let named = count(&FLAT, replicates, noise_pct, |shape| {
            !matches!(shape.kind, AxisKind::Flat | AxisKind::NoMeasurableDifference)
        });
        let flat = count(&FLAT, replicates, noise_pct, |shape| shape.kind == AxisKind::Flat);
        println!(
            "flat, {replicates} replicates, {noise_pct} %: {named} named, {flat} flat of 1000"
        );
        assert!(named <= 60, "{named} of 1000 at {noise_pct} % with {replicates} replicates");
        assert!(noise_pct < 10.0 || flat == 0, "20 % of noise prove nothing: {flat}");
    }
    let proven = count(&FLAT, 5, 1.0, |shape| shape.kind == AxisKind::Flat);
    assert!(proven >= 900, "1 % of noise does prove it: {proven}");
}

#[test]
fn a_curve_that_is_not_flat_is_rarely_called_flat() {
    // One level lies 5 % above the others: exactly at the border, where errors are most frequent.
    let border = [1e4, 1e4, 1.05e4, 1e4, 1e4, 1e4];
    let wrong = count(&border, 4, 1.0, |shape| shape.kind == AxisKind::Flat);
    println!("at the border of flat: {wrong} of 1000");
    assert!(wrong <= 50, "{wrong}");
}

#[test]
fn a_plateau_rarely_collapses_and_a_collapse_is_found() {
    for replicates in [3, 5] {
        let plateau = [1e3, 1e4, 1e4, 1e4, 1e4, 1e4];
        let wrong = count(&plateau, replicates, 8.0, |shape| shape.kind == AxisKind::Collapse);
        println!("plateau, {replicates} replicates: {wrong} of 1000 collapse");
        assert!(wrong <= 50, "{wrong} with {replicates} replicates");
    }
    let is_right = |shape: &Axis| {
        shape.kind == AxisKind::Collapse && [Some(16.0), Some(64.0)].contains(&shape.at)
    };
    let found = count(&COLLAPSING, 3, 2.0, is_right);
    println!("collapse by half, 3 replicates, 2 %: {found} of 1000");
    assert!(found >= 900, "{found}");
}

#[test]
fn the_loss_holds_the_truth() {
    let (mut rng, mut held) = (Random::new(61), 0);
    for _ in 0..1_000 {
        let found = axis(&points(&mut rng, &COLLAPSING, 4, 1.0)).unwrap();
        let Some([low, high]) = found.change_pct.and_then(|change| change.ci95) else { continue };
        let [low, high] = [-high, -low];
        // 16 and 64 are within 1.1 %; which is the peak, noise decides.
        held += u32::from(low <= 50.0 && 50.0 <= high || low <= 49.4 && 49.4 <= high);
    }
    println!("loss: {held} of 1000");
    assert!((930..=985).contains(&held), "{held}");
}

#[test]
fn says_how_many_are_enough() {
    let mut rng = Random::new(62);
    let mut of = |curve: &[f64], replicates: u32, noise_pct: f64| {
        axis(&points(&mut rng, curve, replicates, noise_pct)).unwrap().enough
    };
    let found = of(&SATURATING, 4, 0.5).unwrap();
    assert!(found.level == 16.0 && found.beyond_pct_max < 5.0, "{found:?}");
    assert_eq!(of(&SCALING, 4, 0.5), None, "the last is still better");
    let flat = of(&FLAT, 4, 10.0).unwrap();
    assert!(flat.level == 1.0 && flat.beyond_pct_max > 5.0, "noise proves nothing: {flat:?}");
    assert_eq!(of(&[1e4, 1.03e4, 1.09e4, 1.09e4], 6, 0.2).unwrap().level, 16.0);
    assert_eq!(of(&SATURATING, 2, 0.5), None, "two replicates");
}

#[test]
fn enough_is_mostly_right() {
    let right = |seed: u64| {
        let found = axis(&points(&mut Random::new(seed), &SATURATING, 3, 1.5)).unwrap();
        found.enough.is_some_and(|enough| enough.level == 16.0)
    };
    let right = (0..1_000).filter(|&seed| right(seed)).count();
    println!("enough: {right} of 1000");
    assert!(right >= 950, "{right}");
}

#[test]
fn scale_and_order_change_nothing() {
    for curve in [FLAT, SCALING, SATURATING, COLLAPSING] {
        let original = points(&mut Random::new(63), &curve, 4, 1.0);
        let mut turned = original.clone();
        turned.reverse();
        turned.rotate_left(7);
        assert_eq!(axis(&turned), axis(&original));
        turned.iter_mut().for_each(|point| point.value = point.value.scaled(4096.0));
        let (found, want) = (axis(&turned).unwrap(), axis(&original).unwrap());
        assert_eq!((found.kind, found.at), (want.kind, want.at));
        let levels = [found, want].map(|one| one.enough.map(|enough| enough.level));
        assert_eq!(levels[0], levels[1]);
    }
}

#[test]
fn compares_only_common_replicates() {
    let mut all = points(&mut Random::new(64), &COLLAPSING, 4, 0.5);
    all.retain(|point| point.replicate < 3 || point.level < 10.0);
    assert_eq!(axis(&all).unwrap().kind, AxisKind::Collapse, "three in common");
    all.retain(|point| point.replicate != 0 || point.level != 4.0);
    assert_eq!(axis(&all).unwrap().kind, AxisKind::NotClear, "two in common");
    all.retain(|point| (point.replicate == 0) == (point.level == 1.0));
    let none = axis(&all).unwrap();
    assert_eq!((none.kind, none.enough), (AxisKind::NotClear, None));
}

#[test]
fn refuses_what_is_no_axis() {
    let all = points(&mut Random::new(65), &FLAT, 3, 1.0);
    let refuses = |change: &dyn Fn(&mut Vec<AxisPoint>)| {
        let mut all = all.clone();
        change(&mut all);
        axis(&all).is_none()
    };
    assert!(!refuses(&|_| {}) && refuses(&Vec::clear), "no level");
    assert!(refuses(&|all| all.truncate(1)), "one level");
    assert!(refuses(&|all| all[1].level = 1.0), "two figures in a replicate");
    assert!(refuses(&|all| all[1].value.value = 0.0), "no ratio can be taken");
    assert!(refuses(&|all| all[0].level = f64::INFINITY), "no place on an axis");
}
