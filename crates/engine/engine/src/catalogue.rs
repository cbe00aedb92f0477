//! The tables by name: a tree of its own; and their indexes: joined with their tables when an
//! engine is opened, and built from the rows that are there.
//!
//! Invariants: a table's row and its root page come in one frame, so that neither is there without
//! the other; a dropped table keeps a row under a hidden name until its last page is free. A
//! table's number is never given to another: the next one comes into the super page with the row.
//! One table is made or dropped at a time. Children are freed before what points to them, each with
//! its pointer in one frame; so a crash leaves a smaller tree to go on with, and no page is lost or
//! freed twice. No other thread changes the tree then (`Tree::begin_drop`); readers that are still
//! in it find out by its mark. A table that can be reached has all its indexes, each built. While
//! one is being built its row in the catalogue is marked; what a crash left unbuilt, or without its
//! table, is dropped.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use iostrata_innodb::{Lsn, NO_PAGE, PageNo, TableId};

use crate::batch::Batch;
use crate::cursor::TreeCursor;
use crate::error::{EngineError, OpenError, TableError};
use crate::mtr::Mtr;
use crate::page::{PageView, Record, row_bytes};
use crate::pages::{CATALOGUE_ROOT, CATALOGUE_TABLE, FORMAT, NewPage, Pages, SuperField};
use crate::pool::Pin;
use crate::read::NEWEST;
use crate::reentry::check_outside;
use crate::sync::locked;
use crate::table::Table;
use crate::table_index::{IndexDefinition, TableIndex};
use crate::tree::Tree;
use crate::tree::descend::{Direction, UpperFence};
use crate::tree::structure::RowToFit;

/// Its name in reports.
const ITSELF: &str = "catalogue";
const NAME_BYTES_MAX: usize = 255;
/// First byte of the hidden names of dropped tables.
const DROPPED: u8 = 0;
#[derive(Clone, Debug)]
struct KnownTable {
    tree: Arc<Tree>,
    indexes: Arc<Vec<Arc<TableIndex>>>,
}

#[derive(Debug, Default)]
struct CatalogueState {
    tables: BTreeMap<String, KnownTable>,
    dropped: Vec<(Vec<u8>, Arc<Tree>)>,
    next: u32,
    /// Indexes by their whole names that are not joined with a table: while an engine is opened or
    /// a table is made, and what a failure of that leaves.
    found: BTreeMap<String, (IndexField, Arc<Tree>)>,
}

impl KnownTable {
    fn trees(&self) -> impl Iterator<Item = &Arc<Tree>> {
        std::iter::once(&self.tree).chain(self.indexes.iter().map(|index| &index.tree))
    }
}

pub(crate) struct Trees {
    /// The catalogue first, then the tables by name.
    pub live: Vec<Arc<Tree>>,
    /// Of dropped tables that still have pages.
    pub dropped: Vec<Arc<Tree>>,
}

#[derive(Debug)]
pub(crate) struct Catalogue {
    pages: Arc<Pages>,
    pub tree: Arc<Tree>,
    known: Mutex<CatalogueState>,
    /// The indexes that were named at opening.
    definitions: OnceLock<Vec<IndexDefinition>>,
    /// Held while a table is made or dropped.
    ddl: Mutex<()>,
}

impl Catalogue {
    /// An engine without tables, until they are read.
    pub fn new(pages: Arc<Pages>) -> Self {
        let tree = Arc::new(Tree::new(CATALOGUE_TABLE, CATALOGUE_ROOT, ITSELF));
        let known = CatalogueState { next: CATALOGUE_TABLE.0 + 1, ..CatalogueState::default() };
        let (known, definitions) = (Mutex::new(known), OnceLock::new());
        Self { pages, tree, known, definitions, ddl: Mutex::default() }
    }

