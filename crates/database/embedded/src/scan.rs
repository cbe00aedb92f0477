//! Rows in an order: by the key or by an index, plain or locked.
//!
//! Invariant: a row that is given belongs to the range at the moment at which it was read: what an
//! entry of an index led to is looked at again where it may have changed. Locked are only rows that
//! are given, in the order in which they are given.

use std::mem::take;
use std::sync::Arc;

use iostrata_database::target::Value;
use iostrata_engine::{Cursor, Direction, Index, OwnedRow};

use crate::compile::ScanPath;
use crate::context::{KeyList, OpRun};
use crate::error::OpError;
use crate::layout::PathField;
use crate::span::KeySpan;
use crate::table::{IndexKey, OpenTable};

/// Keys that are looked up before the first of their rows is read.
const KEYS_AT_ONCE: usize = 1_024;

/// How rows are to be come by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScanOrder {
    pub direction: Direction,
    pub locks: bool,
    /// At most so many rows.
    pub limit: usize,
}

/// What takes the rows, key and value.
pub(crate) type EachRow<'e> = dyn FnMut(&[u8], &[u8]) -> Result<(), OpError> + 'e;

/// Gives the rows of a scan one by one.
///
/// # Errors
/// What the engine said, and what `each` says.
pub(crate) fn each_row(
    run: &mut OpRun<'_>,
    table: &OpenTable,
    (path, order): (&ScanPath, ScanOrder),
    args: &[Value<'_>],
    each: &mut EachRow<'_>,
) -> Result<(), OpError> {
    let (low, high) = (take(&mut run.buffers.key), take(&mut run.buffers.high));
    let mut span = KeySpan::in_memory(low, high);
    if order.limit > 0 && span.fill(&table.shared.layout, (&path.prefix, path.range), args)? {
        match &path.index {
            Some(index) => by_index(run, (table, index), &mut span, order, each)?,
            None if order.locks => locked(run, table, &mut span, order, each)?,
            None => {
                let transaction = &mut *run.transaction;
                let rows = transaction.cursor(&table.table, span.bounds(), order.direction)?;
                plain(rows, order.limit, each)?;
            }
        }
    }
    (run.buffers.key, run.buffers.high) = span.into_memory();
    Ok(())
}

fn plain(mut rows: Cursor<'_>, limit: usize, each: &mut EachRow<'_>) -> Result<(), OpError> {
    let mut left = limit;
    while left > 0
        && let Some((key, row)) = rows.next_row()?
    {
        each(key, row)?;
        left -= 1;
    }
    Ok(())
}

fn locked(
    run: &mut OpRun<'_>,
    table: &OpenTable,
    span: &mut KeySpan,
    order: ScanOrder,
    each: &mut EachRow<'_>,
) -> Result<(), OpError> {
    let mut keys = take(&mut run.buffers.keys);
    let mut left = order.limit;
    loop {
        let most = left.min(KEYS_AT_ONCE);
        newest_keys(run, table, (span, order.direction, most), &mut keys)?;
        for at in 0..keys.len() {
            let (key, row) = (keys.get(at), &mut run.buffers.row);
            // Whoever held the lock may have deleted it.
            if run.transaction.get_for_update_into(&table.table, key, row)? {
                each(key, row)?;
                left -= 1;
            }
        }
        if left == 0 || keys.len() < most {
            run.buffers.keys = keys;
            return Ok(());
        }
        span.pass(keys.get(keys.len() - 1), order.direction);
    }
}

/// The first keys that are there now.
fn newest_keys(
    run: &mut OpRun<'_>,
    table: &OpenTable,
    (span, direction, most): (&KeySpan, Direction, usize),
    keys: &mut KeyList,
) -> Result<(), OpError> {
    keys.clear();
    let mut rows = run.transaction.newest_cursor(&table.table, span.bounds(), direction)?;
    while keys.len() < most
        && let Some((key, _row)) = rows.next_row()?
    {
        keys.push(key);
    }
    Ok(())
}

/// Puts the keys that are there now and begin with these values into the list of the buffers; false
/// when there can be none.
///
/// # Errors
/// What the engine said, an argument of the wrong kind.
pub(crate) fn keys_of_prefix(
    run: &mut OpRun<'_>,
    table: &OpenTable,
    prefix: &[PathField],
    args: &[Value<'_>],
) -> Result<bool, OpError> {
    let (low, high) = (take(&mut run.buffers.key), take(&mut run.buffers.high));
    let mut span = KeySpan::in_memory(low, high);
    let written = span.fill_prefix(&table.shared.layout, prefix, args)?;
    if written {
        let mut keys = take(&mut run.buffers.keys);
        newest_keys(run, table, (&span, Direction::Forward, usize::MAX), &mut keys)?;
        run.buffers.keys = keys;
    }
    (run.buffers.key, run.buffers.high) = span.into_memory();
    Ok(written)
}

/// By an index: its entries first, some at a time, then their rows.
fn by_index(
    run: &mut OpRun<'_>,
    (table, (index, secondary)): (&OpenTable, &(Index, Arc<IndexKey>)),
    span: &mut KeySpan,
    order: ScanOrder,
    each: &mut EachRow<'_>,
) -> Result<(), OpError> {
    // Secondary keys and keys, in turn.
    let mut entries = take(&mut run.buffers.keys);
    let mut last: Option<OwnedRow> = None;
    let mut left = order.limit;
    loop {
        let most = left.min(KEYS_AT_ONCE);
        next_entries(run, (index, span, order), (last.as_ref(), most), &mut entries)?;
        for at in 0..entries.len() / 2 {
            let (entry, key) = (entries.get(2 * at), entries.get(2 * at + 1));
            let row = &mut run.buffers.row;
            let is_there = match order.locks {
                true => run.transaction.get_for_update_into(&table.table, key, row)?,
                false => run.transaction.get_into(&table.table, key, row)?,
            };
            let is_entry = is_there && {
                let found = &mut run.buffers.text;
                found.clear();
                !(order.locks || run.rereads)
                    || secondary.extract(key, &run.buffers.row, found) && found == entry
            };
            if is_entry {
                each(key, &run.buffers.row)?;
                left -= 1;
            }
        }
        if left == 0 || entries.len() / 2 < most {
            run.buffers.keys = entries;
            return Ok(());
        }
        let (entry, key) = (entries.get(entries.len() - 2), entries.get(entries.len() - 1));
        last = Some((entry.to_vec(), key.to_vec()));
        span.resume(entry, order.direction);
    }
}

/// The first entries behind the last one.
fn next_entries(
    run: &mut OpRun<'_>,
    (index, span, order): (&Index, &KeySpan, ScanOrder),
    (last, most): (Option<&OwnedRow>, usize),
    entries: &mut KeyList,
) -> Result<(), OpError> {
    entries.clear();
    let (transaction, bounds) = (&mut *run.transaction, span.bounds());
    let mut found = match order.locks {
        true => transaction.newest_index_cursor(index, bounds, order.direction)?,
        false => transaction.index_cursor(index, bounds, order.direction)?,
    };
    while entries.len() < 2 * most
        && let Some((secondary, key)) = found.next_entry()?
    {
        let is_behind = last.is_none_or(|(last_secondary, last_key)| {
            let place = (secondary, key).cmp(&(last_secondary.as_slice(), last_key.as_slice()));
            match order.direction {
                Direction::Forward => place.is_gt(),
                Direction::Backward => place.is_lt(),
            }
        });
        if is_behind {
            entries.push(secondary);
            entries.push(key);
        }
    }
    Ok(())
}
