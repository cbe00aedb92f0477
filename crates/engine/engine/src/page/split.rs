//! Where a full page is cut in two.
//!
//! Invariant: both parts keep at least one row, and the row the cut is made for fits its part.
//! Pages that fill in ascending order are cut at their end, so that they stay full.

use crate::page::layout::{PageKind, row_bytes};
use crate::page::view::PageView;

/// So many inserts behind the last slot, in a row, are taken for ascending order.
const APPENDS_MIN: usize = 3;

/// A cut made for a row that does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split {
    /// The first slot that moves to the right page: at least 1, less than the count.
    pub from: usize,
    /// Whether the new row belongs to the right page. When it goes exactly where the cut is, it
    /// becomes the right page's first row or the left page's last; in an inner page always the
    /// latter, so that the first key of the right page is the one that moves up.
    pub is_right: bool,
}

impl PageView<'_> {
    /// Whether the newest inserts came in ascending order, behind everything else.
    fn is_ascending(&self) -> bool {
        self.appends() >= APPENDS_MIN.min(self.count().saturating_sub(1)).max(1)
    }

    /// The first slot that moves to the right page when this one is cut in two halves by bytes, or
    /// near its end when it was filled in ascending order: at least 1 and less than the count.
    /// The count when there are less than two rows.
    pub fn split_point(&self) -> usize {
        let count = self.count();
        if count < 2 {
            return count;
        }
        if self.is_ascending() {
            return count - 1;
        }
        let total = self.used_bytes();
        let mut left = 0;
        let mut best = (usize::MAX, 1);
        for from in 1..count {
            left += self.row_bytes(from - 1);
            best = best.min((left.max(total.saturating_sub(left)), from));
        }
        best.1
    }

    /// Where to cut the page for a row that does not fit and that belongs into `slot`. After the
    /// cut it fits the part it belongs to; pages that are not full may be cut as well.
    ///
    /// The page has at least two rows and the new one is within the limits, or the answer is
    /// `None`.
    pub fn split_for(&self, slot: usize, key_len: usize, value_len: usize) -> Option<Split> {
        let count = self.count();
        if count < 2 || slot > count || self.size().check_row(key_len, value_len).is_err() {
            return None;
        }
        if slot == count && self.is_ascending() {
            return Some(Split { from: count - 1, is_right: true });
        }
        let new = row_bytes(key_len, value_len);
        let total = self.used_bytes() + new;
        let may_lead = self.kind() != PageKind::Inner;
        let mut old = 0;
        let mut best: Option<(usize, Split)> = None;
        for from in 1..count {
            old += self.row_bytes(from - 1);
            for is_right in [false, true] {
                let is_apt = if is_right { slot >= from } else { slot <= from };
                if !is_apt || (is_right && slot == from && !may_lead) {
                    continue;
                }
                let left = if is_right { old } else { old + new };
                let larger = left.max(total.saturating_sub(left));
                if best.is_none_or(|(least, _)| larger < least) {
                    best = Some((larger, Split { from, is_right }));
                }
            }
        }
        best.map(|(_, split)| split)
    }
}
