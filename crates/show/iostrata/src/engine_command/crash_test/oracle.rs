//! What the writer writes, and so what must be there.
//!
//! Invariant: pure: commit `n` of a thread changes the same rows wherever it is computed. So one
//! number per thread gives each thread's last change of each row. A row that several threads change
//! is as one of these left it.

use std::collections::BTreeMap;

/// Writing threads.
pub const THREADS: u8 = 8;
/// Puts and runs of deletions of one commit, at most.
const STEPS_MAX: u64 = 5;
/// Keys of one thread alone.
const KEYS: u64 = 20_000;
/// Threads that put one row or delete one run in a commit, among keys that all of them share, with
/// rows up to the largest: they meet in few leaves of few rows each, and one deletes what others
/// have just put. Every other step of the other threads is there, too.
pub const HOT_THREADS: u8 = 6;
/// The keys that they share.
const HOT_KEYS: u64 = 40;
/// Longest value of the other rows, in bytes.
const VALUE_BYTES_MAX: u64 = 400;
/// Of a hundred steps so many are runs of deletions.
const DELETED_PERCENT: u64 = 40;
/// Longest run.
const RUN_MAX: u64 = 8;
/// What the largest row has less than half a page, key and value together, in bytes.
const LARGEST_BELOW_HALF: u64 = 59;
const KEY_BYTES: usize = 9;

type RowKey = [u8; KEY_BYTES];

/// The key of a row: of all threads, dense so that a leaf may begin with any, or of one alone,
/// among those of the others.
fn key(thread: u8, number: u64, is_hot: bool) -> RowKey {
    let mut key = [thread; KEY_BYTES];
    let (range, number_at) = if is_hot { (0, 1) } else { (1, 0) };
    key[number_at..number_at + 8].copy_from_slice(&number.to_be_bytes());
    key[0] = range;
    key
}

