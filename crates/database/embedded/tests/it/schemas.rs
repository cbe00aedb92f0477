//! Schemas, operations and arguments by chance.

use iostrata_database::target::{
    Access, Assign, Change, Column, ColumnType, Fold, Index, JoinBelow, Op, Order, Schema, Table,
};

use crate::chance::Chance;
use crate::values::{OwnedValue, Row};

/// The table that rows of the first one lead to.
pub const OTHER: usize = 1;
/// Its columns: key, tested number.
const TESTED: usize = 1;
/// A column of the first table that is a key of the other one.
const LEADS: usize = 0;

/// Two tables: one by chance, and one that its first column leads to.
pub fn schema(chance: &mut Chance) -> Schema {
    let number = ColumnType::Int { bytes: 4 };
    let columns = 3 + chance.index(5);
    let key: Vec<usize> = (0..chance.index(4).min(columns)).collect();
    let auto_increment = key.len() == 1 && chance.one_in(2);
    let column = |at: usize, chance: &mut Chance| Column {
        name: format!("c{at}"),
        of: if at == LEADS { number } else { column_type(chance) },
        is_nullable: !key.contains(&at) && chance.one_in(2),
    };
    let columns: Vec<Column> = (0..columns).map(|at| column(at, chance)).collect();
    let index = |at: usize, chance: &mut Chance| Index {
        name: format!("by{at}"),
        columns: (0..1 + chance.index(3)).map(|_| chance.index(columns.len())).collect(),
        is_late: chance.one_in(2),
    };
    let indexes = (0..chance.index(3)).map(|at| index(at, chance)).collect();
    let other = |name: &str| Column { name: name.to_owned(), of: number, is_nullable: false };
    let first = Table { name: "first".to_owned(), columns, key, indexes, auto_increment };
    let second = Table {
        name: "other".to_owned(),
        columns: vec![other("id"), Column { is_nullable: true, ..other("tested") }],
        key: vec![0],
        indexes: Vec::new(),
        auto_increment: false,
    };
    Schema { tables: vec![first, second] }
}

fn column_type(chance: &mut Chance) -> ColumnType {
    match chance.below(8) {
        0 => ColumnType::Int { bytes: 1 },
        1 => ColumnType::Int { bytes: 2 },
        2 => ColumnType::Int { bytes: 8 },
        3 => ColumnType::Decimal { digits: 12, scale: 2 },
        4 => ColumnType::DateTime,
        5 => ColumnType::Char(4),
        _ => ColumnType::Varchar(6),
    }
}

/// Operations of every kind on the first table, and what fills the other one.
pub fn ops(schema: &Schema, chance: &mut Chance) -> Vec<Op> {
    let table = &schema.tables[0];
    let mut all = vec![Access::Insert, modify(table, chance), modify(table, chance)];
    all.extend((0..8).map(|_| scan(table, chance)));
    if !table.key.is_empty() {
        for locks in [false, true] {
            all.push(Access::Get { columns: some(table, chance), locks });
        }
        let join = JoinBelow {
            prefix: chance.index(table.key.len()),
            other: OTHER,
            leads_by: vec![LEADS],
            tested: TESTED,
        };
        all.extend([Access::Delete, Access::CountBelow(join)]);
    }
    let mut ops: Vec<Op> =
        all.into_iter().map(|access| Op { name: "first", table: 0, access }).collect();
    let set = vec![Assign { column: TESTED, change: Change::Set }];
    for access in [
        Access::Insert,
        Access::Modify { prefix: 1, set, returns: vec![TESTED, 0] },
        Access::Delete,
    ] {
        ops.push(Op { name: "other", table: OTHER, access });
    }
    ops
}

/// Some columns, perhaps one of them twice.
fn some(table: &Table, chance: &mut Chance) -> Vec<usize> {
    (0..1 + chance.index(4)).map(|_| chance.index(table.columns.len())).collect()
}

fn scan(table: &Table, chance: &mut Chance) -> Access {
    let has_index = !table.indexes.is_empty() && chance.one_in(2);
    let index = has_index.then(|| chance.index(table.indexes.len()));
    let by = index.map_or(&table.key, |index| &table.indexes[index].columns).len();
    let prefix = chance.index(by + 1);
    let numbers: Vec<usize> =
        (0..table.columns.len()).filter(|at| !table.columns[*at].of.is_text()).collect();
    let (fold, columns) = match chance.below(6) {
        0 => (Fold::Sum, vec![numbers[chance.index(numbers.len())]]),
        1 => (Fold::Sorted, vec![chance.index(table.columns.len())]),
        2 => (Fold::Distinct, vec![chance.index(table.columns.len())]),
        _ => (Fold::Rows, some(table, chance)),
    };
    Access::Scan {
        index,
        prefix,
        is_range: prefix < by && chance.one_in(2),
        order: if chance.one_in(2) { Order::Ascending } else { Order::Descending },
        limit: chance.one_in(2).then(|| chance.below(5) as u32),
        locks: chance.one_in(4),
        columns,
        fold,
    }
}