    /// Reads all rows, once the pages can be read. `next` is the number of the next table, 0 when
    /// it was not kept.
    pub fn read(&self, next: u32) -> Result<(), EngineError> {
        let mut known = locked(&self.known);
        known.next = known.next.max(next);
        let all = (Bound::Unbounded, Bound::Unbounded);
        let mut rows = TreeCursor::new(&self.pages, &self.tree, all, (Direction::Forward, NEWEST));
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
            match (std::str::from_utf8(name), entry.index) {
                (Ok(name), Some(index)) if name.as_bytes()[0] != DROPPED => {
                    known.found.insert(name.to_owned(), (index, tree));
                }
                (Ok(name), None) if name.as_bytes()[0] != DROPPED => {
                    let table = KnownTable { tree, indexes: Arc::default() };
                    known.tables.insert(name.to_owned(), table);
                }
                _ => known.dropped.push((name.to_vec(), tree)),
            }
        }
        Ok(())
    }

    pub fn get(&self, name: &str) -> Option<Table> {
        let KnownTable { tree, indexes } = locked(&self.known).tables.get(name).cloned()?;
        Some(Table::new(Arc::clone(&self.pages), tree, indexes))
    }

    /// The table of tables.
    pub fn itself(&self) -> Table {
        Table::new(Arc::clone(&self.pages), Arc::clone(&self.tree), Arc::default())
    }

    pub fn names(&self) -> Vec<String> {
        locked(&self.known).tables.keys().cloned().collect()
    }

    pub fn trees(&self) -> Trees {
        let known = locked(&self.known);
        let tables = known.tables.values().flat_map(KnownTable::trees);
        let left = known.found.values().map(|(_, tree)| tree);
        let live = std::iter::once(&self.tree).chain(tables).chain(left).cloned().collect();
        Trees { live, dropped: known.dropped.iter().map(|(_, tree)| Arc::clone(tree)).collect() }
    }

    pub fn create(&self, name: &str) -> Result<Table, EngineError> {
        check_name(&self.pages, name)?;
        let _alone = self.one_at_a_time()?;
        let mut indexes = Vec::new();
        // Before the table: no row is written to it without them.
        for definition in self.definitions().iter().filter(|of| of.table == name && !of.is_late) {
            let full_name = definition.full_name();
            self.drop_left(&full_name)?;
            let tree = self.make(&full_name, Some(definition.field(true)))?;
            indexes.push(Arc::new(definition.index(&self.pages, tree)));
        }
        let tree = self.make(name, None)?;
        tree.set_indexes(&self.pages, indexes.len());
        let table = KnownTable { tree, indexes: Arc::new(indexes) };
        let mut known = locked(&self.known);
        table.indexes.iter().for_each(|index| drop(known.found.remove(&index.tree.name)));
        known.tables.insert(name.to_owned(), table.clone());
        drop(known);
        let KnownTable { tree, indexes } = table;
        Ok(Table::new(Arc::clone(&self.pages), tree, indexes))
    }

    /// Drops what a failure has left of an index.
    fn drop_left(&self, full_name: &str) -> Result<(), EngineError> {
        let left = locked(&self.known).found.get(full_name).map(|(_, tree)| Arc::clone(tree));
        left.map_or(Ok(()), |tree| self.drop_trees(vec![tree]))
    }

    /// The indexes that were named at opening.
    fn definitions(&self) -> &[IndexDefinition] {
        self.definitions.get().map_or(&[], Vec::as_slice)
    }

    /// Makes an empty tree with a row; durable when it returns.
    fn make(&self, name: &str, index: Option<IndexField>) -> Result<Arc<Tree>, EngineError> {
        let is_known = |known: &CatalogueState| {
            let indexes = known.tables.values().flat_map(|table| table.indexes.iter());
            known.tables.contains_key(name)
                || known.found.contains_key(name)
                || indexes.into_iter().any(|index| index.tree.name == name)
        };
        if is_known(&locked(&self.known)) {
            return Err(EngineError::Table(TableError::Exists { name: name.to_owned() }));
        }
        let id = TableId(locked(&self.known).next);
        let Some(next) = id.0.checked_add(1) else {
            return Err(EngineError::Table(TableError::TooMany));
        };
        let entry = Entry { id, root: NO_PAGE, index, fields: Vec::new() };
        let (root, end) = self.insert(name.as_bytes(), entry, next)?;
        let tree = Arc::new(Tree::new(id, root, name));
        let mut known = locked(&self.known);
        known.next = next;
        // Until it is joined with its table.
        if let Some(field) = index {
            known.found.insert(name.to_owned(), (field, Arc::clone(&tree)));
        }
        drop(known);
        self.pages.storage.redo.make_durable(end)?;
        Ok(tree)
    }

    /// One frame: the row, the root page, and the number of the table after this one.
    fn insert(&self, name: &[u8], entry: Entry, next: u32) -> Result<(PageNo, Lsn), EngineError> {
        let pages = &*self.pages;
        loop {
            let room = pages.admission.admit(2 * NAME_BYTES_MAX)?;
            let NewPage { reserved, pin: created, bit } = pages.new_page()?;
            let front = pages.pin(PageNo(0))?;
            let found = self.tree.locate(pages, name, &mut UpperFence::default())?;
            let mut mtr = Mtr::begin(&pages.storage);
            let leaf = mtr.latch(found.pin);
            let value = Entry { root: reserved.page, ..entry.clone() }.to_bytes();
            let needed_bytes = row_bytes(name.len(), value.len());
            let has_room = mtr.page(leaf).free_bytes() >= needed_bytes;
            if mtr.page_version(leaf) != found.page_version {
                continue;
            }
            if !has_room {
                drop(mtr);
                drop(room);
                let row = RowToFit { key: name, value_bytes: value.len(), needed_bytes };
                self.tree.split_leaf(pages, &row, found.page_version)?;
                continue;
            }
            let root = mtr.latch(created);
            let Err(slot) = mtr.page(leaf).find(name) else {
                return Err(pages
                    .storage
                    .poison
                    .broken("a table that is not known has a row".to_owned()));
            };
            mtr.change(leaf, &Record::Insert { slot, flags: 0, key: name, value: &value })?;
            mtr.change(root, &Tree::empty_root(entry.id))?;
            mtr.moved(root);
            let front = mtr.latch(front);
            mtr.change(front, &SuperField::NextTable.set(&next.to_le_bytes()))?;
            bit.change(&mut mtr, true)?;
            return Ok((reserved.page, mtr.commit()));
        }
    }

    /// Takes a table's name away, durably, and then frees its pages.
    pub fn drop_table(&self, name: &str) -> Result<(), EngineError> {
        let _alone = self.one_at_a_time()?;
        let Some(table) = locked(&self.known).tables.get(name).cloned() else {
            return Err(EngineError::Table(TableError::NotFound { name: name.to_owned() }));
        };
        self.drop_trees(table.trees().cloned().collect())
    }

    /// Takes the names of trees away by one frame, durably, and then frees their pages.
    fn drop_trees(&self, trees: Vec<Arc<Tree>>) -> Result<(), EngineError> {
        let catalogue = self.itself();
        let mut batch = Batch::new(Arc::clone(&self.pages));
        let mut hidden = Vec::new();
        for tree in &trees {
            let name = &tree.name;
            let Some(entry) = catalogue.get(name.as_bytes())? else {
                return Err(self.pages.storage.poison.broken(format!("{name:?} has no row")));
            };
            let hidden_name = [&[DROPPED][..], &tree.id.0.to_be_bytes()].concat();
            batch.delete(&catalogue, name.as_bytes())?;
            batch.put(&catalogue, &hidden_name, &entry)?;
            hidden.push(hidden_name);
        }
        trees.iter().for_each(|tree| tree.begin_drop(&self.pages));
        let cancel = |_: &EngineError| trees.iter().for_each(|tree| tree.cancel_drop());
        let ticket = batch.commit_async().inspect_err(cancel)?;
        let mut known = locked(&self.known);
        for (tree, hidden) in trees.iter().zip(hidden) {
            known.tables.remove(&tree.name);
            known.found.remove(&tree.name);
            known.dropped.push((hidden, Arc::clone(tree)));
        }
        drop(known);
        ticket.wait()?;
        self.reclaim()
    }

    /// Frees all pages of the tables that were dropped.
    pub fn reclaim(&self) -> Result<(), EngineError> {
        let dropped = locked(&self.known).dropped.clone();
        for (name, tree) in dropped {
            free_below_root(&self.pages, &tree)?;
            let mut batch = Batch::new(Arc::clone(&self.pages));
            batch.delete(&self.itself(), &name)?;
            batch.free(tree.root);
            batch.commit()?;
            locked(&self.known).dropped.retain(|(_, known)| !Arc::ptr_eq(known, &tree));
        }
        Ok(())
    }

    pub fn tree(&self, id: TableId) -> Option<Arc<Tree>> {
        let known = locked(&self.known);
        known.tables.values().flat_map(KnownTable::trees).find(|tree| tree.id == id).cloned()
    }

    pub fn indexes(&self) -> Vec<(Arc<Tree>, Arc<TableIndex>)> {
        let known = locked(&self.known);
        let of = |table: &KnownTable| {
            let with_table = |index: &Arc<TableIndex>| (Arc::clone(&table.tree), Arc::clone(index));
            table.indexes.iter().map(with_table).collect::<Vec<_>>()
        };
        known.tables.values().flat_map(of).collect()
    }

    pub fn has_dropped(&self) -> bool {
        !locked(&self.known).dropped.is_empty()
    }

    /// Keeps makers and droppers of tables out.
    pub fn one_at_a_time(&self) -> Result<MutexGuard<'_, ()>, EngineError> {
        // Within an index function this thread may be the one that does so already.
        check_outside(&self.pages.storage)?;
        Ok(locked(&self.ddl))
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

