//! Operations made into plain data, once for each session.

use std::sync::Arc;

use iostrata_database::target::{Access, Fold, JoinBelow, Op, Order};
use iostrata_embedded::rows::{ColumnChange, PathField, Projection, SharedTable};

/// An operation as it is run.
pub(super) struct CompiledOp {
    pub name: &'static str,
    /// The table's number, before its keys.
    pub number: u8,
    pub table: Arc<SharedTable>,
    /// Arguments of each row.
    pub stride: usize,
    /// Values that each row gives.
    pub width: usize,
    /// What is wanted of each row.
    pub wanted: Projection,
    pub action: Action,
}

/// What an operation does.
pub(super) enum Action {
    Get { locks: bool },
    Scan(Scan, Fold),
    Insert,
    Modify { path: Scan, changes: Box<[ColumnChange]> },
    Delete,
    Count { path: Scan, other: (u8, Arc<SharedTable>), join: JoinBelow },
}

/// Rows in an order, and between what.
#[derive(Clone, Debug)]
pub(super) struct Scan {
    /// Without one the order is the key's.
    pub index: Option<usize>,
    pub prefix: Box<[PathField]>,
    pub range: Option<PathField>,
    pub is_descending: bool,
    pub limit: usize,
    pub locks: bool,
}

impl CompiledOp {
    /// Compiles an operation on tables, whose numbers were looked at.
    ///
    /// # Errors
    /// Why it cannot be done.
    pub fn of(tables: &[Arc<SharedTable>], op: &Op) -> Result<Self, String> {
        let table = &tables[op.table];
        let key = table.layout.key.len();
        let path = |prefix: usize, is_range: bool| Scan {
            index: None,
            prefix: fields(table, None)[..prefix].into(),
            range: is_range.then(|| fields(table, None)[prefix]),
            is_descending: false,
            limit: usize::MAX,
            locks: false,
        };
        let (stride, columns, action) = match &op.access {
            Access::Get { columns, locks } => (key, &columns[..], Action::Get { locks: *locks }),
            Access::Scan { index, prefix, is_range, order, limit, locks, columns, fold } => {
                let fields = fields(table, *index);
                let scan = Scan {
                    index: *index,
                    prefix: fields[..*prefix].into(),
                    range: is_range.then(|| fields[*prefix]),
                    is_descending: *order == Order::Descending,
                    limit: limit.map_or(usize::MAX, |limit| limit as usize),
                    locks: *locks,
                };
                (prefix + 2 * usize::from(*is_range), &columns[..], Action::Scan(scan, *fold))
            }
            Access::Insert => (table.layout.places.len(), &[][..], Action::Insert),
            Access::Modify { prefix, set, returns } => {
                let mut next = *prefix;
                let changes = set.iter().map(|assign| {
                    let argument = assign.change.takes_argument().then_some(next);
                    next += usize::from(argument.is_some());
                    ColumnChange { column: assign.column, change: assign.change, argument }
                });
                let changes = changes.collect();
                let path = Scan { locks: true, ..path(*prefix, false) };
                (next, &returns[..], Action::Modify { path, changes })
            }
            Access::Delete => (key, &[][..], Action::Delete),
            Access::CountBelow(join) => {
                let other = tables.get(join.other).ok_or("there is no such other table")?;
                let (path, other) = (path(join.prefix, true), (join.other as u8, other.clone()));
                (join.prefix + 3, &[][..], Action::Count { path, other, join: join.clone() })
            }
            Access::Statement { .. } => return Err("it is a statement for servers".to_owned()),
        };
        Ok(Self {
            name: op.name,
            number: op.table as u8,
            table: Arc::clone(table),
            stride,
            width: op.width(),
            wanted: Projection::new(&table.layout, columns),
            action,
        })
    }
}

/// The columns of an order.
fn fields(table: &SharedTable, index: Option<usize>) -> Vec<PathField> {
    let (fields, columns) = match index {
        None => (&table.layout.key, &table.layout.table.key),
        Some(nth) => (&table.indexes[nth].fields, &table.indexes[nth].columns),
    };
    let both = fields.iter().zip(columns);
    both.map(|(field, column)| PathField { field: *field, column: *column }).collect()
}