fn modify(table: &Table, chance: &mut Chance) -> Access {
    let prefix = chance.index(table.key.len() + 1);
    let columns = (0..table.columns.len()).filter(|at| !table.key.contains(at));
    let mut set = Vec::new();
    for column in columns {
        let change = match (table.columns[column].of, chance.below(5)) {
            (_, 0) => continue,
            (ColumnType::Char(most) | ColumnType::Varchar(most), 1 | 2) => Change::Prepend { most },
            (of, _) if of.is_text() => Change::Set,
            (ColumnType::Int { bytes: 1 }, _) => Change::Set,
            (_, 1) => Change::Add,
            (_, 2) => Change::AddConst(chance.below(7) as i64 - 3),
            (_, 3) => Change::SubtractRefill { least: 10, by: 91 },
            _ => Change::Set,
        };
        set.push(Assign { column, change });
    }
    Access::Modify { prefix, set, returns: some(table, chance) }
}

/// A value for a column; `is_new` for one that goes into a row.
fn value(column: &Column, is_new: bool, chance: &mut Chance) -> OwnedValue {
    let can_be_null = if is_new { column.is_nullable } else { chance.one_in(8) };
    if can_be_null && chance.one_in(3) {
        return OwnedValue::Null;
    }
    match column.of {
        ColumnType::Char(_) | ColumnType::Varchar(_) => text(is_new, chance),
        ColumnType::Int { bytes: 1 } if !is_new && chance.one_in(6) => {
            OwnedValue::Int(if chance.one_in(2) { 1_000 } else { -1_000 })
        }
        _ => OwnedValue::Int(chance.below(7) as i64 - 2),
    }
}

fn text(is_new: bool, chance: &mut Chance) -> OwnedValue {
    let mut text: Vec<u8> = (0..chance.index(4)).map(|_| b"ab\0\x01 "[chance.index(5)]).collect();
    while !is_new && text.last() == Some(&b' ') {
        text.pop();
    }
    OwnedValue::Text(text)
}

/// A row of a table.
pub fn row(table: &Table, chance: &mut Chance) -> Row {
    let counts_up = |at: usize| table.auto_increment && table.key[0] == at;
    let columns = table.columns.iter().enumerate();
    columns
        .map(|(at, column)| match counts_up(at) && chance.one_in(2) {
            true => OwnedValue::Null,
            false => value(column, true, chance),
        })
        .collect()
}

/// Arguments of an operation.
pub fn args(schema: &Schema, op: &Op, chance: &mut Chance) -> Row {
    let table = &schema.tables[op.table];
    let rows = 1 + chance.index(3);
    let of = |columns: &[usize], chance: &mut Chance| -> Row {
        columns.iter().map(|at| value(&table.columns[*at], false, chance)).collect()
    };
    match &op.access {
        Access::Insert => (0..rows).flat_map(|_| row(table, chance)).collect(),
        Access::Get { .. } | Access::Delete => {
            (0..rows).flat_map(|_| of(&table.key, chance)).collect()
        }
        Access::Scan { index, prefix, is_range, .. } => {
            let by = index.map_or(&table.key, |index| &table.indexes[index].columns);
            bounded(by, (*prefix, *is_range), &of, chance)
        }
        Access::CountBelow(join) => {
            let mut args = bounded(&table.key, (join.prefix, true), &of, chance);
            args.push(OwnedValue::Int(chance.below(6) as i64));
            args
        }
        Access::Modify { prefix, set, .. } => {
            let mut args = Row::new();
            for _row in 0..rows {
                args.extend(of(&table.key[..*prefix], chance));
                let taken = set.iter().filter(|assign| assign.change.takes_argument());
                args.extend(taken.map(|assign| value(&table.columns[assign.column], true, chance)));
            }
            args
        }
        Access::Statement { .. } => Row::new(),
    }
}

fn bounded(
    by: &[usize],
    (prefix, is_range): (usize, bool),
    of: &dyn Fn(&[usize], &mut Chance) -> Row,
    chance: &mut Chance,
) -> Row {
    let mut args = of(&by[..prefix], chance);
    if is_range {
        args.extend(of(&[by[prefix]; 2], chance));
    }
    args
}
