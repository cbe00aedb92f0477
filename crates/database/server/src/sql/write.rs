//! Statements that add and remove rows.

use iostrata_database::target::Schema;

use super::{SqlText, Template};

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
