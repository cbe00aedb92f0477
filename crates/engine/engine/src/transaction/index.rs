//! Entries of an index as a transaction sees them.

use crate::error::EngineError;
use crate::key_range::KeyRange;
use crate::range::OwnedRow;
use crate::table::Table;
use crate::table_index::{END, Index, IndexCursor, with_end};
use crate::transaction::Transaction;
use crate::tree::descend::Direction;

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
