//! The Space page: one bit for each of a run of pages.
//!
//! Invariant: bit n is bit n % 8, counted from the least significant, of byte n / 8 behind the
//! header; it is set when the page is in use. Which page bit 0 stands for is the caller's
//! business.

use std::ops::Range;

use crate::page::view::PageView;

impl PageView<'_> {
    /// Whether a bit is set; bits beyond [`space_bits`](crate::page::PageSize::space_bits) are not.
    #[inline]
    pub fn bit(&self, bit: u32) -> bool {
        let byte = self.body().get(bit as usize / 8).copied().unwrap_or(0);
        byte >> (bit % 8) & 1 == 1
    }

    pub fn bits_set_in(&self, bits: Range<u32>) -> u32 {
        let end = bits.end.min(self.size().space_bits());
        let first = bits.start / 64;
        let words = self.body().as_chunks().0;
        let range = words.get(first as usize..end.div_ceil(64) as usize).unwrap_or_default();
        (first..)
            .zip(range)
            .map(|(at, word)| {
                (u64::from_le_bytes(*word) & mask(bits.start, end, at * 64)).count_ones()
            })
            .sum()
    }

    /// The first bit at or behind `from` that is not set.
    pub fn first_clear(&self, from: u32) -> Option<u32> {
        let words = self.body().as_chunks().0;
        let first = from / 64;
        let mut hidden = !mask(from, u32::MAX, first * 64);
        for (at, word) in (first..).zip(words.get(first as usize..)?) {
            let clear = !(u64::from_le_bytes(*word) | std::mem::take(&mut hidden));
            if clear != 0 {
                return Some(at * 64 + clear.trailing_zeros());
            }
        }
        None
    }
}

/// The bits of the word that begins at bit `base` that lie in `start..end`.
fn mask(start: u32, end: u32, base: u32) -> u64 {
    let below = start.saturating_sub(base);
    let above = base.saturating_add(64).saturating_sub(end);
    if below >= 64 || above >= 64 {
        return 0;
    }
    (u64::MAX << below) & (u64::MAX >> above)
}

/// Sets or clears bits. They lie within the body.
pub(crate) fn write_bits(body: &mut [u8], bits: Range<u32>, set: bool) {
    let (words, _) = body.as_chunks_mut();
    for at in bits.start / 64..bits.end.div_ceil(64) {
        let mask = mask(bits.start, bits.end, at * 64);
        if let Some(word) = words.get_mut(at as usize) {
            let old = u64::from_le_bytes(*word);
            *word = (if set { old | mask } else { old & !mask }).to_le_bytes();
        }
    }
}
