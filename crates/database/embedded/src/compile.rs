//! Operations made into plain data, once for each session, and what they run in.
//!
//! Invariant: what an operation names is there: its table, columns, index and other table. What
//! cannot be done is refused here, so that running an operation only meets wrong values.

use std::sync::Arc;

use iostrata_database::target::{Access, Assign, Change, Fold, JoinBelow, Op, Order, Rows, Value};
use iostrata_engine::{Direction, Index, Transaction};

use crate::error::OpError;
use crate::key::{KeyField, KeyMisfit};
use crate::layout::{ColumnChange, Layout, PathField, Place};
use crate::table::{IndexKey, OpenTable, Projection};

/// An operation as it is run.
#[derive(Debug)]
pub(crate) struct CompiledOp {
    pub name: &'static str,
    pub table: Arc<OpenTable>,
    /// Arguments of each row.
    pub args: usize,
    /// Values that each row gives.
    pub width: usize,
    pub action: OpAction,
}

/// What an operation does.
#[derive(Debug)]
pub(crate) enum OpAction {
    Get { wanted: Projection, locks: bool },
    Scan(ScanAction),
    Insert,
    Modify(ModifyAction),
    Delete,
    CountBelow(CountAction),
}

impl OpAction {
    /// Whether it writes.
    pub fn writes(&self) -> bool {
        matches!(self, Self::Insert | Self::Modify(_) | Self::Delete)
    }
}

/// Rows in order.
#[derive(Debug)]
pub(crate) struct ScanAction {
    pub path: ScanPath,
    pub direction: Direction,
    pub limit: usize,
    pub locks: bool,
    pub wanted: Projection,
    pub columns: Vec<usize>,
    pub fold: Fold,
}

/// By what order rows are scanned, and between what.
#[derive(Debug)]
pub(crate) struct ScanPath {
    /// The key's order without one.
    pub index: Option<(Index, Arc<IndexKey>)>,
    /// The columns whose values are given.
    pub prefix: Box<[PathField]>,
    /// The column that has bounds.
    pub range: Option<PathField>,
}

/// Changes of rows.
#[derive(Debug)]
pub(crate) struct ModifyAction {
    pub prefix: Box<[PathField]>,
    /// Whether the prefix is the whole key.
    pub is_whole: bool,
    pub changes: Box<[ColumnChange]>,
    pub returns: Projection,
}

/// See [`Access::CountBelow`].
#[derive(Debug)]
pub(crate) struct CountAction {
    pub path: ScanPath,
    pub other: Arc<OpenTable>,
    /// For each column of the other table's key where the scanned row has it.
    pub leads_by: Box<[(KeyField, Place)]>,
    pub tested: Place,
}

/// Whether an operation reads or writes a table.
pub(crate) fn needs(op: &Op, table: usize) -> bool {
    let is_other = matches!(&op.access, Access::CountBelow(join) if join.other == table);
    op.table == table || is_other
}

/// Compiles an operation. `tables` are those of the schema, by number, as far as it needs them.
///
/// # Errors
/// Why it cannot be done.
pub(crate) fn compile(op: &Op, tables: &[Option<Arc<OpenTable>>]) -> Result<CompiledOp, String> {
    let table = table_of(tables, op.table)?;
    let layout = &table.shared.layout;
    let key = layout.key.len();
    let (args, action) = match &op.access {
        Access::Get { columns, locks } => {
            needs_key(table)?;
            (key, OpAction::Get { wanted: projection(table, columns)?, locks: *locks })
        }
        Access::Scan { index, prefix, is_range, order, limit, locks, columns, fold } => {
            let path = path(table, *index, *prefix, *is_range)?;
            check_fold(table, *fold, columns)?;
            let scan = ScanAction {
                path,
                direction: match order {
                    Order::Ascending | Order::Any => Direction::Forward,
                    Order::Descending => Direction::Backward,
                },
                limit: limit.map_or(usize::MAX, |limit| limit as usize),
                locks: *locks,
                wanted: projection(table, columns)?,
                columns: columns.clone(),
                fold: *fold,
            };
            (scan.path.args(), OpAction::Scan(scan))
        }
        Access::Insert => (layout.places.len(), OpAction::Insert),
        Access::Modify { prefix, set, returns } => {
            let modify = modify(table, *prefix, set, returns)?;
            let taken = modify.changes.iter().filter(|change| change.argument.is_some());
            (prefix + taken.count(), OpAction::Modify(modify))
        }
        Access::Delete => {
            needs_key(table)?;
            (key, OpAction::Delete)
        }
        Access::CountBelow(join) => {
            let count = count(table, join, tables)?;
            (count.path.args() + 1, OpAction::CountBelow(count))
        }
        Access::Statement { .. } => {
            return Err("it is a statement of SQL, and the engine has no SQL".to_owned());
        }
    };
    let table = Arc::clone(table);
    Ok(CompiledOp { name: op.name, table, args, width: op.width(), action })
}

