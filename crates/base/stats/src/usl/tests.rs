//! Laws that are known, found again.

use super::*;
use crate::Verdict;
use crate::random::Random;

const WORKERS: [u32; 6] = [1, 4, 16, 64, 128, 256];

/// A law as lambda, sigma, kappa.
type Law = [f64; 3];

fn at([lambda, sigma, kappa]: Law, workers: u32) -> f64 {
    let n = f64::from(workers);
    lambda * n / (1.0 + sigma * (n - 1.0) + kappa * n * (n - 1.0))
}

/// Points of a law with noise of so many percent, which their own intervals tell rightly.
fn points(rng: &mut Random, law: Law, workers: &[u32], noise_pct: f64) -> Vec<UslPoint> {
    let one = |&workers: &u32| {
        let noise = noise_pct / 100.0;
        let value = at(law, workers) * (noise * rng.normal()).exp();
        let ends = [1.0 - 1.96 * noise, 1.0 + 1.96 * noise].map(|end| end * value);
        UslPoint { workers, value: Measured::new(value, ends, 30, Verdicts::none()) }
    };
    workers.iter().map(one).collect()
}

fn close(found: f64, want: f64, share: f64) {
    assert!((found - want).abs() <= share * want.abs(), "{found} for {want}");
}

/// The laws of the tests: contention and coherency, only one of them, none, and a lock.
const LAWS: [Law; 5] =
    [[1e4, 0.05, 1e-4], [250.0, 0.2, 0.0], [8e5, 0.0, 2e-4], [3.0, 0.0, 0.0], [1e3, 1.0, 0.0]];

#[test]
fn recovers_exact_laws() {
    for law in LAWS {
        let found = usl(&points(&mut Random::new(71), law, &WORKERS, 0.0)).unwrap();
        close(found.lambda.value, law[0], 1e-6);
        assert!((found.sigma.value - law[1]).abs() < 1e-7, "{law:?}: {found:?}");
        assert!((found.kappa.value - law[2]).abs() < 1e-9, "{law:?}: {found:?}");
        assert!(found.residual_pct < 1e-3 && found.n == 6);
        assert!(found.r2.is_none_or(|r2| r2 > 0.999_999), "{law:?}: {found:?}");
    }
}

#[test]
fn the_peak_is_where_the_law_is_highest() {
    let found = usl(&points(&mut Random::new(72), LAWS[0], &WORKERS, 0.0)).unwrap();
    let peak = found.peak_workers.unwrap();
    close(peak, (0.95f64 / 1e-4).sqrt(), 1e-6);
    let value = found.peak_value.unwrap();
    assert!(value > found.value_at(peak * 0.99) && value > found.value_at(peak * 1.01));
    assert!(found.is_peak_measured);
    let early = usl(&points(&mut Random::new(72), LAWS[0], &[1, 2, 8, 16], 0.0)).unwrap();
    assert!(!early.is_peak_measured && early.peak_workers.is_some());
    let falling = usl(&points(&mut Random::new(72), [1e3, 1.4, 0.01], &WORKERS, 0.0)).unwrap();
    assert_eq!(falling.peak_workers, Some(1.0));
    close(falling.peak_value.unwrap(), 1e3, 1e-6);
}

#[test]
fn recovers_laws_under_noise() {
    let mut rng = Random::new(73);
    let mut sums = [0.0; 3];
    for _ in 0..500 {
        let found = usl(&points(&mut rng, LAWS[0], &WORKERS, 5.0)).unwrap();
        let of = [found.lambda, found.sigma, found.kappa].map(|one| one.value);
        sums.iter_mut().zip(of).for_each(|(sum, value)| *sum += value / 500.0);
    }
    for (mean, want) in sums.iter().zip(LAWS[0]) {
        close(*mean, want, 0.03);
    }
}

/// Shares in percent of intervals that hold lambda, sigma and kappa.
fn held(seed: u64, law: Law, workers: &[u32], noise_pct: f64, has_intervals: bool) -> [f64; 3] {
    let (mut rng, mut held) = (Random::new(seed), [0.0; 3]);
    for _ in 0..1_000 {
        let mut all = points(&mut rng, law, workers, noise_pct);
        if !has_intervals {
            all.iter_mut().for_each(|point| point.value.ci95 = None);
        }
        let found = usl(&all).unwrap();
        let of = [found.lambda, found.sigma, found.kappa].map(|one| one.ci95.unwrap());
        for ((count, [low, high]), truth) in held.iter_mut().zip(of).zip(law) {
            *count += f64::from(u8::from(low <= truth && truth <= high)) / 10.0;
        }
    }
    held
}

#[test]
fn intervals_hold_the_truth() {
    let thrice = WORKERS.repeat(3);
    for law in LAWS {
        for (workers, noise_pct) in [(&WORKERS[..], 3.0), (&thrice, 3.0), (&thrice, 10.0)] {
            let own = held(74, law, workers, noise_pct, true);
            let none = held(75, law, workers, noise_pct, false);
            let n = workers.len();
            println!("{law:?}, {n} points, {noise_pct} %: {own:.1?}, without intervals {none:.1?}");
            assert!(own.iter().all(|share| *share >= 94.0), "{law:?}, {n}: {own:?}");
            for (share, truth) in none.iter().zip(law) {
                // An interval cut at a truth of 0 can only miss it on one side.
                let most = if truth == 0.0 { 99.0 } else { 97.5 };
                assert!((92.5..=most).contains(share), "{law:?}, {n}: {none:?}");
            }
        }
    }
}

