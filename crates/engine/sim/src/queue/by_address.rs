//! Numbers of requests in the order of their addresses.
//!
//! Invariant: a bucket holds the requests that begin in one MiB, sorted; a bit says which buckets
//! hold any. A hundred thousand requests lie a few dozen to a bucket, where a tree would be climbed
//! for each.

/// Bytes of a bucket, as a power of 2.
const BUCKET_BITS: u32 = 20;

/// Requests by address, and by number where the address is the same.
#[derive(Clone, Debug, Default)]
pub(super) struct ByAddress {
    buckets: Vec<Vec<(u64, u32)>>,
    filled: Vec<u64>,
}

fn bucket_of(at_bytes: u64) -> usize {
    (at_bytes >> BUCKET_BITS) as usize
}

impl ByAddress {
    pub(super) fn insert(&mut self, at_bytes: u64, number: u32) {
        let bucket = bucket_of(at_bytes);
        if bucket >= self.buckets.len() {
            self.buckets.resize(bucket + 1, Vec::new());
            self.filled.resize(bucket / 64 + 1, 0);
        }
        let place = self.buckets[bucket].partition_point(|one| *one < (at_bytes, number));
        self.buckets[bucket].insert(place, (at_bytes, number));
        self.filled[bucket / 64] |= 1 << (bucket % 64);
    }

    /// Takes one out; whether it was there.
    pub(super) fn remove(&mut self, at_bytes: u64, number: u32) -> bool {
        let bucket = bucket_of(at_bytes);
        let Some(all) = self.buckets.get_mut(bucket) else { return false };
        let Ok(place) = all.binary_search(&(at_bytes, number)) else { return false };
        all.remove(place);
        if all.is_empty() {
            self.filled[bucket / 64] &= !(1 << (bucket % 64));
        }
        true
    }

    /// The lowest that is not below an address.
    pub(super) fn from(&self, at_bytes: u64) -> Option<u32> {
        let bucket = bucket_of(at_bytes);
        let all = self.buckets.get(bucket)?;
        let place = all.partition_point(|one| one.0 < at_bytes);
        let found = all.get(place).or_else(|| self.buckets[self.filled_from(bucket + 1)?].first());
        found.map(|one| one.1)
    }

    /// The highest below an address.
    pub(super) fn below(&self, at_bytes: u64) -> Option<u32> {
        let bucket = bucket_of(at_bytes);
        let here = self.buckets.get(bucket);
        let place = here.map_or(0, |all| all.partition_point(|one| one.0 < at_bytes));
        let found = match (place, here) {
            (1.., Some(all)) => all.get(place - 1),
            _ => self.buckets[self.filled_below(bucket)?].last(),
        };
        found.map(|one| one.1)
    }

    fn filled_from(&self, bucket: usize) -> Option<usize> {
        let first = bucket / 64;
        let mut word = self.filled.get(first)? >> (bucket % 64) << (bucket % 64);
        let mut at = first;
        while word == 0 {
            at += 1;
            word = *self.filled.get(at)?;
        }
        Some(at * 64 + word.trailing_zeros() as usize)
    }

    fn filled_below(&self, bucket: usize) -> Option<usize> {
        let bucket = bucket.min(self.filled.len() * 64);
        let rest = bucket % 64;
        let part = if rest == 0 { 0 } else { self.filled[bucket / 64] & ((1 << rest) - 1) };
        if part != 0 {
            return Some(bucket / 64 * 64 + part.ilog2() as usize);
        }
        let at = self.filled[..bucket / 64].iter().rposition(|&word| word != 0)?;
        Some(at * 64 + self.filled[at].ilog2() as usize)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use iostrata_stats::Random;

    #[test]
    fn it_is_an_ordered_set() {
        let (mut random, mut found, mut wanted) =
            (Random::new(4), ByAddress::default(), BTreeSet::new());
        for number in 0..20_000 {
            let at_bytes = random.below(1 << 32);
            if number % 3 < 2 {
                found.insert(at_bytes, number);
                wanted.insert((at_bytes, number));
            } else if let Some(&(at_bytes, number)) = wanted.range((at_bytes, 0)..).next() {
                assert!(found.remove(at_bytes, number) && !found.remove(at_bytes, number));
                wanted.remove(&(at_bytes, number));
            }
            let at_bytes = random.below(1 << 33);
            let above = wanted.range((at_bytes, 0)..).next().map(|one| one.1);
            let below = wanted.range(..(at_bytes, 0)).next_back().map(|one| one.1);
            assert_eq!((found.from(at_bytes), found.below(at_bytes)), (above, below));
        }
    }
}
