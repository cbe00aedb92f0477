//! Scans whose rows are given as they are, summed up, or sorted.

use std::mem::take;

use iostrata_database::target::{Fold, Rows, Value};

use crate::compile::ScanAction;
use crate::context::OpRun;
use crate::error::OpError;
use crate::scan::{ScanOrder, each_row};
use crate::table::OpenTable;

/// Runs a scan; gives the rows that came out of it.
///
/// # Errors
/// What the engine said, a damaged row, a sum that is too large.
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
