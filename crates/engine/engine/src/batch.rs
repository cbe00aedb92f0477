//! A batch of changes: applied at once or not at all.
//!
//! Invariant: all rows of a batch go into one frame of redo. Its leaves are found without latches,
//! latched in the order of their page numbers, compared with what was found, and only then changed;
//! if one was moved or lacks room everything is let go, room is made, and it starts again.
//! It gives no isolation to readers of several rows; that is for transactions.

use std::sync::Arc;

use iostrata_innodb::{Counter, FlushLogAt, PageNo};

use crate::commit::{Committer, commit};
use crate::error::{EngineError, RequestError};
use crate::pages::Pages;
use crate::table::{Table, check_expected, check_row};
use crate::ticket::Ticket;
use crate::transaction::{Isolation, Transaction, TransactionOptions, run};
use crate::tree::Tree;
use crate::write_set::{Change, WriteSet, change_bytes};

/// Changes that become visible and durable together.
#[derive(Debug)]
pub struct Batch {
    pages: Arc<Pages>,
    writes: WriteSet,
    /// Bytes of redo that the changes need at most, those counted that a later one replaces.
    redo_bytes: usize,
    /// What settles its commit, if not what the settings say.
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

    /// What its commit waits for, whatever the setting `flush_log_at_trx_commit` says.
    pub fn flush_log_at(&mut self, level: FlushLogAt) {
        self.flush_log_at = Some(level);
    }

    /// Applies everything. It survives a crash when this returns, or is as far as the setting
    /// `flush_log_at_trx_commit` asks for.
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
