//! Secondary indexes: rows of a table in another order.
//!
//! Invariant: an index has one entry for each row that its function gives a key for, written by the
//! same frame as the row. Entries are rows of a tree, versioned as others are: the secondary key,
//! its end, and the row's own key; no value. So they are unique and in the order of both keys.

use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

use crate::cursor::KeyRange;
use crate::error::{EngineError, TableError, TransactionError};
use crate::pages::Pages;
use crate::reentry::within;
use crate::scan::{Cursor, TreeView};
use crate::tree::Tree;
use crate::tree::descend::Direction;

/// Appends the secondary key of a row (its key and its value) to the buffer; false when the row is
/// not in the index. It must always give the same for the same row, and cannot change or check its
/// own engine ([`RequestError::WithinIndexFunction`](crate::RequestError::WithinIndexFunction)).
pub type Extract = dyn Fn(&[u8], &[u8], &mut Vec<u8>) -> bool + Send + Sync;

/// A zero byte of a secondary key is written as these two, so that its end is known.
const ZERO: [u8; 2] = [0, 0xff];
/// What stands behind a secondary key; less than any way on of a longer one.
pub(crate) const END: [u8; 2] = [0, 0];
/// What would stand behind all entries of a secondary key, and before those of longer ones.
const BEHIND: [u8; 2] = [0, 1];

/// An index of a table as it is named at opening: [`OpenOptions::define`]. [`OpenOptions::index`]
/// is enough where it has only a name and a function.
///
/// ```
/// # use iostrata_engine::{Background, Disks, Engine, EngineError, IndexDefinition, TableError};
/// # let disk = iostrata_engine::disk::MemDisk::new();
/// # let open = |definition: IndexDefinition| {
/// #     let options = Engine::options().define(definition);
/// #     options.open_on(Disks::one(disk.clone()), Background::Manual)
/// # };
/// let by_first_letter = |_city: &[u8], country: &[u8], key: &mut Vec<u8>| {
///     key.extend(country.first());
///     true
/// };
/// let engine = open(IndexDefinition::new("cities", "country", by_first_letter).version(1))?;
/// # engine.create_table("cities")?;
/// # engine.close()?;
/// let by_name = |_city: &[u8], country: &[u8], key: &mut Vec<u8>| {
///     key.extend_from_slice(country);
///     true
/// };
/// // The entries are those of another function.
/// let definition = || IndexDefinition::new("cities", "country", by_name).version(2);
/// let refused = open(definition());
/// assert!(matches!(refused, Err(EngineError::Table(TableError::IndexVersion { kept: 1, .. }))));
/// let engine = open(definition().rebuild())?;
/// # Ok::<(), EngineError>(())
/// ```
///
/// [`OpenOptions::define`]: crate::OpenOptions::define
/// [`OpenOptions::index`]: crate::OpenOptions::index
#[derive(Clone)]
#[must_use = "an index is named by OpenOptions::define"]
pub struct IndexDefinition {
    pub(crate) table: String,
    pub(crate) name: String,
    pub(crate) extract: Arc<Extract>,
    /// It is made on request.
    pub(crate) is_late: bool,
    pub(crate) version: u32,
    /// One of another version is rebuilt.
    pub(crate) rebuilds: bool,
}

impl fmt::Debug for IndexDefinition {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "IndexDefinition({}.{}, version {})", self.table, self.name, self.version)
    }
}

impl IndexDefinition {
    /// An index of a table, and the function that gives a row's secondary key, of version 0.
    pub fn new(
        table: &str,
        name: &str,
        extract: impl Fn(&[u8], &[u8], &mut Vec<u8>) -> bool + Send + Sync + 'static,
    ) -> Self {
        let (table, name, extract) = (table.to_owned(), name.to_owned(), Arc::new(extract));
        Self { table, name, extract, is_late: false, version: 0, rebuilds: false }
    }

    /// The version of the function: raise it with each change of what the function gives. It is
    /// kept with the index, and an opening with another one is refused
    /// ([`TableError::IndexVersion`]).
    pub fn version(self, version: u32) -> Self {
        Self { version, ..self }
    }

    /// An index that exists with another version is dropped, and built as if it had never existed.
    pub fn rebuild(self) -> Self {
        Self { rebuilds: true, ..self }
    }

    /// An index that is not there is made only by [`Engine::make_index`]: its table is filled much
    /// faster before.
    ///
    /// [`Engine::make_index`]: crate::Engine::make_index
    pub fn late(self) -> Self {
        Self { is_late: true, ..self }
    }
}

/// An index of a table.
pub(crate) struct TableIndex {
    pub name: String,
    /// Of its engine.
    pub pages: Arc<Pages>,
    pub tree: Arc<Tree>,
    /// The number of the last commit when it was made from rows that were there: snapshots below
    /// it do not see all entries. 0 when none can be that old.
    pub made_at: u64,
    /// None when it was not named at opening: then the table cannot be written.
    pub extract: Option<Arc<Extract>>,
}

impl fmt::Debug for TableIndex {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "TableIndex({})", self.tree.name)
    }
}

impl TableIndex {
    /// Whether it is an index of the table with this name.
    pub fn is_of(&self, table: &str) -> bool {
        let rest = self.tree.name.strip_prefix(table);
        rest.and_then(|rest| rest.strip_prefix('.')) == Some(self.name.as_str())
    }

