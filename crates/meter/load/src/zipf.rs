//! Zipfian choice without tables.
//!
//! Rejection-inversion: Hoermann and Derflinger, "Rejection-inversion to generate variates from
//! monotone discrete distributions" (1996). Exact for any n, a few nanoseconds per draw.
//! Rank 0 is the likeliest; spreading ranks over the files is the caller's business.

use iostrata_stats::Random;

/// Chooses ranks below n with probability proportional to `1 / (rank + 1)^theta`.
#[derive(Clone, Debug)]
pub struct Zipf {
    n: f64,
    theta: f64,
    integral_first: f64,
    integral_last: f64,
    shortcut: f64,
}

impl Zipf {
    /// Ranks below `n`, skew `theta` above 0 and not 1.
    pub fn new(n: u64, theta: f64) -> Self {
        assert!(n > 0 && theta > 0.0 && theta != 1.0, "{n} ranks, skew {theta}");
        let mut zipf =
            Self { n: n as f64, theta, integral_first: 0.0, integral_last: 0.0, shortcut: 0.0 };
        zipf.integral_first = zipf.integral(1.5) - 1.0;
        zipf.integral_last = zipf.integral(zipf.n + 0.5);
        zipf.shortcut = 2.0 - zipf.inverse(zipf.integral(2.5) - 2.0_f64.powf(-theta));
        zipf
    }

    /// A rank.
    #[inline]
    pub fn draw(&self, random: &mut Random) -> u64 {
        loop {
            let u = self.integral_last + random.unit() * (self.integral_first - self.integral_last);
            let x = self.inverse(u);
            let k = x.round().clamp(1.0, self.n);
            if k - x <= self.shortcut || u >= self.integral(k + 0.5) - k.powf(-self.theta) {
                return k as u64 - 1;
            }
        }
    }

    /// The integral of x^-theta.
    fn integral(&self, x: f64) -> f64 {
        x.powf(1.0 - self.theta) / (1.0 - self.theta)
    }

    fn inverse(&self, area: f64) -> f64 {
        (area * (1.0 - self.theta)).max(0.0).powf(1.0 / (1.0 - self.theta))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_come_as_often_as_the_formula_says() {
        const DRAWS: u32 = 400_000;
        for (n, theta) in [(10_u64, 0.5), (1000, 0.99), (100_000, 0.8), (5_000, 1.2)] {
            let zipf = Zipf::new(n, theta);
            let mut random = Random::of_stream(11, n);
            let mut counts = vec![0_u32; n as usize];
            for _ in 0..DRAWS {
                counts[zipf.draw(&mut random) as usize] += 1;
            }
            let total: f64 = (1..=n).map(|rank| (rank as f64).powf(-theta)).sum();
            for rank in [0, 1, 2, 7] {
                let share = (rank as f64 + 1.0).powf(-theta) / total;
                let (found, expected) = (f64::from(counts[rank]), share * f64::from(DRAWS));
                assert!(
                    (found - expected).abs() < 5.0 * expected.sqrt() + 1.0,
                    "n {n} theta {theta} rank {rank}: {found} instead of {expected}"
                );
            }
        }
    }
}
