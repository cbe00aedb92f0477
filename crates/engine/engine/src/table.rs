//! What a program reads: a table, ordered byte keys with byte values; and a read view, all tables
//! as they were at one moment, for any number of readers.
//!
//! Invariants: reads of a table see every batch as a whole within one leaf, the newest that was
//! committed, durable or not; over several rows they give no snapshot (that is for transactions and
//! views). A view shows what was committed when it was opened, durable or not, and nothing later;
//! it keeps the versions that it may show for as long as it or a clone of it is there.

use std::sync::Arc;

use crate::cursor::{KeyRange, bounds, of_prefix};
use crate::error::{EngineError, RequestError, TableError};
use crate::pages::Pages;
use crate::read::{NEWEST, replace};
use crate::reentry::check_not_looking;
use crate::scan::{Cursor, OwnedRow, Range, TreeView, plain_reads};
use crate::table_index::{Index, IndexCursor, TableIndex};
use crate::tree::Tree;
use crate::tree::descend::Direction;
use crate::version::Snapshot;

/// A handle on a table. Clones are the same table.
#[derive(Clone, Debug)]
pub struct Table {
    pages: Arc<Pages>,
    tree: Arc<Tree>,
    indexes: Arc<Vec<Arc<TableIndex>>>,
}

impl Table {
    pub(crate) fn new(
        pages: Arc<Pages>,
        tree: Arc<Tree>,
        indexes: Arc<Vec<Arc<TableIndex>>>,
    ) -> Self {
        Self { pages, tree, indexes }
    }

    pub(crate) fn indexes(&self) -> &[Arc<TableIndex>] {
        &self.indexes
    }

    /// Its index of this name, if it has one.
    pub fn index(&self, name: &str) -> Option<Index> {
        self.indexes.iter().find(|index| index.name == name).cloned().map(Index)
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

    /// Fails for a table of another engine.
    pub(crate) fn check_of(&self, pages: &Arc<Pages>) -> Result<(), EngineError> {
        if self.is_of(pages) {
            return Ok(());
        }
        Err(EngineError::Table(TableError::NotFound { name: self.name().to_owned() }))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.tree.name
    }

    /// The value of a key, copied.
    ///
    /// # Errors
    /// An error of reading a page; [`EngineError::Corrupt`];
    /// [`TableError::Dropped`](crate::TableError::Dropped).
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, EngineError> {
        self.get_with(key, <[u8]>::to_vec)
    }

    /// As [`Table::get`], into memory that is used again: its old content is replaced if there is
    /// such a row. Whether there is.
    ///
    /// # Errors
    /// As [`Table::get`].
    pub fn get_into(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, EngineError> {
        Ok(self.get_with(key, |found| replace(value, found))?.is_some())
    }

    /// What `look` makes of the value of a key, without a copy of it. It sees the row in its page,
    /// which cannot change meanwhile: let it be short, and let it not wait for another thread that
    /// uses the engine. A call of the engine from within it is refused
    /// ([`RequestError::WithinGet`]).
    ///
    /// ```
    /// # use iostrata_engine::{Background, Disks, Engine, Settings};
    /// # let disks = Disks::one(iostrata_engine::disk::MemDisk::new());
    /// # let engine = Engine::open_on(disks, Settings::default(), Background::Manual)?;
    /// # let table = engine.create_table("t")?;
    /// # table.bulk_load([("pen", "5 left")])?;
    /// let left = table.get_with(b"pen", |value| value.first().copied())?;
    /// assert_eq!(left, Some(Some(b'5')));
    /// # Ok::<(), iostrata_engine::EngineError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Table::get`].
    pub fn get_with<R>(
        &self,
        key: &[u8],
        look: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>, EngineError> {
        Ok(self.view().get_with(key, look)?.0)
    }

    /// Whether there is a row with this key.
    ///
    /// # Errors
    /// As [`Table::get`].
    pub fn contains_key(&self, key: &[u8]) -> Result<bool, EngineError> {
        Ok(self.get_with(key, |_value| ())?.is_some())
    }

    /// The rows of a range of keys, from either end.
    ///
    /// ```
    /// # use iostrata_engine::{Background, Disks, Engine, Settings};
    /// # let disks = Disks::one(iostrata_engine::disk::MemDisk::new());
    /// # let engine = Engine::open_on(disks, Settings::default(), Background::Manual)?;
    /// # let table = engine.create_table("t")?;
    /// # let mut batch = engine.batch();
    /// # batch.put(&table, b"b", b"2")?;
    /// # let _ticket = batch.commit_async()?;
    /// for row in table.range("a".."c") {
    ///     let (key, value) = row?;
    ///     assert_eq!((&key[..], &value[..]), (&b"b"[..], &b"2"[..]));
    /// }
    /// # Ok::<(), iostrata_engine::EngineError>(())
    /// ```
    pub fn range(&self, range: impl KeyRange) -> Range<'_> {
        Range::new(self.view(), bounds(&range))
    }

    /// The rows whose keys begin with `prefix`.
    pub fn prefix(&self, prefix: &[u8]) -> Range<'_> {
        self.range(of_prefix(prefix))
    }

    /// All rows.
    pub fn iter(&self) -> Range<'_> {
        self.range(..)
    }

