//! Tables of the open engine, with what it takes to read, write and load their rows, and what else
//! the engine keeps of each.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use iostrata_database::target::{
    Index as IndexDeclaration, Rows, Table as TableDeclaration, Value,
};
use iostrata_engine::{Direction, Engine, EngineError, Index, Table};

use crate::error::OpError;
use crate::key::KeyField;
use crate::layout::{Layout, Place};

/// A table, as the sessions of a target share it.
#[derive(Debug)]
pub struct SharedTable {
    /// Where columns stand.
    pub layout: Layout,
    /// The secondary keys of its indexes, in the order of their declaration.
    pub indexes: Vec<Arc<IndexKey>>,
    /// The greatest number that a row got: as its hidden key, or counted up.
    last_number: AtomicI64,
}

/// What makes the secondary key of a row.
#[derive(Debug)]
pub struct IndexKey {
    layout: Layout,
    /// Its columns.
    pub columns: Vec<usize>,
    /// The columns as they stand in the key.
    pub fields: Vec<KeyField>,
}

impl IndexKey {
    /// Of an index of a table that is laid out so.
    pub fn new(layout: &Layout, index: &IndexDeclaration) -> Self {
        let columns = &layout.table.columns;
        let field =
            |column: &usize| KeyField::new(columns[*column].of, columns[*column].is_nullable);
        let fields = index.columns.iter().map(field).collect();
        Self { layout: layout.clone(), columns: index.columns.clone(), fields }
    }

    /// Adds the secondary key of a row. False for a damaged row, which then has no entry.
    pub fn extract(&self, key: &[u8], row: &[u8], secondary: &mut Vec<u8>) -> bool {
        self.columns.iter().zip(&self.fields).all(|(column, field)| {
            let mut text = Vec::new();
            let value = self.layout.read(self.layout.places[*column], (key, row), &mut text);
            value.is_some_and(|value| field.push(value, secondary).is_ok())
        })
    }
}

impl SharedTable {
    /// Of a table as it is declared.
    pub fn new(table: &TableDeclaration) -> Self {
        let layout = Layout::new(table);
        let index = |index| Arc::new(IndexKey::new(&layout, index));
        let indexes = table.indexes.iter().map(index).collect();
        Self { layout, indexes, last_number: AtomicI64::new(0) }
    }

    /// Whether its rows get numbers.
    fn is_counted(&self) -> bool {
        let table = &self.layout.table;
        self.layout.has_hidden_key() || (table.auto_increment && table.key.len() == 1)
    }

    /// Continues numbering behind the existing rows.
    ///
    /// # Errors
    /// The error of reading.
    pub(crate) fn go_on_counting(&self, table: &Table) -> Result<(), EngineError> {
        if !self.is_counted() {
            return Ok(());
        }
        let mut last = table.cursor(.., Direction::Backward);
        self.count_from(last.next_row()?.map(|(key, _row)| key));
        Ok(())
    }

    /// Continues numbering behind the row with the greatest key, if any.
    pub fn count_from(&self, last: Option<&[u8]>) {
        let number = last.and_then(|key| self.number_of(key)).unwrap_or(0);
        self.last_number.store(number.max(0), Ordering::Relaxed);
    }

    /// The number that a key is, or begins with.
    fn number_of(&self, key: &[u8]) -> Option<i64> {
        let field = self.layout.key.first().copied().unwrap_or_else(hidden_field);
        match field.read(key, &mut Vec::new())?.0 {
            Value::Int(number) => Some(number),
            Value::Null | Value::Text(_) => None,
        }
    }

    /// The next number.
    ///
    /// # Errors
    /// [`OpError::NoNumber`].
    fn next_number(&self) -> Result<i64, OpError> {
        let last = self.last_number.fetch_add(1, Ordering::Relaxed);
        last.checked_add(1)
            .ok_or_else(|| OpError::NoNumber { table: self.layout.table.name.clone() })
    }

    /// Puts the key of a new row into `key`.
    ///
    /// # Errors
    /// A value that does not go into its column.
    #[inline]
    pub fn new_key<'v>(
        &self,
        values: impl Fn(usize) -> Value<'v>,
        key: &mut Vec<u8>,
    ) -> Result<(), OpError> {
        key.clear();
        if !self.is_counted() {
            return Ok(self.layout.push_key(values, key)?);
        }
        if self.layout.has_hidden_key() {
            let number = self.next_number()?;
            // Eight bytes hold every number.
            let _always_fits = hidden_field().push(Value::Int(number), key);
            return Ok(());
        }
        match values(self.layout.table.key[0]) {
            Value::Null => {
                let number = self.next_number()?;
                Ok(self.layout.push_key(|_| Value::Int(number), key)?)
            }
            value => {
                if let Value::Int(number) = value {
                    self.last_number.fetch_max(number, Ordering::Relaxed);
                }
                Ok(self.layout.push_key(|_| value, key)?)
            }
        }
    }
}

/// The number of a row without a key.
fn hidden_field() -> KeyField {
    KeyField::new(iostrata_database::target::ColumnType::Int { bytes: 8 }, false)
}

/// A table as one session uses it.
#[derive(Debug)]
pub(crate) struct OpenTable {
    pub shared: Arc<SharedTable>,
    pub table: Table,
}

