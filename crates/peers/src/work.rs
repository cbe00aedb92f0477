//! The loops of the workloads: commits, point reads, scans.
//!
//! Invariant: what a thread writes is determined by its seed and the number of its commits, so that
//! it is known afterwards what must be there. Reads and scans check what they see.

use std::ops::ControlFlow;

use crate::drive::{Tick, Work};
use crate::engines::Engine;
use crate::error::PeerError;
use crate::keys::{self, Key, Numbers, Row, RowSet};
use crate::store::{Reader, Store, Writer};

/// Reads between two readings of the clock.
const READS_PER_TICK: u64 = 64;
/// Rows of a scan between two readings of the clock.
const ROWS_PER_TICK: u64 = 4_096;

/// Which keys a commit writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    /// Random ones of all 64-bit numbers; nearly all are new.
    New,
    /// Random ones of those that were loaded.
    Loaded,
}

/// The rows that one thread commits, one batch after the other.
#[derive(Clone, Debug)]
pub struct Batches {
    keys: Keys,
    set: RowSet,
    numbers: Numbers,
    version: u64,
    rows: Vec<Row>,
}

impl Batches {
    /// Batches of `batch` rows; the same seed makes the same ones.
    pub fn new(keys: Keys, set: RowSet, batch: usize, seed: u64) -> Self {
        // The seed is mixed, so that the streams of neighbouring seeds do not run into each other.
        let numbers = Numbers::new(Numbers::new(seed).draw());
        Self { keys, set, numbers, version: seed << 32, rows: vec![Row::default(); batch] }
    }

    /// The next batch; keys differ within it.
    pub fn draw(&mut self) -> &[Row] {
        self.version += 1;
        for at in 0..self.rows.len() {
            let (before, rest) = self.rows.split_at_mut(at);
            let Some(row) = rest.first_mut() else { break };
            loop {
                let key = match self.keys {
                    Keys::New => self.numbers.draw(),
                    Keys::Loaded => self.set.key(self.numbers.below(self.set.count)),
                };
                row.key = key.to_be_bytes();
                if before.len() as u64 >= self.set.count
                    || before.iter().all(|other| other.key != row.key)
                {
                    break;
                }
            }
            row.fill(u64::from_be_bytes(row.key), self.version, self.set.value_bytes);
        }
        &self.rows
    }
}

/// Durable commits.
pub struct Committing<'a> {
    /// Where to.
    pub writer: Box<dyn Writer + 'a>,
    /// What.
    pub batches: Batches,
}

impl Work for Committing<'_> {
    fn step(&mut self, tick: &mut Tick<'_>) -> Result<ControlFlow<()>, PeerError> {
        let rows = self.batches.draw();
        self.writer.commit(rows)?;
        Ok(tick(rows.len() as u64))
    }
}

/// Point reads of loaded rows.
pub struct Reading<'a> {
    engine: Engine,
    reader: Box<dyn Reader + 'a>,
    set: RowSet,
    numbers: Numbers,
}

impl<'a> Reading<'a> {
    /// Reads random rows of `set` after having seen every one.
    ///
    /// # Errors
    /// When the engine refuses.
    pub fn new(
        engine: Engine,
        store: &'a dyn Store,
        set: RowSet,
        seed: u64,
    ) -> Result<Self, PeerError> {
        let mut reader = store.reader()?;
        reader.scan(&mut |_, _| ControlFlow::Continue(()))?;
        Ok(Self { engine, reader, set, numbers: Numbers::new(Numbers::new(seed).draw()) })
    }
}

impl Work for Reading<'_> {
    fn step(&mut self, tick: &mut Tick<'_>) -> Result<ControlFlow<()>, PeerError> {
        for _ in 0..READS_PER_TICK {
            let key = self.set.key(self.numbers.below(self.set.count));
            let mut is_whole = false;
            let bytes = self.set.value_bytes;
            let seen = &mut |value: &[u8]| {
                is_whole = value.len() == bytes && keys::word(value) == keys::word_of(key, 0);
            };
            if !self.reader.get(&key.to_be_bytes(), seen)? || !is_whole {
                let found = format!("the loaded row {key:016x} is not there as it was loaded");
                return Err(PeerError::WrongData { engine: self.engine.name(), found });
            }
        }
        Ok(tick(READS_PER_TICK))
    }
}

