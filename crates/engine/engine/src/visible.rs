//! What a reader sees of a row: decided here and nowhere else.
//!
//! Invariant: every read of a table, of one key or of a range, asks here.

use iostrata_page::Cell;
use iostrata_page::layout::FLAG_TOMBSTONE;

/// Whether a reader sees a row whose cell has these flags.
#[inline]
pub(crate) fn is_visible(flags: u8) -> bool {
    flags & FLAG_TOMBSTONE == 0
}

/// The value that a reader sees; none of a row that was deleted.
#[inline]
pub(crate) fn visible<'p>(cell: &Cell<'p>) -> Option<&'p [u8]> {
    is_visible(cell.flags).then(|| cell.payload())
}
