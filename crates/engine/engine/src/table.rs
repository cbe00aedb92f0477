//! A table: ordered byte keys with byte values.
//!
//! Invariant: reads see every batch as a whole within one leaf, the newest that was committed,
//! durable or not; over several rows they give no snapshot (that is for transactions).

use std::ops::Bound;
use std::sync::Arc;

use iostrata_page::PageView;

use crate::error::EngineError;
use crate::pages::Pages;
use crate::range::Range;
use crate::tree::Tree;
use crate::tree::descend::{Direction, Seek};

/// A handle on a table. Clones are the same table.
#[derive(Clone, Debug)]
pub struct Table {
    pages: Arc<Pages>,
    tree: Arc<Tree>,
    name: Arc<str>,
}

impl Table {
    pub(crate) fn new(pages: Arc<Pages>, tree: Arc<Tree>, name: &str) -> Self {
        Self { pages, tree, name: name.into() }
    }

    pub(crate) fn tree(&self) -> &Arc<Tree> {
        &self.tree
    }

    pub(crate) fn pages(&self) -> &Arc<Pages> {
        &self.pages
    }

    /// Whether it is a table of this open engine.
    pub(crate) fn is_of(&self, pages: &Arc<Pages>) -> bool {
        Arc::ptr_eq(&self.pages, pages)
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
        let leaf = self.tree.leaf(&self.pages, Seek::Key(key))?;
        let page = PageView::new(&leaf);
        self.pages.storage.counts.rows_read(1);
        Ok(page.find(key).ok().map(|slot| read(page.value(slot))))
    }

    /// The rows between two bounds, in rising or falling order of keys.
    pub fn range(&self, from: Bound<&[u8]>, to: Bound<&[u8]>, direction: Direction) -> Range<'_> {
        Range::new(&self.pages, &self.tree, (from, to), direction)
    }

    /// All rows in rising order of keys.
    pub fn rows(&self) -> Range<'_> {
        self.range(Bound::Unbounded, Bound::Unbounded, Direction::Forward)
    }
}

/// Checks a row against the limits.
pub(crate) fn check_row(pages: &Pages, key: &[u8], value_bytes: usize) -> Result<(), EngineError> {
    if key.is_empty() {
        return Err(EngineError::KeyEmpty);
    }
    let limits = pages.storage.page_size;
    limits.check_row(key.len(), value_bytes).map_err(EngineError::RowTooLarge)
}
