//! The tables by name: a tree of its own.
//!
//! Invariant: a table's row and its root page come in one frame, so that neither is there without
//! the other; a dropped table keeps a row under a hidden name until its last page is free. A
//! table's number is never given to another: the next one comes into the super page with the row.
//! One table is made or dropped at a time.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use iostrata_page::{Lsn, PageNo, Record, TableId, row_bytes};

use crate::batch::Batch;
use crate::cursor::Cursor;
use crate::error::{EngineError, OpenError, TableError};
use crate::mtr::Mtr;
use crate::pages::{NewPage, Pages};
use crate::reclaim::free_below_root;
use crate::super_page::{CATALOGUE_ROOT, CATALOGUE_TABLE, FORMAT, SuperField};
use crate::table::Table;
use crate::tree::Tree;
use crate::tree::descend::{Direction, UpperFence};
use crate::visible::NEWEST;

/// Its name in reports.
const ITSELF: &str = "catalogue";
/// Longest name, in bytes.
pub(crate) const NAME_BYTES_MAX: usize = 255;
/// First byte of the hidden names of dropped tables.
const DROPPED: u8 = 0;
/// Bytes of a row's value before its fields: table u32, root u64.
const ENTRY_BYTES: usize = 12;
/// Tags from here on may be passed over by a program that does not know them.
const TAG_OPTIONAL: u8 = 128;

/// What the row of a table says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub id: TableId,
    pub root: PageNo,
    /// Fields of later programs, which are kept as they are: tag u8, length u16, bytes.
    pub fields: Vec<u8>,
}

impl Entry {
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(ENTRY_BYTES + self.fields.len());
        bytes.extend_from_slice(&self.id.0.to_le_bytes());
        bytes.extend_from_slice(&self.root.0.to_le_bytes());
        bytes.extend_from_slice(&self.fields);
        bytes
    }

    /// The entry in `bytes`.
    ///
    /// # Errors
    /// What is wrong with them; the tag of a field that must be known and is not.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, BadEntry> {
        let (id, rest) = bytes.split_first_chunk::<4>().ok_or(BadEntry::Damaged)?;
        let (root, fields) = rest.split_first_chunk::<8>().ok_or(BadEntry::Damaged)?;
        let mut rest = fields;
        while let Some((tag, more)) = rest.split_first() {
            let (len, more) = more.split_first_chunk::<2>().ok_or(BadEntry::Damaged)?;
            let len = usize::from(u16::from_le_bytes(*len));
            let (_value, more) = more.split_at_checked(len).ok_or(BadEntry::Damaged)?;
            if *tag < TAG_OPTIONAL {
                return Err(BadEntry::Unknown { tag: *tag });
            }
            rest = more;
        }
        let (id, root) = (u32::from_le_bytes(*id), u64::from_le_bytes(*root));
        Ok(Self { id: TableId(id), root: PageNo(root), fields: fields.to_vec() })
    }
}

/// Why the row of a table cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadEntry {
    Damaged,
    Unknown { tag: u8 },
}

#[derive(Debug, Default)]
struct Known {
    trees: BTreeMap<String, Arc<Tree>>,
    dropped: Vec<(Vec<u8>, Arc<Tree>)>,
    next: u32,
}

/// Every tree there is.
pub(crate) struct Trees {
    /// The catalogue first, then the tables by name.
    pub live: Vec<Arc<Tree>>,
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
        let tree = Arc::new(Tree::new(CATALOGUE_TABLE, CATALOGUE_ROOT, ITSELF));
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
        let all = (Bound::Unbounded, Bound::Unbounded);
        let mut rows = Cursor::new(&self.pages, &self.tree, all, (Direction::Forward, NEWEST));
        while let Some((name, value)) = rows.next_row()? {
            let entry = Entry::from_bytes(value).map_err(|bad| {
                let name = String::from_utf8_lossy(name);
                match bad {
                    BadEntry::Damaged => {
                        let problem = format!("table {name:?} has no proper row");
                        EngineError::corrupt(self.tree.root, problem)
                    }
                    BadEntry::Unknown { tag } => EngineError::Open(OpenError::Format {
                        found: format!("a later one (table {name:?} has a field {tag})"),
                        known: FORMAT,
                    }),
                }
            })?;
            known.next = known.next.max(entry.id.0.saturating_add(1));
            let tree = Arc::new(Tree::new(entry.id, entry.root, String::from_utf8_lossy(name)));
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
        Some(Table::new(Arc::clone(&self.pages), tree))
    }

