//! Reads of a transaction, and what it has written so far: its write set, and where each row is in
//! it.
//!
//! Invariant: the index leads to the newest change of each row; going back to a mark leaves it as
//! it was there.

use std::ops::Bound;
use std::sync::Arc;

use iostrata_innodb::{Counter, Lsn};

use crate::commit::lock;
use crate::counts::Sample;
use crate::cursor::{KeyBounds, KeyRange, bounds};
use crate::error::{EngineError, TransactionError};
use crate::lock::{LockId, LockMap};
use crate::read::{LeafHint, NEWEST, read_row, replace};
use crate::reentry::{check_may_look, looking};
use crate::scan::{Cursor, OwnRows, OwnedRow, Range, TreeView, plain_reads};
use crate::table::Table;
use crate::table_index::{END, Index, IndexCursor, with_end};
use crate::transaction::{Isolation, Transaction};
use crate::tree::Tree;
use crate::tree::descend::Direction;
use crate::write_set::{WriteMark, WriteSet, change_bytes};

/// A row as a writer finds it.
pub(super) struct Newest {
    pub is_there: bool,
    /// Where it was found, if it was looked for in the tree.
    pub leaf: Option<LeafHint>,
    /// Another transaction has changed it since the snapshot of the plain reads.
    pub is_newer: bool,
}

plain_reads!(Transaction);

