//! The tables by name: a tree of its own.
//!
//! Invariant: a table's row and its root page come in one frame, so that neither is there without
//! the other; a dropped table keeps a row under a hidden name until its last page is free. A
//! table's number is never given to another: the next one comes into the super page with the row.
//! One table is made or dropped at a time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use iostrata_page::{Lsn, PageNo, Record, TableId, row_bytes};

use crate::batch::Batch;
use crate::error::EngineError;
use crate::mtr::Mtr;
use crate::pages::{NewPage, Pages};
use crate::range::Range;
use crate::reclaim::free_below_root;
use crate::super_page::SuperField;
use crate::table::Table;
use crate::tree::Tree;
use crate::tree::descend::Upper;

/// The table of tables itself.
pub(crate) const CATALOGUE_TABLE: TableId = TableId(1);
/// Where its root lies: behind the super page and the first map page.
pub(crate) const CATALOGUE_ROOT: PageNo = PageNo(2);
/// Its name in reports.
const ITSELF: &str = "catalogue";
/// Longest name, in bytes.
pub(crate) const NAME_BYTES_MAX: usize = 255;
/// First byte of the hidden names of dropped tables.
const DROPPED: u8 = 0;
/// Bytes of a row's value: table u32, root u64.
const ENTRY_BYTES: usize = 12;

/// What the row of a table says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    id: TableId,
    root: PageNo,
}

impl Entry {
    fn to_bytes(self) -> [u8; ENTRY_BYTES] {
        let mut bytes = [0; ENTRY_BYTES];
        bytes[..4].copy_from_slice(&self.id.0.to_le_bytes());
        bytes[4..].copy_from_slice(&self.root.0.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; ENTRY_BYTES] = bytes.try_into().ok()?;
        let (id, root) = bytes.split_first_chunk::<4>()?;
        let root = root.first_chunk::<8>()?;
        let (id, root) = (u32::from_le_bytes(*id), u64::from_le_bytes(*root));
        Some(Self { id: TableId(id), root: PageNo(root) })
    }
}

#[derive(Debug, Default)]
struct Known {
    trees: BTreeMap<String, Arc<Tree>>,
    dropped: Vec<(Vec<u8>, Arc<Tree>)>,
    next: u32,
}

/// Every tree there is.
pub(crate) struct Trees {
    /// With their names: the catalogue first, then the tables.
    pub live: Vec<(String, Arc<Tree>)>,
    /// Of dropped tables that still have pages.
    pub dropped: Vec<Arc<Tree>>,
}

/// The tables of an open engine.
#[derive(Debug)]
pub(crate) struct Catalogue {
    pages: Arc<Pages>,
    pub tree: Arc<Tree>,
    known: Mutex<Known>,
    /// Held while a table is made or dropped.
    ddl: Mutex<()>,
}

impl Catalogue {
    /// An engine without tables, until they are read.
    pub fn new(pages: Arc<Pages>) -> Self {
        let tree = Arc::new(Tree::new(CATALOGUE_TABLE, CATALOGUE_ROOT));
        let known = Known { next: CATALOGUE_TABLE.0 + 1, ..Known::default() };
        Self { pages, tree, known: Mutex::new(known), ddl: Mutex::default() }
    }

    /// Reads all rows, once the pages can be read. `next` is the number of the next table, 0 when
    /// it was not kept.
    ///
    /// # Errors
    /// What reading said; a row that is none.
    pub fn read(&self, next: u32) -> Result<(), EngineError> {
        let mut known = self.lock();
        known.next = known.next.max(next);
        let mut rows = Range::whole(&self.pages, &self.tree);
        while let Some((name, value)) = rows.next()? {
            let Some(entry) = Entry::from_bytes(value) else {
                let problem =
                    format!("table {:?} has no proper row", String::from_utf8_lossy(name));
                return Err(EngineError::corrupt(self.tree.root, problem));
            };
            known.next = known.next.max(entry.id.0.saturating_add(1));
            let tree = Arc::new(Tree::new(entry.id, entry.root));
            match std::str::from_utf8(name) {
                Ok(name) if name.as_bytes()[0] != DROPPED => {
                    known.trees.insert(name.to_owned(), tree);
                }
                _ => known.dropped.push((name.to_vec(), tree)),
            }
        }
        Ok(())
    }

    /// A table by name.
    pub fn get(&self, name: &str) -> Option<Table> {
        let tree = self.lock().trees.get(name).cloned()?;
        Some(Table::new(Arc::clone(&self.pages), tree, name))
    }

    /// The table of tables.
    fn itself(&self) -> Table {
        Table::new(Arc::clone(&self.pages), Arc::clone(&self.tree), ITSELF)
    }

    /// Every name, sorted.
    pub fn names(&self) -> Vec<String> {
        self.lock().trees.keys().cloned().collect()
    }

    /// Every tree with its name: the catalogue, the tables, and those on their way out.
    pub fn trees(&self) -> Trees {
        let known = self.lock();
        let named = known.trees.iter().map(|(name, tree)| (name.clone(), Arc::clone(tree)));
        let itself = (ITSELF.to_owned(), Arc::clone(&self.tree));
        let live = std::iter::once(itself).chain(named).collect();
        Trees { live, dropped: known.dropped.iter().map(|(_, tree)| Arc::clone(tree)).collect() }
    }

