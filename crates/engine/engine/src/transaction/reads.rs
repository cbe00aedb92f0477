//! Reads of a transaction.

use std::sync::Arc;

use iostrata_innodb::{Counter, Lsn};

use crate::counts::Sample;
use crate::cursor::{KeyBounds, KeyRange, bounds};
use crate::error::{EngineError, TransactionError};
use crate::lock::LockId;
use crate::read::{LeafHint, NEWEST, read_row, replace};
use crate::reentry::{check_may_look, looking};
use crate::row_locks::lock;
use crate::scan::{Cursor, OwnRows, OwnedRow, Range, TreeView, plain_reads};
use crate::table::Table;
use crate::table_index::{END, Index, IndexCursor, with_end};
use crate::transaction::{Isolation, Transaction};
use crate::tree::Tree;
use crate::tree::descend::Direction;

/// A row as a writer finds it.
pub(super) struct Newest {
    pub is_there: bool,
    /// Where it was found, if it was looked for in the tree.
    pub leaf: Option<LeafHint>,
    /// Somebody else has changed it since the snapshot of the plain reads.
    pub is_newer: bool,
}

plain_reads!(Transaction);

impl Transaction {
    /// What `look` makes of the value of a key, without a copy of it, as by [`Table::get_with`]:
    /// what the transaction wrote itself, or what its level shows.
    ///
    /// # Errors
    /// What reading a page said; a dropped table, or one of another engine; a finished transaction.
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

    /// The newest value of a key, which nobody else can change until the transaction ends.
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
            // Whoever held the lock may have deleted the row: then the next one is the first.
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
    /// shows. No lock is taken: for who locks them next, and looks at each again then.
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

    /// The newest version of a row that is locked; its value is copied if asked for.
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
    /// whatever the level shows. No lock is taken: for who locks the rows next, and looks at each
    /// again then.
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
