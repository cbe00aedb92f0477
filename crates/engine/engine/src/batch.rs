//! A batch of changes: applied at once or not at all; and filling a table with sorted rows.
//!
//! Invariant: all rows of a batch go into one frame of redo. Its leaves are found without latches,
//! latched in the order of their page numbers, compared with what was found, and only then changed;
//! if one was moved or lacks room everything is let go, room is made, and it starts again.
//! It gives no isolation to readers of several rows; that is for transactions.

use std::sync::Arc;

use iostrata_innodb::{Counter, FlushLogAt, PageNo};

use crate::commit::{Committer, commit};
use crate::error::{EngineError, RequestError, TableError};
use crate::pages::Pages;
use crate::read::NEWEST;
use crate::table::{Table, check_expected, check_row};
use crate::ticket::Ticket;
use crate::transaction::{Isolation, Transaction, TransactionOptions, run};
use crate::tree::descend::Direction;
use crate::tree::{Filling, Tree};
use crate::write_set::{Change, WriteSet, change_bytes};

/// Changes that become visible and durable together.
#[derive(Debug)]
pub struct Batch {
    pages: Arc<Pages>,
    writes: WriteSet,
    /// Bytes of redo that the changes need at most, those counted that a later one replaces.
    redo_bytes: usize,
    /// What settles its commit, where it overrides the setting.
    flush_log_at: Option<FlushLogAt>,
    /// Tables of it that have indexes.
    indexed: Vec<Table>,
}

impl Batch {
    pub(crate) fn new(pages: Arc<Pages>) -> Self {
        let (writes, indexed) = (WriteSet::default(), Vec::new());
        Self { pages, writes, redo_bytes: 0, flush_log_at: None, indexed }
    }

    /// Puts a row, whether or not the key is there. The last change of a key in a batch counts.
    ///
    /// # Errors
    /// A key or row beyond the limits of the page size; [`TableError::NotFound`] for a table of
    /// another engine; [`RequestError::BatchTooLarge`], and what was added before can be committed.
    pub fn put(&mut self, table: &Table, key: &[u8], value: &[u8]) -> Result<(), EngineError> {
        self.change(table, key, None, Some(value))
    }

    /// Puts a row whose key must not be there before the batch.
    ///
    /// # Errors
    /// As [`Batch::put`]; when the key is there, [`RequestError::NotAsExpected`] by
    /// [`Batch::commit`].
    pub fn insert(&mut self, table: &Table, key: &[u8], value: &[u8]) -> Result<(), EngineError> {
        self.compare_and_set(table, key, None, Some(value))
    }