    /// Makes an empty table; durable when it returns.
    ///
    /// # Errors
    /// [`EngineError::TableExists`], [`EngineError::TableName`], no space.
    pub fn create(&self, name: &str) -> Result<Table, EngineError> {
        check_name(&self.pages, name)?;
        let _alone = self.one_at_a_time();
        if self.lock().trees.contains_key(name) {
            return Err(EngineError::TableExists { name: name.to_owned() });
        }
        let id = TableId(self.lock().next);
        let Some(next) = id.0.checked_add(1) else { return Err(EngineError::TooManyTables) };
        let (root, end) = self.insert(name.as_bytes(), id, next)?;
        let mut known = self.lock();
        known.next = next;
        let tree = Arc::new(Tree::new(id, root));
        known.trees.insert(name.to_owned(), Arc::clone(&tree));
        drop(known);
        self.pages.storage.make_durable(end)?;
        Ok(Table::new(Arc::clone(&self.pages), tree, name))
    }

    /// One frame: the row, the root page, and the number of the table after this one.
    fn insert(&self, name: &[u8], id: TableId, next: u32) -> Result<(PageNo, Lsn), EngineError> {
        let pages = &*self.pages;
        loop {
            let room = pages.admission.admit(2 * NAME_BYTES_MAX)?;
            let NewPage { reserved, pin: created, bit } = pages.new_page()?;
            let front = pages.pin(PageNo(0))?;
            let found = self.tree.locate(pages, name, &mut Upper::default())?;
            let mut mtr = Mtr::begin(&pages.storage);
            let leaf = mtr.latch(found.pin);
            let has_room = mtr.page(leaf).free_bytes() >= row_bytes(name.len(), ENTRY_BYTES);
            if mtr.structure(leaf) != found.structure {
                continue;
            }
            if !has_room {
                drop(mtr);
                drop(room);
                self.tree.split_leaf(pages, (name, ENTRY_BYTES), found.structure)?;
                continue;
            }
            let root = mtr.latch(created);
            let value = Entry { id, root: reserved.page }.to_bytes();
            let Err(slot) = mtr.page(leaf).find(name) else {
                return Err(pages
                    .storage
                    .poison
                    .broken("a table that is not known has a row".to_owned()));
            };
            mtr.change(leaf, &Record::Insert { slot, flags: 0, key: name, value: &value })?;
            mtr.change(root, &Tree::empty_root(id))?;
            mtr.moved(root);
            let front = mtr.latch(front);
            mtr.change(front, &SuperField::NextTable.set(&next.to_le_bytes()))?;
            bit.change(&mut mtr, true)?;
            return Ok((reserved.page, mtr.commit()));
        }
    }

    /// Takes a table's name away, durably, and then frees its pages.
    ///
    /// # Errors
    /// [`EngineError::NoTable`], or what writing said. Pages that are not freed are at the next
    /// opening.
    pub fn drop_table(&self, name: &str) -> Result<(), EngineError> {
        let _alone = self.one_at_a_time();
        let Some(table) = self.get(name) else {
            return Err(EngineError::NoTable { name: name.to_owned() });
        };
        let tree = Arc::clone(table.tree());
        let mut hidden = vec![DROPPED];
        hidden.extend_from_slice(&tree.id.0.to_be_bytes());
        let entry = Entry { id: tree.id, root: tree.root }.to_bytes();
        let catalogue = self.itself();
        let mut batch = Batch::new(Arc::clone(&self.pages));
        batch.delete(&catalogue, name.as_bytes())?;
        batch.put(&catalogue, &hidden, &entry)?;
        tree.begin_drop(&self.pages);
        let ticket = batch.commit().inspect_err(|_| tree.cancel_drop())?;
        let mut known = self.lock();
        known.trees.remove(name);
        known.dropped.push((hidden, tree));
        drop(known);
        ticket.wait()?;
        self.reclaim()
    }

    /// Frees all pages of the tables that were dropped.
    ///
    /// # Errors
    /// What reading or writing said; the rest is freed at the next opening.
    pub fn reclaim(&self) -> Result<(), EngineError> {
        let dropped = self.lock().dropped.clone();
        for (name, tree) in dropped {
            free_below_root(&self.pages, &tree)?;
            let mut batch = Batch::new(Arc::clone(&self.pages));
            batch.delete(&self.itself(), &name)?;
            batch.free(tree.root);
            batch.commit()?.wait()?;
            self.lock().dropped.retain(|(_, known)| !Arc::ptr_eq(known, &tree));
        }
        Ok(())
    }

    /// Whether dropped tables still have pages.
    pub fn has_dropped(&self) -> bool {
        !self.lock().dropped.is_empty()
    }

    /// Keeps other makers and droppers of tables out.
    fn one_at_a_time(&self) -> MutexGuard<'_, ()> {
        self.ddl.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn check_name(pages: &Pages, name: &str) -> Result<(), EngineError> {
    let limit = NAME_BYTES_MAX.min(pages.storage.page_size.key_bytes_max());
    let fits = (1..=limit).contains(&name.len()) && name.as_bytes()[0] != DROPPED;
    if fits { Ok(()) } else { Err(EngineError::TableName { name: name.to_owned(), limit }) }
}
