//! Indexes: joined with their tables when an engine is opened, and built from the rows that are
//! there.
//!
//! Invariant: a table that can be reached has all its indexes, each built. While one is being built
//! its row in the catalogue says so; what a crash left unbuilt, or without its table, is dropped.

use std::ops::Bound;
use std::sync::Arc;

use crate::batch::Batch;
use crate::catalogue::{Catalogue, Entry, IndexField, KnownTable, check_name};
use crate::cursor::TreeCursor;
use crate::error::{EngineError, TableError};
use crate::pages::Pages;
use crate::read::NEWEST;
use crate::sync::locked;
use crate::table::Table;
use crate::table_index::{IndexDefinition, TableIndex};
use crate::tree::Tree;
use crate::tree::descend::Direction;

impl IndexDefinition {
    /// Under this name it is in the catalogue.
    pub(super) fn full_name(&self) -> String {
        format!("{}.{}", self.table, self.name)
    }

    pub(super) fn field(&self, is_built: bool) -> IndexField {
        IndexField { table_bytes: self.table.len() as u16, is_built, version: self.version }
    }

    pub(super) fn index(&self, pages: &Arc<Pages>, tree: Arc<Tree>) -> TableIndex {
        let (pages, extract) = (Arc::clone(pages), Some(Arc::clone(&self.extract)));
        TableIndex { name: self.name.clone(), pages, tree, made_at: 0, extract }
    }
}

/// A table that is read-only while an index of it is made. Opened to writers again when
/// nothing comes of that, also by a panic of the index's function.
struct WritesClosed<'m> {
    pages: &'m Pages,
    tree: &'m Tree,
    indexes: usize,
}

impl Drop for WritesClosed<'_> {
    fn drop(&mut self) {
        self.tree.set_indexes(self.pages, self.indexes);
    }
}

impl Catalogue {
    /// Joins the indexes that were found with their tables, and makes those that are new, from the
    /// rows that are there. Nobody reads or writes yet.
    pub fn join_indexes(&self, definitions: Vec<IndexDefinition>) -> Result<(), EngineError> {
        let _alone = self.one_at_a_time()?;
        self.check(&definitions)?;
        let found = locked(&self.known).found.clone();
        for (full_name, (field, tree)) in found {
            let (table, name) =
                full_name.split_at_checked(field.table_bytes.into()).unwrap_or_default();
            let name = name.strip_prefix('.').unwrap_or(name);
            if !field.is_built || !locked(&self.known).tables.contains_key(table) {
                self.drop_trees(vec![tree])?;
                continue;
            }
            let definition = definitions.iter().find(|of| of.table == table && of.name == name);
            if let Some(IndexDefinition { version, rebuilds, .. }) = definition
                && *version != field.version
            {
                if !rebuilds {
                    let (index, kept, given) = (full_name, field.version, *version);
                    return Err(EngineError::Table(TableError::IndexVersion {
                        index,
                        kept,
                        given,
                    }));
                }
                self.drop_trees(vec![tree])?;
                continue;
            }
            let extract = definition.map(|definition| Arc::clone(&definition.extract));
            let (name, pages) = (name.to_owned(), Arc::clone(&self.pages));
            self.join(table, TableIndex { name, pages, tree, made_at: 0, extract });
        }
        for definition in definitions.iter().filter(|definition| !definition.is_late) {
            let table = locked(&self.known).tables.get(&definition.table).cloned();
            if let Some(KnownTable { tree, indexes }) = table
                && !indexes.iter().any(|index| index.name == definition.name)
            {
                self.make_index(definition, &tree)?;
            }
        }
        let _once = self.definitions.set(definitions);
        Ok(())
    }

    /// Makes an index that was named at opening and is not there, from the rows that are there.
    /// Who writes to the table by a handle of before is refused from here on.
    pub fn make_late_index(&self, table: &str, name: &str) -> Result<(), EngineError> {
        let _alone = self.one_at_a_time()?;
        let Some(KnownTable { tree, indexes }) = locked(&self.known).tables.get(table).cloned()
        else {
            return Err(EngineError::Table(TableError::NotFound { name: table.to_owned() }));
        };
        if indexes.iter().any(|index| index.name == name) {
            return Ok(());
        }
        let named = self.definitions().iter().find(|of| of.table == table && of.name == name);
        let Some(definition) = named else {
            let index = format!("{table}.{name}");
            return Err(EngineError::Table(TableError::IndexUnknown { index }));
        };
        self.drop_left(&definition.full_name())?;
        let closed = WritesClosed { pages: &self.pages, tree: &tree, indexes: indexes.len() };
        tree.set_indexes(&self.pages, indexes.len() + 1);
        self.make_index(definition, &tree)?;
        // From here on writes need the index.
        std::mem::forget(closed);
        Ok(())
    }

    fn check(&self, definitions: &[IndexDefinition]) -> Result<(), EngineError> {
        for (at, definition) in definitions.iter().enumerate() {
            let full_name = definition.full_name();
            check_name(&self.pages, &definition.name)?;
            check_name(&self.pages, &full_name)?;
            if definitions[..at].iter().any(|other| other.full_name() == full_name) {
                return Err(EngineError::Table(TableError::IndexTwice { index: full_name }));
            }
        }
        Ok(())
    }

    fn make_index(
        &self,
        definition: &IndexDefinition,
        table: &Arc<Tree>,
    ) -> Result<(), EngineError> {
        let full_name = definition.full_name();
        let tree = self.make(&full_name, Some(definition.field(false)))?;
        let mut index = definition.index(&self.pages, tree);
        build(&self.pages, table, &index)?;
        index.made_at = self.pages.storage.versions.registry.now();
        self.mark_built(&full_name)?;
        self.join(&definition.table, index);
        Ok(())
    }

    /// Notes that an index holds everything; durable when it returns.
    fn mark_built(&self, full_name: &str) -> Result<(), EngineError> {
        let catalogue = self.itself();
        let row = catalogue.get(full_name.as_bytes())?;
        let known = row.and_then(|row| Entry::from_bytes(&row).ok());
        let built = known.and_then(|entry| {
            let index = Some(IndexField { is_built: true, ..entry.index? });
            Some(Entry { index, ..entry })
        });
        let Some(built) = built else {
            let what = format!("index {full_name:?} has no proper row");
            return Err(self.pages.storage.poison.broken(what));
        };
        let mut batch = Batch::new(Arc::clone(&self.pages));
        batch.put(&catalogue, full_name.as_bytes(), &built.to_bytes())?;
        batch.commit()
    }

    fn join(&self, table: &str, index: TableIndex) {
        let mut known = locked(&self.known);
        known.found.remove(&index.tree.name);
        if let Some(table) = known.tables.get_mut(table) {
            Arc::make_mut(&mut table.indexes).push(Arc::new(index));
            let (tree, indexes) = (Arc::clone(&table.tree), table.indexes.len());
            drop(known);
            tree.set_indexes(&self.pages, indexes);
        }
    }

    /// What a crash while an index is built leaves.
    #[cfg(test)]
    pub fn leave_unbuilt(&self, table: &str, name: &str) -> Result<(), EngineError> {
        let table_bytes = table.len() as u16;
        let entry = IndexField { table_bytes, is_built: false, version: 0 };
        self.make(&format!("{table}.{name}"), Some(entry)).map(drop)
    }
}

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
