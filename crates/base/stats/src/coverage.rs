//! Does the 95 % interval hold the truth 95 times in 100?

use crate::estimate::estimate;
use crate::simulate::{Kind, Rng, series};

#[test]
fn explore() {
    use Kind::*;
    for kind in [
        White,
        Exponential,
        Poisson(2.0),
        Autocorrelated(0.3),
        Autocorrelated(0.5),
        Autocorrelated(0.8),
        Drift(0.0),
        Drift(0.5),
        Drift(0.8),
        Step(0.0),
        Step(0.5),
        Step(0.8),
        Wave(0.0),
        Wave(0.5),
        Wave(0.8),
        SquareWave(0.0),
        SquareWave(0.5),
    ] {
        for n in [300, 1000, 4000] {
            let mut rng = Rng::new(11);
            let (mut held, mut few, mut unsteady, mut shapes) = (0, 0, 0, 0);
            let runs = if n == 4000 { 500 } else { 1000 };
            for _ in 0..runs {
                let (slices, truth) = series(&mut rng, kind, n);
                let e = estimate(&slices).unwrap();
                let [lo, hi] = e.mean_ci95.unwrap();
                held += u32::from(lo <= truth && truth <= hi);
                unsteady += u32::from(!e.steadiness.shapes.is_empty());
                shapes += e.steadiness.shapes.len();
                few += u32::from(e.verdicts.has(crate::Verdict::TooFewSamples));
            }
            let r = runs as f64 / 100.0;
            println!(
                "{kind:?} n {n}: held {:.1}% shaped {:.1}% shapes {:.2} few {:.1}%",
                held as f64 / r,
                unsteady as f64 / r,
                shapes as f64 / runs as f64,
                few as f64 / r
            );
        }
    }
}