    /// The error when it is requested of another table.
    pub fn not_found(&self) -> EngineError {
        EngineError::Table(TableError::IndexNotFound { index: self.tree.name.clone() })
    }

    /// The entries whose secondary keys lie in a range, as a reader of this number sees the tree.
    pub fn entries<'t>(
        &self,
        view: TreeView<'t>,
        number: u64,
        range: &impl KeyRange,
        direction: Direction,
    ) -> Result<IndexCursor<'t>, EngineError> {
        if !Arc::ptr_eq(&self.pages, view.pages) {
            return Err(self.not_found());
        }
        if view.at < self.made_at {
            let (transaction, index) = (number, self.tree.name.clone());
            return Err(TransactionError::DefinitionChanged { transaction, index }.into());
        }
        let (low, high) = range.key_bounds();
        let low = match low {
            Bound::Included(low) => Bound::Included(with_end(low, END)),
            Bound::Excluded(low) => Bound::Included(with_end(low, BEHIND)),
            Bound::Unbounded => Bound::Unbounded,
        };
        let high = match high {
            Bound::Included(high) => Bound::Excluded(with_end(high, BEHIND)),
            Bound::Excluded(high) => Bound::Excluded(with_end(high, END)),
            Bound::Unbounded => Bound::Unbounded,
        };
        let entries = view.cursor((low, high), direction);
        Ok(IndexCursor { entries, root: self.tree.root.0, secondary: Vec::new() })
    }

    /// The entry of a row; none when the row is not in the index.
    pub fn entry(&self, key: &[u8], value: &[u8]) -> Result<Option<Vec<u8>>, EngineError> {
        let Some(extract) = &self.extract else {
            let index = self.tree.name.clone();
            return Err(EngineError::Table(TableError::IndexUnknown { index }));
        };
        let mut secondary = Vec::new();
        if !within(&self.pages.storage, || extract(key, value, &mut secondary)) {
            return Ok(None);
        }
        let mut entry = with_end(&secondary, END);
        entry.extend_from_slice(key);
        Ok(Some(entry))
    }

    /// As [`TableIndex::entry`], of a row that is to come in.
    pub fn new_entry(
        &self,
        key_bytes_max: usize,
        key: &[u8],
        value: &[u8],
    ) -> Result<Option<Vec<u8>>, EngineError> {
        let entry = self.entry(key, value)?;
        match entry.as_ref().map(Vec::len).filter(|bytes| *bytes > key_bytes_max) {
            None => Ok(entry),
            Some(bytes) => {
                let (index, limit) = (self.tree.name.clone(), key_bytes_max);
                Err(EngineError::Table(TableError::IndexKeyTooLong { index, bytes, limit }))
            }
        }
    }
}

/// A secondary key as entries begin, with what stands behind it.
pub(crate) fn with_end(secondary: &[u8], end: [u8; 2]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(secondary.len() + end.len());
    for byte in secondary {
        match byte {
            0 => bytes.extend_from_slice(&ZERO),
            byte => bytes.push(*byte),
        }
    }
    bytes.extend_from_slice(&end);
    bytes
}

/// Reads an entry: its secondary key into the buffer; gives the row's own key, or none when it is
/// no entry.
pub(crate) fn read_entry<'e>(mut entry: &'e [u8], secondary: &mut Vec<u8>) -> Option<&'e [u8]> {
    secondary.clear();
    loop {
        entry = match entry {
            [0, 0, key @ ..] => return Some(key),
            [0, 0xff, rest @ ..] => {
                secondary.push(0);
                rest
            }
            [0, ..] | [] => return None,
            [byte, rest @ ..] => {
                secondary.push(*byte);
                rest
            }
        };
    }
}

/// An entry of an index: the secondary key, and the key of the row.
pub type IndexRow<'r> = (&'r [u8], &'r [u8]);

/// A cursor over a range of an index.
#[derive(Debug)]
pub struct IndexCursor<'t> {
    entries: Cursor<'t>,
    /// Where its tree begins, for errors.
    root: u64,
    secondary: Vec<u8>,
}

impl IndexCursor<'_> {
    /// The next entry, until there is none. It is valid until the next call.
    ///
    /// # Errors
    /// An error of reading a page or an older version; a damaged entry.
    pub fn next_entry(&mut self) -> Result<Option<IndexRow<'_>>, EngineError> {
        let Some((entry, _value)) = self.entries.next_row()? else { return Ok(None) };
        match read_entry(entry, &mut self.secondary) {
            Some(key) => Ok(Some((&self.secondary, key))),
            None => Err(EngineError::Corrupt {
                page: self.root,
                problem: format!("its index holds {}, which is no entry", entry.escape_ascii()),
            }),
        }
    }

    /// The keys of the rows that are left.
    pub(crate) fn keys(mut self) -> Result<Vec<Vec<u8>>, EngineError> {
        let mut keys = Vec::new();
        while let Some((_secondary, key)) = self.next_entry()? {
            keys.push(key.to_vec());
        }
        Ok(keys)
    }
}

/// An index of a table, to read from. Clones are the same index.
#[derive(Clone, Debug)]
pub struct Index(pub(crate) Arc<TableIndex>);

impl Index {
    /// Its name, without the table's.
    pub fn name(&self) -> &str {
        &self.0.name
    }
}