    /// Puts a row, or with no new value deletes it, if its value before the batch is the expected
    /// one; with none expected the key must not be there.
    ///
    /// # Errors
    /// As [`Batch::insert`].
    pub fn compare_and_set(
        &mut self,
        table: &Table,
        key: &[u8],
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<(), EngineError> {
        self.change(table, key, Some(expected), new)
    }

    /// Makes the whole batch depend on a row that it need not change: its value before the batch
    /// must be this one; with none the key must not be there.
    ///
    /// # Errors
    /// As [`Batch::insert`].
    pub fn require(
        &mut self,
        table: &Table,
        key: &[u8],
        value: Option<&[u8]>,
    ) -> Result<(), EngineError> {
        check_expected(&self.pages, key, value.map_or(0, <[u8]>::len))?;
        self.writes.check_kept(&self.pages)?;
        let tree = self.writes.tree_of(table, &self.pages)?;
        self.writes.require(tree, key, value);
        Ok(())
    }

    /// Deletes a row if it is there.
    ///
    /// # Errors
    /// As [`Batch::put`].
    pub fn delete(&mut self, table: &Table, key: &[u8]) -> Result<(), EngineError> {
        self.change(table, key, None, None)
    }

    /// Adds a change, behind its condition if it has one. Both have one key.
    fn change(
        &mut self,
        table: &Table,
        key: &[u8],
        expected: Option<Option<&[u8]>>,
        new: Option<&[u8]>,
    ) -> Result<(), EngineError> {
        if let Some(expected) = expected {
            check_expected(&self.pages, key, expected.map_or(0, <[u8]>::len))?;
        }
        check_row(&self.pages, key, new.map_or(0, <[u8]>::len))?;
        self.writes.check_kept(&self.pages)?;
        let tree = self.writes.tree_of(table, &self.pages)?;
        self.make_room(table.tree(), key, new)?;
        if !table.indexes().is_empty() && self.indexed_table(table.tree()).is_none() {
            self.indexed.push(table.clone());
        }
        if let Some(expected) = expected {
            self.writes.require(tree, key, expected);
        }
        self.writes.push(tree, key, new);
        Ok(())
    }

    /// Sees to it that a frame takes the changes with one more. What later ones replace is left out
    /// only when all together are too many.
    fn make_room(
        &mut self,
        tree: &Arc<Tree>,
        key: &[u8],
        new: Option<&[u8]>,
    ) -> Result<(), EngineError> {
        let limit = self.pages.storage.frame_bytes_max();
        let more = change_bytes(key.len(), new.map_or(0, <[u8]>::len));
        if self.redo_bytes + more > limit {
            self.writes.sort();
            self.redo_bytes = self.writes.redo_bytes();
            let replaced = self.writes.find_sorted(tree, key);
            let replaced = replaced.map_or(0, |op| self.writes.redo_bytes_of(op));
            let bytes = self.redo_bytes - replaced + more;
            if bytes > limit {
                return Err(RequestError::BatchTooLarge { bytes, limit }.into());
            }
        }
        self.redo_bytes += more;
        Ok(())
    }

    /// Frees a page with the batch.
    pub(crate) fn free(&mut self, page: PageNo) {
        self.writes.freed = Some(page);
    }

    /// Number of changes and conditions.
    pub fn len(&self) -> usize {
        self.writes.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// What its commit waits for; overrides the setting `flush_log_at_trx_commit`.
    pub fn flush_log_at(&mut self, level: FlushLogAt) {
        self.flush_log_at = Some(level);
    }

    /// Applies everything. It survives a crash when this returns, or is as far as the setting
    /// `flush_log_at_trx_commit` requires.
    ///
    /// # Errors
    /// As [`Batch::commit_async`]: nothing is applied then. As [`Ticket::wait`]: it is applied, and
    /// only the next opening shows whether it was durable.
    pub fn commit(self) -> Result<(), EngineError> {
        self.commit_async()?.wait()
    }

    /// Applies everything, and leaves it to the ticket to wait until that is durable. Readers see
    /// it and later commits build on it already.
    ///
    /// # Errors
    /// Nothing is applied then. [`RequestError::NotAsExpected`], a row that a transaction keeps
    /// locked for too long, no space, a poisoned engine. [`RequestError::BatchTooWide`], since only
    /// here it is known in how many pages the rows lie; [`RequestError::BatchTooLarge`] where the
    /// entries of indexes are what is too much: rows alone are refused by [`Batch::put`].
    pub fn commit_async(mut self) -> Result<Ticket, EngineError> {
        let by_setting = || self.pages.storage.settings.load().flush_log_at_trx_commit;
        let level = self.flush_log_at.unwrap_or_else(by_setting);
        if !self.indexed.is_empty() {
            return self.commit_as_transaction(level);
        }
        let storage = Arc::clone(&self.pages.storage);
        let run = || commit(&self.pages, &mut self.writes, Committer::Batch);
        let end = storage.counts.sampled(Counter::CpuNsRows, run)?;
        storage.counts.add(Counter::Commits, 1);
        Ok(Ticket::new(storage, end, level))
    }

    /// Entries of indexes depend on the rows as they were, which have to be locked to be read.
    fn commit_as_transaction(self, level: FlushLogAt) -> Result<Ticket, EngineError> {
        let isolation = Isolation::ReadCommitted;
        let flush_log_at = Some(level);
        let options = TransactionOptions { isolation, flush_log_at, ..Default::default() };
        let play = |transaction: &mut Transaction| {
            self.play(transaction)?;
            transaction.see_all();
            Ok(())
        };
        let done = run(&self.pages, options, play, Transaction::commit_as_batch);
        done.map(|(_nothing, ticket)| ticket)
    }

    /// All conditions, which speak of what was before the batch, and then all changes.
    fn play(&self, transaction: &mut Transaction) -> Result<(), EngineError> {
        for op in 0..self.writes.len() {
            if let Change::Expect(expected) = self.writes.change(op) {
                let (table, key) = (self.table(op), self.writes.key(op));
                let found = transaction.get_for_update(&table, key)?;
                let expected = expected.as_ref().map(|range| self.writes.bytes(range));
                if found.as_deref() != expected {
                    let (table, key) = (table.name().to_owned(), key.to_vec());
                    return Err(RequestError::NotAsExpected { table, key }.into());
                }
            }
        }
        for op in 0..self.writes.len() {
            let (table, key) = (self.table(op), self.writes.key(op));
            match self.writes.change(op) {
                Change::Put(value) => transaction.put(&table, key, self.writes.bytes(value))?,
                Change::Delete => {
                    let _was_there = transaction.delete(&table, key)?;
                }
                Change::Expect(_) | Change::Purge { .. } => {}
            }
        }
        Ok(())
    }

    /// The table of a change.
    fn table(&self, op: usize) -> Table {
        let tree = self.writes.tree(op);
        let plain = || Table::new(Arc::clone(&self.pages), Arc::clone(tree), Arc::default());
        self.indexed_table(tree).cloned().unwrap_or_else(plain)
    }

    fn indexed_table(&self, tree: &Arc<Tree>) -> Option<&Table> {
        self.indexed.iter().find(|table| Arc::ptr_eq(table.tree(), tree))
    }
}

impl Table {
    /// Fills the empty table with rows whose keys rise. Gives the number of rows. Durable when it
    /// returns; after a crash before that, a prefix of the rows may be there. No other thread may
    /// write to the table meanwhile.
    ///
    /// # Errors
    /// [`TableError::NotEmpty`], [`RequestError::NotSorted`], a row beyond the limits, no space.
    pub fn bulk_load<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        rows: impl IntoIterator<Item = (K, V)>,
    ) -> Result<u64, EngineError> {
        self.tree().check_indexes(self.indexes().len())?;
        if self.cursor(.., Direction::Forward).next_row()?.is_some() {
            return Err(EngineError::Table(TableError::NotEmpty { name: self.name().to_owned() }));
        }
        let (pages, tree) = (&**self.pages(), &**self.tree());
        // Rows that were deleted may have left leaves, each for some of the keys, and tombstones:
        // such a tree is filled in the ordinary way, as is one whose rows have entries elsewhere,
        // or where a snapshot is open that must not see them.
        let has_readers = pages.storage.versions.registry.is_any_below(NEWEST);
        let is_bare = self.indexes().is_empty() && !has_readers && tree.is_bare(pages)?;
        let fill_pct = pages.storage.settings.load().fill_factor as usize;
        let mut filling = Filling::new(pages, tree, fill_pct);
        let mut last: Vec<u8> = Vec::new();
        let mut loaded = 0;
        for (key, value) in rows {
            let (key, value) = (key.as_ref(), value.as_ref());
            check_row(pages, key, value.len())?;
            if loaded > 0 && key <= last.as_slice() {
                return Err(EngineError::Request(RequestError::NotSorted { row: loaded }));
            }
            if !is_bare {
                let mut batch = Batch::new(Arc::clone(self.pages()));
                batch.put(self, key, value)?;
                let _made_durable_below = batch.commit_async()?;
            } else if !filling.add(key, value) {
                self.append_leaf(&mut filling)?;
                assert!(filling.add(key, value), "a row within the limits fits an empty page");
            }
            last.clear();
            last.extend_from_slice(key);
            loaded += 1;
        }
        if !filling.is_empty() {
            self.append_leaf(&mut filling)?;
        }
        if is_bare {
            pages.storage.counts.add(Counter::RowsInserted, loaded);
        }
        pages.storage.redo.make_durable(pages.storage.redo.lsn())?;
        Ok(loaded)
    }

    fn append_leaf(&self, filling: &mut Filling) -> Result<(), EngineError> {
        if self.tree().append_leaf(self.pages(), filling)? {
            return Ok(());
        }
        Err(EngineError::Table(TableError::NotEmpty { name: self.name().to_owned() }))
    }
}

/// Conditions of batches, ranges and single rows.
#[cfg(test)]
mod tests {
    use iostrata_io::disk::MemDisk;

