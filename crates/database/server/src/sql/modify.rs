//! Statements that change rows.
//!
//! One row, and all rows that begin with a key, are changed by expressions. Several rows at once
//! get the values that a session has computed, from a derived table that leads to them.

use iostrata_database::target::{Assign, Change, Schema};

use super::{SqlText, Template};
use crate::kind::constant;

/// What a modification declares.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expressions<'a> {
    /// So many values of the key are given.
    pub prefix: usize,
    /// What changes.
    pub set: &'a [Assign],
}

impl Expressions<'_> {
    /// Values in each row of arguments.
    pub(crate) fn stride(&self) -> usize {
        self.prefix + self.set.iter().filter(|assign| assign.change.takes_argument()).count()
    }
}

/// Changes the rows that the keys begin with, all by the arguments of the first row.
pub(crate) fn update(
    schema: &Schema,
    table: usize,
    change: Expressions<'_>,
    rows: usize,
) -> Template {
    let mut out = SqlText::new(schema, table, "UPDATE ");
    out.table_name().add(" SET ");
    let mut argument = change.prefix;
    for (at, assign) in change.set.iter().enumerate() {
        out.add(if at == 0 { "" } else { ", " }).column(assign.column).add(" = ");
        expression(&mut out, *assign, argument);
        argument += usize::from(assign.change.takes_argument());
    }
    let key = &out.table.key[..change.prefix];
    out.matching(key, rows, change.stride());
    out.finish()
}

fn expression(out: &mut SqlText<'_>, assign: Assign, at: usize) {
    let column = assign.column;
    let kind = out.kind(column);
    match assign.change {
        Change::Set => drop(out.argument(at, column)),
        Change::Add => drop(out.column(column).add(" + ").typed(at, column)),
        Change::AddConst(number) => {
            out.column(column).add(" + ").add(&constant(number, kind));
        }
        Change::SubtractRefill { least, by } => {
            let left = |out: &mut SqlText<'_>| {
                out.column(column).add(" - ").typed(at, column);
            };
            out.add("CASE WHEN ");
            left(out);
            out.add(" < ").add(&constant(least, kind)).add(" THEN ");
            left(out);
            out.add(" + ").add(&constant(by, kind)).add(" ELSE ");
            left(out);
            out.add(" END");
        }
        // A null argument makes the whole null, which leaves what was there.
        Change::Prepend { most } => {
            out.add("COALESCE(LEFT(CONCAT(").argument(at, column).add(", ").column(column);
            out.add(&format!("), {most}), ")).column(column).add(")");
        }
    }
}

/// The rows as they are before a modification, locked: these columns of each, in the order of the
/// key.
pub(crate) fn before(
    schema: &Schema,
    table: usize,
    change: Expressions<'_>,
    columns: &[usize],
    rows: usize,
) -> Template {
    let mut out = SqlText::new(schema, table, "SELECT ");
    let key = &out.table.key;
    out.columns(columns, "").add(" FROM ").table_name();
    out.matching(&key[..change.prefix], rows, change.stride());
    if change.prefix < key.len() {
        out.add(" ORDER BY ").columns(key, "");
    }
    out.add(" FOR UPDATE");
    out.finish()
}

/// Gives rows new values: for each its key, then the columns in the order in which they are set.
pub(crate) fn absolute(schema: &Schema, table: usize, set: &[Assign], rows: usize) -> Template {
    let mut out = SqlText::new(schema, table, "UPDATE (");
    let key = &out.table.key;
    let width = key.len() + set.len();
    let columns: Vec<usize> =
        key.iter().copied().chain(set.iter().map(|assign| assign.column)).collect();
    for row in 0..rows {
        out.add(if row == 0 { "SELECT " } else { " UNION ALL SELECT " });
        for (at, column) in columns.iter().enumerate() {
            out.add(if at == 0 { "" } else { ", " }).typed(row * width + at, *column);
            if row == 0 {
                out.add(&format!(" AS v{at}"));
            }
        }
    }
    // Straight: the few rows of the derived table lead to the table's by its key.
    out.add(") AS d STRAIGHT_JOIN ").table_name().add(" AS t ON ");
    for (at, column) in key.iter().enumerate() {
        out.add(if at == 0 { "t." } else { " AND t." }).column(*column);
        out.add(&format!(" = d.v{at}"));
    }
    out.add(" SET ");
    for (at, assign) in set.iter().enumerate() {
        out.add(if at == 0 { "t." } else { ", t." }).column(assign.column);
        out.add(&format!(" = d.v{}", key.len() + at));
    }
    out.finish()
}

/// New rows, all columns of each.
pub(crate) fn insert(schema: &Schema, table: usize, rows: usize) -> Template {
    let all: Vec<usize> = (0..schema.tables[table].columns.len()).collect();
    let mut out = SqlText::new(schema, table, "INSERT INTO ");
    out.table_name().add(" (").columns(&all, "").add(") VALUES ");
    for row in 0..rows {
        out.add(if row == 0 { "(" } else { ", (" });
        for column in &all {
            out.add(if *column == 0 { "" } else { ", " });
            out.argument(row * all.len() + column, *column);
        }
        out.add(")");
    }
    out.finish()
}

/// Removes rows by their keys.
pub(crate) fn delete(schema: &Schema, table: usize, rows: usize) -> Template {
    let key = &schema.tables[table].key;
    let mut out = SqlText::new(schema, table, "DELETE FROM ");
    out.table_name().matching(key, rows, key.len());
    out.finish()
}
