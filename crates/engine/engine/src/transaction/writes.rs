//! Writes of a transaction: kept in its write set, the row locked.

use crate::error::{EngineError, RequestError, TransactionError};
use crate::lock::LockId;
use crate::read::LeafHint;
use crate::safeguards::Safeguard;
use crate::table::{Table, check_row};
use crate::transaction::reads::Newest;
use crate::transaction::{Isolation, Transaction, too_large};

impl Transaction {
    /// Puts a row, whether or not the key is there.
    ///
    /// # Errors
    /// Nothing is written then: a key or row beyond the limits of the page size, a read-only or
    /// finished transaction, a deadlock, a lock that was not released in time, a conflict, more
    /// than one frame of redo takes ([`TransactionError::TooLarge`]): what was written before can
    /// be committed then.
    pub fn put(&mut self, table: &Table, key: &[u8], value: &[u8]) -> Result<(), EngineError> {
        check_row(&self.pages, key, value.len())?;
        let id = self.begin_write(table, key)?;
        let is_snapshot = self.options.isolation == Isolation::Snapshot;
        // The row before is of interest where it has entries, or may have changed since the
        // snapshot.
        let before = if is_snapshot || !table.indexes().is_empty() {
            self.before(table, key, id)?
        } else {
            Before::default()
        };
        self.write((table, id), key, Some(value), before)
    }

    /// Puts a row whose key must not be there.
    ///
    /// # Errors
    /// As [`put`](Self::put); [`TransactionError::Exists`].
    pub fn insert(&mut self, table: &Table, key: &[u8], value: &[u8]) -> Result<(), EngineError> {
        check_row(&self.pages, key, value.len())?;
        let id = self.begin_write(table, key)?;
        let before = self.before(table, key, id)?;
        if before.is_there {
            let (transaction, table) = (self.number(), table.name().to_owned());
            return Err(TransactionError::Exists { transaction, table, key: key.to_vec() }.into());
        }
        self.write((table, id), key, Some(value), before)
    }

    /// Changes a row that is there: `change` gets its newest value to edit. Whether it was there.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn modify(
        &mut self,
        table: &Table,
        key: &[u8],
        change: impl FnOnce(&mut Vec<u8>),
    ) -> Result<bool, EngineError> {
        check_row(&self.pages, key, 0)?;
        let id = self.begin_write(table, key)?;
        let mut row = std::mem::take(&mut self.own.row);
        let Newest { is_there, leaf, is_newer } = self.newest(table, key, id, Some(&mut row))?;
        if is_there {
            let value = if table.indexes().is_empty() { Vec::new() } else { row.clone() };
            change(&mut row);
            check_row(&self.pages, key, row.len())?;
            let before = Before { is_there, value, leaf, is_newer };
            self.write((table, id), key, Some(&row), before)?;
        }
        self.own.row = row;
        Ok(is_there)
    }

    /// Deletes a row. Whether it was there.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn delete(&mut self, table: &Table, key: &[u8]) -> Result<bool, EngineError> {
        check_row(&self.pages, key, 0)?;
        let id = self.begin_write(table, key)?;
        let before = self.before(table, key, id)?;
        let is_there = before.is_there;
        if is_there {
            self.write((table, id), key, None, before)?;
        }
        Ok(is_there)
    }

    /// Locks a row to be written.
    fn begin_write(&mut self, table: &Table, key: &[u8]) -> Result<LockId, EngineError> {
        self.check_active()?;
        let kept = self.own.writes.set.check_kept(&self.pages);
        kept.map_err(|error| too_large(self.number(), error))?;
        self.pages.storage.delay_for_purge();
        self.lock_row(table, key)
    }

    /// The newest version of a row that is locked; its value where the table has indexes.
    fn before(&mut self, table: &Table, key: &[u8], id: LockId) -> Result<Before, EngineError> {
        let mut value = Vec::new();
        let wanted = (!table.indexes().is_empty()).then_some(&mut value);
        let Newest { is_there, leaf, is_newer } = self.newest(table, key, id, wanted)?;
        Ok(Before { is_there, value, leaf, is_newer })
    }

    fn write(
        &mut self,
        (table, id): (&Table, LockId),
        key: &[u8],
        value: Option<&[u8]>,
        before: Before,
    ) -> Result<(), EngineError> {
        // Its entries of now are not those that the plain reads show: from here on they show the
        // entries of what is written.
        let is_newer = before.is_newer && !table.indexes().is_empty();
        let shown = if is_newer { self.shown(table, key)? } else { None };
        let storage = &self.pages.storage;
        let (safeguards, limit) = (&storage.safeguards, storage.page_size.key_bytes_max());
        let own = &mut self.own.writes;
        let tree = own.set.tree_of(table, &self.pages)?;
        // Each: the lock of a change's row, its tree, key and value. The row's lock is that of its
        // entries as well.
        let mut entries = Vec::new();
        for index in table.indexes() {
            let old = before.is_there.then(|| index.entry(key, &before.value)).transpose()?;
            let new = value.map(|value| index.new_entry(limit, key, value)).transpose()?;
            let (old, new) = (old.flatten(), new.flatten());
            let shown = shown.as_ref().map(|shown| index.entry(key, shown)).transpose()?;
            let shown = shown.flatten().filter(|shown| old.as_ref() != Some(shown));
            if old != new || is_newer {
                let (number, id) = (own.set.number_of(&index.tree)?, index.tree.id);
                let is_left = old == new || !safeguards.has(Safeguard::EntriesFollowRows);
                let shown = shown.filter(|shown| new.as_ref() != Some(shown));
                let gone = [shown, old.filter(|_| !is_left)].map(|entry| (entry, None));
                let changes = gone.into_iter().chain([(new, Some(&[][..]))]);
                entries.extend(changes.filter_map(|(entry, value)| {
                    let entry = entry?;
                    Some((LockId::of(id.0, &entry), number, entry, value))
                }));
            }
        }
        let of_entries =
            entries.iter().map(|(id, tree, entry, value)| (*id, *tree, &entry[..], *value));
        let changes = std::iter::once((id, tree, key, value)).chain(of_entries);
        let limit = storage.frame_bytes_max();
        let bytes = own.redo_bytes_with(changes, limit);
        if bytes > limit {
            let error = RequestError::BatchTooLarge { bytes, limit };
            return Err(too_large(self.number(), error.into()));
        }
        // Nothing can fail from here on.
        own.push((id, tree), key, value, before.leaf);
        for (id, tree, entry, value) in entries {
            own.push((id, tree), &entry, value, None);
        }
        Ok(())
    }
}

/// A row before it is written.
#[derive(Default)]
struct Before {
    is_there: bool,
    /// Empty where nobody needs it.
    value: Vec<u8>,
    leaf: Option<LeafHint>,
    /// Somebody else has changed it since the snapshot of the plain reads.
    is_newer: bool,
}