    /// The row with the least key.
    ///
    /// # Errors
    /// As [`Table::get`].
    pub fn first(&self) -> Result<Option<OwnedRow>, EngineError> {
        self.iter().next().transpose()
    }

    /// The row with the greatest key.
    ///
    /// # Errors
    /// As [`Table::get`].
    pub fn last(&self) -> Result<Option<OwnedRow>, EngineError> {
        self.iter().next_back().transpose()
    }

    /// About how many rows there are, as `table_rows` of InnoDB: from 16 leaves spread evenly over
    /// the table, each of which stands for as many as the pages above it have children. Exact as
    /// long as one page takes all rows. With leaves that are about equally full it is a few per
    /// cent wrong; where some parts of the table are full and others nearly empty it may be wrong
    /// by a factor. It is of the newest rows; what a read view or a transaction sees is counted
    /// by going through it.
    ///
    /// # Errors
    /// As [`Table::get`].
    pub fn rows_estimate(&self) -> Result<u64, EngineError> {
        check_not_looking(&self.pages.storage)?;
        self.tree.rows_estimate(&self.pages)
    }

    /// The rows of a range one by one, in one direction, without an allocation for each.
    pub fn cursor(&self, range: impl KeyRange, direction: Direction) -> Cursor<'_> {
        self.view().cursor(bounds(&range), direction)
    }

    fn view(&self) -> TreeView<'_> {
        let Self { pages, tree, .. } = self;
        TreeView { pages, tree, at: NEWEST, own: None, statement: None }
    }
}

/// Checks a row that is to come in against the limits.
pub(crate) fn check_row(pages: &Pages, key: &[u8], value_bytes: usize) -> Result<(), EngineError> {
    check_key(key)?;
    let checked = pages.storage.page_size.check_new_row(key.len(), value_bytes);
    checked.map_err(|limit| RequestError::RowTooLarge(limit).into())
}

/// Checks a row that may be there already: those of earlier programs may be a little longer.
pub(crate) fn check_expected(
    pages: &Pages,
    key: &[u8],
    value_bytes: usize,
) -> Result<(), EngineError> {
    check_key(key)?;
    let checked = pages.storage.page_size.check_row(key.len(), value_bytes);
    checked.map_err(|limit| RequestError::RowTooLarge(limit).into())
}

fn check_key(key: &[u8]) -> Result<(), EngineError> {
    if key.is_empty() { Err(EngineError::Request(RequestError::KeyEmpty)) } else { Ok(()) }
}

