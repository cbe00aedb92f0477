//! The rows of a range as one reader sees them, by a cursor or as an iterator.
//!
//! Invariant: of a row that the reader has changed itself only its own newest version comes, in the
//! order of keys.

use std::cmp::Ordering;
use std::fmt;
use std::iter::FusedIterator;
use std::sync::Arc;

use iostrata_innodb::{Counter, Lsn};

use crate::counts::Sample;
use crate::cursor::{KeyBounds, Row, TreeCursor};
use crate::error::{EngineError, RequestError};
use crate::pages::Pages;
use crate::read::{ReadContext, read_row, replace};
use crate::reentry::{check_may_look, looking};
use crate::tree::Tree;
use crate::tree::descend::Direction;
use crate::version::Snapshot;

/// Changes that a reader has made and not committed.
pub(crate) trait OwnRows: fmt::Debug {
    /// The newest changes of the rows in a range of a table, by rising key.
    fn in_range(&self, tree: &Arc<Tree>, bounds: &KeyBounds) -> Vec<usize>;

    /// The key of a change, and its value unless it deletes.
    fn row(&self, change: usize) -> (&[u8], Option<&[u8]>);

    /// Notes the end of the newest frame in what was read.
    fn saw(&self, lsn: Lsn);
}

/// A tree as one reader sees it.
#[derive(Debug)]
pub(crate) struct TreeView<'t> {
    pub pages: &'t Arc<Pages>,
    pub tree: &'t Arc<Tree>,
    /// Committed rows are those that commits up to this one wrote.
    pub at: u64,
    /// What the reader has changed itself.
    pub own: Option<&'t dyn OwnRows>,
    /// Keeps the versions of `at`, where the reader does not do so itself.
    pub statement: Option<Snapshot>,
}

impl<'t> TreeView<'t> {
    /// The rows of a range.
    pub fn cursor(mut self, bounds: KeyBounds, direction: Direction) -> Cursor<'t> {
        let mut cursor = self.part(bounds, direction);
        cursor.statement = self.statement.take();
        cursor
    }

    /// What `look` makes of the committed row with this key, which it may see in its page.
    #[inline]
    pub fn get_with<R>(
        &self,
        key: &[u8],
        look: impl FnOnce(&[u8]) -> R,
    ) -> Result<(Option<R>, ReadContext), EngineError> {
        check_may_look()?;
        let look = |row: &[u8]| looking(&self.pages.storage, || look(row));
        read_row(self.pages, self.tree, key, self.at, look)
    }

    /// As [`TreeView::cursor`], for a caller that keeps the view as long.
    pub fn part(&self, bounds: KeyBounds, direction: Direction) -> Cursor<'t> {
        let own = self.own.map(|rows| {
            let mut changes = rows.in_range(self.tree, &bounds);
            if direction == Direction::Forward {
                changes.reverse();
            }
            let (key, value, has_row) = (Vec::new(), Vec::new(), false);
            Merge { rows, direction, changes, key, value, has_row }
        });
        let committed = TreeCursor::new(self.pages, self.tree, bounds, (direction, self.at));
        Cursor { committed, own, statement: None }
    }
}

