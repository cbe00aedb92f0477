//! Rows in an order: by the key or by an index, plain or locked; given as they are, summed up,
//! sorted, or counted in another table that they lead to.
//!
//! Invariant: a returned row belongs to the range at the moment at which it was read: the row of an
//! index entry is checked again where it may have changed. Only returned rows are locked, in the
//! order in which they are returned.

use std::mem::take;
use std::ops::Bound;
use std::sync::Arc;

use iostrata_database::target::{Fold, Rows, Value};
use iostrata_engine::{Cursor, Direction, Index, OwnedRow};

use crate::compile::{
    CountAction, KeyList, OpBuffers, OpRun, ScanAction, ScanPath, push_path, wrong_kind,
};
use crate::error::OpError;
use crate::key::{KeyMisfit, pass_prefix};
use crate::layout::{Layout, PathField};
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
type EachRow<'e> = dyn FnMut(&[u8], &[u8]) -> Result<(), OpError> + 'e;

/// Gives the rows of a scan one by one.
///
/// # Errors
/// The engine's error, and any of `each`.
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
            // The previous holder of the lock may have deleted it.
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
/// The engine's error, an argument of the wrong kind.
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

// The keys between which rows are scanned.
//
// Invariant: a span holds the keys that begin with the given values and lie within the given
// bounds, and no others; bounds that the column cannot hold leave out what they should.

/// The keys between which rows are scanned; without an upper one to the end.
#[derive(Debug, Default)]
pub struct KeySpan {
    low: Vec<u8>,
    high: Vec<u8>,
    has_high: bool,
    /// The bounds themselves were passed already.
    is_low_passed: bool,
    is_high_included: bool,
}

impl KeySpan {
    /// None yet, with memory that was used before.
    pub fn in_memory(low: Vec<u8>, high: Vec<u8>) -> Self {
        Self { low, high, ..Self::default() }
    }

    /// The memory.
    pub fn into_memory(self) -> (Vec<u8>, Vec<u8>) {
        (self.low, self.high)
    }

