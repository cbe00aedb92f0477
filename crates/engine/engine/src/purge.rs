//! Purge: tombstones that no snapshot needs any more go from the leaves.
//!
//! Invariant: a tombstone goes only when every snapshot, now and later, is at or above the commit
//! that left it, and only if it is still what that commit left. What a crash leaves is found by one
//! walk over the leaves, which leaves alone what was deleted since the opening, and goes on at the
//! next one when the engine is closed before its end. It is a state machine: `step` does one piece
//! of work.

use std::ops::Bound;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard};

use iostrata_innodb::TableId;
use iostrata_innodb::flush::Lag;

use crate::catalogue::Catalogue;
use crate::commit::{Committer, commit};
use crate::cursor::TreeCursor;
use crate::error::{EngineError, Failure, RequestError, TableError};
use crate::pages::{Pages, WalkPlace};
use crate::sync::locked;
use crate::tree::Tree;
use crate::tree::descend::Direction;
use crate::version::PurgeItem;
use crate::write_set::WriteSet;

/// Rows examined in one step of the walk over the leaves.
const WALK_ROWS: usize = 2_000;

#[derive(Debug, Default)]
struct Walk {
    /// Tables to be walked, the next one last.
    tables: Vec<Arc<Tree>>,
    /// The last key of the current table that was examined.
    last: Option<Vec<u8>>,
    /// The newest commit of an earlier process. Every snapshot is at or above it.
    until: u64,
}

#[derive(Debug)]
pub(crate) struct Purger {
    pages: Arc<Pages>,
    catalogue: Arc<Catalogue>,
    walk: Mutex<Walk>,
}

impl Purger {
    pub fn new(pages: Arc<Pages>, catalogue: Arc<Catalogue>) -> Self {
        Self { pages, catalogue, walk: Mutex::default() }
    }

    /// Looks for tombstones in all tables, in the steps to come: a crash has left some. Called
    /// before any write.
    pub fn walk_all(&self) {
        self.begin_walk(u32::MAX, None);
    }

    /// Goes on with a walk that an earlier process began. Called before any write.
    pub fn walk_from(&self, place: WalkPlace) {
        self.begin_walk(place.table.0, place.last.map(|last| (place.table, last)));
    }

    fn begin_walk(&self, highest: u32, last: Option<(TableId, Vec<u8>)>) {
        let mut tables = self.catalogue.trees().live;
        tables.retain(|tree| tree.id.0 <= highest);
        tables.sort_unstable_by_key(|tree| tree.id);
        let first = tables.last().map(|tree| tree.id);
        // The table may have been dropped since.
        let last = last.filter(|(table, _)| first == Some(*table)).map(|(_, key)| key);
        let until = self.pages.storage.versions.registry.now();
        *self.lock_walk() = Walk { tables, last, until };
    }

    pub fn walk_place(&self) -> Option<WalkPlace> {
        let walk = self.lock_walk();
        walk.tables.last().map(|tree| WalkPlace { table: tree.id, last: walk.last.clone() })
    }

    /// Whether the old versions of some commits are still to be purged.
    pub fn has_history(&self) -> bool {
        self.pages.storage.versions.stats().history > 0
    }

