//! Statements of SQLite with values of workloads in them, and what they give.
//!
//! It begins and ends no transaction but those of a load.

use iostrata_database::target::{Rows, Schema, Value};
use rusqlite::Connection;
use rusqlite::types::{ToSqlOutput, ValueRef};

use super::sql::{self, Statements};

/// Rows of one transaction while loading.
const LOAD_ROWS: u64 = 200_000;

/// Puts rows in place of those of a table.
pub(super) fn load_rows(
    connection: &Connection,
    schema: &Schema,
    table: usize,
    next: &mut dyn FnMut(&mut Rows),
) -> rusqlite::Result<u64> {
    let table = &schema.tables[table];
    let marks = vec!["?"; table.columns.len()].join(", ");
    let name = sql::quoted(&table.name);
    let mut rows = Rows::new(table.columns.len());
    let mut insert = connection.prepare(&format!("INSERT INTO {name} VALUES ({marks})"))?;
    connection.execute_batch(&format!("BEGIN IMMEDIATE; DELETE FROM {name}"))?;
    let (mut loaded, mut committed) = (0, 0);
    loop {
        next(&mut rows);
        if rows.is_empty() {
            break;
        }
        for row in 0..rows.len() {
            for (at, value) in rows.row(row).enumerate() {
                insert.raw_bind_parameter(at + 1, bound(value))?;
            }
            insert.raw_execute()?;
        }
        loaded += rows.len() as u64;
        if loaded - committed >= LOAD_ROWS {
            connection.execute_batch("COMMIT; BEGIN IMMEDIATE")?;
            committed = loaded;
        }
    }
    connection.execute_batch("COMMIT; PRAGMA wal_checkpoint(TRUNCATE)")?;
    Ok(loaded)
}

/// Runs the statements of an operation for each row of arguments.
pub(super) fn execute(
    connection: &Connection,
    op: &Statements,
    args: &[Value<'_>],
    each: &mut dyn FnMut(&[Value<'_>]),
) -> rusqlite::Result<u64> {
    let count = args.len().checked_div(op.stride).unwrap_or(1);
    let mut read = op.read.as_ref().map(|(text, _)| connection.prepare_cached(text)).transpose()?;
    let mut write = op.write.as_ref().map(|text| connection.prepare_cached(text)).transpose()?;
    let mut found = 0;
    for at in 0..count {
        let row = &args[at * op.stride..][..op.stride];
        let is_again = |before: usize| args[before * op.stride..][..op.stride] == *row;
        if op.is_distinct && (0..at).any(is_again) {
            continue;
        }
        if let (Some(read), Some((_, takes))) = (&mut read, &op.read) {
            for (nth, value) in row[..*takes].iter().enumerate() {
                read.raw_bind_parameter(nth + 1, bound(*value))?;
            }
            let given = give(&mut read.raw_query(), op.width, each)?;
            found += if op.write.is_some() { 0 } else { given };
        }
        if let Some(write) = &mut write {
            for (nth, value) in row.iter().enumerate() {
                write.raw_bind_parameter(nth + 1, bound(*value))?;
            }
            found += write.raw_execute()? as u64;
        }
    }
    Ok(found)
}

/// Hands out rows; gives how many there were.
fn give(
    rows: &mut rusqlite::Rows<'_>,
    width: usize,
    each: &mut dyn FnMut(&[Value<'_>]),
) -> rusqlite::Result<u64> {
    let mut given = 0;
    while let Some(row) = rows.next()? {
        let values: rusqlite::Result<Vec<Value<'_>>> =
            (0..width).map(|at| value(at, row.get_ref(at)?)).collect();
        each(&values?);
        given += 1;
    }
    Ok(given)
}

fn bound(value: Value<'_>) -> ToSqlOutput<'_> {
    ToSqlOutput::Borrowed(match value {
        Value::Null => ValueRef::Null,
        Value::Int(number) => ValueRef::Integer(number),
        Value::Text(text) => ValueRef::Text(text),
    })
}

fn value(at: usize, found: ValueRef<'_>) -> rusqlite::Result<Value<'_>> {
    match found {
        ValueRef::Null => Ok(Value::Null),
        ValueRef::Integer(number) => Ok(Value::Int(number)),
        ValueRef::Text(text) => Ok(Value::Text(text)),
        other => {
            Err(rusqlite::Error::InvalidColumnType(at, "a value".to_owned(), other.data_type()))
        }
    }
}