    use crate::mtr::Mtr;
    use crate::page::layout::{FLAG_TOMBSTONE, FLAG_VERSIONED};
    use crate::page::{Record, Version};
    use crate::tests::{open, put_all, small};
    use crate::{Background, Batch, Disks, Engine, EngineError, RequestError, Table, TableError};

    fn value_of(table: &Table, key: &[u8]) -> Option<Vec<u8>> {
        table.get(key).unwrap()
    }

    #[test]
    fn a_batch_with_a_condition_that_does_not_hold_changes_nothing() {
        let engine = open(&MemDisk::new());
        let tables = ["t", "u"].map(|name| engine.create_table(name).unwrap());
        let [t, u] = &tables;
        let mut batch = engine.batch();
        batch.insert(t, b"k", b"1").unwrap();
        batch.commit().unwrap();

        type Add<'a> = &'a dyn Fn(&mut Batch) -> Result<(), EngineError>;
        let refused: [Add<'_>; 5] = [
            &|batch| batch.insert(t, b"k", b"2"),
            &|batch| batch.compare_and_set(t, b"k", Some(b"0"), Some(b"2")),
            &|batch| batch.compare_and_set(t, b"k", None, None),
            &|batch| batch.require(t, b"other", Some(b"1")),
            // A condition speaks of what was before the batch, also behind a change of the same
            // key.
            &|batch| batch.put(t, b"k", b"9").and_then(|()| batch.require(t, b"k", Some(b"9"))),
        ];
        for (case, add) in refused.iter().enumerate() {
            let mut batch = engine.batch();
            batch.put(u, b"x", b"never").unwrap();
            add(&mut batch).unwrap();
            let end = engine.parts().storage.redo.lsn();
            let error = batch.commit_async().unwrap_err();
            assert!(
                matches!(&error, EngineError::Request(RequestError::NotAsExpected { .. })),
                "{case}: {error}"
            );
            assert!(error.to_string().contains("\"t\""), "{error}");
            assert_eq!(engine.parts().storage.redo.lsn(), end, "{case}: nothing is appended");
            assert_eq!(
                (value_of(t, b"k"), value_of(u, b"x")),
                (Some(b"1".to_vec()), None),
                "{case}"
            );
        }

        let mut batch = engine.batch();
        batch.compare_and_set(t, b"k", Some(b"1"), Some(b"2")).unwrap();
        batch.put(t, b"k", b"3").unwrap();
        batch.require(u, b"x", None).unwrap();
        batch.put(u, b"x", b"now").unwrap();
        batch.commit().unwrap();
        assert_eq!(value_of(t, b"k").as_deref(), Some(&b"3"[..]), "the last change counts");
        assert_eq!(value_of(u, b"x").as_deref(), Some(&b"now"[..]));
        let mut batch = engine.batch();
        batch.compare_and_set(t, b"k", Some(b"3"), None).unwrap();
        batch.commit().unwrap();
        assert_eq!(value_of(t, b"k"), None);
    }

