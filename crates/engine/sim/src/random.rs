//! Seeded random numbers.
//!
//! Invariant: the same seed gives the same numbers on every machine. Not for secrets.
//! Source: xoshiro256++ (Blackman and Vigna, "Scrambled linear pseudorandom number generators"),
//! seeded through splitmix64.

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Random([u64; 4]);

impl Random {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Self {
        let mut state = seed;
        Self(std::array::from_fn(|_| {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        }))
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        let s = &mut self.0;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Uniform in `0..bound`, 0 for a bound of 0; the bias is below `bound / 2^64`.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// Uniform in `(0, 1)`.
    pub fn uniform(&mut self) -> f64 {
        ((self.bits() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    /// Standard normal (Box and Muller).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// Log-normal with mean 1 and the given standard deviation of its logarithm.
    pub fn log_normal(&mut self, sigma: f64) -> f64 {
        (sigma * self.normal() - sigma * sigma / 2.0).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers() {
        let mut one = Random::new(7);
        let mut other = one.clone();
        assert_eq!(one.bits(), other.bits());
        assert_ne!(Random::new(1).bits(), Random::new(2).bits());
    }

    #[test]
    fn moments_are_as_promised() {
        let mut random = Random::new(3);
        let n = 200_000;
        let mut mean = |draw: &mut dyn FnMut(&mut Random) -> f64| {
            (0..n).map(|_| draw(&mut random)).sum::<f64>() / f64::from(n)
        };
        assert!((mean(&mut |r| r.uniform()) - 0.5).abs() < 0.005);
        assert!((mean(&mut |r| r.normal())).abs() < 0.01);
        assert!((mean(&mut |r| r.log_normal(0.5)) - 1.0).abs() < 0.01);
        assert!((mean(&mut |r| r.below(10) as f64) - 4.5).abs() < 0.05);
        assert_eq!(random.below(0), 0);
    }
}
