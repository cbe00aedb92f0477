//! Does the 95 % interval hold the truth 95 times in 100?
//!
//! 2,000 simulated series of each kind, at a fixed length and with adaptive stopping; the share held
//! is printed and must lie within 93 to 97 %. The standard error of a share is 0.5 %.

use crate::simulate::{Kind, Rng, series, truth};
use crate::{Stop, StoppingRule, estimate};

const SERIES: usize = 2_000;

fn explore_fixed(kind: Kind) -> String {
    let mut out = String::new();
    for n in [300, 1000, 3000] {
        let mut rng = Rng::new(n as u64 * 7919 + 13);
        let mut held = 0;
        let start = std::time::Instant::now();
        for _ in 0..SERIES {
            let (slices, levels) = series(&mut rng, kind, n);
            let [lo, hi] = estimate(&slices).unwrap().mean_ci95.unwrap();
            let t = truth(kind, &levels);
            held += usize::from(lo <= t && t <= hi);
        }
        out += &format!(
            " {n}: {:.1}% ({:.0} us)",
            held as f64 / 20.0,
            start.elapsed().as_secs_f64() * 1e6 / 2e3
        );
    }
    out
}

fn explore_adaptive(kind: Kind) -> String {
    let mut rng = Rng::new(77);
    let (mut held, mut stopped, mut len) = (0, 0, 0);
    let start = std::time::Instant::now();
    for _ in 0..SERIES {
        let (slices, levels) = series(&mut rng, kind, 3000);
        let precision = 0.004 * (rng.uniform() * 7f64.ln()).exp();
        let rule = StoppingRule::new(precision, 60);
        let mut n = rule.next_check(0);
        while n <= 3000 {
            if rule.decide(&slices[..n]) == Stop::Enough {
                stopped += 1;
                break;
            }
            n = rule.next_check(n);
        }
        let n = n.min(3000);
        len += n;
        let [lo, hi] = estimate(&slices[..n]).unwrap().mean_ci95.unwrap();
        let t = truth(kind, &levels[..n]);
        held += usize::from(lo <= t && t <= hi);
    }
    format!(
        "adaptive {:.1}% stopped {:.1}% mean length {} ({:.0} us)",
        held as f64 / 20.0,
        stopped as f64 / 20.0,
        len / SERIES,
        start.elapsed().as_secs_f64() * 1e6 / 2e3
    )
}

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
        println!("{kind:?}: {} | {}", explore_fixed(kind), explore_adaptive(kind));
    }
}
