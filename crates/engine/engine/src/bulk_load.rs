//! Filling a table with sorted rows.

use std::sync::Arc;

use iostrata_innodb::Counter;

use crate::batch::Batch;
use crate::error::{EngineError, RequestError, TableError};
use crate::read::NEWEST;
use crate::table::{Table, check_row};
use crate::tree::Filling;
use crate::tree::descend::Direction;

impl Table {
    /// Fills the empty table with rows whose keys rise. Gives the number of rows. Durable when it
    /// returns; after a crash before that, a prefix of the rows may be there. Nobody else may
    /// write to the table meanwhile.
    ///
    /// # Errors
    /// [`TableError::NotEmpty`], [`RequestError::NotSorted`], a row beyond the limits, no space.
    pub fn bulk_load<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        rows: impl IntoIterator<Item = (K, V)>,
    ) -> Result<u64, EngineError> {
        self.tree().check_indexes(self.indexes().len())?;
        if self.cursor(.., Direction::Forward).next_row()?.is_some() {
            return Err(EngineError::Table(TableError::NotEmpty { name: self.name().to_owned() }));
        }
        let (pages, tree) = (&**self.pages(), &**self.tree());
        // Rows that were deleted may have left leaves, each for some of the keys, and tombstones:
        // such a tree is filled in the ordinary way, as is one whose rows have entries elsewhere,
        // or where a snapshot is open that must not see them.
        let has_readers = pages.storage.versions.registry.is_any_below(NEWEST);
        let is_bare = self.indexes().is_empty() && !has_readers && tree.is_bare(pages)?;
        let fill_pct = pages.storage.settings.load().fill_factor as usize;
        let mut filling = Filling::new(pages, tree, fill_pct);
        let mut last: Vec<u8> = Vec::new();
        let mut loaded = 0;
        for (key, value) in rows {
            let (key, value) = (key.as_ref(), value.as_ref());
            check_row(pages, key, value.len())?;
            if loaded > 0 && key <= last.as_slice() {
                return Err(EngineError::Request(RequestError::NotSorted { row: loaded }));
            }
            if !is_bare {
                let mut batch = Batch::new(Arc::clone(self.pages()));
                batch.put(self, key, value)?;
                let _made_durable_below = batch.commit_async()?;
            } else if !filling.add(key, value) {
                self.append_leaf(&mut filling)?;
                assert!(filling.add(key, value), "a row within the limits fits an empty page");
            }
            last.clear();
            last.extend_from_slice(key);
            loaded += 1;
        }
        if !filling.is_empty() {
            self.append_leaf(&mut filling)?;
        }
        if is_bare {
            pages.storage.counts.add(Counter::RowsInserted, loaded);
        }
        pages.storage.redo.make_durable(pages.storage.redo.lsn())?;
        Ok(loaded)
    }

    fn append_leaf(&self, filling: &mut Filling) -> Result<(), EngineError> {
        if self.tree().append_leaf(self.pages(), filling)? {
            return Ok(());
        }
        Err(EngineError::Table(TableError::NotEmpty { name: self.name().to_owned() }))
    }
}
