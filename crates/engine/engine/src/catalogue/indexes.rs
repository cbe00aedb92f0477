//! Joining tables and their indexes when an engine is opened.
//!
//! Invariant: a table that can be reached has all its indexes, each built. What a crash left
//! unbuilt, or without its table, is dropped.

use std::sync::Arc;

use crate::batch::Batch;
use crate::catalogue::build_index::build;
use crate::catalogue::entry::{Entry, IndexEntry};
use crate::catalogue::{Catalogue, KnownTable};
use crate::error::{EngineError, TableError};
use crate::table_index::{Definition, TableIndex};
use crate::tree::Tree;

impl Definition {
    /// Under this name it is in the catalogue.
    pub(super) fn full_name(&self) -> String {
        format!("{}.{}", self.table, self.name)
    }

    pub(super) fn entry(&self, is_built: bool) -> IndexEntry {
        IndexEntry { table_bytes: self.table.len() as u16, is_built }
    }

    pub(super) fn index(&self, tree: Arc<Tree>) -> TableIndex {
        let extract = Some(Arc::clone(&self.extract));
        TableIndex { name: self.name.clone(), tree, extract }
    }
}

impl Catalogue {
    /// Joins the indexes that were found with their tables, and makes those that are new, from the
    /// rows that are there. Nobody reads or writes yet.
    ///
    /// # Errors
    /// What reading or writing said; a name that cannot be kept.
    pub fn join_indexes(&self, definitions: Vec<Definition>) -> Result<(), EngineError> {
        let _alone = self.one_at_a_time();
        let found = self.lock().found.clone();
        for (full_name, (entry, tree)) in found {
            let (table, name) =
                full_name.split_at_checked(entry.table_bytes.into()).unwrap_or_default();
            let name = name.strip_prefix('.').unwrap_or(name);
            if !entry.is_built || !self.lock().tables.contains_key(table) {
                self.drop_trees(vec![tree])?;
                continue;
            }
            let definition = definitions.iter().find(|of| of.table == table && of.name == name);
            let extract = definition.map(|definition| Arc::clone(&definition.extract));
            self.join(table, TableIndex { name: name.to_owned(), tree, extract });
            self.lock().found.remove(&full_name);
        }
        for definition in &definitions {
            let table = self.lock().tables.get(&definition.table).cloned();
            if let Some(KnownTable { tree, indexes }) = table
                && !indexes.iter().any(|index| index.name == definition.name)
            {
                self.make_index(definition, &tree)?;
            }
        }
        let _once = self.definitions.set(definitions);
        Ok(())
    }

    fn make_index(&self, definition: &Definition, table: &Arc<Tree>) -> Result<(), EngineError> {
        let full_name = definition.full_name();
        let tree = self.make(&full_name, Some(definition.entry(false)))?;
        let index = definition.index(tree);
        build(&self.pages, table, &index)?;
        self.mark_built(&full_name)?;
        self.join(&definition.table, index);
        Ok(())
    }

    /// Notes that an index holds everything; durable when it returns.
    fn mark_built(&self, full_name: &str) -> Result<(), EngineError> {
        let catalogue = self.itself();
        let row = catalogue.get(full_name.as_bytes())?;
        let entry = row.and_then(|row| Entry::from_bytes(&row).ok());
        let Some((mut entry, index)) = entry.and_then(|entry| Some((entry.clone(), entry.index?)))
        else {
            return Err(EngineError::Table(TableError::NotFound { name: full_name.to_owned() }));
        };
        entry.index = Some(IndexEntry { is_built: true, ..index });
        let mut batch = Batch::new(Arc::clone(&self.pages));
        batch.put(&catalogue, full_name.as_bytes(), &entry.to_bytes())?;
        batch.commit()?.wait()
    }

    fn join(&self, table: &str, index: TableIndex) {
        if let Some(table) = self.lock().tables.get_mut(table) {
            Arc::make_mut(&mut table.indexes).push(Arc::new(index));
        }
    }

    /// What a crash while an index is built leaves.
    #[cfg(test)]
    pub fn leave_unbuilt(&self, table: &str, name: &str) -> Result<(), EngineError> {
        let table_bytes = table.len() as u16;
        let entry = IndexEntry { table_bytes, is_built: false };
        self.make(&format!("{table}.{name}"), Some(entry)).map(drop)
    }
}
