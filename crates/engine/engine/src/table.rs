//! A table: ordered byte keys with byte values.
//!
//! Invariant: reads see every batch as a whole within one leaf, the newest that was committed,
//! durable or not; over several rows they give no snapshot (that is for transactions).

use std::ops::Bound;
use std::sync::Arc;

use iostrata_page::PageView;

use crate::batch::Batch;
use crate::core::Core;
use crate::error::EngineError;
use crate::range::{Direction, Range};
use crate::tree::Tree;
use crate::tree::append::Filling;
use crate::tree::descend::Seek;

/// A handle on a table. Clones are the same table.
#[derive(Clone, Debug)]
pub struct Table {
    core: Arc<Core>,
    tree: Arc<Tree>,
    name: Arc<str>,
}

impl Table {
    pub(crate) fn new(core: Arc<Core>, tree: Arc<Tree>, name: &str) -> Self {
        Self { core, tree, name: name.into() }
    }

    pub(crate) fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Whether it is a table of this open engine.
    pub(crate) fn is_of(&self, core: &Arc<Core>) -> bool {
        Arc::ptr_eq(&self.core, core)
    }

    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.tree, &other.tree)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The value of a key, copied.
    ///
    /// # Errors
    /// What reading a page said; [`EngineError::Corrupt`]; [`EngineError::TableDropped`].
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, EngineError> {
        self.get_with(key, <[u8]>::to_vec)
    }

    /// Shows the value of a key to `read` while its page is latched: be brief, and do not use the
    /// engine in it.
    ///
    /// # Errors
    /// As [`Table::get`].
    pub fn get_with<R>(
        &self,
        key: &[u8],
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>, EngineError> {
        let leaf = self.tree.leaf(&self.core, Seek::Key(key))?;
        let page = PageView::new(&leaf);
        self.core.counts.rows_read(1);
        Ok(page.find(key).ok().map(|slot| read(page.value(slot))))
    }

    /// The rows between two bounds, in rising or falling order of keys.
    pub fn range(&self, from: Bound<&[u8]>, to: Bound<&[u8]>, direction: Direction) -> Range<'_> {
        Range::new(&self.core, &self.tree, (from, to), direction)
    }

    /// All rows in rising order of keys.
    pub fn rows(&self) -> Range<'_> {
        self.range(Bound::Unbounded, Bound::Unbounded, Direction::Forward)
    }

    /// Fills the empty table with rows whose keys rise. Gives the number of rows. Durable when it
    /// returns; after a crash before that, a prefix of the rows may be there. Nobody else may
    /// write to the table meanwhile.
    ///
    /// # Errors
    /// [`EngineError::NotEmpty`], [`EngineError::NotSorted`], a row beyond the limits, no space.
    pub fn bulk_load<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        rows: impl IntoIterator<Item = (K, V)>,
    ) -> Result<u64, EngineError> {
        if self.rows().next()?.is_some() {
            return Err(EngineError::NotEmpty { name: self.name.to_string() });
        }
        let core = &*self.core;
        // Rows that were deleted may have left leaves, each for some of the keys: a tree of several
        // is filled in the ordinary way.
        let is_bare = self.tree.is_one_leaf(core)?;
        let mut filling = Filling::new(core, &self.tree, core.live.fill_factor_pct());
        let mut last: Vec<u8> = Vec::new();
        let mut loaded = 0;
        for (key, value) in rows {
            let (key, value) = (key.as_ref(), value.as_ref());
            crate::batch::check_row(core, key, value.len())?;
            if loaded > 0 && key <= last.as_slice() {
                return Err(EngineError::NotSorted { row: loaded });
            }
            if !is_bare {
                let mut batch = Batch::new(Arc::clone(&self.core));
                batch.put(self, key, value)?;
                let _made_durable_below = batch.commit()?;
            } else if !filling.add(key, value) {
                self.hang(&mut filling)?;
                assert!(filling.add(key, value), "a row within the limits fits an empty page");
            }
            last.clear();
            last.extend_from_slice(key);
            loaded += 1;
        }
        if !filling.is_empty() {
            self.hang(&mut filling)?;
        }
        if is_bare {
            core.counts.rows_loaded(loaded);
        }
        core.redo.make_durable(core.redo.lsn()).map_err(|error| core.poison.keep(error))?;
        Ok(loaded)
    }

    fn hang(&self, filling: &mut Filling) -> Result<(), EngineError> {
        if self.tree.hang(&self.core, filling)? {
            return Ok(());
        }
        Err(EngineError::NotEmpty { name: self.name.to_string() })
    }
}
