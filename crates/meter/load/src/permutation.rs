//! A random order of the numbers below n that needs no memory.
//!
//! Invariant: a bijection; every number below n comes from exactly one number below n.
//! A Feistel network over the next even power of two, walked until the result is below n (Black and
//! Rogaway, "Ciphers with arbitrary finite domains", 2002): at most four steps on average.

use iostrata_stats::split_mix;

const ROUNDS: usize = 4;

/// A random bijection of the numbers below n.
#[derive(Clone, Debug)]
pub struct Permutation {
    n: u64,
    half_bits: u32,
    keys: [u64; ROUNDS],
}

impl Permutation {
    /// The bijection of one seed over the numbers below `n`.
    pub fn new(n: u64, seed: u64) -> Self {
        assert!(n > 0, "nothing to permute");
        let bits = (64 - (n - 1).leading_zeros()).max(2);
        let mut state = seed;
        Self {
            n,
            half_bits: bits.div_ceil(2),
            keys: std::array::from_fn(|_| split_mix(&mut state)),
        }
    }

    /// Where number `index` goes.
    #[inline]
    pub fn at(&self, index: u64) -> u64 {
        debug_assert!(index < self.n);
        let mut value = index;
        loop {
            value = self.scramble(value);
            if value < self.n {
                return value;
            }
        }
    }

    #[inline]
    fn scramble(&self, value: u64) -> u64 {
        let mask = (1_u64 << self.half_bits) - 1;
        let (mut left, mut right) = (value >> self.half_bits, value & mask);
        for key in self.keys {
            let mixed = (right ^ key).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            (left, right) = (right, left ^ ((mixed ^ (mixed >> 29)) & mask));
        }
        (left << self.half_bits) | right
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_number_comes_once(n in 1_u64..3000, seed: u64) {
            let permutation = Permutation::new(n, seed);
            let mut seen = vec![false; n as usize];
            for index in 0..n {
                let value = permutation.at(index);
                prop_assert!(value < n && !seen[value as usize]);
                seen[value as usize] = true;
            }
        }
    }

    #[test]
    fn neighbours_are_scattered() {
        let permutation = Permutation::new(1 << 20, 3);
        let near = (0..10_000).filter(|i| permutation.at(*i).abs_diff(permutation.at(i + 1)) < 16);
        assert!(near.count() < 20);
    }
}