/// One change of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowChange {
    pub key: RowKey,
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
        let most = if thread < HOT_THREADS { 1 } else { STEPS_MAX };
        let steps = 1 + mix(commit ^ u64::from(thread)) % most;
        (0..steps).flat_map(move |step| self.step(thread, commit, step))
    }

    fn step(self, thread: u8, commit: u64, step: u64) -> impl Iterator<Item = RowChange> {
        let place = mix(commit.wrapping_mul(STEPS_MAX) + step) ^ (u64::from(thread) << 56);
        let mixed = mix(self.seed ^ place);
        let largest = self.page_size / 2 - LARGEST_BELOW_HALF - KEY_BYTES as u64;
        let is_hot = thread < HOT_THREADS || mix(mixed ^ 2).is_multiple_of(2);
        let (keys, longest) = if is_hot { (HOT_KEYS, largest) } else { (KEYS, VALUE_BYTES_MAX) };
        let first = mixed % keys;
        let is_deleted = mix(mixed) % 100 < DELETED_PERCENT;
        let run = if is_deleted { 1 + mix(mixed ^ 3) % RUN_MAX } else { 1 };
        let bytes = 1 + (mix(mixed ^ 1) % longest) as usize;
        let whose = commit * u64::from(THREADS) + u64::from(thread);
        (first..first + run).map(move |number| {
            let mut value = whose.to_le_bytes().repeat(bytes.div_ceil(8));
            value.truncate(bytes);
            RowChange { key: key(thread, number, is_hot), value: (!is_deleted).then_some(value) }
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

/// What one thread did last to a row; none when it deleted it.
type LastChange = (u8, Option<Vec<u8>>);

/// What rows may be there after so many commits of each thread.
#[derive(Debug)]
pub struct ExpectedRows {
    load: Load,
    rows: BTreeMap<RowKey, Vec<LastChange>>,
    commits: [u64; THREADS as usize],
}

impl ExpectedRows {
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
        for RowChange { key, value } in (from..=upto).flat_map(|n| load.changes(thread, n)) {
            let changes = self.rows.entry(key).or_default();
            match changes.iter_mut().find(|(of, _)| *of == thread) {
                Some((_, last)) => *last = value,
                None => changes.push((thread, value)),
            }
        }
        self.commits[usize::from(thread)] = upto.max(from - 1);
    }

    /// The first key, in order, whose row cannot be what the commits left, among rows in the order
    /// of their keys.
    ///
    /// # Errors
    /// An error of reading the next row.
    pub fn first_difference<E>(
        &self,
        mut next_row: impl FnMut() -> Result<Option<(Vec<u8>, Vec<u8>)>, E>,
    ) -> Result<Option<Vec<u8>>, E> {
        let mut known = self.rows.iter().peekable();
        loop {
            let row = next_row()?;
            let before = |key: &RowKey| row.as_ref().is_none_or(|(found, _)| key[..] < found[..]);
            while let Some((key, changes)) = known.next_if(|(key, _)| before(key)) {
                if changes.iter().all(|(_, last)| last.is_some()) {
                    return Ok(Some(key.to_vec()));
                }
            }
            let Some((found, value)) = row else { return Ok(None) };
            let changes = known.next_if(|(key, _)| key[..] == found[..]);
            if !changes
                .is_some_and(|(_, all)| all.iter().any(|(_, last)| last.as_ref() == Some(&value)))
            {
                return Ok(Some(found));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows that commits leave, one thread after the other.
    fn applied(load: Load, commits: &[(u8, u64)]) -> BTreeMap<Vec<u8>, Vec<u8>> {
        let mut rows = BTreeMap::new();
        let each = commits.iter().flat_map(|(thread, upto)| (1..=*upto).map(|n| (*thread, n)));
        for change in each.flat_map(|(thread, commit)| load.changes(thread, commit)) {
            match change.value {
                Some(value) => rows.insert(change.key.to_vec(), value),
                None => rows.remove(&change.key[..]),
            };
        }
        rows
    }

    fn difference(expected: &ExpectedRows, rows: &BTreeMap<Vec<u8>, Vec<u8>>) -> Option<Vec<u8>> {
        let mut rows = rows.clone().into_iter();
        expected.first_difference(|| Ok::<_, ()>(rows.next())).unwrap()
    }

    #[test]
    fn what_may_be_there_follows_from_the_numbers_alone() {
        let load = Load { seed: 7, page_size: 4096 };
        // A row of the thread alone that is put differs from what any other commit left. Commits
        // that only change shared rows, or delete, may leave nothing that shows.
        let shows = |thread, commit| {
            load.changes(thread, commit).any(|change| change.key[0] == 1 && change.value.is_some())
        };
        let (one, other) = (HOT_THREADS, HOT_THREADS + 1);
        let upto = |thread, from: u64| {
            let commit = (from..).find(|n| shows(thread, *n) && shows(thread, n + 1)).unwrap();
            (thread, commit)
        };
        let commits = [upto(one, 500), upto(other, 300)];
        let other_way = [commits[1], commits[0]];
        let mut expected = ExpectedRows::new(load);
        for (thread, upto) in [(one, 1), (other, 20), (one, 2), (one, 2), commits[0], commits[1]] {
            expected.advance(thread, upto);
        }
        let (rows, of_other_way) = (applied(load, &commits), applied(load, &other_way));
        assert_ne!(rows, of_other_way, "they share keys");
        assert_eq!(difference(&expected, &rows), None);
        assert_eq!(difference(&expected, &of_other_way), None);
        // One commit less, one more, a row less, one more.
        let wrong_ones =
            commits.into_iter().flat_map(|(of, upto)| [(of, upto - 1), (of, upto + 1)]);
        for (thread, upto) in wrong_ones {
            let others = commits.into_iter().filter(|(of, _)| *of != thread);
            let wrong = applied(load, &others.chain([(thread, upto)]).collect::<Vec<_>>());
            assert!(difference(&expected, &wrong).is_some(), "{thread} {upto}");
        }
        let alone = rows.keys().find(|key| key[0] == 1).unwrap().clone();
        let mut wrong = rows.clone();
        wrong.remove(&alone);
        assert_eq!(difference(&expected, &wrong), Some(alone));
        wrong = rows.clone();
        wrong.insert(vec![9], vec![1]);
        assert_eq!(difference(&expected, &wrong), Some(vec![9]));
        let lengths: Vec<usize> = rows.values().map(Vec::len).collect();
        assert!(lengths.iter().any(|bytes| *bytes < 20));
        assert!(lengths.iter().any(|bytes| *bytes > 1500));
    }
}