    #[test]
    fn counters_by_compare_and_set_lose_no_step() {
        let disk = Disks::one(MemDisk::new());
        let engine = Engine::open_on(disk, small(), Background::Threads).unwrap();
        let table = engine.create_table("t").unwrap();
        const STEPS: u64 = 300;
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut done = 0;
                    while done < STEPS {
                        let old = table.get(b"counter").unwrap();
                        let next = old
                            .as_deref()
                            .map_or(0, |old| u64::from_le_bytes(old.try_into().unwrap()))
                            + 1;
                        let mut batch = engine.batch();
                        let new = next.to_le_bytes();
                        batch
                            .compare_and_set(&table, b"counter", old.as_deref(), Some(&new))
                            .unwrap();
                        match batch.commit_async() {
                            Ok(_unsettled) => done += 1,
                            Err(EngineError::Request(RequestError::NotAsExpected { .. })) => {}
                            Err(error) => panic!("{error}"),
                        }
                    }
                });
            }
        });
        assert_eq!(value_of(&table, b"counter"), Some((4 * STEPS).to_le_bytes().to_vec()));
    }

    #[test]
    fn ranges_prefixes_and_single_rows_are_what_they_say() {
        let engine = open(&MemDisk::new());
        let table = engine.create_table("t").unwrap();
        let keys: [&[u8]; 7] =
            [b"a", b"a\xff", b"a\xff\xff", b"b", b"ba", b"\xff", b"\xff\xff\x01"];
        put_all(&engine, &table, &keys);
        let of =
            |range: crate::Range<'_>| -> Vec<Vec<u8>> { range.map(|row| row.unwrap().0).collect() };
        for prefix in [&b""[..], b"a", b"a\xff", b"b", b"c", b"\xff", b"\xff\xff"] {
            let expected =
                keys.iter().filter(|key| key.starts_with(prefix)).map(|key| key.to_vec());
            assert_eq!(of(table.prefix(prefix)), expected.collect::<Vec<_>>(), "{prefix:?}");
        }
        assert_eq!(of(table.range("a\u{7f}".."b")), [b"a\xff".to_vec(), b"a\xff\xff".to_vec()]);
        assert_eq!(of(table.range("b"..="ba")), [b"b".to_vec(), b"ba".to_vec()]);
        assert_eq!(of(table.range(.."a")), Vec::<Vec<u8>>::new());
        assert_eq!(of(table.range("b".."a")), Vec::<Vec<u8>>::new());
        let mut value = b"left as it was".to_vec();
        assert!(!table.get_into(b"c", &mut value).unwrap());
        assert_eq!(value, b"left as it was");
        assert!(table.get_into(b"b", &mut value).unwrap() && table.contains_key(b"b").unwrap());
        assert_eq!(value, b"v");
        assert!(!table.contains_key(b"c").unwrap());
    }

    /// Puts cells with these flags and values into the root of a table.
    fn lay(engine: &Engine, table: &Table, cells: &[(&[u8], u8, &[u8])]) {
        let storage = &engine.parts().storage;
        let mut mtr = Mtr::begin(storage);
        let root = mtr.latch(storage.pool.pin(table.tree().root).unwrap());
        for (slot, (key, flags, value)) in cells.iter().copied().enumerate() {
            mtr.change(root, &Record::Insert { slot, flags, key, value }).unwrap();
        }
        mtr.commit();
    }

    #[test]
    fn rows_with_versions_and_tombstones_are_written_as_they_are_read() {
        let header = Version { number: 3, older: 0 }.to_bytes();
        let long = [&b"a value of more than sixteen bytes"[..], &header].concat();
        let cells: [(&[u8], u8, &[u8]); 4] = [
            (b"deleted", FLAG_VERSIONED | FLAG_TOMBSTONE, &header),
            (b"gone", FLAG_VERSIONED | FLAG_TOMBSTONE, &header),
            (b"old", FLAG_VERSIONED, &long),
            (b"older", FLAG_VERSIONED, &long),
        ];
        let disk = MemDisk::new();
        let engine = open(&disk);
        let table = engine.create_table("t").unwrap();
        lay(&engine, &table, &cells);
        let new = b"another of more than sixteen bytes";
        for key in [&b"deleted"[..], b"gone"] {
            let mut batch = engine.batch();
            batch.insert(&table, key, new).unwrap();
            batch.commit().unwrap();
        }
        let mut batch = engine.batch();
        batch.compare_and_set(&table, b"old", Some(&long[..long.len() - 16]), Some(new)).unwrap();
        batch.delete(&table, b"gone").unwrap();
        batch.delete(&table, b"older").unwrap();
        batch.commit().unwrap();
        let check = |engine: &Engine| {
            let table = engine.table("t").unwrap().unwrap();
            let rows: Vec<_> = table.iter().map(Result::unwrap).collect();
            let seen = [(b"deleted".to_vec(), new.to_vec()), (b"old".to_vec(), new.to_vec())];
            assert_eq!(rows, seen);
            assert!(engine.check().unwrap().is_clean());
        };
        check(&engine);
        drop(engine);
        check(&open(&disk));
    }

    #[test]
    fn conditions_take_no_redo_and_no_share_of_the_frames() {
        let engine = open(&MemDisk::new());
        let table = engine.create_table("t").unwrap();
        let limit = engine.parts().storage.frame_bytes_max();
        let value = [7; 1900];
        put_all(&engine, &table, &[b"k"]);
        let mut batch = engine.batch();
        for _ in 0..=limit / value.len() {
            batch.require(&table, b"other", None).unwrap();
            batch.compare_and_set(&table, b"k", Some(b"v"), Some(&value)).unwrap();
        }
        batch.commit().unwrap();
        let mut batch = engine.batch();
        for _ in 0..=limit / value.len() {
            batch.require(&table, b"k", Some(&value)).unwrap();
        }
        batch.commit().unwrap();
        // Others hold all that batches of several rows may hold.
        let admission = &engine.parts().pages.admission;
        let _all = admission.pins(engine.parts().storage.pool.frames.len() / 2).unwrap();
        let mut batch = engine.batch();
        batch.insert(&table, b"l", b"one row").unwrap();
        batch.commit().unwrap();
        assert!(table.contains_key(b"l").unwrap());
    }

    #[test]
    fn a_row_as_long_as_earlier_programs_took_can_be_expected() {
        let engine = open(&MemDisk::new());
        let table = engine.create_table("t").unwrap();
        let longest = vec![5; engine.parts().storage.page_size.row_bytes_max() - 1];
        lay(&engine, &table, &[(b"k", 0, &longest)]);
        let mut batch = engine.batch();
        batch.require(&table, b"k", Some(&longest)).unwrap();
        batch.compare_and_set(&table, b"k", Some(&longest), Some(b"short")).unwrap();
        batch.commit().unwrap();
        assert_eq!(value_of(&table, b"k").as_deref(), Some(&b"short"[..]));
        let too_long = engine.batch().require(&table, b"k", Some(&[5; 4096]));
        assert!(matches!(too_long, Err(EngineError::Request(RequestError::RowTooLarge(_)))));
        let new = engine.batch().put(&table, b"k", &longest);
        assert!(matches!(new, Err(EngineError::Request(RequestError::RowTooLarge(_)))));
    }

    #[test]
    fn a_range_ends_behind_an_error_that_stays() {
        let engine = open(&MemDisk::new());
        let table = engine.create_table("t").unwrap();
        put_all(&engine, &table, &[b"a", b"b"]);
        let mut rows = table.iter();
        engine.drop_table("t").unwrap();
        assert!(matches!(rows.next(), Some(Err(EngineError::Table(TableError::Dropped)))));
        assert!(rows.next().is_none() && rows.next_back().is_none());
    }
}
