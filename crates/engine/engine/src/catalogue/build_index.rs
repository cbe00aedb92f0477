//! Building an index from the rows that are there.
//!
//! Invariant: while an index is being built its row in the catalogue says so; a crash leaves one
//! that is begun anew at the next opening.

use std::ops::Bound;
use std::sync::Arc;

use crate::cursor::TreeCursor;
use crate::error::EngineError;
use crate::pages::Pages;
use crate::table::Table;
use crate::table_index::TableIndex;
use crate::tree::Tree;
use crate::tree::descend::Direction;
use crate::visible::NEWEST;

/// Fills an empty index with the entries of a table that nobody writes to. All entries are held in
/// memory, since they have to be sorted.
pub(super) fn build(
    pages: &Arc<Pages>,
    table: &Arc<Tree>,
    index: &TableIndex,
) -> Result<(), EngineError> {
    let limit = pages.storage.page_size.key_bytes_max();
    let mut entries = Vec::new();
    let all = (Bound::Unbounded, Bound::Unbounded);
    let mut rows = TreeCursor::new(pages, table, all, (Direction::Forward, NEWEST));
    while let Some((key, value)) = rows.next_row()? {
        entries.extend(index.new_entry(limit, key, value)?);
    }
    entries.sort_unstable();
    let filled = Table::new(Arc::clone(pages), Arc::clone(&index.tree), Arc::default());
    filled.bulk_load(entries.iter().map(|entry| (entry, [])))?;
    Ok(())
}
