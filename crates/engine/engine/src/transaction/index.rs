//! Entries of an index as a transaction sees them.

use std::ops::Bound;

use crate::error::EngineError;
use crate::key_range::KeyRange;
use crate::range::OwnedRow;
use crate::table::Table;
use crate::table_index::{BEHIND, END, Index, read_entry, with_end};
use crate::transaction::{Transaction, TransactionCursor};
use crate::tree::descend::Direction;

/// An entry of an index: the secondary key, and the key of the row.
pub type IndexRow<'r> = (&'r [u8], &'r [u8]);

/// A cursor over a range of an index.
#[derive(Debug)]
pub struct IndexCursor<'t> {
    entries: TransactionCursor<'t>,
    /// Where its tree begins, for errors.
    root: u64,
    secondary: Vec<u8>,
}

impl IndexCursor<'_> {
    /// The next entry, until there is none. It is there until the cursor is asked again.
    ///
    /// # Errors
    /// What reading a page or an older version said; a damaged entry.
    pub fn next_entry(&mut self) -> Result<Option<IndexRow<'_>>, EngineError> {
        let Some((entry, _value)) = self.entries.next_row()? else { return Ok(None) };
        match read_entry(entry, &mut self.secondary) {
            Some(key) => Ok(Some((&self.secondary, key))),
            None => Err(EngineError::Corrupt {
                page: self.root,
                problem: format!("its index holds {}, which is no entry", entry.escape_ascii()),
            }),
        }
    }
}

impl Transaction {
    /// The entries of an index whose secondary keys lie in a range, as the transaction sees them.
    ///
    /// # Errors
    /// As [`Transaction::cursor`].
    pub fn index_cursor<'t>(
        &'t mut self,
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
        &'t mut self,
        index: &'t Index,
        range: impl KeyRange,
        direction: Direction,
    ) -> Result<IndexCursor<'t>, EngineError> {
        self.entries(index, &range, (direction, true))
    }

    fn entries<'t>(
        &'t mut self,
        index: &'t Index,
        range: &impl KeyRange,
        how: (Direction, bool),
    ) -> Result<IndexCursor<'t>, EngineError> {
        let (low, high) = range.key_bounds();
        let low = match low {
            Bound::Included(low) => Bound::Included(with_end(low, END)),
            Bound::Excluded(low) => Bound::Included(with_end(low, BEHIND)),
            Bound::Unbounded => Bound::Unbounded,
        };
        let high = match high {
            Bound::Included(high) => Bound::Excluded(with_end(high, BEHIND)),
            Bound::Excluded(high) => Bound::Excluded(with_end(high, END)),
            Bound::Unbounded => Bound::Unbounded,
        };
        let root = index.0.tree.root.0;
        let entries = self.index_entries(&index.0, (low, high), how)?;
        Ok(IndexCursor { entries, root, secondary: Vec::new() })
    }

    /// The keys of the rows with this secondary key, in their order.
    ///
    /// # Errors
    /// As [`Transaction::cursor`].
    pub fn index_get(
        &mut self,
        index: &Index,
        secondary: &[u8],
    ) -> Result<Vec<Vec<u8>>, EngineError> {
        let mut keys = Vec::new();
        let mut entries = self.index_cursor(index, secondary..=secondary, Direction::Forward)?;
        while let Some((_secondary, key)) = entries.next_entry()? {
            keys.push(key.to_vec());
        }
        Ok(keys)
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