impl ScanPath {
    /// Arguments: the prefix, then both bounds.
    pub fn args(&self) -> usize {
        self.prefix.len() + 2 * usize::from(self.range.is_some())
    }
}

fn table_of(tables: &[Option<Arc<OpenTable>>], number: usize) -> Result<&Arc<OpenTable>, String> {
    let table = tables.get(number).and_then(Option::as_ref);
    table.ok_or_else(|| format!("there is no table {number}"))
}

fn needs_key(table: &OpenTable) -> Result<(), String> {
    if table.shared.layout.has_hidden_key() {
        return Err(format!("table {} has no key to name rows by", table.shared.layout.table.name));
    }
    Ok(())
}

fn check_column(table: &OpenTable, column: usize) -> Result<usize, String> {
    let layout = &table.shared.layout;
    if column < layout.places.len() {
        return Ok(column);
    }
    Err(format!("table {} has no column {column}", layout.table.name))
}

fn projection(table: &OpenTable, columns: &[usize]) -> Result<Projection, String> {
    columns.iter().try_for_each(|column| check_column(table, *column).map(drop))?;
    Ok(Projection::new(&table.shared.layout, columns))
}

fn path(
    table: &OpenTable,
    index: Option<usize>,
    prefix: usize,
    is_range: bool,
) -> Result<ScanPath, String> {
    let shared = &table.shared;
    let name = &shared.layout.table.name;
    let (fields, index) = match index {
        None => (key_fields(table), None),
        Some(number) => {
            let missing = || format!("table {name} has no index {number}");
            let key = shared.indexes.get(number).ok_or_else(missing)?;
            let Some(index) = table.index(number) else {
                let index = &shared.layout.table.indexes[number].name;
                return Err(format!("index {index} of table {name} has not been made yet"));
            };
            let fields = key.fields.iter().zip(&key.columns);
            let fields = fields.map(|(field, column)| PathField { field: *field, column: *column });
            (fields.collect(), Some((index, Arc::clone(key))))
        }
    };
    if prefix + usize::from(is_range) > fields.len() {
        return Err(format!(
            "it gives values for {} columns of an order of {} in table {name}",
            prefix + usize::from(is_range),
            fields.len()
        ));
    }
    let range = is_range.then(|| fields[prefix]);
    Ok(ScanPath { index, prefix: fields[..prefix].into(), range })
}

fn key_fields(table: &OpenTable) -> Vec<PathField> {
    let layout = &table.shared.layout;
    let columns = layout.key.iter().zip(&layout.table.key);
    columns.map(|(field, column)| PathField { field: *field, column: *column }).collect()
}

fn check_fold(table: &OpenTable, fold: Fold, columns: &[usize]) -> Result<(), String> {
    match (fold, columns) {
        (Fold::Rows, _) => Ok(()),
        (Fold::Sum, [column]) => {
            let column = check_column(table, *column)?;
            match table.shared.layout.table.columns[column].of.is_text() {
                false => Ok(()),
                true => Err("characters have no sum".to_owned()),
            }
        }
        (Fold::Sorted | Fold::Distinct, [_]) => Ok(()),
        (Fold::Sum | Fold::Sorted | Fold::Distinct, columns) => Err(format!(
            "a scan that sums up or sorts gives one column, and {} are wanted",
            columns.len()
        )),
    }
}

fn modify(
    table: &OpenTable,
    prefix: usize,
    set: &[Assign],
    returns: &[usize],
) -> Result<ModifyAction, String> {
    let layout = &table.shared.layout;
    let fields = key_fields(table);
    if prefix > fields.len() {
        let name = &layout.table.name;
        return Err(format!("it gives {prefix} values for the key of {name}, of {}", fields.len()));
    }
    let mut next = prefix;
    let mut changes = Vec::new();
    for assign in set {
        let column = check_column(table, assign.column)?;
        check_change(table, column, assign.change)?;
        let argument = assign.change.takes_argument().then(|| {
            next += 1;
            next - 1
        });
        changes.push(ColumnChange { column, change: assign.change, argument });
    }
    Ok(ModifyAction {
        is_whole: prefix == fields.len() && !layout.has_hidden_key(),
        prefix: fields[..prefix].into(),
        changes: changes.into(),
        returns: projection(table, returns)?,
    })
}

fn check_change(table: &OpenTable, column: usize, change: Change) -> Result<(), String> {
    let layout = &table.shared.layout;
    let name = layout.column_name(column);
    let is_text = layout.table.columns[column].of.is_text();
    if matches!(layout.places[column], Place::Key { .. }) {
        return Err(format!(
            "column {name} is of the key, which does not change: delete the row and insert it"
        ));
    }
    let is_for_text = match change {
        Change::Set => is_text,
        Change::Prepend { .. } => true,
        Change::Add | Change::AddConst(_) | Change::SubtractRefill { .. } => false,
    };
    if is_text == is_for_text {
        return Ok(());
    }
    Err(format!("{change:?} is nothing for column {name}"))
}

