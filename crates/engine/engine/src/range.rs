//! Rows as an iterator.

use std::iter::FusedIterator;

use crate::error::{EngineError, RequestError};
use crate::key_range::KeyBounds;
use crate::scan::{Cursor, TreeView};
use crate::tree::descend::Direction;

/// Key and value of a row, copied.
pub type OwnedRow = (Vec<u8>, Vec<u8>);

/// One end of a range: its cursor, and the last key that it gave.
#[derive(Debug, Default)]
struct End<'t> {
    cursor: Option<Cursor<'t>>,
    last: Option<Vec<u8>>,
}

/// The rows of a range of a table, from either end. A row that cannot be read is an error. Asking
/// again tries again where that may help: behind damage, in a dropped table or a closed engine the
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
