//! Writes of a transaction: kept in its write set, the row locked.

use iostrata_lock::LockId;

use crate::error::EngineError;
use crate::read::LeafHint;
use crate::table::{Table, check_row};
use crate::transaction::reads::Newest;
use crate::transaction::{Isolation, Transaction};
use crate::transaction_error::TransactionError;

impl Transaction {
    /// Puts a row, whether or not the key is there.
    ///
    /// # Errors
    /// Nothing is written then: a key or row beyond the limits of the page size, a read-only or
    /// finished transaction, a deadlock, a lock that was not released in time, a conflict.
    pub fn put(&mut self, table: &Table, key: &[u8], value: &[u8]) -> Result<(), EngineError> {
        check_row(&self.pages, key, value.len())?;
        let id = self.begin_write(table, key)?;
        let leaf = match self.options.isolation {
            // Whether it was changed since the snapshot must be known.
            Isolation::Snapshot => self.newest(table, key, id, None)?.leaf,
            _ => None,
        };
        self.write((table, id), key, Some(value), leaf)
    }

    /// Puts a row whose key must not be there.
    ///
    /// # Errors
    /// As [`put`](Self::put); [`TransactionError::Exists`].
    pub fn insert(&mut self, table: &Table, key: &[u8], value: &[u8]) -> Result<(), EngineError> {
        check_row(&self.pages, key, value.len())?;
        let id = self.begin_write(table, key)?;
        let Newest { is_there, leaf } = self.newest(table, key, id, None)?;
        if is_there {
            let (transaction, table) = (self.number(), table.name().to_owned());
            return Err(TransactionError::Exists { transaction, table, key: key.to_vec() }.into());
        }
        self.write((table, id), key, Some(value), leaf)
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
        let newest = self.newest(table, key, id, Some(&mut row))?;
        if newest.is_there {
            change(&mut row);
            check_row(&self.pages, key, row.len())?;
            self.write((table, id), key, Some(&row), newest.leaf)?;
        }
        self.own.row = row;
        Ok(newest.is_there)
    }

    /// Deletes a row. Whether it was there.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn delete(&mut self, table: &Table, key: &[u8]) -> Result<bool, EngineError> {
        check_row(&self.pages, key, 0)?;
        let id = self.begin_write(table, key)?;
        let Newest { is_there, leaf } = self.newest(table, key, id, None)?;
        if is_there {
            self.write((table, id), key, None, leaf)?;
        }
        Ok(is_there)
    }

    /// Locks a row to be written.
    fn begin_write(&mut self, table: &Table, key: &[u8]) -> Result<LockId, EngineError> {
        self.check_active()?;
        self.own.writes.set.check_kept(&self.pages).map_err(|error| self.too_large(error))?;
        self.pages.storage.purge_lag.delay_writer();
        self.lock_row(table, key)
    }

    fn write(
        &mut self,
        (table, id): (&Table, LockId),
        key: &[u8],
        value: Option<&[u8]>,
        leaf: Option<LeafHint>,
    ) -> Result<(), EngineError> {
        let own = &mut self.own.writes;
        let tree = own.set.tree_of(table, &self.pages)?;
        own.push((id, tree), key, value, leaf);
        Ok(())
    }
}
