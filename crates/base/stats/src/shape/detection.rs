//! Are shapes found where they are, and only there?

use super::{Run, Shape, Steadiness, find_stalls, fit};
use crate::Verdict;
use crate::random::Random;
use crate::simulate::{LEVEL, NOISE, ProcessKind, autocorrelated, series};

/// Noise around the usual level with something added at each slice.
fn shaped(rng: &mut Random, slices: usize, rho: f64, add: impl Fn(usize) -> f64) -> Vec<f64> {
    let noise = autocorrelated(rng, slices, rho);
    noise.iter().enumerate().map(|(at, value)| LEVEL + NOISE * value + add(at)).collect()
}

/// How many of 200 series of 600 slices, with noise autocorrelated by 0.5, satisfy a test.
fn found(add: impl Fn(usize) -> f64, test: impl Fn(&Steadiness) -> bool) -> usize {
    let mut rng = Random::new(21);
    (0..200).filter(|_| test(&Steadiness::of(&shaped(&mut rng, 600, 0.5, &add)))).count()
}

fn only(steadiness: &Steadiness) -> Option<Shape> {
    (steadiness.shapes.len() == 1).then(|| steadiness.shapes[0])
}

#[test]
fn noise_raises_few_false_alarms() {
    for (kind, slices) in [
        (ProcessKind::White, 100),
        (ProcessKind::White, 1_000),
        (ProcessKind::Exponential, 400),
        (ProcessKind::Poisson(1.0), 400),
        (ProcessKind::Autocorrelated(0.5), 100),
        (ProcessKind::Autocorrelated(0.5), 1_000),
        (ProcessKind::Autocorrelated(0.8), 300),
        (ProcessKind::Autocorrelated(0.8), 2_000),
    ] {
        let mut rng = Random::new(20);
        let alarms = (0..1_000)
            .filter(|_| !Steadiness::of(&series(&mut rng, kind, slices).0).shapes.is_empty())
            .count();
        println!("false alarms {kind:?}, {slices} slices: {:.1} %", alarms as f64 / 10.0);
        assert!(alarms <= 20, "{kind:?}, {slices} slices: {alarms} of 1000");
    }
}

#[test]
fn a_drift_is_named_with_its_size() {
    let ramp = |at: usize| 400.0 * (at as f64 / 600.0 - 0.5);
    let hits = found(ramp, |steadiness| {
        let fits = |change: f64| (250.0..550.0).contains(&change);
        matches!(only(steadiness), Some(Shape::Drift { change }) if fits(change))
            && steadiness.verdicts().has(Verdict::NotSteady)
    });
    assert!(hits >= 180, "{hits} of 200");
}

#[test]
fn a_step_is_named_with_its_place_and_levels() {
    let step = |at: usize| if at < 200 { 0.0 } else { 250.0 };
    let hits = found(step, |steadiness| match only(steadiness) {
        Some(Shape::Step { at, before, after }) => {
            at.abs_diff(200) <= 20
                && (before - 1_000.0).abs() < 80.0
                && (after - 1_250.0).abs() < 80.0
        }
        _ => false,
    });
    assert!(hits >= 180, "{hits} of 200");
}

#[test]
fn a_stall_is_named_and_not_taken_for_steps() {
    let stall = |at: usize| if (300..330).contains(&at) { -1e9 } else { 0.0 };
    let mut rng = Random::new(22);
    let hits = (0..200).filter(|_| {
        let rate: Vec<f64> =
            shaped(&mut rng, 600, 0.5, stall).iter().map(|value| value.max(0.0)).collect();
        let steadiness = Steadiness::of(&rate);
        only(&steadiness) == Some(Shape::Stall { at: 300, slices: 30 })
            && steadiness.verdicts().has(Verdict::NotSteady)
    });
    assert!(hits.count() >= 190);
}

#[test]
fn a_burst_allowance_that_runs_out_is_told_from_other_steps() {
    let burst = |steadiness: &Steadiness| steadiness.burst().is_some();
    let falls = |at: usize| if at < 150 { 1_500.0 } else { 0.0 };
    assert!(found(falls, burst) >= 195, "a fall to 40 % after a quarter of the time");
    let twice = |at: usize| [2_000.0, 800.0, 0.0][at / 200];
    assert!(found(twice, burst) >= 195, "a fall in two steps");
    let dips = |at: usize| if (150..350).contains(&at) { -500.0 } else { 0.0 };
    assert!(found(dips, burst) <= 4, "what comes back was no allowance");
    let rises = |at: usize| if at < 150 { 0.0 } else { 1_500.0 };
    assert_eq!(found(rises, burst), 0);
    assert!(found(|_| 0.0, burst) == 0);
}

