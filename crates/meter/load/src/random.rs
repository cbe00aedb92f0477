//! The product's random numbers: xoshiro256++ seeded by SplitMix64.
//!
//! Invariant: a seed replays the same choices for ever, which is why this is not a crate whose
//! streams change between versions. Source: Blackman and Vigna, "Scrambled linear pseudorandom
//! number generators" (2021); Lemire, "Fast random integer generation in an interval" (2019).
//! Not for secrets.

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Random {
    state: [u64; 4],
}

/// One step of SplitMix64: turns consecutive seeds into unrelated states.
pub(crate) fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

impl Random {
    /// The stream of one seed. Streams of different `stream` numbers are unrelated.
    pub fn new(seed: u64, stream: u64) -> Self {
        let mut state = seed ^ stream.wrapping_mul(0xD605_1F2A_9C6B_7E35);
        let state = std::array::from_fn(|_| split_mix(&mut state));
        Self { state }
    }

    /// 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let result = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let c = c ^ a;
        let d = d ^ b;
        self.state = [a ^ d, b ^ c, c ^ (b << 17), d.rotate_left(45)];
        result
    }

    /// A number below `bound`, by multiplication. The bias is below `bound / 2^64`: nothing that a
    /// benchmark of any length could see.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// A number in (0, 1].
    #[inline]
    pub fn unit(&mut self) -> f64 {
        ((self.next_u64() >> 11) + 1) as f64 * (1.0 / 9_007_199_254_740_992.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_replays_for_ever() {
        let mut random = Random::new(1, 0);
        let first: Vec<u64> = (0..3).map(|_| random.next_u64()).collect();
        assert_eq!(first, [REPLAY[0], REPLAY[1], REPLAY[2]]);
        assert_ne!(Random::new(1, 1).next_u64(), first[0]);
    }

    const REPLAY: [u64; 3] =
        [14_971_601_782_005_023_387, 13_781_649_495_232_077_965, 1_847_458_086_238_483_744];

    #[test]
    fn below_is_even_and_in_range() {
        let mut random = Random::new(7, 0);
        let mut counts = [0_u32; 10];
        for _ in 0..100_000 {
            counts[random.below(10) as usize] += 1;
        }
        assert!(counts.iter().all(|count| (9_500..10_500).contains(count)), "{counts:?}");
    }
}