#[test]
fn intervals_hold_the_truth_when_the_points_are_too_sure() {
    let (mut rng, mut held) = (Random::new(79), 0);
    for _ in 0..1_000 {
        let mut all = points(&mut rng, LAWS[0], &WORKERS, 5.0);
        all.iter_mut().for_each(|point| {
            let value = point.value.value;
            point.value.ci95 = Some([value * 0.995, value * 1.005]);
        });
        let [low, high] = usl(&all).unwrap().kappa.ci95.unwrap();
        held += u32::from(low <= LAWS[0][2] && LAWS[0][2] <= high);
    }
    assert!((925..=985).contains(&held), "{held} of 1000");
}

#[test]
fn weights_come_from_the_intervals() {
    let mut all = points(&mut Random::new(76), LAWS[0], &[1, 4, 16, 32, 64, 128, 256], 1.0);
    let clean = usl(&all).unwrap();
    all[4].value = Measured::new(
        all[4].value.value * 1.5,
        [all[4].value.value * 0.5, all[4].value.value * 3.0],
        30,
        Verdicts::none(),
    );
    let wide = usl(&all).unwrap();
    close(wide.kappa.value, clean.kappa.value, 0.1);
    let sure = all[4].value.value;
    all[4].value.ci95 = Some([sure * 0.99, sure * 1.01]);
    let misled = usl(&all).unwrap();
    let off = |law: &Usl| (law.kappa.value / clean.kappa.value - 1.0).abs();
    assert!(off(&misled) > 5.0 * off(&wide), "{} {}", off(&misled), off(&wide));
}

#[test]
fn superlinear_and_flat_curves_stay_within_bounds() {
    let curve = |value: &dyn Fn(f64) -> f64| -> Usl {
        let one = |&workers: &u32| {
            let value = value(f64::from(workers));
            let value = Measured::new(value, [value * 0.95, value * 1.05], 30, Verdicts::none());
            UslPoint { workers, value }
        };
        usl(&WORKERS.iter().map(one).collect::<Vec<_>>()).unwrap()
    };
    let superlinear = curve(&|n| n.powf(1.1));
    assert_eq!((superlinear.sigma.value, superlinear.kappa.value), (0.0, 0.0));
    assert_eq!((superlinear.peak_workers, superlinear.peak_value), (None, None));
    assert!(superlinear.sigma.ci95.is_some_and(|[low, high]| low == 0.0 && high > 1e-5));
    let flat = curve(&|_| 5e3);
    close(flat.sigma.value, 1.0, 1e-6);
    assert!(flat.kappa.value < 1e-9 && flat.lambda.ci95.is_some(), "{flat:?}");
}

#[test]
fn scale_and_order_change_nothing() {
    for law in LAWS {
        let original = points(&mut Random::new(77), law, &WORKERS, 4.0);
        let want = usl(&original).unwrap();
        let mut turned = original.clone();
        turned.reverse();
        turned.rotate_left(2);
        let found = usl(&turned).unwrap();
        assert_eq!((&found.lambda, &found.sigma), (&want.lambda, &want.sigma));
        for factor in [1e-7, 1e9] {
            turned.iter_mut().zip(&original).for_each(|(point, from)| {
                (point.workers, point.value) = (from.workers, from.value.scaled(factor));
            });
            let found = usl(&turned).unwrap();
            close(found.lambda.value, want.lambda.value * factor, 1e-6);
            assert!((found.sigma.value - want.sigma.value).abs() < 1e-6);
            assert!((found.kappa.value - want.kappa.value).abs() < 1e-8);
            assert_eq!(found.peak_workers.is_some(), want.peak_workers.is_some());
        }
    }
}

#[test]
fn verdicts_travel_and_bad_points_are_refused() {
    let mut all = points(&mut Random::new(78), LAWS[0], &WORKERS, 1.0);
    all[3].value.verdicts.add(Verdict::CpuLimited);
    assert!(usl(&all).unwrap().kappa.verdicts.has(Verdict::CpuLimited));
    assert_eq!(usl(&all[..3]), Err(UslError::TooFewLevels { found: 3 }));
    assert_eq!(usl(&[]), Err(UslError::TooFewLevels { found: 0 }));
    let twice = [&all[..3], &all[..3]].concat();
    assert_eq!(usl(&twice), Err(UslError::TooFewLevels { found: 3 }));
    let mut none = all.clone();
    none[0].workers = 0;
    assert_eq!(usl(&none), Err(UslError::NoWorkers));
    for value in [0.0, -3.0] {
        let mut bad = all.clone();
        bad[1].value.value = value;
        assert_eq!(usl(&bad), Err(UslError::NotPositive { workers: 4, value }));
    }
    let steep = |&workers: &u32| {
        let value = 1e9 / f64::from(workers).powi(3);
        let value = Measured::new(value, [value * 0.99, value * 1.01], 30, Verdicts::none());
        UslPoint { workers, value }
    };
    let steep: Vec<UslPoint> = [16, 32, 64, 128].iter().map(steep).collect();
    assert_eq!(usl(&steep), Err(UslError::OneWorkerUnknown { workers_min: 16 }));
}