    /// Where the keys begin and end.
    pub fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        let low = match (self.low.is_empty(), self.is_low_passed) {
            (true, _) => Bound::Unbounded,
            (false, true) => Bound::Excluded(&self.low[..]),
            (false, false) => Bound::Included(&self.low[..]),
        };
        let high = match (self.has_high, self.is_high_included) {
            (false, _) => Bound::Unbounded,
            (true, true) => Bound::Included(&self.high[..]),
            (true, false) => Bound::Excluded(&self.high[..]),
        };
        (low, high)
    }

    /// Continues behind a key.
    fn pass(&mut self, key: &[u8], direction: Direction) {
        let (bound, is_passed) = match direction {
            Direction::Forward => (&mut self.low, &mut self.is_low_passed),
            Direction::Backward => (&mut self.high, &mut self.has_high),
        };
        bound.clear();
        bound.extend_from_slice(key);
        *is_passed = true;
    }

    /// Continues with the entries of a secondary key, some of which were returned.
    fn resume(&mut self, secondary: &[u8], direction: Direction) {
        self.pass(secondary, direction);
        match direction {
            Direction::Forward => self.is_low_passed = false,
            Direction::Backward => self.is_high_included = true,
        }
    }

    /// The keys that begin with these values; false when there can be none.
    ///
    /// # Errors
    /// An argument of the wrong kind.
    pub fn fill_prefix(
        &mut self,
        layout: &Layout,
        fields: &[PathField],
        args: &[Value<'_>],
    ) -> Result<bool, OpError> {
        self.low.clear();
        if !begin(layout, fields, args, &mut self.low)? {
            return Ok(false);
        }
        self.high.clear();
        self.high.extend_from_slice(&self.low);
        self.has_high = pass_prefix(&mut self.high);
        Ok(true)
    }

    /// The keys that belong to these arguments; false when there can be none.
    ///
    /// # Errors
    /// An argument of the wrong kind.
    pub fn fill(
        &mut self,
        layout: &Layout,
        (prefix, range): (&[PathField], Option<PathField>),
        args: &[Value<'_>],
    ) -> Result<bool, OpError> {
        let (given, bounds) = args.split_at(prefix.len());
        let Self { low, high, .. } = self;
        (self.is_low_passed, self.is_high_included) = (false, false);
        low.clear();
        if !begin(layout, prefix, given, low)? {
            return Ok(false);
        }
        high.clear();
        high.extend_from_slice(low);
        if let (Some(of), [least, most, ..]) = (range, bounds)
            && !fill_range(layout, of, (*least, *most), (low, high))?
        {
            return Ok(false);
        }
        self.has_high = pass_prefix(&mut self.high);
        Ok(!self.has_high || self.low < self.high)
    }
}

/// Adds the bounds of a column; false when nothing lies between them.
fn fill_range(
    layout: &Layout,
    of: PathField,
    (least, most): (Value<'_>, Value<'_>),
    (low, high): (&mut Vec<u8>, &mut Vec<u8>),
) -> Result<bool, OpError> {
    if least == Value::Null || most == Value::Null {
        return Ok(false);
    }
    let wrong = |value| Err(wrong_kind(layout, of.column, value));
    match of.field.push(least, low) {
        Ok(()) => {}
        Err(KeyMisfit::Below) => of.field.push_least(low),
        Err(KeyMisfit::Above | KeyMisfit::Null) => return Ok(false),
        Err(KeyMisfit::Kind) => return wrong(least),
    }
    match of.field.push(most, high) {
        Ok(()) => Ok(true),
        Err(KeyMisfit::Above) => {
            of.field.push_least(high);
            Ok(true)
        }
        Err(KeyMisfit::Below | KeyMisfit::Null) => Ok(false),
        Err(KeyMisfit::Kind) => wrong(most),
    }
}

/// The first columns; false when no row can have them.
fn begin(
    layout: &Layout,
    fields: &[PathField],
    args: &[Value<'_>],
    low: &mut Vec<u8>,
) -> Result<bool, OpError> {
    match push_path(layout, fields, args, low) {
        Ok(()) => Ok(true),
        Err(None) => Ok(false),
        Err(Some(error)) => Err(error),
    }
}

// Scans whose rows are given as they are, summed up, or sorted.

/// Runs a scan; returns the number of resulting rows.
///
/// # Errors
/// The engine's error, a damaged row, a sum that is too large.
pub(crate) fn scan(
    run: &mut OpRun<'_>,
    table: &OpenTable,
    action: &ScanAction,
    args: &[Value<'_>],
    out: &mut Rows,
) -> Result<u64, OpError> {
    match action.fold {
        Fold::Rows => {
            let mut text = take(&mut run.buffers.text);
            let mut found = 0;
            each_row(run, table, (&action.path, action.order()), args, &mut |key, row| {
                found += 1;
                let pushed = action.wanted.push(&table.shared.layout, (key, row), (&mut text, out));
                pushed.ok_or_else(|| table.damaged(key))
            })?;
            run.buffers.text = text;
            Ok(found)
        }
        Fold::Sum => sum(run, table, action, args, out),
        Fold::Sorted | Fold::Distinct => sorted(run, table, action, args, out),
    }
}

impl ScanAction {
    /// How its rows are come by. They are limited before they are folded.
    pub fn order(&self) -> ScanOrder {
        ScanOrder { direction: self.direction, locks: self.locks, limit: self.limit }
    }
}

fn sum(
    run: &mut OpRun<'_>,
    table: &OpenTable,
    action: &ScanAction,
    args: &[Value<'_>],
    out: &mut Rows,
) -> Result<u64, OpError> {
    let layout = &table.shared.layout;
    let (mut text, mut sum) = (Vec::new(), 0_i64);
    each_row(run, table, (&action.path, action.order()), args, &mut |key, row| {
        let read = layout.read(layout.places[action.columns[0]], (key, row), &mut text);
        match read.ok_or_else(|| table.damaged(key))? {
            Value::Int(number) => {
                let column = || layout.column_name(action.columns[0]).to_owned();
                let too_large = || OpError::SumTooLarge { column: column() };
                sum = sum.checked_add(number).ok_or_else(too_large)?;
            }
            Value::Null | Value::Text(_) => {}
        }
        Ok(())
    })?;
    // Of no rows it is 0, as workloads get it of every target.
    out.push(sum.into());
    Ok(1)
}

fn sorted(
    run: &mut OpRun<'_>,
    table: &OpenTable,
    action: &ScanAction,
    args: &[Value<'_>],
    out: &mut Rows,
) -> Result<u64, OpError> {
    let (mut rows, mut order) = (take(&mut run.buffers.rows), take(&mut run.buffers.order));
    let mut text = take(&mut run.buffers.text);
    rows.clear(1);
    each_row(run, table, (&action.path, action.order()), args, &mut |key, row| {
        let pushed = action.wanted.push(&table.shared.layout, (key, row), (&mut text, &mut rows));
        pushed.ok_or_else(|| table.damaged(key))
    })?;
    let value = |row: &u32| rows.get(*row as usize, 0);
    order.clear();
    order.extend(0..rows.len() as u32);
    order.sort_unstable_by(|a, b| value(a).cmp(&value(b)));
    if action.fold == Fold::Distinct {
        order.dedup_by(|a, b| value(a) == value(b));
    }
    order.iter().for_each(|row| out.push(value(row)));
    let found = order.len() as u64;
    (run.buffers.rows, run.buffers.order, run.buffers.text) = (rows, order, text);
    Ok(found)
}

// Counting the rows of another table that scanned rows lead to.

/// Counts the distinct rows that the scan leads to and of which the tested column is below the last
/// argument. Gives one row.
///
/// # Errors
/// The engine's error, an argument of the wrong kind, a damaged row.
pub(crate) fn count_below(
    run: &mut OpRun<'_>,
    table: &OpenTable,
    action: &CountAction,
    args: &[Value<'_>],
    out: &mut Rows,
) -> Result<u64, OpError> {
    let (bounds, limit) = args.split_at(action.path.args());
    let limit = match *limit {
        [Value::Int(limit)] => Some(limit),
        [value @ Value::Text(_)] => {
            let column = table.shared.layout.table.key[action.path.prefix.len()];
            return Err(wrong_kind(&table.shared.layout, column, value));
        }
        // Nothing is below nothing.
        _ => None,
    };
    keys_led_to(run, table, action, bounds)?;
    let OpBuffers { keys, row, text, .. } = &mut *run.buffers;
    let layout = &action.other.shared.layout;
    let mut count = 0;
    for at in 0..keys.len() {
        let key = keys.get(at);
        if !run.transaction.get_into(&action.other.table, key, row)? {
            continue;
        }
        let tested = layout.read(action.tested, (key, row), text);
        if let Value::Int(number) = tested.ok_or_else(|| action.other.damaged(key))? {
            count += i64::from(limit.is_some_and(|limit| number < limit));
        }
    }
    out.push(Value::Int(count));
    Ok(1)
}

/// Puts the keys of the other table into the list of the buffers, each once.
fn keys_led_to(
    run: &mut OpRun<'_>,
    table: &OpenTable,
    action: &CountAction,
    bounds: &[Value<'_>],
) -> Result<(), OpError> {
    let (mut keys, mut text) = (take(&mut run.buffers.keys), take(&mut run.buffers.text));
    keys.clear();
    let order = ScanOrder { direction: Direction::Forward, locks: false, limit: usize::MAX };
    each_row(run, table, (&action.path, order), bounds, &mut |key, row| {
        let pushed = keys.push_with(|led_to| {
            for (field, place) in &action.leads_by {
                let value = table.shared.layout.read(*place, (key, row), &mut text);
                let value = value.ok_or_else(|| Some(table.damaged(key)))?;
                // What is no key leads nowhere.
                field.push(value, led_to).map_err(|_misfit| None)?;
            }
            Ok(())
        });
        pushed.or_else(|error: Option<OpError>| error.map_or(Ok(()), Err))
    })?;
    keys.sort();
    (run.buffers.keys, run.buffers.text) = (keys, text);
    Ok(())
}