impl Transaction {
    /// What `look` makes of the value of a key, without a copy of it, as by [`Table::get_with`]:
    /// what the transaction wrote itself, or what its level shows.
    ///
    /// # Errors
    /// An error of reading a page; a dropped table, or one of another engine; a finished
    /// transaction.
    pub fn get_with<R>(
        &self,
        table: &Table,
        key: &[u8],
        look: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>, EngineError> {
        self.check_readable(table)?;
        let tree = table.tree();
        if self.has_written()
            && let Some(op) = self.own.writes.find(LockId::of(tree.id.0, key), tree, key)
        {
            let own = self.own.writes.set.value(op);
            return Ok(own.map(|own| looking(&self.pages.storage, || look(own))));
        }
        let sample = Sample::begin();
        let (pages, at) = (&self.pages, self.read_at());
        let view = TreeView { pages, tree, at, own: None, statement: None };
        let (found, learnt) = view.get_with(key, look)?;
        self.saw(learnt.lsn);
        self.pages.storage.counts.end(Counter::CpuNsRows, sample);
        Ok(found)
    }

    /// The newest value of a key, which no other transaction can change until this one ends.
    ///
    /// # Errors
    /// As [`get_with`](Self::get_with); a deadlock, a lock that was not released in time, a
    /// conflict.
    pub fn get_for_update(
        &mut self,
        table: &Table,
        key: &[u8],
    ) -> Result<Option<Vec<u8>>, EngineError> {
        let mut value = Vec::new();
        Ok(self.get_for_update_into(table, key, &mut value)?.then_some(value))
    }

    /// As [`get_for_update`](Self::get_for_update), into memory that is used again: its old content
    /// is replaced if there is such a row. Whether there is.
    ///
    /// # Errors
    /// As [`get_for_update`](Self::get_for_update).
    pub fn get_for_update_into(
        &mut self,
        table: &Table,
        key: &[u8],
        value: &mut Vec<u8>,
    ) -> Result<bool, EngineError> {
        let id = self.lock_row(table, key)?;
        Ok(self.newest(table, key, id, Some(value))?.is_there)
    }

    /// The first row of a range that is there now, locked. Rows that others insert before it are
    /// not kept out: there are no gap locks.
    ///
    /// # Errors
    /// As [`get_for_update`](Self::get_for_update).
    pub fn first_for_update(
        &mut self,
        table: &Table,
        range: impl KeyRange,
    ) -> Result<Option<OwnedRow>, EngineError> {
        self.check_readable(table)?;
        loop {
            let mut newest = self.newest_cursor(table, &range, Direction::Forward)?;
            let first = newest.next_row()?.map(|(key, _value)| key.to_vec());
            drop(newest);
            let Some(key) = first else { return Ok(None) };
            // The previous holder of the lock may have deleted the row: then the next one is the
            // first.
            if let Some(value) = self.get_for_update(table, &key)? {
                return Ok(Some((key, value)));
            }
        }
    }

    /// The rows of a range one by one, as the transaction sees them, its own writes included. While
    /// a cursor is there the transaction cannot write.
    ///
    /// # Errors
    /// As [`get_with`](Self::get_with).
    pub fn cursor<'t>(
        &'t self,
        table: &'t Table,
        range: impl KeyRange,
        direction: Direction,
    ) -> Result<Cursor<'t>, EngineError> {
        self.check_readable(table)?;
        Ok(self.view(table.tree(), false).cursor(bounds(&range), direction))
    }

    /// As [`cursor`](Self::cursor), with the rows as they are committed now, whatever the level
    /// shows. No lock is taken: for a caller that locks them next, and then reads each again.
    ///
    /// # Errors
    /// As [`get_with`](Self::get_with).
    pub fn newest_cursor<'t>(
        &'t self,
        table: &'t Table,
        range: impl KeyRange,
        direction: Direction,
    ) -> Result<Cursor<'t>, EngineError> {
        self.check_readable(table)?;
        Ok(self.view(table.tree(), true).cursor(bounds(&range), direction))
    }

    /// As [`cursor`](Self::cursor), as an iterator over copied rows, from either end.
    ///
    /// # Errors
    /// As [`get_with`](Self::get_with).
    pub fn range<'t>(
        &'t self,
        table: &'t Table,
        range: impl KeyRange,
    ) -> Result<Range<'t>, EngineError> {
        self.check_readable(table)?;
        Ok(Range::new(self.view(table.tree(), false), bounds(&range)))
    }

    /// A tree as plain reads see it, or as it is committed now. At read committed, and for what is
    /// committed now, each statement has a snapshot of its own.
    pub(super) fn view<'t>(&'t self, tree: &'t Arc<Tree>, is_newest: bool) -> TreeView<'t> {
        let mut at = if is_newest { NEWEST } else { self.read_at() };
        let take = || self.pages.storage.versions.registry.open(self.number());
        let statement = (at == NEWEST).then(take);
        if let Some(statement) = &statement {
            at = statement.at();
        }
        TreeView { pages: &self.pages, tree, at, own: Some(self), statement }
    }

    /// The snapshot of a plain read: its number, or the newest at read committed.
    fn read_at(&self) -> u64 {
        if self.options.isolation == Isolation::ReadCommitted {
            return NEWEST;
        }
        let take = || self.pages.storage.versions.registry.open(self.number());
        self.snapshot.get_or_init(take).at()
    }

    /// Locks a row.
    pub(super) fn lock_row(&mut self, table: &Table, key: &[u8]) -> Result<LockId, EngineError> {
        self.check_readable(table)?;
        if self.options.is_read_only {
            return Err(TransactionError::ReadOnly { transaction: self.number() }.into());
        }
        let sample = Sample::begin();
        let id = LockId::of(table.tree().id.0, key);
        let storage = &self.pages.storage;
        let locked = lock(storage, &self.owner, (table.tree(), key), self.patience);
        storage.counts.end(Counter::CpuNsRows, sample);
        match locked {
            Ok(new) => self.own.locks.extend(new),
            Err(error) => {
                if matches!(error, EngineError::Transaction(TransactionError::Deadlock { .. })) {
                    self.fall_victim(id);
                }
                return Err(error);
            }
        }
        Ok(id)
    }

    /// The newest version of a row that is locked; its value is copied on request.
    pub(super) fn newest(
        &mut self,
        table: &Table,
        key: &[u8],
        id: LockId,
        mut value: Option<&mut Vec<u8>>,
    ) -> Result<Newest, EngineError> {
        let own = &self.own.writes;
        if let Some(op) = own.find(id, table.tree(), key) {
            let row = own.set.value(op);
            if let (Some(value), Some(row)) = (&mut value, row) {
                replace(value, row);
            }
            let (is_there, leaf) = (row.is_some(), own.set.leaf(op));
            return Ok(Newest { is_there, leaf, is_newer: false });
        }
        let sample = Sample::begin();
        let copy = |found: &[u8]| value.into_iter().for_each(|value| replace(value, found));
        let (found, learnt) = read_row(&self.pages, table.tree(), key, NEWEST, copy)?;
        self.saw(learnt.lsn);
        self.pages.storage.counts.end(Counter::CpuNsRows, sample);
        let is_newer = self.snapshot.get().is_some_and(|shown| learnt.number > shown.at());
        if is_newer && self.options.isolation == Isolation::Snapshot {
            let (transaction, table) = (self.number(), table.name().to_owned());
            self.fall_victim(id);
            let key = key.to_vec();
            return Err(TransactionError::Conflict { transaction, table, key }.into());
        }
        Ok(Newest { is_there: found.is_some(), leaf: Some(learnt.leaf), is_newer })
    }

    /// The value of a row as the snapshot of the plain reads shows it.
    pub(super) fn shown(&self, table: &Table, key: &[u8]) -> Result<Option<Vec<u8>>, EngineError> {
        let Some(snapshot) = self.snapshot.get() else { return Ok(None) };
        Ok(read_row(&self.pages, table.tree(), key, snapshot.at(), <[u8]>::to_vec)?.0)
    }

    fn check_readable(&self, table: &Table) -> Result<(), EngineError> {
        check_may_look()?;
        self.check_active()?;
        table.check_of(&self.pages)
    }
}

