//! Running operations: those that name rows by their keys, and the way to the others.
//!
//! Invariant: memory is used again from one operation to the next; rows are decoded where they are
//! copied to, into what the caller gave. An operation that fails in the middle has written a part
//! of it, which the session takes back.

use iostrata_database::target::{Rows, Value};

use crate::compile::{
    CompiledOp, ModifyAction, OpAction, OpBuffers, OpRun, one_row, push_path, push_value,
};
use crate::error::OpError;
use crate::layout::{Layout, PathField, change_columns};
use crate::scan::{count_below, keys_of_prefix, scan};
use crate::table::{OpenTable, Projection};

impl OpRun<'_> {
    /// Runs an operation; gives the rows found or changed.
    ///
    /// # Errors
    /// The engine's error, a value that does not fit, a damaged row.
    pub fn run(
        &mut self,
        op: &CompiledOp,
        args: &[Value<'_>],
        out: &mut Rows,
    ) -> Result<u64, OpError> {
        let rows = || rows_of(args, op.args);
        match &op.action {
            OpAction::Get { wanted, locks } => self.get(&op.table, (wanted, *locks), rows()?, out),
            OpAction::Scan(action) => scan(self, &op.table, action, one_row(args, op.args)?, out),
            OpAction::Insert => self.insert(&op.table, rows()?),
            OpAction::Modify(action) if op.args == 0 => {
                let args = one_row(args, 0)?;
                self.modify(&op.table, action, std::iter::once(args), out)
            }
            OpAction::Modify(action) => self.modify(&op.table, action, rows()?, out),
            OpAction::Delete => self.delete(&op.table, rows()?),
            OpAction::CountBelow(action) => {
                count_below(self, &op.table, action, one_row(args, op.args)?, out)
            }
        }
    }

    fn get<'v>(
        &mut self,
        table: &OpenTable,
        (wanted, locks): (&Projection, bool),
        rows: impl ExactSizeIterator<Item = &'v [Value<'v>]>,
        out: &mut Rows,
    ) -> Result<u64, OpError> {
        let layout = &table.shared.layout;
        self.buffers.keys.clear();
        let is_single = rows.len() == 1;
        for args in rows {
            let write = |key: &mut Vec<u8>| push_named(layout, args, key);
            match self.buffers.keys.push_with(write) {
                Ok(()) | Err(None) => {}
                Err(Some(error)) => return Err(error),
            }
        }
        if !is_single {
            // A row once; and in one order, so that sessions that lock the same rows wait in turn.
            self.buffers.keys.sort();
        }
        let OpBuffers { keys, row, text, .. } = &mut *self.buffers;
        let mut found = 0;
        for at in 0..keys.len() {
            let key = keys.get(at);
            let is_there = match locks {
                true => self.transaction.get_for_update_into(&table.table, key, row)?,
                false => self.transaction.get_into(&table.table, key, row)?,
            };
            if is_there {
                let pushed = wanted.push(layout, (key, row), (text, out));
                pushed.ok_or_else(|| table.damaged(key))?;
                found += 1;
            }
        }
        Ok(found)
    }

    fn insert<'v>(
        &mut self,
        table: &OpenTable,
        rows: impl Iterator<Item = &'v [Value<'v>]>,
    ) -> Result<u64, OpError> {
        let OpBuffers { key, row, .. } = &mut *self.buffers;
        let mut inserted = 0;
        for args in rows {
            table.shared.new_key(|column| args[column], key)?;
            table.shared.layout.encode(|column| args[column], row)?;
            self.transaction.insert(&table.table, key, row)?;
            inserted += 1;
        }
        Ok(inserted)
    }

    fn delete<'v>(
        &mut self,
        table: &OpenTable,
        rows: impl Iterator<Item = &'v [Value<'v>]>,
    ) -> Result<u64, OpError> {
        let key = &mut self.buffers.key;
        let mut deleted = 0;
        for args in rows {
            key.clear();
            match push_named(&table.shared.layout, args, key) {
                Ok(()) => deleted += u64::from(self.transaction.delete(&table.table, key)?),
                Err(None) => {}
                Err(Some(error)) => return Err(error),
            }
        }
        Ok(deleted)
    }

    fn modify<'v>(
        &mut self,
        table: &OpenTable,
        action: &ModifyAction,
        rows: impl Iterator<Item = &'v [Value<'v>]>,
        out: &mut Rows,
    ) -> Result<u64, OpError> {
        let mut modified = 0;
        for args in rows {
            let prefix = &args[..action.prefix.len()];
            if action.is_whole {
                self.buffers.key.clear();
                let key = &mut self.buffers.key;
                match push_path(&table.shared.layout, &action.prefix, prefix, key) {
                    Ok(()) => modified += self.modify_row(table, action, None, args, out)?,
                    Err(None) => {}
                    Err(Some(error)) => return Err(error),
                }
                continue;
            }
            let is_possible = keys_of_prefix(self, table, &action.prefix, prefix)?;
            for at in 0..if is_possible { self.buffers.keys.len() } else { 0 } {
                modified += self.modify_row(table, action, Some(at), args, out)?;
            }
        }
        Ok(modified)
    }

    /// Changes the row whose key is in the buffer, or in the list; gives 1, or 0 without one.
    fn modify_row(
        &mut self,
        table: &OpenTable,
        action: &ModifyAction,
        listed: Option<usize>,
        args: &[Value<'_>],
        out: &mut Rows,
    ) -> Result<u64, OpError> {
        let OpBuffers { key, keys, text, .. } = &mut *self.buffers;
        let key = listed.map_or(&key[..], |at| keys.get(at));
        let layout = &table.shared.layout;
        let mut failed = None;
        let change = |row: &mut Vec<u8>| {
            if action.returns.push(layout, (key, row), (text, out)).is_none() {
                failed = Some(table.damaged(key));
            } else if let Err(error) = change_columns(layout, &action.changes, args, row) {
                failed = Some(OpError::not_changed(error, &layout.table.name, key));
            }
        };
        let is_there = self.transaction.modify(&table.table, key, change)?;
        failed.map_or(Ok(u64::from(is_there)), Err)
    }
}

/// The rows of arguments.
fn rows_of<'v>(
    args: &'v [Value<'v>],
    width: usize,
) -> Result<std::slice::ChunksExact<'v, Value<'v>>, OpError> {
    if width == 0 || !args.len().is_multiple_of(width) {
        return Err(OpError::Arguments { wanted: width, found: args.len() });
    }
    Ok(args.chunks_exact(width))
}

/// Adds the key of a row that is named by its values. An error without text: no such row can be.
fn push_named(
    layout: &Layout,
    args: &[Value<'_>],
    key: &mut Vec<u8>,
) -> Result<(), Option<OpError>> {
    for ((field, column), value) in layout.key.iter().zip(&layout.table.key).zip(args) {
        push_value(layout, PathField { field: *field, column: *column }, *value, key)?;
    }
    Ok(())
}