/// Full scans, one after the other.
pub struct Scanning<'a> {
    engine: Engine,
    reader: Box<dyn Reader + 'a>,
    set: RowSet,
    checksum: u64,
}

/// How far a scan has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ScanProgress {
    rows: u64,
    sum: u64,
    last: Key,
    is_disordered: bool,
}

impl<'a> Scanning<'a> {
    /// Scans the rows of `set`, whose checksum is known.
    ///
    /// # Errors
    /// When the engine refuses.
    pub fn new(
        engine: Engine,
        store: &'a dyn Store,
        set: RowSet,
        checksum: u64,
    ) -> Result<Self, PeerError> {
        Ok(Self { engine, reader: store.reader()?, set, checksum })
    }
}

impl ScanProgress {
    #[inline]
    fn see(&mut self, key: &[u8], value: &[u8]) {
        self.is_disordered |= self.rows > 0 && key <= &self.last[..];
        match Key::try_from(key) {
            Ok(key) => self.last = key,
            Err(_) => self.is_disordered = true,
        }
        self.rows += 1;
        self.sum = self.sum.wrapping_add(keys::word(value));
    }

    fn is_whole(&self, set: RowSet, checksum: u64) -> bool {
        !self.is_disordered && self.rows == set.count && self.sum == checksum
    }
}

impl Work for Scanning<'_> {
    fn step(&mut self, tick: &mut Tick<'_>) -> Result<ControlFlow<()>, PeerError> {
        let mut seen = ScanProgress::default();
        let mut flow = ControlFlow::Continue(());
        self.reader.scan(&mut |key, value| {
            seen.see(key, value);
            if seen.rows % ROWS_PER_TICK == 0 {
                flow = tick(ROWS_PER_TICK);
            }
            flow
        })?;
        if flow.is_break() {
            return Ok(flow);
        }
        if !seen.is_whole(self.set, self.checksum) {
            let found = format!("a scan of {} loaded rows found {seen:?}", self.set.count);
            return Err(PeerError::WrongData { engine: self.engine.name(), found });
        }
        Ok(tick(seen.rows % ROWS_PER_TICK))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SET: RowSet = RowSet { count: 50, value_bytes: 24 };

    #[test]
    fn batches_can_be_drawn_again() {
        for keys in [Keys::New, Keys::Loaded] {
            let draw = |seed| {
                let mut batches = Batches::new(keys, SET, 10, seed);
                (0..20).map(|_| batches.draw().to_vec()).collect::<Vec<_>>()
            };
            assert_eq!(draw(1), draw(1));
            assert_ne!(draw(1), draw(2));
            for batch in draw(3) {
                let mut found: Vec<_> = batch.iter().map(|row| row.key).collect();
                found.sort_unstable();
                found.dedup();
                assert_eq!(found.len(), 10, "keys differ within a batch");
            }
        }
    }

    #[test]
    fn loaded_keys_are_among_those_loaded() {
        let loaded: Vec<Key> = SET.rows().map(|row| row.key).collect();
        let mut batches = Batches::new(Keys::Loaded, SET, 50, 7);
        assert!(batches.draw().iter().all(|row| loaded.contains(&row.key)));
        let mut batches = Batches::new(Keys::Loaded, RowSet { count: 2, ..SET }, 3, 7);
        assert_eq!(batches.draw().len(), 3, "a batch larger than the set repeats keys");
    }

    #[test]
    fn a_scan_is_whole_or_not() {
        let rows: Vec<Row> = SET.rows().collect();
        let scan = |rows: &[Row]| {
            let mut seen = ScanProgress::default();
            rows.iter().for_each(|row| seen.see(&row.key, &row.value));
            seen.is_whole(SET, SET.checksum())
        };
        assert!(scan(&rows));
        assert!(!scan(&rows[1..]));
        let mut wrong = rows.clone();
        wrong.swap(3, 4);
        assert!(!scan(&wrong));
        let mut wrong = rows.clone();
        wrong[9].value[8] ^= 1;
        assert!(!scan(&wrong));
    }
}