    fn lock_walk(&self) -> MutexGuard<'_, Walk> {
        locked(&self.walk)
    }

    /// Purges what is due, in one batch. False when there was nothing to do.
    pub fn step(&self) -> Result<bool, EngineError> {
        Ok(self.purge_due()?.is_some() || self.walk_step()?)
    }

    /// Gives the commits that are done with; none when there was nothing to do.
    fn purge_due(&self) -> Result<Option<u64>, EngineError> {
        let storage = &self.pages.storage;
        storage.poison.check()?;
        self.spill();
        let most = storage.settings.load().purge_batch_size as usize;
        let taken = storage.safeguards.take_purge(&storage.versions, most);
        let batch = taken.map_err(|error| EngineError::Io(Failure::new(error)))?;
        let commits = (!batch.is_empty()).then_some(batch.commits);
        if let Err(error) = self.purge(&batch.items) {
            storage.versions.put_back(batch);
            return Err(error);
        }
        storage.versions.finish_purge(batch);
        self.set_delay(commits.is_none());
        Ok(commits)
    }

    /// Writes old versions to their file as long as there are too many in memory. What cannot be
    /// written stays there.
    pub fn spill(&self) {
        while self.pages.storage.versions.log.spill_step().unwrap_or(false) {}
    }

    /// Purges what is due, as far as it was there at the beginning: others may go on writing. The
    /// walk is left where it stands.
    pub fn drain(&self) -> Result<(), EngineError> {
        let mut left = self.pages.storage.versions.stats().history;
        while left > 0 {
            let Some(commits) = self.purge_due()? else { break };
            left = left.saturating_sub(commits);
        }
        Ok(())
    }

    /// `is_blocked`: a snapshot keeps what is in the history.
    fn set_delay(&self, is_blocked: bool) {
        let storage = &self.pages.storage;
        let delay_us = {
            let settings = storage.settings.load();
            let threads = u64::from(settings.purge_threads.max(1));
            let max_lag = u64::from(settings.max_purge_lag);
            let lag = Lag {
                // Counted only if the limit is set.
                history: if max_lag == 0 { 0 } else { storage.versions.stats().history },
                max_lag,
                max_delay_us: u64::from(settings.max_purge_lag_delay),
                is_blocked,
                in_hand: threads * u64::from(settings.purge_batch_size),
            };
            lag.delay_us(settings.max_purge_lag_version)
        };
        storage.purge_lag_us.store(delay_us, Ordering::Relaxed);
    }

    /// Takes tombstones away, table by table in the order of keys.
    fn purge(&self, items: &[PurgeItem]) -> Result<(), EngineError> {
        let mut sorted: Vec<&PurgeItem> = items.iter().collect();
        // Of several tombstones of a row the newest can be what the leaf holds.
        sorted.sort_by(|a, b| (a.table, &a.key, a.number).cmp(&(b.table, &b.key, b.number)));
        for of_table in sorted.chunk_by(|a, b| a.table == b.table) {
            let Some(tree) = self.catalogue.tree(TableId(of_table[0].table)) else { continue };
            let rows: Vec<(&[u8], u64)> =
                of_table.iter().map(|item| (item.key.as_slice(), item.number)).collect();
            self.purge_rows(&tree, &rows)?;
        }
        Ok(())
    }

    fn purge_rows(&self, tree: &Arc<Tree>, rows: &[(&[u8], u64)]) -> Result<(), EngineError> {
        let mut writes = WriteSet::default();
        let number = writes.number_of(tree)?;
        for (key, version) in rows {
            writes.purge(number, key, *version);
        }
        match commit(&self.pages, &mut writes, Committer::Purge) {
            Ok(_end) => Ok(()),
            Err(EngineError::Table(TableError::Dropped)) => Ok(()),
            Err(EngineError::Request(
                RequestError::BatchTooLarge { .. } | RequestError::BatchTooWide { .. },
            )) if rows.len() > 1 => {
                let (some, others) = rows.split_at(rows.len() / 2);
                self.purge_rows(tree, some)?;
                self.purge_rows(tree, others)
            }
            Err(error) => Err(error),
        }
    }

    /// One step of the walk over the leaves. False when it is over.
    fn walk_step(&self) -> Result<bool, EngineError> {
        // One thread walks: it reads pages, and others would have to wait for that.
        let Ok(mut walk) = self.walk.try_lock() else { return Ok(false) };
        let Some(tree) = walk.tables.last().cloned() else { return Ok(false) };
        let mut found: Vec<(Vec<u8>, u64)> = Vec::new();
        let from = walk.last.clone().map_or(Bound::Unbounded, Bound::Excluded);
        let range = (from, Bound::Unbounded);
        let mut cells = TreeCursor::new(&self.pages, &tree, range, (Direction::Forward, 0));
        let mut looked_at = 0;
        let last = loop {
            let cell = match cells.next_cell() {
                Ok(Some(cell)) => cell,
                Ok(None) | Err(EngineError::Table(TableError::Dropped)) => break None,
                Err(error) => return Err(error),
            };
            // One that was left since comes from the version log when it is due.
            let is_left = |number| cell.is_tombstone() && number <= walk.until;
            if let Some(version) = cell.version().filter(|version| is_left(version.number)) {
                found.push((cell.key.to_vec(), version.number));
            }
            looked_at += 1;
            if looked_at == WALK_ROWS {
                break Some(cell.key.to_vec());
            }
        };
        let rows: Vec<(&[u8], u64)> =
            found.iter().map(|(key, number)| (key.as_slice(), *number)).collect();
        if !rows.is_empty() {
            // When it fails these rows are examined again.
            self.purge_rows(&tree, &rows)?;
        }
        if last.is_none() {
            walk.tables.pop();
        }
        walk.last = last;
        Ok(true)
    }
}