/// All tables as they were when it was opened. Clones are the same view; threads can share it and
/// have any number of cursors on it at once. What commits replace is kept as long as it is open.
///
/// ```
/// # use iostrata_engine::{Background, Disks, Engine, EngineError, Isolation, Settings};
/// # let disks = Disks::one(iostrata_engine::disk::MemDisk::new());
/// # let engine = Engine::open_on(disks, Settings::default(), Background::Manual)?;
/// let (stock, orders) = (engine.open_table("stock")?, engine.open_table("orders")?);
/// # stock.bulk_load([("ink", "1"), ("pen", "5")])?;
/// let view = engine.read_view()?;
/// engine.transact(Isolation::default(), |t| {
///     t.put(&stock, b"pen", b"4")?;
///     t.put(&orders, b"1", b"pen")
/// })?;
/// assert_eq!(view.get(&stock, b"pen")?.as_deref(), Some(&b"5"[..]));
/// std::thread::scope(|scope| {
///     let counts = scope.spawn(|| Ok::<_, EngineError>(view.iter(&orders)?.count()));
///     assert_eq!(counts.join().unwrap()?, 0);
///     Ok::<_, EngineError>(())
/// })?;
/// # Ok::<(), EngineError>(())
/// ```
#[derive(Clone, Debug)]
pub struct ReadView(Arc<OpenView>);

#[derive(Debug)]
struct OpenView {
    pages: Arc<Pages>,
    number: u64,
    snapshot: Snapshot,
}

plain_reads!(ReadView);

impl ReadView {
    /// Opens one under this number.
    pub(crate) fn open(pages: &Arc<Pages>, number: u64) -> Result<Self, EngineError> {
        pages.admission.check_open()?;
        let (pages, snapshot) = (Arc::clone(pages), pages.storage.versions.registry.open(number));
        Ok(Self(Arc::new(OpenView { pages, number, snapshot })))
    }

    /// Its number, by which the status names it (`oldest_snapshot_trx`): no other view or
    /// transaction of the process has it.
    pub fn number(&self) -> u64 {
        self.0.number
    }

    /// What `look` makes of the value of a key, without a copy of it, as by [`Table::get_with`].
    ///
    /// # Errors
    /// An error of reading a page or an older version; a dropped table, or one of another engine.
    pub fn get_with<R>(
        &self,
        table: &Table,
        key: &[u8],
        look: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>, EngineError> {
        Ok(self.rows(table)?.get_with(key, look)?.0)
    }

    /// The rows of a range, from either end.
    ///
    /// # Errors
    /// As [`get_with`](Self::get_with).
    pub fn range<'t>(
        &'t self,
        table: &'t Table,
        range: impl KeyRange,
    ) -> Result<Range<'t>, EngineError> {
        Ok(Range::new(self.rows(table)?, bounds(&range)))
    }

    /// The rows of a range one by one, in one direction, without an allocation for each.
    ///
    /// # Errors
    /// As [`get_with`](Self::get_with).
    pub fn cursor<'t>(
        &'t self,
        table: &'t Table,
        range: impl KeyRange,
        direction: Direction,
    ) -> Result<Cursor<'t>, EngineError> {
        Ok(self.rows(table)?.cursor(bounds(&range), direction))
    }

    /// The entries of an index whose secondary keys lie in a range.
    ///
    /// # Errors
    /// As [`get_with`](Self::get_with); [`TransactionError::DefinitionChanged`] for an index that
    /// is younger
    /// than the view.
    ///
    /// [`TransactionError::DefinitionChanged`]: crate::TransactionError::DefinitionChanged
    pub fn index_cursor<'t>(
        &'t self,
        index: &'t Index,
        range: impl KeyRange,
        direction: Direction,
    ) -> Result<IndexCursor<'t>, EngineError> {
        index.0.entries(self.view(&index.0.tree), self.number(), &range, direction)
    }

    fn rows<'t>(&'t self, table: &'t Table) -> Result<TreeView<'t>, EngineError> {
        table.check_of(&self.0.pages)?;
        Ok(self.view(table.tree()))
    }

    fn view<'t>(&'t self, tree: &'t Arc<Tree>) -> TreeView<'t> {
        let (pages, at) = (&self.0.pages, self.0.snapshot.at());
        TreeView { pages, tree, at, own: None, statement: None }
    }
}
