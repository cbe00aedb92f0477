//! One tree: ordered keys and values in pages.
//!
//! Invariant: the root's page number never changes. Inner pages change only under the tree's
//! structure lock, which is held for moments; leaves change under their own latch. Latches
//! are taken down the tree, leaves of one level by page number, map pages last; nothing but a latch
//! is waited for while one is held: a page that is absent is loaded after everything was let go.
//! It knows no table names and no batches.

pub(crate) mod append;
pub(crate) mod descend;
pub(crate) mod merge;
pub(crate) mod split;
mod structure;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use iostrata_innodb::{NO_PAGE, PageNo, TableId};

use crate::error::{EngineError, TableError};
use crate::page::{PageKind, Record};
use crate::pages::Pages;
use crate::super_page::CATALOGUE_TABLE;

#[derive(Debug)]
pub(crate) struct Tree {
    /// Written into each of its pages.
    pub id: TableId,
    pub root: PageNo,
    pub name: String,
    structure: Mutex<()>,
    is_dropped: AtomicBool,
    /// Indexes of the table: whoever writes to it has to know all of them.
    indexes: AtomicUsize,
}

impl Tree {
    pub fn new(id: TableId, root: PageNo, name: impl Into<String>) -> Self {
        let (structure, is_dropped) = (Mutex::new(()), AtomicBool::new(false));
        let indexes = AtomicUsize::new(0);
        Self { id, root, name: name.into(), structure, is_dropped, indexes }
    }

    /// Changes how many indexes the table has. When it returns, nobody who knows of another number
    /// of them changes the tree any more, or begins to.
    pub fn set_indexes(&self, pages: &Pages, indexes: usize) {
        if self.indexes.swap(indexes, Ordering::SeqCst) != indexes {
            // As with a drop: who looked before has appended now.
            pages.admission.paused(|| ());
        }
    }

    /// Fails for one who knows of another number of indexes than the table has.
    pub fn check_indexes(&self, known: usize) -> Result<(), EngineError> {
        match self.indexes.load(Ordering::SeqCst) == known {
            true => Ok(()),
            false => {
                let name = self.name.clone();
                Err(EngineError::Table(TableError::IndexMade { name }))
            }
        }
    }

    /// Whether rows carry versions: those of tables do, those of the catalogue do not.
    pub fn keeps_versions(&self) -> bool {
        self.id != CATALOGUE_TABLE
    }

    /// Marks the table as dropped. When it returns nobody changes the tree any more, and nobody
    /// begins to; readers find out by the mark.
    pub fn begin_drop(&self, pages: &Pages) {
        self.is_dropped.store(true, Ordering::SeqCst);
        // Who looked before the mark was promised room, and has appended its changes now. Who is
        // promised room after sees the mark.
        pages.admission.paused(|| ());
    }

    /// Takes the mark away, when nothing came of the drop.
    pub fn cancel_drop(&self) {
        self.is_dropped.store(false, Ordering::SeqCst);
    }

    pub fn check_not_dropped(&self) -> Result<(), EngineError> {
        match self.is_dropped.load(Ordering::SeqCst) {
            false => Ok(()),
            true => Err(EngineError::Table(TableError::Dropped)),
        }
    }

    pub fn empty_root(id: TableId) -> Record<'static> {
        let (left, right) = (NO_PAGE, NO_PAGE);
        Record::Init { kind: PageKind::Leaf, level: 0, table: id, left, right }
    }
}