impl OpenTable {
    /// An index by its number in the declaration, if it is there.
    pub fn index(&self, number: usize) -> Option<Index> {
        self.table.index(&self.shared.layout.table.indexes[number].name)
    }

    /// A row that is not what it should be.
    pub fn damaged(&self, key: &[u8]) -> OpError {
        OpError::damaged(&self.shared.layout.table.name, key)
    }
}

/// The wanted columns of a row.
#[derive(Clone, Debug)]
pub struct Projection {
    places: Box<[Place]>,
}

impl Projection {
    /// These columns.
    pub fn new(layout: &Layout, columns: &[usize]) -> Self {
        Self { places: columns.iter().map(|column| layout.places[*column]).collect() }
    }

    /// Adds the wanted columns; none of a damaged row. `text` is memory for characters of the key.
    #[inline]
    pub fn push(
        &self,
        layout: &Layout,
        row: (&[u8], &[u8]),
        (text, out): (&mut Vec<u8>, &mut Rows),
    ) -> Option<()> {
        for place in &self.places {
            out.push(layout.read(*place, row, text)?);
        }
        Some(())
    }
}

// Rows of a load, encoded as the engine takes them.

/// Rows that are on their way into a table.
#[derive(Debug, Default)]
pub(crate) struct BulkRows {
    /// Why the rows ended before their end.
    pub failed: Option<OpError>,
    rows: Rows,
    next: usize,
}

/// Keys and values of the rows that `next` gives, until it gives none or one cannot be encoded.
pub(crate) fn encode_rows<'r>(
    shared: &'r SharedTable,
    next: &'r mut dyn FnMut(&mut Rows),
    of: &'r mut BulkRows,
) -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> + 'r {
    of.rows.clear(shared.layout.places.len());
    let mut value_bytes = 0;
    std::iter::from_fn(move || {
        if of.next == of.rows.len() {
            of.next = 0;
            next(&mut of.rows);
            if of.rows.is_empty() {
                return None;
            }
        }
        let row = of.next;
        of.next += 1;
        let (mut key, mut value) = (Vec::with_capacity(16), Vec::with_capacity(value_bytes));
        let rows = &of.rows;
        let encoded = shared
            .new_key(|column| rows.get(row, column), &mut key)
            .and_then(|()| Ok(shared.layout.encode(|column| rows.get(row, column), &mut value)?));
        value_bytes = value_bytes.max(value.len());
        match encoded {
            Ok(()) => Some((key, value)),
            Err(error) => {
                of.failed = Some(error);
                None
            }
        }
    })
}

// What the engine keeps of each table besides its rows: how they are laid out, and whether all of
// them exist.
//
// Invariant: a table is used only by the definition that it was made with, and only when it was
// loaded to its end. The definition is durable before the table is.

/// The engine's table of definitions, by the names of tables.
const DEFINITIONS: &str = ".definitions";

const LOADING: &[u8] = b"loading ";
const WHOLE: &[u8] = b"whole ";

/// How a table is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TableState {
    Absent,
    /// There, and laid out otherwise than is declared.
    Other,
    /// A load was begun and did not end.
    Loading,
    Whole,
}

/// Looks how a table is.
///
/// # Errors
/// The error of reading.
pub(crate) fn state(engine: &Engine, table: &TableDeclaration) -> Result<TableState, EngineError> {
    if engine.table(&table.name)?.is_none() {
        return Ok(TableState::Absent);
    }
    let known = engine.table(DEFINITIONS)?.map(|all| all.get(table.name.as_bytes())).transpose()?;
    let Some(known) = known.flatten() else { return Ok(TableState::Other) };
    let text = text(table);
    Ok(match (known.strip_prefix(WHOLE), known.strip_prefix(LOADING)) {
        (Some(known), _) if known == text.as_bytes() => TableState::Whole,
        (_, Some(_)) => TableState::Loading,
        _ => TableState::Other,
    })
}

/// Keeps the definition of a table, durably.
///
/// # Errors
/// The error of writing.
pub(crate) fn keep(
    engine: &Engine,
    table: &TableDeclaration,
    is_whole: bool,
) -> Result<(), EngineError> {
    let definitions = engine.open_table(DEFINITIONS)?;
    let value = [if is_whole { WHOLE } else { LOADING }, text(table).as_bytes()].concat();
    let mut batch = engine.batch();
    batch.put(&definitions, table.name.as_bytes(), &value)?;
    batch.commit()
}

/// Forgets the definition of a table that is no more.
///
/// # Errors
/// The error of writing.
pub(crate) fn forget(engine: &Engine, table: &TableDeclaration) -> Result<(), EngineError> {
    let Some(definitions) = engine.table(DEFINITIONS)? else { return Ok(()) };
    let mut batch = engine.batch();
    batch.delete(&definitions, table.name.as_bytes())?;
    batch.commit()
}

/// The definition as text: what decides how rows are laid out. Of indexes too, whose entries must
/// be those of their columns.
fn text(table: &TableDeclaration) -> String {
    let mut text = format!("1 key {:?}", table.key);
    for column in &table.columns {
        let null = if column.is_nullable { " null" } else { "" };
        let _never_fails = write!(text, "; {} {:?}{null}", column.name, column.of);
    }
    for index in &table.indexes {
        let _never_fails = write!(text, "; index {} {:?}", index.name, index.columns);
    }
    text
}