    /// The table of tables.
    pub fn itself(&self) -> Table {
        Table::new(Arc::clone(&self.pages), Arc::clone(&self.tree))
    }

    /// Every name, sorted.
    pub fn names(&self) -> Vec<String> {
        self.lock().trees.keys().cloned().collect()
    }

    /// Every tree: the catalogue, the tables, and those on their way out.
    pub fn trees(&self) -> Trees {
        let known = self.lock();
        let live = std::iter::once(&self.tree).chain(known.trees.values()).cloned().collect();
        Trees { live, dropped: known.dropped.iter().map(|(_, tree)| Arc::clone(tree)).collect() }
    }

    /// Makes an empty table; durable when it returns.
    ///
    /// # Errors
    /// [`TableError::Exists`], [`TableError::Name`], no space.
    pub fn create(&self, name: &str) -> Result<Table, EngineError> {
        check_name(&self.pages, name)?;
        let _alone = self.one_at_a_time();
        if self.lock().trees.contains_key(name) {
            return Err(EngineError::Table(TableError::Exists { name: name.to_owned() }));
        }
        let id = TableId(self.lock().next);
        let Some(next) = id.0.checked_add(1) else {
            return Err(EngineError::Table(TableError::TooMany));
        };
        let (root, end) = self.insert(name.as_bytes(), id, next)?;
        let mut known = self.lock();
        known.next = next;
        let tree = Arc::new(Tree::new(id, root, name));
        known.trees.insert(name.to_owned(), Arc::clone(&tree));
        drop(known);
        self.pages.storage.make_durable(end)?;
        Ok(Table::new(Arc::clone(&self.pages), tree))
    }

    /// One frame: the row, the root page, and the number of the table after this one.
    fn insert(&self, name: &[u8], id: TableId, next: u32) -> Result<(PageNo, Lsn), EngineError> {
        let pages = &*self.pages;
        loop {
            let room = pages.admission.admit(2 * NAME_BYTES_MAX)?;
            let NewPage { reserved, pin: created, bit } = pages.new_page()?;
            let front = pages.pin(PageNo(0))?;
            let found = self.tree.locate(pages, name, &mut UpperFence::default())?;
            let mut mtr = Mtr::begin(&pages.storage);
            let leaf = mtr.latch(found.pin);
            let has_room = mtr.page(leaf).free_bytes() >= row_bytes(name.len(), ENTRY_BYTES);
            if mtr.page_version(leaf) != found.page_version {
                continue;
            }
            if !has_room {
                drop(mtr);
                drop(room);
                self.tree.split_leaf(pages, (name, ENTRY_BYTES), found.page_version)?;
                continue;
            }
            let root = mtr.latch(created);
            let value = Entry { id, root: reserved.page, fields: Vec::new() }.to_bytes();
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
    /// [`TableError::NotFound`], or what writing said. Pages that are not freed are at the next
    /// opening.
    pub fn drop_table(&self, name: &str) -> Result<(), EngineError> {
        let _alone = self.one_at_a_time();
        let Some(table) = self.get(name) else {
            return Err(EngineError::Table(TableError::NotFound { name: name.to_owned() }));
        };
        let tree = Arc::clone(table.tree());
        let mut hidden = vec![DROPPED];
        hidden.extend_from_slice(&tree.id.0.to_be_bytes());
        let catalogue = self.itself();
        let Some(entry) = catalogue.get(name.as_bytes())? else {
            return Err(self.pages.storage.poison.broken(format!("table {name:?} has no row")));
        };
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

    /// The tree of the table with this number, if it is there.
    pub fn tree(&self, id: TableId) -> Option<Arc<Tree>> {
        self.lock().trees.values().find(|tree| tree.id == id).cloned()
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
    if fits {
        Ok(())
    } else {
        Err(EngineError::Table(TableError::Name { name: name.to_owned(), limit }))
    }
}
