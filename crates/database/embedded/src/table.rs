//! Tables of the open engine, with what it takes to read and write their rows.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use iostrata_database::target::{Index as IndexDeclaration, Rows, Value};
use iostrata_engine::{Direction, EngineError, Index, Table};

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
    pub fn new(table: &iostrata_database::target::Table) -> Self {
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

    /// Goes on with the numbers behind those of the rows that are there.
    ///
    /// # Errors
    /// What reading said.
    pub(crate) fn go_on_counting(&self, table: &Table) -> Result<(), EngineError> {
        if !self.is_counted() {
            return Ok(());
        }
        let mut last = table.cursor(.., Direction::Backward);
        self.count_from(last.next_row()?.map(|(key, _row)| key));
        Ok(())
    }

    /// Goes on with the numbers behind that of the row with the greatest key, if there is a row.
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