#[test]
fn a_small_shape_is_named_and_does_not_matter() {
    let mut rng = Random::new(23);
    let slices: Vec<f64> = (0..2_000)
        .map(|at| LEVEL + 20.0 * (f64::from(at) / 2_000.0) + 5.0 * rng.normal())
        .collect();
    let steadiness = Steadiness::of(&slices);
    assert!(matches!(only(&steadiness), Some(Shape::Drift { .. })), "{steadiness:?}");
    assert!(steadiness.is_steady() && steadiness.verdicts().is_sound());
}

#[test]
fn degenerate_series_are_steady() {
    for slices in [vec![], vec![5.0], vec![0.0; 500], vec![7.0; 500], vec![1.0, 2.0, 1.0]] {
        assert!(Steadiness::of(&slices).is_steady(), "{slices:?}");
    }
    let exact_line: Vec<f64> = (0..500).map(|at| 1_000.0 + f64::from(at)).collect();
    assert!(!Steadiness::of(&exact_line).is_steady());
}

/// The interval of the mean accounts for many periods.
#[test]
fn a_wave_of_few_periods_is_a_swing_with_its_amplitude() {
    for (period, hits_min, hits_max) in [(200.0, 180, 200), (12.0, 0, 20)] {
        let wave = |at: usize| 300.0 * (std::f64::consts::TAU * at as f64 / period).sin();
        let hits = found(wave, |steadiness| {
            matches!(only(steadiness), Some(Shape::Swing { amplitude })
                if (amplitude - 300.0).abs() < 60.0)
        });
        assert!((hits_min..=hits_max).contains(&hits), "period {period}: {hits} of 200");
    }
}

#[test]
fn steps_that_hide_each_other_are_found_together() {
    let places = |want: &'static [usize]| {
        move |steadiness: &Steadiness| {
            let near = |place: &usize| {
                let is = |shape: &Shape| {
                    matches!(shape, Shape::Step { .. }) && shape.at().abs_diff(*place) <= 15
                };
                steadiness.shapes.iter().any(is)
            };
            want.iter().all(near) && steadiness.shapes.len() == want.len()
        }
    };
    let stairs = |at: usize| [2_000.0, 800.0, 0.0][at / 200];
    let hits = found(stairs, places(&[200, 400]));
    assert!(hits >= 180, "stairs: {hits} of 200");
    let dip = |at: usize| if (250..350).contains(&at) { -600.0 } else { 0.0 };
    let hits = found(dip, places(&[250, 350]));
    assert!(hits >= 160, "dip: {hits} of 200");
    let turns = |at: usize| if (at / 150).is_multiple_of(2) { -400.0 } else { 400.0 };
    let hits = found(turns, |steadiness| !steadiness.is_steady());
    assert!(hits >= 195, "turns: {hits} of 200");
}

#[test]
fn finds_where_and_how_long() {
    let mut rng = Random::new(1);
    let mut slices: Vec<f64> = (0..400).map(|_| 1_000.0 + 100.0 * rng.normal()).collect();
    slices[150..170].fill(0.0);
    slices[300] = 3.0;
    assert_eq!(find_stalls(&slices), [Run { at: 150, slices: 20 }, Run { at: 300, slices: 1 }]);
}

#[test]
fn a_slow_disk_with_empty_slices_does_not_stall_until_it_does() {
    let mut rng = Random::new(2);
    let mut alarms = 0;
    for _ in 0..500 {
        // One request per slice on average: a third of the slices is empty.
        let mut slices = vec![0.0; 500];
        (0..500).for_each(|_| slices[rng.below(500) as usize] += 1.0);
        alarms += usize::from(!find_stalls(&slices).is_empty());
        slices[200..240].fill(0.0);
        assert!(find_stalls(&slices).iter().any(|run| run.at <= 200 && run.slices >= 40));
    }
    assert!(alarms <= 10, "{alarms} false stalls in 500 series");
}

#[test]
fn an_idle_series_has_none() {
    assert_eq!(find_stalls(&[0.0; 100]), []);
}

#[test]
fn finds_the_coefficients_of_a_mix() {
    let one = vec![1.0; 50];
    let line: Vec<f64> = (0..50).map(f64::from).collect();
    let wave: Vec<f64> = line.iter().map(|at| (at * 0.7).sin()).collect();
    let mix: Vec<f64> = (0..50).map(|at| 3.0 * one[at] - 0.5 * line[at] + 2.0 * wave[at]).collect();
    let found = fit(&mix, &[one, line, wave]);
    for (got, want) in found.coefficients.iter().zip([3.0, -0.5, 2.0]) {
        assert!((got - want).abs() < 1e-9, "{got} for {want}");
    }
    assert!(found.residual.iter().all(|left| left.abs() < 1e-9));
}

#[test]
fn a_dependent_column_adds_nothing() {
    let one = vec![1.0; 10];
    let found = fit(&[4.0; 10], &[one.clone(), one]);
    assert!(found.coefficients.iter().all(|value| value.is_finite()));
    assert!(found.residual.iter().all(|left| left.abs() < 1e-9));
}