impl OwnRows for Transaction {
    fn in_range(&self, tree: &Arc<Tree>, bounds: &KeyBounds) -> Vec<usize> {
        if self.has_written() { self.own.writes.in_range(tree, bounds) } else { Vec::new() }
    }

    fn row(&self, change: usize) -> (&[u8], Option<&[u8]>) {
        let set = &self.own.writes.set;
        (set.key(change), set.value(change))
    }

    fn saw(&self, lsn: Lsn) {
        Self::saw(self, lsn);
    }
}

impl Transaction {
    /// The entries of an index whose secondary keys lie in a range, as the transaction sees them.
    ///
    /// # Errors
    /// As [`Transaction::cursor`].
    pub fn index_cursor<'t>(
        &'t self,
        index: &'t Index,
        range: impl KeyRange,
        direction: Direction,
    ) -> Result<IndexCursor<'t>, EngineError> {
        self.entries(index, &range, (direction, false))
    }

    /// As [`index_cursor`](Self::index_cursor), with the entries as they are committed now,
    /// whatever the level shows. No lock is taken: for a caller that locks the rows next, and then
    /// reads each again.
    ///
    /// # Errors
    /// As [`Transaction::cursor`].
    pub fn newest_index_cursor<'t>(
        &'t self,
        index: &'t Index,
        range: impl KeyRange,
        direction: Direction,
    ) -> Result<IndexCursor<'t>, EngineError> {
        self.entries(index, &range, (direction, true))
    }

    fn entries<'t>(
        &'t self,
        index: &'t Index,
        range: &impl KeyRange,
        (direction, is_newest): (Direction, bool),
    ) -> Result<IndexCursor<'t>, EngineError> {
        self.check_active()?;
        let view = self.view(&index.0.tree, is_newest);
        index.0.entries(view, self.number(), range, direction)
    }

    /// The newest rows with this secondary key among those that the transaction sees, locked.
    ///
    /// # Errors
    /// As [`Transaction::get_for_update`].
    pub fn index_get_for_update(
        &mut self,
        (table, index): (&Table, &Index),
        secondary: &[u8],
    ) -> Result<Vec<OwnedRow>, EngineError> {
        if !index.0.is_of(table.name()) {
            return Err(index.0.not_found());
        }
        let mut rows = Vec::new();
        for key in self.index_get(index, secondary)? {
            // It may have changed since: then it has another secondary key, or is gone.
            let Some(row) = self.get_for_update(table, &key)? else { continue };
            let entry = index.0.entry(&key, &row)?;
            if entry.is_some_and(|entry| entry.starts_with(&with_end(secondary, END))) {
                rows.push((key, row));
            }
        }
        Ok(rows)
    }
}

/// Most changes and most bytes of keys and values for which memory is kept.
const KEPT_CHANGES_MAX: usize = 4_096;
const KEPT_BYTES_MAX: usize = 1 << 20;

const NONE: u32 = u32::MAX;

#[derive(Debug, Default)]
pub(crate) struct OwnWrites {
    pub set: WriteSet,
    /// The newest change of the rows with this lock.
    newest: LockMap<u32>,
    before: Vec<Before>,
    /// Bytes of redo that the newest changes of all rows need at most.
    redo_bytes: usize,
}

#[derive(Clone, Copy, Debug)]
struct Before {
    id: LockId,
    /// The change with the same lock before it.
    change: u32,
    redo_bytes: usize,
}

