//! Setting indexes beside their tables.

use std::ops::Bound;
use std::sync::Arc;

use crate::check::report::CheckReport;
use crate::cursor::TreeCursor;
use crate::error::EngineError;
use crate::pages::Pages;
use crate::read::read_row;
use crate::table_index::TableIndex;
use crate::tree::Tree;
use crate::tree::descend::Direction;
use crate::visible::NEWEST;

/// Every row must have the entry that the index's function gives it, and no entry may be left.
/// What is not known cannot be compared.
pub(super) fn compare(
    pages: &Pages,
    table: &Arc<Tree>,
    index: &TableIndex,
    report: &mut CheckReport,
) -> Result<(), EngineError> {
    if index.extract.is_none() {
        return Ok(());
    }
    let (root, name) = (index.tree.root, &index.tree.name);
    let all = || (Bound::Unbounded, Bound::Unbounded);
    let mut wanted = 0_u64;
    let mut rows = TreeCursor::new(pages, table, all(), (Direction::Forward, NEWEST));
    while let Some((key, value)) = rows.next_row()? {
        let Some(entry) = index.entry(key, value)? else { continue };
        wanted += 1;
        if read_row(pages, &index.tree, &entry, NEWEST, |_value| ())?.0.is_none() {
            let what = format!("index {name} has no entry for the row {}", key.escape_ascii());
            report.problem(root, what);
        }
    }
    let mut found = 0_u64;
    let mut entries = TreeCursor::new(pages, &index.tree, all(), (Direction::Forward, NEWEST));
    while entries.next_row()?.is_some() {
        found += 1;
    }
    if found != wanted {
        let what = format!("index {name} has {found} entries, its table needs {wanted}");
        report.problem(root, what);
    }
    Ok(())
}
