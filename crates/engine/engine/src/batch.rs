//! A batch of changes: applied at once or not at all.
//!
//! Invariant: all rows of a batch go into one frame of redo. Its leaves are found without latches,
//! latched in the order of their page numbers, compared with what was found, and only then changed;
//! if one was moved or lacks room everything is let go, room is made, and it starts again.
//! It gives no isolation to readers of several rows; that is for transactions.

use std::sync::Arc;

use iostrata_page::PageNo;
use iostrata_settings::{Counter, FlushLogAt};

use crate::commit::{Committer, commit};
use crate::error::EngineError;
use crate::pages::Pages;
use crate::table::{Table, check_expected, check_row};
use crate::ticket::Ticket;
use crate::write_set::WriteSet;

/// Changes that become visible and durable together.
#[derive(Debug)]
pub struct Batch {
    pages: Arc<Pages>,
    writes: WriteSet,
}

impl Batch {
    pub(crate) fn new(pages: Arc<Pages>) -> Self {
        Self { pages, writes: WriteSet::default() }
    }

    /// Puts a row, whether or not the key is there. The last change of a key in a batch counts.
    ///
    /// # Errors
    /// A key or row beyond the limits of the page size; [`TableError::NotFound`] for a table of
    /// another engine.
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
        if let Some(expected) = expected {
            self.writes.require(tree, key, expected);
        }
        self.writes.push(tree, key, new);
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

    /// Applies everything. What it gives is ordered but not yet durable: wait for the ticket, or
    /// ask it until it is settled, before telling anybody. What settles it is the setting
    /// `flush_log_at_trx_commit` as it is now.
    ///
    /// # Errors
    /// Nothing is applied then. [`RequestError::NotAsExpected`],
    /// [`RequestError::BatchTooLarge`], no space, a poisoned engine.
    pub fn commit(self) -> Result<Ticket, EngineError> {
        let level = self.pages.storage.hot.flush_log_at_commit();
        self.commit_with(level)
    }

    /// As [`Batch::commit`], whatever `flush_log_at_trx_commit` says.
    ///
    /// # Errors
    /// As [`Batch::commit`].
    pub fn commit_with(mut self, level: FlushLogAt) -> Result<Ticket, EngineError> {
        let storage = Arc::clone(&self.pages.storage);
        let run = || commit(&self.pages, &mut self.writes, Committer::Batch);
        let end = storage.counts.sampled(Counter::CpuNsRows, run)?;
        storage.counts.committed();
        Ok(Ticket::new(storage, end, level))
    }
}
