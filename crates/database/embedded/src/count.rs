//! Counting the rows of another table that scanned rows lead to.

use std::mem::take;

use iostrata_database::target::{Rows, Value};
use iostrata_engine::Direction;

use crate::compile::CountAction;
use crate::context::{OpBuffers, OpRun, wrong_kind};
use crate::error::OpError;
use crate::scan::{ScanOrder, each_row};
use crate::table::OpenTable;

/// Counts the distinct rows that the scan leads to and of which the tested column is below the last
/// argument. Gives one row.
///
/// # Errors
/// What the engine said, an argument of the wrong kind, a damaged row.
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
