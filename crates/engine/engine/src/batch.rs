//! A batch of changes: applied at once or not at all.
//!
//! Invariant: all rows of a batch go into one frame of redo. Its leaves are found without latches,
//! latched in the order of their page numbers, compared with what was found, and only then changed;
//! if one was moved or lacks room everything is let go, room is made, and it starts again.
//! It gives no isolation to readers of several rows; that is for transactions.

use std::ops::Range;
use std::sync::Arc;

use iostrata_page::{Lsn, PageNo};
use iostrata_settings::{Counter, FlushLogAt};

use crate::changes::{Change, Changes, Op, sort};
use crate::commit::{Attempt, attempt, leaves_max, tidy};
use crate::error::{EngineError, RequestError, TableError};
use crate::pages::Pages;
use crate::table::{Table, check_expected, check_row};
use crate::ticket::Ticket;
use crate::tree::Tree;

/// Most bytes of keys and values that a batch keeps: far more than any frame takes.
const KEPT_BYTES_MAX: usize = 1 << 30;

/// Changes that become visible and durable together.
#[derive(Debug)]
pub struct Batch {
    pages: Arc<Pages>,
    trees: Vec<Arc<Tree>>,
    ops: Vec<Op>,
    bytes: Vec<u8>,
    /// A page that is free once the batch is applied.
    freed: Option<PageNo>,
}

impl Batch {
    pub(crate) fn new(pages: Arc<Pages>) -> Self {
        Self { pages, trees: Vec::new(), ops: Vec::new(), bytes: Vec::new(), freed: None }
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
        self.check_kept()?;
        let tree = self.tree(table)?;
        let key = self.keep(key);
        self.add_condition(tree, key, value);
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
        self.check_kept()?;
        let tree = self.tree(table)?;
        let key = self.keep(key);
        if let Some(expected) = expected {
            self.add_condition(tree, key.clone(), expected);
        }
        let change = new.map_or(Change::Delete, |value| Change::Put(self.keep(value)));
        self.ops.push(Op { tree, key, change });
        Ok(())
    }

    fn add_condition(&mut self, tree: u16, key: Range<u32>, value: Option<&[u8]>) {
        let value = value.map(|value| self.keep(value));
        self.ops.push(Op { tree, key, change: Change::Expect(value) });
    }

    /// Frees a page with the batch.
    pub(crate) fn free(&mut self, page: PageNo) {
        self.freed = Some(page);
    }

    /// Number of changes and conditions.
    pub fn len(&self) -> usize {
        self.ops.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ops.is_empty()
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
        let end = storage.counts.sampled(Counter::CpuNsRows, || self.run())?;
        Ok(Ticket::new(storage, end, level))
    }

    fn run(&mut self) -> Result<Lsn, EngineError> {
        let pages = &self.pages;
        sort(&mut self.ops, &self.trees, &self.bytes);
        let freed = self.freed;
        let changes = Changes { trees: &self.trees, ops: &self.ops, bytes: &self.bytes, freed };
        let (bytes, rows) = (check_size(pages, &changes)?, changes.rows());
        let mut groups = Vec::new();
        loop {
            // In this order, as everywhere: who has room in the redo waits for no pins.
            let pins = pages.admission.pins(rows.min(leaves_max(pages)));
            let room = pages.admission.admit(bytes)?;
            match attempt(pages, &changes, &mut groups)? {
                Attempt::Done(end) => {
                    drop((room, pins));
                    if let Some(page) = freed {
                        pages.space.freed(page);
                    }
                    pages.storage.counts.committed();
                    tidy(pages, &changes, &groups);
                    return Ok(end);
                }
                Attempt::Moved => {}
                Attempt::Refused { op } => {
                    let table = changes.tree(op).name.clone();
                    return Err(EngineError::Request(RequestError::NotAsExpected {
                        table,
                        key: changes.key(op).to_vec(),
                    }));
                }
                Attempt::Full { op, page_version } => {
                    drop((room, pins));
                    groups.clear();
                    let value_bytes = changes.value(op).map_or(0, <[u8]>::len);
                    let row = (changes.key(op), value_bytes);
                    changes.tree(op).split_leaf(pages, row, page_version)?;
                }
            }
        }
    }

    /// Keeps offsets within 32 bits: what is refused here could never be committed.
    fn check_kept(&self) -> Result<(), EngineError> {
        let (bytes, limit) = (self.bytes.len(), self.pages.storage.frame_bytes_max());
        if bytes > KEPT_BYTES_MAX {
            return Err(EngineError::Request(RequestError::BatchTooLarge { bytes, limit }));
        }
        Ok(())
    }

    fn keep(&mut self, bytes: &[u8]) -> Range<u32> {
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(bytes);
        start..self.bytes.len() as u32
    }

    /// The number of a table in this batch.
    fn tree(&mut self, table: &Table) -> Result<u16, EngineError> {
        let tree = table.tree();
        let known = self.trees.iter().rposition(|known| Arc::ptr_eq(known, tree));
        let number = known.unwrap_or(self.trees.len());
        if known.is_none() {
            if !table.is_of(&self.pages) {
                return Err(EngineError::Table(TableError::NotFound {
                    name: table.name().to_owned(),
                }));
            }
            self.trees.push(Arc::clone(tree));
        }
        u16::try_from(number).map_err(|_too_many| {
            EngineError::Request(RequestError::BatchTooWide { limit: leaves_max(&self.pages) })
        })
    }
}

/// Bytes of redo that the changes need at most, if one frame may have so many.
fn check_size(pages: &Pages, changes: &Changes<'_>) -> Result<usize, EngineError> {
    let (bytes, limit) = (changes.redo_bytes(), pages.storage.frame_bytes_max());
    if bytes > limit {
        Err(EngineError::Request(RequestError::BatchTooLarge { bytes, limit }))
    } else {
        Ok(bytes)
    }
}