/// The plain reads of a reader that follow from its `get_with`, `range` and `index_cursor`.
macro_rules! plain_reads {
    ($reader:ty) => {
        impl $reader {
            /// The value of a key, copied.
            ///
            /// # Errors
            /// As [`get_with`](Self::get_with).
            pub fn get(&self, table: &Table, key: &[u8]) -> Result<Option<Vec<u8>>, EngineError> {
                self.get_with(table, key, <[u8]>::to_vec)
            }

            /// As [`get`](Self::get), into memory that is used again: its old content is replaced
            /// if there is such a row. Whether there is.
            ///
            /// # Errors
            /// As [`get_with`](Self::get_with).
            pub fn get_into(
                &self,
                table: &Table,
                key: &[u8],
                value: &mut Vec<u8>,
            ) -> Result<bool, EngineError> {
                let copy = |found: &[u8]| crate::read::replace(value, found);
                Ok(self.get_with(table, key, copy)?.is_some())
            }

            /// Whether there is a row with this key.
            ///
            /// # Errors
            /// As [`get_with`](Self::get_with).
            pub fn contains_key(&self, table: &Table, key: &[u8]) -> Result<bool, EngineError> {
                Ok(self.get_with(table, key, |_value| ())?.is_some())
            }

            /// The rows whose keys begin with `prefix`, from either end.
            ///
            /// # Errors
            /// As [`range`](Self::range).
            pub fn prefix<'t>(
                &'t self,
                table: &'t Table,
                prefix: &[u8],
            ) -> Result<Range<'t>, EngineError> {
                self.range(table, crate::cursor::of_prefix(prefix))
            }

            /// All rows of a table, from either end.
            ///
            /// # Errors
            /// As [`range`](Self::range).
            pub fn iter<'t>(&'t self, table: &'t Table) -> Result<Range<'t>, EngineError> {
                self.range(table, ..)
            }

            /// The row with the least key.
            ///
            /// # Errors
            /// As [`range`](Self::range).
            pub fn first(&self, table: &Table) -> Result<Option<OwnedRow>, EngineError> {
                self.iter(table)?.next().transpose()
            }

            /// The row with the greatest key.
            ///
            /// # Errors
            /// As [`range`](Self::range).
            pub fn last(&self, table: &Table) -> Result<Option<OwnedRow>, EngineError> {
                self.iter(table)?.next_back().transpose()
            }

            /// The keys of the rows with this secondary key, in their order.
            ///
            /// # Errors
            /// As [`index_cursor`](Self::index_cursor).
            pub fn index_get(
                &self,
                index: &Index,
                secondary: &[u8],
            ) -> Result<Vec<Vec<u8>>, EngineError> {
                self.index_cursor(index, secondary..=secondary, Direction::Forward)?.keys()
            }
        }
    };
}
pub(crate) use plain_reads;

/// A cursor over a range of a table. It owns what it shows: call [`next_row`](Cursor::next_row)
/// until it returns none. For an iterator see [`Table::range`](crate::Table::range).
pub struct Cursor<'t> {
    committed: TreeCursor<'t>,
    own: Option<Merge<'t>>,
    /// Keeps what it shows, where the reader does not do so itself.
    statement: Option<Snapshot>,
}

impl fmt::Debug for Cursor<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.committed.fmt(out)
    }
}

/// What a reader has changed itself, and how far it has come in the committed rows.
struct Merge<'t> {
    rows: &'t dyn OwnRows,
    direction: Direction,
    /// Own changes in the range, the next one last.
    changes: Vec<usize>,
    /// A committed row that was read and not given yet.
    key: Vec<u8>,
    value: Vec<u8>,
    has_row: bool,
}

impl Cursor<'_> {
    /// The next row, until there is none. It is valid until the next call. Of a table that is
    /// dropped meanwhile the rows of the current leaf still come.
    ///
    /// # Errors
    /// An error of reading a page or an older version; another call tries again;
    /// [`TableError::Dropped`](crate::TableError::Dropped).
    #[inline]
    pub fn next_row(&mut self) -> Result<Option<Row<'_>>, EngineError> {
        match &mut self.own {
            None => self.committed.next_row(),
            Some(own) => own.next_row(&mut self.committed),
        }
    }
}

