//! The identity of a row lock: a hash of table and key.
//!
//! Invariant: every bit of table, key and length reaches every bit of the hash, since its parts
//! are used on their own: the lowest bits and the highest seven by the map inside a shard, bits
//! between them choose the shard.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Odd numbers without a pattern.
const SEED: u64 = 0x9e37_79b9_7f4a_7c15;
const WORD: u64 = 0xd6e8_feb8_6659_fd93;
const FINISH: u64 = 0xff51_afd7_ed55_8ccd;

/// Which lock: the hash of a row's table and key. Two rows with the same hash share a lock, which
/// costs waiting (now and then a deadlock that rows alone would not have made), never correctness.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LockId(u64);

impl LockId {
    #[inline]
    pub fn of(table: u32, key: &[u8]) -> Self {
        let (words, rest) = key.as_chunks::<8>();
        let mut hash = folded(SEED ^ u64::from(table) ^ (key.len() as u64) << 32);
        for word in words {
            hash = folded(hash ^ u64::from_le_bytes(*word));
        }
        if !rest.is_empty() {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            hash = folded(hash ^ u64::from_le_bytes(word));
        }
        hash = (hash ^ hash >> 32).wrapping_mul(FINISH);
        Self(hash ^ hash >> 29)
    }

    /// Which of so many shards; a power of two, 256 at most.
    #[inline]
    pub(crate) fn shard(self, shards: usize) -> usize {
        (self.0 >> 48) as usize & (shards - 1)
    }
}

/// The halves of a product of 128 bits. A plain product would carry high bits nowhere, and
/// differences between two words of a key could cancel.
#[inline]
fn folded(word: u64) -> u64 {
    let product = u128::from(word) * u128::from(WORD);
    product as u64 ^ (product >> 64) as u64
}

/// A map by locks, which are hashes already.
pub type LockMap<V> = HashMap<LockId, V, BuildHasherDefault<IdHasher>>;

#[derive(Default)]
pub struct IdHasher(u64);

impl Hasher for IdHasher {
    #[inline]
    fn write_u64(&mut self, id: u64) {
        self.0 = id;
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = folded(self.0 ^ u64::from(*byte));
        }
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn nearby_keys_have_locks_of_their_own() {
        let mut seen = HashSet::new();
        let mut count = 0;
        let mut add = |table, key: &[u8]| {
            count += 1;
            seen.insert(LockId::of(table, key));
        };
        for number in 0..50_000_u64 {
            add(1, &number.to_be_bytes());
            add(2, &number.to_be_bytes());
            add(1, &number.to_le_bytes());
            add(1, &(number as u32).to_be_bytes());
            add(1, format!("user{number:010}").as_bytes());
            let pair = [number % 256 * 128, (number / 256) << 36].map(u64::to_be_bytes);
            add(3, pair.as_flattened());
        }
        // The little-endian number 0 is the big-endian one, and so are palindromes of bytes.
        let same = (0..50_000_u64).filter(|number| number.swap_bytes() < 50_000).count();
        assert_eq!((seen.len(), count), (300_000 - same, 300_000));
    }

    #[test]
    fn length_and_padding_count() {
        let keys: [&[u8]; 7] = [&[], &[0], &[0, 0], &[0; 7], &[0; 8], &[0; 9], &[0; 16]];
        let ids: HashSet<LockId> = keys.iter().map(|key| LockId::of(1, key)).collect();
        assert_eq!(ids.len(), keys.len());
        assert_ne!(LockId::of(0, &1_u64.to_le_bytes()), LockId::of(1, &0_u64.to_le_bytes()));
    }

    #[test]
    fn every_bit_of_the_key_flips_half_of_the_hash() {
        for bit in 0..128 {
            let mut flips = 0;
            for number in 0..64_u8 {
                let mut key = [number; 16];
                let before = LockId::of(7, &key).0;
                key[bit / 8] ^= 1 << (bit % 8);
                flips += (LockId::of(7, &key).0 ^ before).count_ones();
            }
            assert!((28 * 64..36 * 64).contains(&flips), "bit {bit}: {flips} of {}", 64 * 64);
        }
    }

    #[test]
    fn consecutive_keys_spread_over_the_shards() {
        let mut counts = [0_u32; 256];
        for number in 0..256_000_u64 {
            counts[LockId::of(1, &number.to_be_bytes()).shard(256)] += 1;
        }
        assert!(counts.iter().all(|count| (800..1200).contains(count)), "{counts:?}");
    }
}
