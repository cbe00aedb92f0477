//! Where a full page is cut in two.

use crate::view::PageView;

/// A cut made for a row that does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split {
    /// The first slot that moves to the right page.
    pub from: usize,
    /// Whether the new row belongs to the right page.
    pub is_right: bool,
}

impl PageView<'_> {
    /// The first slot that moves to the right page when this one is cut in two.
    #[must_use]
    pub fn split_point(&self) -> usize {
        self.count() / 2
    }

    /// Where to cut the page for a row that does not fit.
    #[must_use]
    pub fn split_for(&self, slot: usize, key_len: usize, value_len: usize) -> Split {
        let _ = (key_len, value_len);
        let from = self.split_point();
        Split { from, is_right: slot > from }
    }
}
