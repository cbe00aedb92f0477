//! Rows of a load, encoded as the engine takes them.

use iostrata_database::target::Rows;

use crate::error::OpError;
use crate::table::SharedTable;

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
