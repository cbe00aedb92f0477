//! Modifications: how many statements change how many rows.
//!
//! One row is changed by one UPDATE with expressions, after a locking SELECT where something is
//! returned. Many rows are locked and read by one SELECT; the changes are computed here in the
//! order of the arguments, so that a row named twice is changed twice, and written by one UPDATE.
//! Locking reads see the newest rows at every isolation level, so nothing comes between.

use iostrata_database::target::{Access, Assign, Change, Op, Rows, TargetError, Value};

use super::statements::{Stage, Statements};
use super::{KEYS_MAX, take_row};
use crate::kind::{self, ValueKind};
use crate::link::Link;

/// What a modification declares.
struct ModifyColumns<'a> {
    key: &'a [usize],
    prefix: usize,
    set: &'a [Assign],
    returns: &'a [usize],
}

impl<'a> ModifyColumns<'a> {
    fn of(op: &'a Op, key: &'a [usize]) -> Option<Self> {
        match &op.access {
            Access::Modify { prefix, set, returns } => {
                Some(Self { key, prefix: *prefix, set, returns })
            }
            _ => None,
        }
    }

    /// Whether the rows of arguments may share one UPDATE by expressions: they all change alike,
    /// and none is changed twice.
    fn is_alike(&self, args: &[Value<'_>], stride: usize) -> bool {
        let mut keys: Vec<&[Value<'_>]> =
            args.chunks(stride).map(|row| &row[..self.prefix]).collect();
        keys.sort_unstable();
        let is_distinct = keys.windows(2).all(|pair| pair[0] != pair[1]);
        is_distinct
            && args.chunks(stride).all(|row| row[self.prefix..] == args[self.prefix..stride])
    }
}

/// Runs a modification; gives the rows of arguments, or the rows below their keys, that were there.
pub(super) fn run(
    link: &mut Link,
    statements: &mut Statements,
    args: &[Value<'_>],
    rows: usize,
    out: &mut Rows,
) -> Result<u64, TargetError> {
    let (op, schema) = (statements.op.clone(), statements.schema.clone());
    let Some(declared) = ModifyColumns::of(&op, &schema.tables[op.table].key) else {
        return Ok(0);
    };
    let stride = statements.stride;
    let is_whole_key = declared.prefix == declared.key.len();
    let mut touched = 0;
    if rows > 1 && is_whole_key && statements.dialect.joins_updates {
        for piece in args.chunks(KEYS_MAX * stride) {
            touched += many(link, statements, &declared, piece, out)?;
        }
    } else if rows > 1 && !is_whole_key && declared.is_alike(args, stride) {
        for piece in args.chunks(KEYS_MAX * stride) {
            touched += alike(link, statements, &declared, piece, out)?;
        }
    } else {
        for row in args.chunks(stride) {
            touched += one(link, statements, row, out)?;
        }
    }
    Ok(touched)
}

/// The rows of one key.
fn one(
    link: &mut Link,
    statements: &mut Statements,
    args: &[Value<'_>],
    out: &mut Rows,
) -> Result<u64, TargetError> {
    let gives = statements.gives.clone();
    if gives.is_empty() {
        let ready = statements.ready(link, Stage::Whole, 1)?;
        return link.run(ready, args, &mut |_| Some(()));
    }
    let mut found = 0;
    let ready = statements.ready(link, Stage::Before, 1)?;
    link.run(ready, args, &mut |row| {
        found += 1;
        take_row(row, &gives, false, out)
    })?;
    if found > 0 {
        let ready = statements.ready(link, Stage::Whole, 1)?;
        link.run(ready, args, &mut |_| Some(()))?;
    }
    Ok(found)
}

/// The rows of several keys that change alike.
fn alike(
    link: &mut Link,
    statements: &mut Statements,
    declared: &ModifyColumns<'_>,
    args: &[Value<'_>],
    out: &mut Rows,
) -> Result<u64, TargetError> {
    let (stride, prefix) = (statements.stride, declared.prefix);
    let rows = args.len() / stride;
    if declared.returns.is_empty() {
        let ready = statements.ready(link, Stage::Whole, rows)?;
        return link.run(ready, args, &mut |_| Some(()));
    }
    if rows == 1 {
        return one(link, statements, args, out);
    }
    let kinds = kinds(statements, &[&declared.key[..prefix], declared.returns].concat());
    let mut found = Rows::new(kinds.len());
    let ready = statements.ready(link, Stage::Before, rows)?;
    link.run(ready, args, &mut |row| take_row(row, &kinds, false, &mut found))?;
    for wanted in args.chunks(stride) {
        let is_below = |row: &usize| (0..prefix).all(|at| found.get(*row, at) == wanted[at]);
        for row in (0..found.len()).filter(is_below) {
            (prefix..kinds.len()).for_each(|at| out.push(found.get(row, at)));
        }
    }
    if !found.is_empty() {
        let ready = statements.ready(link, Stage::Whole, rows)?;
        link.run(ready, args, &mut |_| Some(()))?;
    }
    Ok(found.len() as u64)
}

fn kinds(statements: &Statements, columns: &[usize]) -> Vec<ValueKind> {
    let table = &statements.schema.tables[statements.op.table];
    columns.iter().map(|column| table.columns[*column].of.into()).collect()
}

/// Several rows, each by its whole key.
fn many(
    link: &mut Link,
    statements: &mut Statements,
    declared: &ModifyColumns<'_>,
    args: &[Value<'_>],
    out: &mut Rows,
) -> Result<u64, TargetError> {
    let (stride, keys) = (statements.stride, declared.key.len());
    let rows = args.len() / stride;
    let is_blind =
        declared.returns.is_empty() && declared.set.iter().all(|one| one.change == Change::Set);
    let changed: Vec<usize> = declared.set.iter().map(|assign| assign.column).collect();
    let kinds = kinds(statements, &[declared.key, &changed, declared.returns].concat());
    let mut found = Rows::new(kinds.len());
    if is_blind {
        // Nothing of the rows is needed: the last value of each counts.
        for row in args.chunks(stride).rev() {
            if find(&found, &row[..keys]).is_none() {
                found.push_row(row);
            }
        }
        return write(link, statements, &found, &[], keys);
    }
    let ready = statements.ready(link, Stage::BeforeAll, rows)?;
    link.run(ready, args, &mut |row| take_row(row, &kinds, false, &mut found))?;
    if found.is_empty() {
        return Ok(0);
    }
    let mut now = Current::of(&found, keys, &changed);
    let mut touched = 0;
    for row in args.chunks(stride) {
        let Some(at) = find(&found, &row[..keys]) else {
            continue;
        };
        touched += 1;
        for (back, column) in declared.returns.iter().enumerate() {
            let is_changed = changed.iter().position(|one| one == column);
            out.push(match is_changed {
                Some(which) => now.value(at, which),
                None => found.get(at, keys + changed.len() + back),
            });
        }
        let mut arguments = row[keys..].iter();
        for (which, assign) in declared.set.iter().enumerate() {
            let takes = assign.change.takes_argument();
            let argument = if takes { arguments.next().copied() } else { None };
            now.apply(at, which, assign.change, argument.unwrap_or(Value::Null));
        }
    }
    write(link, statements, &found, &now.cells, keys)?;
    Ok(touched)
}

fn find(found: &Rows, key: &[Value<'_>]) -> Option<usize> {
    (0..found.len()).find(|row| key.iter().enumerate().all(|(at, is)| found.get(*row, at) == *is))
}

/// Gives every row found its new values: those computed, or those that follow its key.
fn write(
    link: &mut Link,
    statements: &mut Statements,
    found: &Rows,
    cells: &[ComputedValue],
    keys: usize,
) -> Result<u64, TargetError> {
    let rows = found.len();
    let changes = if cells.is_empty() { statements.stride - keys } else { cells.len() / rows };
    let mut args = Vec::with_capacity(rows * (keys + changes));
    for row in 0..rows {
        args.extend((0..keys).map(|at| found.get(row, at)));
        args.extend((0..changes).map(|which| match cells.get(row * changes + which) {
            Some(cell) => cell.value(),
            None => found.get(row, keys + which),
        }));
    }
    let ready = statements.ready(link, Stage::Absolute, rows)?;
    link.run(ready, &args, &mut |_| Some(()))
}

/// A value that is computed here.
#[derive(Clone, Debug)]
enum ComputedValue {
    Null,
    Int(i64),
    Text(Vec<u8>),
}

impl ComputedValue {
    fn value(&self) -> Value<'_> {
        match self {
            Self::Null => Value::Null,
            Self::Int(number) => Value::Int(*number),
            Self::Text(text) => Value::Text(text),
        }
    }

    fn of(value: Value<'_>) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Int(number) => Self::Int(number),
            Value::Text(text) => Self::Text(text.to_vec()),
        }
    }
}

/// The changed columns of the rows found, as they are by now.
struct Current {
    cells: Vec<ComputedValue>,
    width: usize,
}

impl Current {
    fn of(found: &Rows, keys: usize, changed: &[usize]) -> Self {
        let width = changed.len();
        let rows = 0..found.len();
        let cells = rows.flat_map(|row| {
            (keys..keys + width).map(move |at| ComputedValue::of(found.get(row, at)))
        });
        Self { cells: cells.collect(), width }
    }

    fn value(&self, row: usize, which: usize) -> Value<'_> {
        self.cells[row * self.width + which].value()
    }

    /// As in SQL: whatever is computed with NULL is NULL, and what NULL is put before stays.
    fn apply(&mut self, row: usize, which: usize, change: Change, argument: Value<'_>) {
        let cell = &mut self.cells[row * self.width + which];
        let after = match (change, &*cell, argument) {
            (Change::Set, _, argument) => Some(ComputedValue::of(argument)),
            (Change::Prepend { .. }, _, Value::Null) | (_, ComputedValue::Null, _) => None,
            (Change::Prepend { most }, ComputedValue::Text(before), Value::Text(text)) => {
                let mut joined = text.to_vec();
                joined.extend_from_slice(before);
                joined.truncate(kind::characters_end(&joined, usize::from(most)));
                Some(ComputedValue::Text(joined))
            }
            (change, ComputedValue::Int(before), Value::Int(argument)) => {
                change.number(*before, argument).map(ComputedValue::Int)
            }
            (Change::AddConst(_), ComputedValue::Int(before), Value::Null) => {
                change.number(*before, 0).map(ComputedValue::Int)
            }
            (_, ComputedValue::Int(_), Value::Null) => Some(ComputedValue::Null),
            _ => None,
        };
        if let Some(after) = after {
            *cell = after;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_computed_as_sql_has_them() {
        let mut now = Current { cells: Vec::new(), width: 1 };
        let mut after = |before: ComputedValue, change, argument: Value<'_>| {
            now.cells = vec![before];
            now.apply(0, 0, change, argument);
            format!("{:?}", now.value(0, 0))
        };
        let refill = Change::SubtractRefill { least: 10, by: 91 };
        assert_eq!(after(ComputedValue::Int(12), refill, Value::Int(5)), "98");
        assert_eq!(after(ComputedValue::Int(12), Change::AddConst(2), Value::Null), "14");
        assert_eq!(after(ComputedValue::Int(12), Change::Add, Value::Null), "null");
        assert_eq!(after(ComputedValue::Null, Change::Add, Value::Int(1)), "null");
        assert_eq!(after(ComputedValue::Null, Change::Set, Value::Int(1)), "1");
        assert_eq!(after(ComputedValue::Int(1), Change::Set, Value::Null), "null");
        let prepend = Change::Prepend { most: 4 };
        let text = |text: &str| ComputedValue::Text(text.as_bytes().to_vec());
        assert_eq!(after(text("xyz"), prepend, "ab".into()), "\"abxy\"");
        assert_eq!(after(text("xyz"), prepend, "\u{e4}\u{f6}".into()), "\"\u{e4}\u{f6}xy\"");
        assert_eq!(after(text("xyz"), prepend, Value::Null), "\"xyz\"");
    }

    #[test]
    fn only_rows_that_change_alike_share_a_statement() {
        let set = [Assign { column: 3, change: Change::Add }];
        let declared = ModifyColumns { key: &[0, 1, 2], prefix: 2, set: &set, returns: &[] };
        let alike = |args: &[i64]| {
            let args: Vec<Value<'_>> = args.iter().copied().map(Value::Int).collect();
            declared.is_alike(&args, 3)
        };
        assert!(alike(&[1, 1, 7, 1, 2, 7]));
        assert!(!alike(&[1, 1, 7, 1, 2, 8]));
        assert!(!alike(&[1, 1, 7, 1, 1, 7]));
    }
}
