//! A set of page numbers.

/// A set of numbers below a bound.
#[derive(Clone, Debug)]
pub(super) struct Bits(Vec<u64>);

impl Bits {
    pub(super) fn new(bound: u32) -> Self {
        Self(vec![0; (bound as usize).div_ceil(64)])
    }

    pub(super) fn has(&self, number: u32) -> bool {
        self.0[(number / 64) as usize] >> (number % 64) & 1 == 1
    }

    /// Adds a number; whether it was new.
    pub(super) fn add(&mut self, number: u32) -> bool {
        let (word, bit) = (&mut self.0[(number / 64) as usize], 1 << (number % 64));
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    /// Takes a number out; whether it was there.
    pub(super) fn take(&mut self, number: u32) -> bool {
        let (word, bit) = (&mut self.0[(number / 64) as usize], 1 << (number % 64));
        let was_there = *word & bit != 0;
        *word &= !bit;
        was_there
    }

    /// The lowest number from `from` on that is in this set and not in `other`, of the same bound.
    pub(super) fn next_without(&self, other: &Self, from: u32) -> Option<u32> {
        let first = (from / 64) as usize;
        let mut word = (self.0.get(first)? & !other.0[first]) >> (from % 64) << (from % 64);
        let mut at = first;
        while word == 0 {
            at += 1;
            word = self.0.get(at)? & !other.0[at];
        }
        Some(at as u32 * 64 + word.trailing_zeros())
    }
}