fn count(
    table: &OpenTable,
    join: &JoinBelow,
    tables: &[Option<Arc<OpenTable>>],
) -> Result<CountAction, String> {
    let path = path(table, None, join.prefix, true)?;
    let other = table_of(tables, join.other)?;
    needs_key(other)?;
    let (mine, theirs) = (&table.shared.layout, &other.shared.layout);
    if join.leads_by.len() != theirs.key.len() {
        return Err(format!(
            "{} columns lead to table {}, whose key has {}",
            join.leads_by.len(),
            theirs.table.name,
            theirs.key.len()
        ));
    }
    let tested = theirs.places[check_column(other, join.tested)?];
    if theirs.table.columns[join.tested].of.is_text() {
        return Err(format!("column {} holds no numbers", theirs.column_name(join.tested)));
    }
    let mut leads_by = Vec::new();
    for (field, column) in theirs.key.iter().zip(&join.leads_by) {
        leads_by.push((*field, mine.places[check_column(table, *column)?]));
    }
    Ok(CountAction { path, other: Arc::clone(other), leads_by: leads_by.into(), tested })
}

// What operations run in: the transaction, memory that is used again, and how arguments become
// keys.

/// Memory that operations of one session use again.
#[derive(Debug, Default)]
pub(crate) struct OpBuffers {
    pub key: Vec<u8>,
    pub high: Vec<u8>,
    pub row: Vec<u8>,
    /// Characters of a key.
    pub text: Vec<u8>,
    pub keys: KeyList,
    /// Rows that are still to be folded, and their order.
    pub rows: Rows,
    pub order: Vec<u32>,
}

/// Keys one behind the other.
#[derive(Debug, Default)]
pub(crate) struct KeyList {
    bytes: Vec<u8>,
    ends: Vec<(u32, u32)>,
}

impl KeyList {
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn get(&self, at: usize) -> &[u8] {
        let (start, end) = self.ends[at];
        &self.bytes[start as usize..end as usize]
    }

    pub fn push(&mut self, key: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.end();
    }

    /// Adds a key that is written by `write`; nothing when that fails.
    pub fn push_with<E>(
        &mut self,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let before = self.bytes.len();
        let written = write(&mut self.bytes);
        match written {
            Ok(()) => self.end(),
            Err(_) => self.bytes.truncate(before),
        }
        written
    }

    fn end(&mut self) {
        let start = self.ends.last().map_or(0, |(_, end)| *end);
        self.ends.push((start, self.bytes.len() as u32));
    }

    /// In order, each once. Nothing is added afterwards.
    pub fn sort(&mut self) {
        let Self { bytes, ends } = self;
        let key = |range: &(u32, u32)| &bytes[range.0 as usize..range.1 as usize];
        ends.sort_unstable_by(|a, b| key(a).cmp(key(b)));
        ends.dedup_by(|a, b| key(a) == key(b));
    }
}

/// What an operation runs in.
pub(crate) struct OpRun<'s> {
    pub transaction: &'s mut Transaction,
    pub buffers: &'s mut OpBuffers,
    /// The row that an entry of an index leads to may be another than the one it was made for.
    pub rereads: bool,
}

/// The only row of arguments.
pub(crate) fn one_row<'v>(args: &'v [Value<'v>], width: usize) -> Result<&'v [Value<'v>], OpError> {
    if args.len() != width {
        return Err(OpError::Arguments { wanted: width, found: args.len() });
    }
    Ok(args)
}

/// Adds values of the first columns of an order. An error without text: no row can have them.
pub(crate) fn push_path(
    layout: &Layout,
    fields: &[PathField],
    args: &[Value<'_>],
    key: &mut Vec<u8>,
) -> Result<(), Option<OpError>> {
    for (field, value) in fields.iter().zip(args) {
        push_value(layout, *field, *value, key)?;
    }
    Ok(())
}

/// Adds one value. An error without text: no row can have it.
#[inline]
pub(crate) fn push_value(
    layout: &Layout,
    of: PathField,
    value: Value<'_>,
    key: &mut Vec<u8>,
) -> Result<(), Option<OpError>> {
    // Nothing equals nothing, in SQL.
    if value == Value::Null {
        return Err(None);
    }
    of.field.push(value, key).map_err(|misfit| match misfit {
        KeyMisfit::Null | KeyMisfit::Below | KeyMisfit::Above => None,
        KeyMisfit::Kind => Some(wrong_kind(layout, of.column, value)),
    })
}

/// An argument of the wrong kind for a column.
pub(crate) fn wrong_kind(layout: &Layout, column: usize, value: Value<'_>) -> OpError {
    OpError::Value(layout.wrong_kind(column, value))
}
