//! What the writer writes, and so what must be there.
//!
//! Invariant: pure: commit `n` of a thread changes the same rows wherever it is asked. The state
//! after `n` commits follows from `n` alone, so that one number per thread says what must be there.

use std::collections::BTreeMap;

/// Writing threads.
pub const THREADS: u8 = 4;
/// Rows that one commit changes.
const ROWS: u64 = 5;
/// Keys of one thread.
const KEYS: u64 = 20_000;
/// Longest value, in bytes.
const VALUE_BYTES_MAX: u64 = 400;
/// One in so many changes is a deletion.
const DELETED_OF: u64 = 6;

/// One change of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowChange {
    pub key: [u8; 9],
    /// None deletes.
    pub value: Option<Vec<u8>>,
}

/// What a commit changes, in order.
pub fn changes(seed: u64, thread: u8, commit: u64) -> impl Iterator<Item = RowChange> {
    (0..ROWS).map(move |row| {
        let mixed = mix(seed ^ mix(commit.wrapping_mul(ROWS) + row) ^ (u64::from(thread) << 56));
        let mut key = [thread; 9];
        key[1..].copy_from_slice(&(mixed % KEYS).to_be_bytes());
        let is_deleted = mix(mixed).is_multiple_of(DELETED_OF);
        let bytes = 8 + mix(mixed ^ 1) % VALUE_BYTES_MAX;
        let value = (!is_deleted)
            .then(|| commit.to_le_bytes().into_iter().cycle().take(bytes as usize).collect());
        RowChange { key, value }
    })
}

/// A number that looks like chance (splitmix64's finish).
fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// The rows that must be there after so many commits of each thread.
#[derive(Debug, Default)]
pub struct Expected {
    rows: BTreeMap<[u8; 9], Vec<u8>>,
    commits: [u64; THREADS as usize],
}

impl Expected {
    /// Commits of a thread so far.
    pub fn commits(&self, thread: u8) -> u64 {
        self.commits[usize::from(thread)]
    }

    /// Goes on to a later commit of a thread.
    pub fn advance(&mut self, seed: u64, thread: u8, upto: u64) {
        let from = self.commits(thread) + 1;
        for change in (from..=upto).flat_map(|commit| changes(seed, thread, commit)) {
            match change.value {
                Some(value) => self.rows.insert(change.key, value),
                None => self.rows.remove(&change.key),
            };
        }
        self.commits[usize::from(thread)] = upto.max(from - 1);
    }

    /// All rows, in the order of their keys.
    pub fn rows(&self) -> impl Iterator<Item = (&[u8; 9], &Vec<u8>)> {
        self.rows.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_follows_from_the_number_alone() {
        let (mut at_once, mut in_steps) = (Expected::default(), Expected::default());
        at_once.advance(7, 2, 500);
        for upto in [1, 2, 2, 90, 500] {
            in_steps.advance(7, 2, upto);
        }
        assert!(at_once.rows().eq(in_steps.rows()));
        assert!(at_once.rows().count() > 1000, "{}", at_once.rows().count());
        let other: Vec<RowChange> = changes(8, 2, 1).collect();
        assert_ne!(other, changes(7, 2, 1).collect::<Vec<_>>());
    }
}