const FREE_BYTES: usize = 64;

/// Frees all pages of a tree but its root.
fn free_below_root(pages: &Pages, tree: &Tree) -> Result<(), EngineError> {
    while free_last(pages, tree)? {}
    Ok(())
}

/// Frees the last page of the lowest inner page. False when only the root is left.
fn free_last(pages: &Pages, tree: &Tree) -> Result<bool, EngineError> {
    let Some((parent, slot, child)) = lowest(pages, pages.pin(tree.root)?)? else {
        return Ok(false);
    };
    let _room = pages.admission.admit(FREE_BYTES)?;
    let bit = pages.map_bit(child)?;
    let mut mtr = Mtr::begin(&pages.storage);
    let above = mtr.latch(parent);
    mtr.change(above, &Record::Truncate { from: slot })?;
    bit.change(&mut mtr, false)?;
    mtr.commit();
    pages.space.freed(child);
    Ok(true)
}

/// The inner page whose last child has no children itself.
fn lowest<'c>(
    pages: &'c Pages,
    top: Pin<'c>,
) -> Result<Option<(Pin<'c>, usize, PageNo)>, EngineError> {
    let mut found = None;
    let mut pin = top;
    loop {
        let page = pin.clone().shared();
        let view = PageView::new(&page);
        let Some(slot) = view.count().checked_sub(1).filter(|_| view.level() > 0) else {
            return Ok(found);
        };
        let child = view.child(slot);
        let is_lowest = view.level() == 1;
        drop(page);
        found = Some((pin, slot, child));
        if is_lowest {
            return Ok(found);
        }
        pin = pages.pin(child)?;
    }
}

