//! Keys and values that can be made again, and so checked, without being kept.
//!
//! Invariants: loaded keys are spread evenly over all 64-bit numbers and ascend with their index; a
//! value contains its version and is determined by key and version; values do not compress.

/// Bytes of a key.
pub const KEY_BYTES: usize = 8;
/// Fewest bytes of a value: its version and a word that depends on the key.
pub const VALUE_BYTES_MIN: usize = 16;

/// A key as stored: big endian, so that bytes order like numbers.
pub type Key = [u8; KEY_BYTES];

/// One row of a batch; the value's memory is reused.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// Key.
    pub key: Key,
    /// Value.
    pub value: Vec<u8>,
}

impl Row {
    /// Makes this the row of `key` at `version`, with a value of `value_bytes`.
    pub fn fill(&mut self, key: u64, version: u64, value_bytes: usize) {
        self.key = key.to_be_bytes();
        self.value.resize(value_bytes.max(VALUE_BYTES_MIN), 0);
        fill_value(key, version, &mut self.value);
    }
}

/// The rows that a store is loaded with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowSet {
    /// How many.
    pub count: u64,
    /// Bytes of each value.
    pub value_bytes: usize,
}

impl RowSet {
    /// Key of the row with this index, `0..count`.
    #[inline]
    pub fn key(self, index: u64) -> u64 {
        index * (u64::MAX / self.count.max(1))
    }

    /// Bytes of all keys and values.
    pub fn bytes(self) -> u64 {
        self.count * (KEY_BYTES + self.value_bytes) as u64
    }

    /// Every row, version 0, in the order of the keys.
    pub fn rows(self) -> impl Iterator<Item = Row> {
        (0..self.count).map(move |index| {
            let mut row = Row::default();
            row.fill(self.key(index), 0, self.value_bytes);
            row
        })
    }

    /// The sum that a full scan of the rows as loaded comes to; see [`word`].
    pub fn checksum(self) -> u64 {
        (0..self.count).fold(0, |sum, index| sum.wrapping_add(word_of(self.key(index), 0)))
    }
}

/// The word of a value that a scan adds up; 0 when the value is too short to be one of ours.
#[inline]
pub fn word(value: &[u8]) -> u64 {
    match value.get(8..16).and_then(|bytes| <[u8; 8]>::try_from(bytes).ok()) {
        Some(bytes) => u64::from_le_bytes(bytes),
        None => 0,
    }
}

/// Whether this is a whole value of this key, of whichever version.
pub fn is_value_of(key: u64, value: &[u8]) -> bool {
    let Some(version) = version(value).filter(|_| value.len() >= VALUE_BYTES_MIN) else {
        return false;
    };
    let mut expected = vec![0; value.len()];
    fill_value(key, version, &mut expected);
    expected == value
}

/// The version in a value.
pub fn version(value: &[u8]) -> Option<u64> {
    let bytes = value.get(..8)?;
    Some(u64::from_le_bytes(<[u8; 8]>::try_from(bytes).ok()?))
}

fn fill_value(key: u64, version: u64, value: &mut [u8]) {
    let (head, rest) = value.split_at_mut(8);
    head.copy_from_slice(&version.to_le_bytes());
    let mut numbers = Numbers::new(seed_of(key, version));
    for chunk in rest.chunks_mut(8) {
        chunk.copy_from_slice(&numbers.draw().to_le_bytes()[..chunk.len()]);
    }
}

/// The [`word`] of the value that a key has at a version.
#[inline]
pub fn word_of(key: u64, version: u64) -> u64 {
    Numbers::new(seed_of(key, version)).draw()
}

#[inline]
fn seed_of(key: u64, version: u64) -> u64 {
    key ^ version.wrapping_mul(0xd1b5_4a32_d192_ed03)
}

/// Pseudo-random numbers: splitmix64 (Steele, Lea, Flood 2014). Two streams with different seeds
/// draw different numbers at the same place.
#[derive(Clone, Debug)]
pub struct Numbers {
    state: u64,
}

impl Numbers {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next number, of all 64 bits.
    #[inline]
    pub fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// The next number below `bound`.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.draw()) * u128::from(bound)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_ascend_and_cover_the_space() {
        let set = RowSet { count: 1_000, value_bytes: 24 };
        let rows: Vec<Row> = set.rows().collect();
        assert!(rows.is_sorted_by(|a, b| a.key < b.key));
        assert_eq!((rows.len(), set.bytes()), (1_000, 32_000));
        assert!(set.key(999) > u64::MAX / 1_000 * 998);
        let sum = rows.iter().fold(0u64, |sum, row| sum.wrapping_add(word(&row.value)));
        assert_eq!(sum, set.checksum());
    }

    #[test]
    fn a_value_proves_itself() {
        let mut row = Row::default();
        for (key, version, bytes) in [(0, 0, 16), (7, 3, 24), (u64::MAX, 9, 100), (7, 4, 101)] {
            row.fill(key, version, bytes);
            assert!(is_value_of(key, &row.value));
            assert_eq!((super::version(&row.value), row.value.len()), (Some(version), bytes));
            assert!(!is_value_of(key ^ 1, &row.value));
            for at in 0..bytes {
                row.value[at] ^= 1;
                assert!(!is_value_of(key, &row.value), "byte {at}");
                row.value[at] ^= 1;
            }
        }
        assert!(!is_value_of(0, &[0; 8]) && !is_value_of(0, &[]));
    }

    #[test]
    fn numbers_stay_below_their_bound_and_reach_it() {
        let mut numbers = Numbers::new(1);
        let mut seen = [0u32; 7];
        (0..7_000).for_each(|_| seen[numbers.below(7) as usize] += 1);
        assert!(seen.iter().all(|&count| (800..1_200).contains(&count)), "{seen:?}");
    }
}
