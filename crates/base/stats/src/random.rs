//! The program's random numbers: xoshiro256++ seeded by SplitMix64.
//!
//! Invariant: the same seed gives the same numbers on every machine and for ever, which is why this
//! is not a crate whose streams change between versions. Not for secrets.
//! Source: Blackman and Vigna, "Scrambled linear pseudorandom number generators" (2021); Lemire,
//! "Fast random integer generation in an interval" (2019).

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Random([u64; 4]);

/// One step of SplitMix64: turns consecutive seeds into unrelated numbers.
pub fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Random {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Self {
        Self::of_stream(seed, 0)
    }

    /// One of the streams of a seed; they are unrelated.
    pub fn of_stream(seed: u64, stream: u64) -> Self {
        let mut state = seed ^ stream.wrapping_mul(0xd605_1f2a_9c6b_7e35);
        Self(std::array::from_fn(|_| split_mix(&mut state)))
    }

    /// 64 random bits.
    #[inline]
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
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// Uniform in `(0, 1)`.
    pub fn uniform(&mut self) -> f64 {
        ((self.bits() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    /// Uniform in `(0, 1]`.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        ((self.bits() >> 11) + 1) as f64 * (1.0 / 9_007_199_254_740_992.0)
    }

    /// Exponential with mean 1.
    pub fn exponential(&mut self) -> f64 {
        -self.uniform().ln()
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
        assert_ne!(Random::new(1).bits(), Random::of_stream(1, 1).bits());
        let mut random = Random::new(1);
        assert_eq!([0; 3].map(|_| random.bits()), FOR_EVER);
    }

    const FOR_EVER: [u64; 3] =
        [14_971_601_782_005_023_387, 13_781_649_495_232_077_965, 1_847_458_086_238_483_744];

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