/// Bytes of a row's value before its fields: table u32, root u64.
const ENTRY_BYTES: usize = 12;
/// Tags from here on may be passed over by a program that does not know them.
const TAG_OPTIONAL: u8 = 128;
/// A field of indexes: the length of the table's name u16, state u8.
const TAG_INDEX: u8 = 1;
const INDEX_BYTES: usize = 3;
/// A field of indexes whose function has a version: u32. Without it the version is 0.
const TAG_INDEX_VERSION: u8 = 2;
const INDEX_VERSION_BYTES: usize = 4;

/// The row of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub id: TableId,
    pub root: PageNo,
    pub index: Option<IndexField>,
    /// Fields of later programs, which are kept as they are: tag u8, length u16, bytes.
    pub fields: Vec<u8>,
}

/// The further fields of an index's row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IndexField {
    /// So many bytes of its name are the table's; a dot is next, then the index's own.
    pub table_bytes: u16,
    /// It holds an entry for every row; otherwise it is being built.
    pub is_built: bool,
    /// Of the function that gives its secondary keys.
    pub version: u32,
}

impl Entry {
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(ENTRY_BYTES + self.fields.len());
        bytes.extend_from_slice(&self.id.0.to_le_bytes());
        bytes.extend_from_slice(&self.root.0.to_le_bytes());
        if let Some(index) = &self.index {
            bytes.push(TAG_INDEX);
            bytes.extend_from_slice(&(INDEX_BYTES as u16).to_le_bytes());
            bytes.extend_from_slice(&index.table_bytes.to_le_bytes());
            bytes.push(u8::from(index.is_built));
            if index.version != 0 {
                bytes.push(TAG_INDEX_VERSION);
                bytes.extend_from_slice(&(INDEX_VERSION_BYTES as u16).to_le_bytes());
                bytes.extend_from_slice(&index.version.to_le_bytes());
            }
        }
        bytes.extend_from_slice(&self.fields);
        bytes
    }

    pub fn from_bytes(bytes: &[u8]) -> Result<Self, BadEntry> {
        let (id, rest) = bytes.split_first_chunk::<4>().ok_or(BadEntry::Damaged)?;
        let (root, mut rest) = rest.split_first_chunk::<8>().ok_or(BadEntry::Damaged)?;
        let (mut index, mut version, mut fields) = (None, 0, Vec::new());
        while let Some((tag, more)) = rest.split_first() {
            let (len, more) = more.split_first_chunk::<2>().ok_or(BadEntry::Damaged)?;
            let len = usize::from(u16::from_le_bytes(*len));
            let (value, more) = more.split_at_checked(len).ok_or(BadEntry::Damaged)?;
            match (*tag, value) {
                (TAG_INDEX, [low, high, state @ (0 | 1)]) => {
                    let table_bytes = u16::from_le_bytes([*low, *high]);
                    index = Some(IndexField { table_bytes, is_built: *state == 1, version: 0 });
                }
                (TAG_INDEX_VERSION, bytes) if bytes.len() == INDEX_VERSION_BYTES => {
                    version = bytes.iter().rev().fold(0, |all, byte| all << 8 | u32::from(*byte));
                }
                (TAG_INDEX | TAG_INDEX_VERSION, _) => return Err(BadEntry::Damaged),
                (tag, _) if tag < TAG_OPTIONAL => return Err(BadEntry::Unknown { tag }),
                _ => fields.extend_from_slice(&rest[..rest.len() - more.len()]),
            }
            rest = more;
        }
        let index = match index {
            None if version != 0 => return Err(BadEntry::Damaged),
            index => index.map(|index| IndexField { version, ..index }),
        };
        let (id, root) = (u32::from_le_bytes(*id), u64::from_le_bytes(*root));
        Ok(Self { id: TableId(id), root: PageNo(root), index, fields })
    }
}

/// Why the row of a table cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadEntry {
    Damaged,
    Unknown { tag: u8 },
}

impl IndexDefinition {
    /// Under this name it is in the catalogue.
    fn full_name(&self) -> String {
        format!("{}.{}", self.table, self.name)
    }

    fn field(&self, is_built: bool) -> IndexField {
        IndexField { table_bytes: self.table.len() as u16, is_built, version: self.version }
    }

    fn index(&self, pages: &Arc<Pages>, tree: Arc<Tree>) -> TableIndex {
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
    /// rows that are there. Called before any read or write.
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
    /// Writes by a handle of before are refused from here on.
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

/// Fills an empty index with the entries of a table that is not written to. All entries are held in
/// memory, since they have to be sorted.
fn build(pages: &Arc<Pages>, table: &Arc<Tree>, index: &TableIndex) -> Result<(), EngineError> {
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
