//! Incompressible bytes from a seed.
//!
//! Invariant: the same seed gives the same bytes; no two 64-byte lines of one stream are alike in
//! practice, so that neither compression nor deduplication finds anything.
//! Not a source of randomness for offsets or secrets.

/// Xorshift64* (Vigna, "An experimental exploration of Marsaglia's xorshift generators", 2016).
pub(crate) struct Noise(u64);

impl Noise {
    /// A stream for a seed; every seed, 0 included, is good.
    pub(crate) fn new(seed: u64) -> Self {
        // One splitmix step spreads small seeds over all bits; xorshift's state must not be 0.
        let mut state = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Self((state ^ (state >> 31)) | 1)
    }

    /// The next 64 bits.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Fills `bytes`.
    pub(crate) fn fill(&mut self, bytes: &mut [u8]) {
        let mut words = bytes.chunks_exact_mut(8);
        for word in &mut words {
            word.copy_from_slice(&self.next().to_ne_bytes());
        }
        let last = self.next().to_ne_bytes();
        for (to, from) in words.into_remainder().iter_mut().zip(last) {
            *to = from;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::Noise;

    #[test]
    fn seeds_differ_and_repeat() {
        let mut first = [0; 100];
        let mut again = [0; 100];
        let mut other = [0; 100];
        Noise::new(0).fill(&mut first);
        Noise::new(0).fill(&mut again);
        Noise::new(1).fill(&mut other);
        assert_eq!(first, again);
        assert_ne!(first, other);
    }

    #[test]
    fn words_do_not_repeat() {
        let mut noise = Noise::new(7);
        let words: HashSet<u64> = (0..10_000).map(|_| noise.next()).collect();
        assert_eq!(words.len(), 10_000);
    }
}