/// Purge, and what it finds after a crash.
#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use iostrata_io::disk::MemDisk;
    use iostrata_io::disk::memory::{CallKind, Fault};

    use crate::storage::VERSION_SEGMENT_BYTES;
    use crate::tests::{open, small};
    use crate::transaction::tests::{begin, delete, engine, put, rows};
    use crate::{Background, Counter, Direction, Disks, Engine, EngineError, Isolation};

    #[test]
    fn tombstones_that_a_crash_leaves_are_purged_after_the_next_opening() {
        let disk = MemDisk::new();
        let engine = open(&disk);
        let table = engine.create_table("t").unwrap();
        put(&engine, &table, b"a", b"1");
        put(&engine, &table, b"b", b"1");
        let reader = begin(&engine, Isolation::Snapshot);
        delete(&engine, &table, b"a");
        put(&engine, &table, b"b", b"2");
        std::mem::forget((reader, engine));
        let engine = open(&disk);
        let table = engine.table("t").unwrap().unwrap();
        let mut t = begin(&engine, Isolation::Snapshot);
        assert_eq!(rows(&mut t, &table), "b=2");
        while engine.parts().purger.step().unwrap() {}
        assert_eq!(engine.counters()[Counter::RowsPurged], 1);
        assert!(!engine.parts().purger.has_history());
        assert_eq!(engine.parts().purger.walk_place(), None);
        assert_eq!(rows(&mut t, &table), "b=2");
        drop(t);
        engine.close().unwrap();
    }

    #[test]
    fn a_clean_close_leaves_no_key_of_a_commit_that_purge_has_begun() {
        let disk = MemDisk::new();
        let engine = open(&disk);
        engine.set("purge_batch_size", "1").unwrap();
        let table = engine.create_table("t").unwrap();
        put(&engine, &table, b"a", b"1");
        put(&engine, &table, b"b", b"1");
        let reader = begin(&engine, Isolation::Snapshot);
        let mut t = begin(&engine, Isolation::ReadCommitted);
        assert!(t.delete(&table, b"a").unwrap() && t.delete(&table, b"b").unwrap());
        t.commit().unwrap();
        assert_eq!(tombstones(&engine), 2);
        drop(reader);
        engine.close().unwrap();
        let engine = open(&disk);
        assert!(engine.recovery().was_clean);
        assert_eq!(tombstones(&engine), 0);
    }

    #[test]
    fn without_purge_threads_old_versions_go_to_their_file_all_the_same() {
        let mut settings = small();
        for (name, value) in [("version_log_memory", "256K"), ("purge_threads", "0")] {
            settings.set(name, value).unwrap();
        }
        let disks = Disks::one(MemDisk::new());
        let engine = Engine::open_on(disks, settings, Background::Threads).unwrap();
        let table = engine.create_table("t").unwrap();
        let mut reader = begin(&engine, Isolation::Snapshot);
        for round in 0..4_000_u32 {
            let mut batch = engine.batch();
            batch.put(&table, &(round % 8).to_be_bytes(), &[round as u8; 1_000]).unwrap();
            let _unsettled = batch.commit_async().unwrap();
        }
        let memory = || engine.parts().storage.versions.stats().memory_bytes;
        // Each thread's newest segment is not full.
        let limit = (256 << 10) + 2 * VERSION_SEGMENT_BYTES as u64;
        let end = Instant::now() + Duration::from_secs(20);
        while memory() > limit {
            assert!(Instant::now() < end, "{} bytes in memory", memory());
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(rows(&mut reader, &table), "");
        drop(reader);
        engine.close().unwrap();
    }

    /// The walk behind an unclean opening meets what is deleted since, and leaves it to the
    /// snapshots.
    #[test]
    fn a_bulk_load_is_not_seen_by_snapshots_before_it() {
        let (engine, _) = engine();
        let table = engine.create_table("loaded").unwrap();
        let mut old = begin(&engine, Isolation::Snapshot);
        assert_eq!(table.bulk_load([(b"a", b"1"), (b"b", b"2")]).unwrap(), 2);
        assert_eq!(rows(&mut old, &table), "");
        assert_eq!(rows(&mut begin(&engine, Isolation::Snapshot), &table), "a=1 b=2");
        delete(&engine, &table, b"a");
        delete(&engine, &table, b"b");
        // Tombstones are left in the leaf, which is no reason to refuse.
        assert_eq!(table.bulk_load([(b"a", b"3")]).unwrap(), 1);
        assert_eq!(rows(&mut old, &table), "");
        assert_eq!(rows(&mut begin(&engine, Isolation::Snapshot), &table), "a=3");
    }

    /// Leaves of the table that a crash is to leave tombstones in: more than a close may read.
    const ROWS: u32 = 9_000;

    /// What a crash leaves of rows of which every third was deleted under a reader.
    fn killed_with_tombstones(disk: &MemDisk) {
        let engine = open(disk);
        for name in ["a", "b"] {
            let table = engine.create_table(name).unwrap();
            for rows in (0..ROWS).collect::<Vec<_>>().chunks(50) {
                let mut batch = engine.batch();
                for row in rows {
                    batch.put(&table, &row.to_be_bytes(), &[7; 60]).unwrap();
                }
                batch.commit().unwrap();
            }
        }
        let reader = begin(&engine, Isolation::Snapshot);
        for name in ["a", "b"] {
            let table = engine.table(name).unwrap().unwrap();
            for row in (0..ROWS).step_by(3) {
                delete(&engine, &table, &row.to_be_bytes());
            }
        }
        std::mem::forget((reader, engine));
    }

    fn tombstones(engine: &Engine) -> u64 {
        engine.check().unwrap().tables.iter().map(|table| table.tombstones).sum()
    }

    /// Closes it and returns how many pages were read for that.
    fn close(engine: Engine) -> u64 {
        let before = engine.counters()[Counter::PagesRead];
        engine.clone().close().unwrap();
        engine.counters()[Counter::PagesRead] - before
    }

    #[test]
    fn the_walk_behind_a_crash_goes_on_at_the_next_opening_when_the_engine_is_closed() {
        let disk = MemDisk::new();
        killed_with_tombstones(&disk);
        let all = u64::from(2 * ROWS / 3);
        let engine = open(&disk);
        assert_eq!(tombstones(&engine), all);
        let read = close(engine);
        assert!(read < 10, "closing read {read} pages");
        let (mut opened, mut last) = (0, None);
        loop {
            let engine = open(&disk);
            assert!(engine.recovery().was_clean);
            let place = engine.parts().purger.walk_place();
            assert!(opened == 0 || place == last, "{place:?} is not {last:?}");
            if place.is_none() {
                assert_eq!(tombstones(&engine), 0);
                break;
            }
            engine.parts().purger.step().unwrap();
            last = engine.parts().purger.walk_place();
            assert_ne!(place, last);
            assert!(close(engine) < 10);
            opened += 1;
        }
        assert!(opened > 8, "only {opened} openings");
    }

    #[test]
    fn a_walk_that_a_crash_cuts_off_begins_anew() {
        let disk = MemDisk::new();
        killed_with_tombstones(&disk);
        close(open(&disk));
        let engine = open(&disk);
        engine.parts().purger.step().unwrap();
        engine.parts().purger.step().unwrap();
        let reader = begin(&engine, Isolation::Snapshot);
        let table = engine.table("b").unwrap().unwrap();
        // It lies before the place where the walk stands.
        delete(&engine, &table, &1_u32.to_be_bytes());
        std::mem::forget((reader, engine));
        let engine = open(&disk);
        assert!(!engine.recovery().was_clean);
        while engine.parts().purger.step().unwrap() {}
        assert_eq!(tombstones(&engine), 0);
        engine.close().unwrap();
        assert_eq!(open(&disk).parts().purger.walk_place(), None);
    }

    #[test]
    fn a_row_whose_version_cannot_be_read_comes_when_it_is_asked_for_again() {
        const ROWS: u32 = 400;
        let mut settings = small();
        settings.set("version_log_memory", "256K").unwrap();
        let disk = MemDisk::new();
        let disks = Disks::one(disk.clone());
        let engine = Engine::open_on(disks, settings, Background::Manual).unwrap();
        let table = engine.create_table("t").unwrap();
        let key = |row: u32| row.to_be_bytes();
        (0..ROWS).for_each(|row| put(&engine, &table, &key(row), &[b'1'; 1400]));
        let mut old = begin(&engine, Isolation::Snapshot);
        (0..ROWS).for_each(|row| put(&engine, &table, &key(row), &[b'2'; 1400]));
        while engine.parts().storage.versions.log.spill_step().unwrap() {}
        let mut calls = 0;
        disk.before_each(move |call| {
            let is_meant = call.kind == CallKind::Read && call.name == "engine.versions";
            calls += u32::from(is_meant);
            if is_meant && calls % 5 == 0 { Fault::Errno(5) } else { Fault::None }
        });
        old.put(&table, &key(ROWS), b"1").unwrap();
        for direction in [Direction::Forward, Direction::Backward] {
            for has_own in [false, true] {
                let end = key(if has_own { ROWS } else { ROWS - 1 });
                let mut cursor = old.cursor(&table, ..=&end[..], direction).unwrap();
                let (mut seen, mut failed) = (Vec::new(), 0);
                loop {
                    match cursor.next_row() {
                        Ok(None) => break,
                        Ok(Some((key, value))) => {
                            assert_eq!(value.first(), Some(&b'1'));
                            seen.push(key.to_vec());
                        }
                        Err(EngineError::Io(_)) => failed += 1,
                        Err(error) => panic!("{error}"),
                    }
                }
                if direction == Direction::Backward {
                    seen.reverse();
                }
                let wanted = (0..ROWS + u32::from(has_own)).map(|row| key(row).to_vec());
                assert!(failed > 0 && seen.iter().cloned().eq(wanted), "{direction:?} {has_own}");
            }
        }
    }
}
