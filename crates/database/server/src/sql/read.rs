//! Statements that read.

use iostrata_database::target::{Access, Fold, JoinBelow, Order, Schema};

use super::{SqlText, Template};

/// Rows by their keys; one key per row of arguments.
pub(crate) fn get(
    schema: &Schema,
    table: usize,
    columns: &[usize],
    locks: bool,
    rows: usize,
) -> Template {
    let key = &schema.tables[table].key;
    let mut out = SqlText::new(schema, table, "SELECT ");
    wanted(&mut out, columns);
    out.add(" FROM ").table_name().matching(key, rows, key.len());
    if locks {
        out.add(" FOR UPDATE");
    }
    out.finish()
}

/// What is selected; something, also where nothing is wanted.
fn wanted(out: &mut SqlText<'_>, columns: &[usize]) {
    if columns.is_empty() {
        out.add("1");
    }
    out.columns(columns, "");
}

/// The columns by which the rows of a scan are ordered: those of the index, and of the key where
/// the index leaves equals.
fn order_of(schema: &Schema, table: usize, index: Option<usize>) -> Vec<usize> {
    let table = &schema.tables[table];
    let mut order = index.map_or_else(Vec::new, |index| table.indexes[index].columns.clone());
    let rest: Vec<usize> =
        table.key.iter().copied().filter(|column| !order.contains(column)).collect();
    order.extend(rest);
    order
}

/// A scan. Any other access is none, and has no text.
pub(crate) fn scan(schema: &Schema, table: usize, access: &Access) -> Template {
    let Access::Scan { index, prefix, is_range, order, limit, locks, columns, fold } = access
    else {
        return SqlText::new(schema, table, "").finish();
    };
    let ordered_by = order_of(schema, table, *index);
    // A limit is one of rows, so what is folded is limited before.
    let is_nested = limit.is_some() && *fold != Fold::Rows;
    let mut out = SqlText::new(schema, table, "SELECT ");
    let begin = |out: &mut SqlText<'_>| match fold {
        Fold::Sum => drop(out.add("SUM(").columns(columns, "").add(")")),
        Fold::Distinct => drop(out.add("DISTINCT ").columns(columns, "")),
        Fold::Rows | Fold::Sorted => wanted(out, columns),
    };
    begin(&mut out);
    out.add(" FROM ");
    if is_nested {
        out.add("(SELECT ").columns(columns, "").add(" FROM ");
    }
    out.table_name();
    bounds(&mut out, &ordered_by, *prefix, *is_range);
    if *fold == Fold::Rows || is_nested {
        let direction = if *order == Order::Descending { " DESC" } else { "" };
        if !ordered_by.is_empty() && *order != Order::Any {
            out.add(" ORDER BY ").columns(&ordered_by, direction);
        }
        if let Some(limit) = limit {
            out.add(&format!(" LIMIT {limit}"));
        }
    }
    if is_nested {
        out.add(if *locks { " FOR UPDATE) AS d" } else { ") AS d" });
    }
    if matches!(fold, Fold::Sorted | Fold::Distinct) {
        out.add(" ORDER BY ").columns(columns, "");
    }
    if *locks && !is_nested {
        out.add(" FOR UPDATE");
    }
    out.finish()
}

/// `WHERE` the first columns equal the arguments, and the next one is between the last two.
fn bounds(out: &mut SqlText<'_>, order: &[usize], prefix: usize, is_range: bool) {
    if prefix > 0 {
        out.matching(&order[..prefix], 1, 0);
    }
    if is_range {
        let column = order[prefix];
        out.add(if prefix > 0 { " AND " } else { " WHERE " }).column(column);
        out.add(" BETWEEN ").argument(prefix, column).add(" AND ").argument(prefix + 1, column);
    }
}

/// How many distinct rows of another table, with a column below the last argument, the rows of a
/// range lead to.
pub(crate) fn count_below(schema: &Schema, table: usize, join: &JoinBelow) -> Template {
    let other = &schema.tables[join.other];
    let mut out = SqlText::new(schema, table, "SELECT COUNT(DISTINCT ");
    let key = &out.table.key;
    let fixed = &key[..join.prefix];
    // Columns that the range fixes do not distinguish rows.
    let pairs: Vec<(usize, usize)> =
        other.key.iter().copied().zip(join.leads_by.iter().copied()).collect();
    let free: Vec<usize> =
        pairs.iter().filter(|(_, by)| !fixed.contains(by)).map(|(column, _)| *column).collect();
    let told_apart = if free.is_empty() { &other.key } else { &free };
    for (at, column) in told_apart.iter().enumerate() {
        out.add(if at == 0 { "o." } else { ", o." }).name(&other.columns[*column].name);
    }
    out.add(") FROM ").table_name().add(" AS t STRAIGHT_JOIN ").name(&other.name).add(" AS o ON ");
    for (at, (column, by)) in pairs.iter().enumerate() {
        out.add(if at == 0 { "o." } else { " AND o." }).name(&other.columns[*column].name);
        out.add(" = t.").column(*by);
    }
    out.add(" WHERE ");
    for (at, column) in fixed.iter().enumerate() {
        out.add("t.").column(*column).add(" = ").argument(at, *column).add(" AND ");
    }
    let ranged = key[join.prefix];
    out.add("t.").column(ranged).add(" BETWEEN ").argument(join.prefix, ranged);
    out.add(" AND ").argument(join.prefix + 1, ranged).add(" AND o.");
    let tested = &other.columns[join.tested];
    out.name(&tested.name).add(" < ?");
    out.takes.push((join.prefix + 2, tested.of.into()));
    out.finish()
}
