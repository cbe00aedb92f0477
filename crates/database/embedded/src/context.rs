//! What operations run in: the transaction, memory that is used again, and how arguments become
//! keys.

use iostrata_database::target::{Rows, Value};
use iostrata_engine::Transaction;

use crate::error::OpError;
use crate::key::KeyMisfit;
use crate::layout::{Layout, PathField};

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