/// A change that is to come: the lock of its row, its tree's number, key and value.
pub(crate) type NewChange<'w> = (LockId, u16, &'w [u8], Option<&'w [u8]>);

impl OwnWrites {
    pub fn find(&self, id: LockId, tree: &Arc<Tree>, key: &[u8]) -> Option<usize> {
        self.find_from(*self.newest.get(&id)?, tree, key)
    }

    /// The newest change of a row from this change with its lock on.
    fn find_from(&self, mut at: u32, tree: &Arc<Tree>, key: &[u8]) -> Option<usize> {
        while at != NONE {
            let op = at as usize;
            if Arc::ptr_eq(self.set.tree(op), tree) && self.set.key(op) == key {
                return Some(op);
            }
            // Another row with the same lock.
            at = self.before[op].change;
        }
        None
    }

    /// Bytes of redo that all changes need at most with these besides. More than `limit` only if
    /// that is so when none is counted that a later one replaces.
    pub fn redo_bytes_with<'w>(
        &self,
        changes: impl Iterator<Item = NewChange<'w>> + Clone,
        limit: usize,
    ) -> usize {
        let of = |value: Option<&[u8]>| value.map_or(0, <[u8]>::len);
        let new = changes.clone().map(|(_, _, key, value)| change_bytes(key.len(), of(value)));
        let bytes = self.redo_bytes + new.sum::<usize>();
        if bytes <= limit {
            return bytes;
        }
        let replaced = changes.filter_map(|(id, tree, key, _)| {
            let op = self.find(id, self.set.numbered(tree), key)?;
            Some(self.set.redo_bytes_of(op))
        });
        bytes - replaced.sum::<usize>()
    }

    pub fn push(
        &mut self,
        (id, tree): (LockId, u16),
        key: &[u8],
        value: Option<&[u8]>,
        leaf: Option<LeafHint>,
    ) {
        let op = self.set.push(tree, key, value);
        if let Some(leaf) = leaf {
            self.set.hint(op, leaf);
        }
        let change = self.newest.insert(id, op as u32).unwrap_or(NONE);
        self.before.push(Before { id, change, redo_bytes: self.redo_bytes });
        let replaced = self.find_from(change, self.set.tree(op), key);
        let replaced = replaced.map_or(0, |replaced| self.set.redo_bytes_of(replaced));
        self.redo_bytes = self.redo_bytes - replaced + self.set.redo_bytes_of(op);
        debug_assert_eq!(self.before.len(), self.set.len());
    }

    pub fn truncate(&mut self, mark: WriteMark) {
        for Before { id, change, redo_bytes } in self.before.drain(mark.ops..).rev() {
            self.redo_bytes = redo_bytes;
            if change == NONE {
                self.newest.remove(&id);
            } else {
                self.newest.insert(id, change);
            }
        }
        self.set.truncate(mark);
    }

    /// The newest changes of the rows in a range of a table, by rising key.
    pub fn in_range(&self, tree: &Arc<Tree>, (low, high): &KeyBounds) -> Vec<usize> {
        let is_in = |key: &[u8]| {
            let is_above = match low {
                Bound::Included(low) => key >= low.as_slice(),
                Bound::Excluded(low) => key > low.as_slice(),
                Bound::Unbounded => true,
            };
            let is_below = match high {
                Bound::Included(high) => key <= high.as_slice(),
                Bound::Excluded(high) => key < high.as_slice(),
                Bound::Unbounded => true,
            };
            is_above && is_below
        };
        let is_newest = |op: usize| {
            let (id, key) = (self.before[op].id, self.set.key(op));
            self.find(id, tree, key) == Some(op)
        };
        let mut found: Vec<usize> = (0..self.set.len())
            .filter(|op| Arc::ptr_eq(self.set.tree(*op), tree) && is_in(self.set.key(*op)))
            .filter(|op| is_newest(*op))
            .collect();
        found.sort_unstable_by(|a, b| self.set.key(*a).cmp(self.set.key(*b)));
        found
    }

    /// Forgets everything, and keeps the memory, unless it was a very large transaction.
    pub fn clear(&mut self) {
        if self.before.capacity() > KEPT_CHANGES_MAX || self.set.kept_bytes() > KEPT_BYTES_MAX {
            *self = Self::default();
            return;
        }
        self.set.clear();
        self.newest.clear();
        self.before.clear();
        self.redo_bytes = 0;
    }
}
