//! What the writer writes, and so what must be there.
//!
//! Invariant: pure: commit `n` of a thread changes the same rows wherever it is asked. The state
//! after `n` commits follows from `n` alone, so that one number per thread says what must be there.

use std::collections::BTreeMap;

/// Writing threads.
pub const THREADS: u8 = 8;
/// Puts and runs of deletions of one commit, at most.
const STEPS_MAX: u64 = 5;
/// Keys of one thread.
const KEYS: u64 = 20_000;
/// Every other step is at the first of them, with rows up to the largest: all threads meet there in
/// few leaves of few rows each.
const HOT_KEYS: u64 = 40;
/// Longest value of the other rows, in bytes.
const VALUE_BYTES_MAX: u64 = 400;
/// One in so many steps is a run of deletions.
const DELETED_OF: u64 = 4;
/// Longest run.
const RUN_MAX: u64 = 8;
/// What the largest row has less than half a page, key and value together, in bytes.
const LARGEST_BELOW_HALF: u64 = 59;
const KEY_BYTES: usize = 9;

/// One change of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowChange {
    pub key: [u8; KEY_BYTES],
    /// None deletes.
    pub value: Option<Vec<u8>>,
}

/// What the writing follows from.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    pub seed: u64,
    /// The engine's, in bytes.
    pub page_size: u64,
}

impl Load {
    /// What a commit changes, in order: rows from one byte to the largest, and runs of deletions.
    pub fn changes(self, thread: u8, commit: u64) -> impl Iterator<Item = RowChange> {
        let steps = match mix(commit ^ u64::from(thread)) % (2 * STEPS_MAX) {
            many if many < STEPS_MAX => 1 + many,
            _ => 1,
        };
        (0..steps).flat_map(move |step| self.step(thread, commit, step))
    }

    fn step(self, thread: u8, commit: u64, step: u64) -> impl Iterator<Item = RowChange> {
        let place = mix(commit.wrapping_mul(STEPS_MAX) + step) ^ (u64::from(thread) << 56);
        let mixed = mix(self.seed ^ place);
        let largest = self.page_size / 2 - LARGEST_BELOW_HALF - KEY_BYTES as u64;
        let is_hot = mix(mixed ^ 2).is_multiple_of(2);
        let (keys, longest) = if is_hot { (HOT_KEYS, largest) } else { (KEYS, VALUE_BYTES_MAX) };
        let first = mixed % keys;
        let is_deleted = mix(mixed).is_multiple_of(DELETED_OF);
        let run = if is_deleted { 1 + mix(mixed ^ 3) % RUN_MAX } else { 1 };
        let bytes = 1 + mix(mixed ^ 1) % longest;
        (first..first + run).map(move |number| {
            let mut key = [thread; KEY_BYTES];
            key[..8].copy_from_slice(&number.to_be_bytes());
            let value = (!is_deleted)
                .then(|| commit.to_le_bytes().into_iter().cycle().take(bytes as usize).collect());
            RowChange { key, value }
        })
    }
}

/// A number that looks like chance (splitmix64's finish).
fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// The rows that must be there after so many commits of each thread.
#[derive(Debug)]
pub struct Expected {
    load: Load,
    rows: BTreeMap<[u8; KEY_BYTES], Vec<u8>>,
    commits: [u64; THREADS as usize],
}

impl Expected {
    /// Nothing yet.
    pub fn new(load: Load) -> Self {
        Self { load, rows: BTreeMap::new(), commits: [0; THREADS as usize] }
    }

    /// Commits of a thread so far.
    pub fn commits(&self, thread: u8) -> u64 {
        self.commits[usize::from(thread)]
    }

    /// Goes on to a later commit of a thread.
    pub fn advance(&mut self, thread: u8, upto: u64) {
        let (from, load) = (self.commits(thread) + 1, self.load);
        for change in (from..=upto).flat_map(|commit| load.changes(thread, commit)) {
            match change.value {
                Some(value) => self.rows.insert(change.key, value),
                None => self.rows.remove(&change.key),
            };
        }
        self.commits[usize::from(thread)] = upto.max(from - 1);
    }

    /// All rows, in the order of their keys.
    pub fn rows(&self) -> impl Iterator<Item = (&[u8; KEY_BYTES], &Vec<u8>)> {
        self.rows.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_follows_from_the_number_alone() {
        let load = Load { seed: 7, page_size: 4096 };
        let (mut at_once, mut in_steps) = (Expected::new(load), Expected::new(load));
        at_once.advance(2, 500);
        for upto in [1, 2, 2, 90, 500] {
            in_steps.advance(2, upto);
        }
        assert!(at_once.rows().eq(in_steps.rows()));
        assert!(at_once.rows().count() > 250, "{}", at_once.rows().count());
        let other: Vec<RowChange> = Load { seed: 8, ..load }.changes(2, 1).collect();
        assert_ne!(other, load.changes(2, 1).collect::<Vec<_>>());
        let lengths: Vec<usize> = at_once.rows().map(|(_, value)| value.len()).collect();
        assert!(
            lengths.iter().any(|bytes| *bytes < 20) && lengths.iter().any(|bytes| *bytes > 1500)
        );
    }
}