impl Merge<'_> {
    fn next_row<'r>(
        &'r mut self,
        committed: &'r mut TreeCursor<'_>,
    ) -> Result<Option<Row<'r>>, EngineError> {
        let counts = committed.counts();
        let sample = Sample::begin();
        let row = if self.changes.is_empty() && !self.has_row {
            committed.next_row()
        } else {
            self.next_merged(committed)
        };
        counts.end(Counter::CpuNsRows, sample);
        row
    }

    fn next_merged<'r>(
        &'r mut self,
        committed: &mut TreeCursor<'_>,
    ) -> Result<Option<Row<'r>>, EngineError> {
        loop {
            if !self.has_row
                && let Some((key, value)) = committed.next_row()?
            {
                replace(&mut self.key, key);
                replace(&mut self.value, value);
                self.has_row = true;
            }
            let own = self.changes.last().map(|change| self.rows.row(*change));
            let order = match own {
                None if !self.has_row => return Ok(None),
                None => Ordering::Greater,
                Some(_) if !self.has_row => Ordering::Less,
                Some((key, _)) => match self.direction {
                    Direction::Forward => key.cmp(&self.key),
                    Direction::Backward => self.key.as_slice().cmp(key),
                },
            };
            if order == Ordering::Greater {
                self.has_row = false;
                return Ok(Some((&self.key, &self.value)));
            }
            if order == Ordering::Equal {
                self.has_row = false;
            }
            self.changes.pop();
            if let Some((key, Some(value))) = own {
                return Ok(Some((key, value)));
            }
        }
    }
}

impl Drop for Cursor<'_> {
    fn drop(&mut self) {
        if let Some(own) = &self.own {
            own.rows.saw(self.committed.newest());
        }
    }
}

/// Key and value of a row, copied.
pub type OwnedRow = (Vec<u8>, Vec<u8>);

/// One end of a range: its cursor, and the last key that it gave.
#[derive(Debug, Default)]
struct End<'t> {
    cursor: Option<Cursor<'t>>,
    last: Option<Vec<u8>>,
}

/// The rows of a range of a table, from either end. A row that cannot be read is an error. Another
/// call tries again where that may help: behind damage, in a dropped table or a closed engine the
/// rows end.
#[derive(Debug)]
pub struct Range<'t> {
    low: End<'t>,
    high: End<'t>,
    bounds: KeyBounds,
    is_over: bool,
    view: TreeView<'t>,
}

impl<'t> Range<'t> {
    pub(crate) fn new(view: TreeView<'t>, bounds: KeyBounds) -> Self {
        let (low, high) = (End::default(), End::default());
        Self { low, high, bounds, is_over: false, view }
    }

    fn give(&mut self, direction: Direction) -> Option<Result<OwnedRow, EngineError>> {
        if self.is_over {
            return None;
        }
        let (end, other) = match direction {
            Direction::Forward => (&mut self.low, &self.high),
            Direction::Backward => (&mut self.high, &self.low),
        };
        let begin = || self.view.part(self.bounds.clone(), direction);
        let cursor = end.cursor.get_or_insert_with(begin);
        let row = match cursor.next_row() {
            Err(error) => {
                self.is_over = !may_pass(&error);
                return Some(Err(error));
            }
            Ok(row) => row.map(|(key, value)| (key.to_vec(), value.to_vec())),
        };
        // Behind what the other end gave there is nothing left.
        let met = |key: &[u8]| match (&other.last, direction) {
            (None, _) => false,
            (Some(last), Direction::Forward) => key >= last.as_slice(),
            (Some(last), Direction::Backward) => key <= last.as_slice(),
        };
        let Some(row) = row.filter(|(key, _)| !met(key)) else {
            self.is_over = true;
            return None;
        };
        let last = end.last.get_or_insert_default();
        last.clear();
        last.extend_from_slice(&row.0);
        Some(Ok(row))
    }
}

impl Iterator for Range<'_> {
    type Item = Result<OwnedRow, EngineError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.give(Direction::Forward)
    }
}

impl DoubleEndedIterator for Range<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.give(Direction::Backward)
    }
}

impl FusedIterator for Range<'_> {}

/// Whether the same read may succeed later.
fn may_pass(error: &EngineError) -> bool {
    matches!(error, EngineError::Io(_) | EngineError::Request(RequestError::PoolExhausted { .. }))
}
