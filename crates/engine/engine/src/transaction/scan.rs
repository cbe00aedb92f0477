//! The rows of a range as a transaction sees them.
//!
//! Invariant: of a row that the transaction has written only its own newest version comes, in the
//! order of keys.

use std::cmp::Ordering;

use iostrata_innodb::Counter;

use crate::counts::Sample;
use crate::cursor::{Cursor, Row};
use crate::error::EngineError;
use crate::read::replace;
use crate::transaction::Transaction;
use crate::tree::descend::Direction;
use crate::version::Snapshot;

/// A cursor of a transaction. While it is there the transaction cannot write.
#[derive(Debug)]
pub struct TransactionCursor<'t> {
    transaction: &'t Transaction,
    committed: Cursor<'t>,
    direction: Direction,
    /// Own changes in the range, the next one last.
    own: Vec<usize>,
    /// A committed row that was read and not given yet.
    key: Vec<u8>,
    value: Vec<u8>,
    has_row: bool,
    /// The snapshot of this statement alone.
    _statement: Option<Snapshot>,
}

impl<'t> TransactionCursor<'t> {
    pub(super) fn new(
        transaction: &'t Transaction,
        committed: Cursor<'t>,
        mut own: Vec<usize>,
        (direction, statement): (Direction, Option<Snapshot>),
    ) -> Self {
        own.reverse();
        let (key, value, has_row) = (Vec::new(), Vec::new(), false);
        let _statement = statement;
        Self { transaction, committed, direction, own, key, value, has_row, _statement }
    }

    /// The next row, until there is none. It is there until the cursor is asked again.
    ///
    /// # Errors
    /// What reading a page or an older version said; asking again tries again; a dropped table.
    pub fn next_row(&mut self) -> Result<Option<Row<'_>>, EngineError> {
        let counts = &self.transaction.storage().counts;
        let sample = Sample::begin();
        let row = if self.own.is_empty() && !self.has_row {
            self.committed.next_row()
        } else {
            self.next_merged()
        };
        counts.end(Counter::CpuNsRows, sample);
        row
    }

    fn next_merged(&mut self) -> Result<Option<Row<'_>>, EngineError> {
        let set = &self.transaction.own.writes.set;
        loop {
            if !self.has_row
                && let Some((key, value)) = self.committed.next_row()?
            {
                replace(&mut self.key, key);
                replace(&mut self.value, value);
                self.has_row = true;
            }
            let order = match self.own.last() {
                None if !self.has_row => return Ok(None),
                None => Ordering::Greater,
                Some(_) if !self.has_row => Ordering::Less,
                Some(op) => match self.direction {
                    Direction::Forward => set.key(*op).cmp(&self.key),
                    Direction::Backward => self.key.as_slice().cmp(set.key(*op)),
                },
            };
            if order == Ordering::Greater {
                self.has_row = false;
                return Ok(Some((&self.key, &self.value)));
            }
            if order == Ordering::Equal {
                self.has_row = false;
            }
            if let Some(op) = self.own.pop()
                && let Some(value) = set.value(op)
            {
                return Ok(Some((set.key(op), value)));
            }
        }
    }
}

impl Drop for TransactionCursor<'_> {
    fn drop(&mut self) {
        self.transaction.saw(self.committed.newest());
    }
}
