//! A read view: all tables as they were at one moment, for any number of readers.
//!
//! Invariant: it shows what was committed when it was opened, durable or not, and nothing later; it
//! keeps the versions that it may show for as long as it or a clone of it is there.

use std::sync::Arc;

use crate::error::EngineError;
use crate::key_range::{KeyRange, bounds};
use crate::pages::Pages;
use crate::range::{OwnedRow, Range};
use crate::scan::{Cursor, TreeView, plain_reads};
use crate::table::Table;
use crate::table_index::{Index, IndexCursor};
use crate::tree::Tree;
use crate::tree::descend::Direction;
use crate::version::Snapshot;

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
    /// What reading a page or an older version said; a dropped table, or one of another engine.
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
