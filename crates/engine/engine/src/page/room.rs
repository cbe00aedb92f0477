//! How many bytes rows take and how many are left.
//!
//! Invariant: exact. What [`PageView::fits`] allows, an Insert does, compacting when it must.

use crate::page::layout::row_bytes;
use crate::page::view::PageView;

impl PageView<'_> {
    /// Bytes between the slots and the lowest cell, to be had without compacting.
    #[inline]
    pub fn gap_bytes(&self) -> usize {
        self.heap_top().min(self.bytes().len()).saturating_sub(self.slots_end())
    }

    /// Bytes for further rows, dead cells included: an Insert that needs them compacts the page.
    /// Each row takes [`row_bytes`] of them.
    #[inline]
    pub fn free_bytes(&self) -> usize {
        if !self.kind().is_slotted() {
            return 0;
        }
        (self.gap_bytes() + self.garbage()).min(self.size().body_bytes())
    }

    /// Bytes that all rows of the page take: the sum of their [`row_bytes`].
    #[inline]
    pub fn used_bytes(&self) -> usize {
        if !self.kind().is_slotted() {
            return 0;
        }
        self.size().body_bytes() - self.free_bytes()
    }

    /// Bytes of the row in this slot, its slot included.
    #[inline]
    pub fn row_bytes(&self, slot: usize) -> usize {
        let (key, value) = self.row(slot);
        row_bytes(key.len(), value.len())
    }

    /// Whether one more row with a key and a value of so many bytes has room and is within the
    /// limits.
    #[inline]
    pub fn fits(&self, key_len: usize, value_len: usize) -> bool {
        row_bytes(key_len, value_len) <= self.free_bytes()
            && self.size().check_row(key_len, value_len).is_ok()
    }

    /// Whether the value of this slot can become one of `value_len` bytes.
    #[inline]
    pub fn fits_replace(&self, slot: usize, value_len: usize) -> bool {
        let key_len = self.key(slot).len();
        row_bytes(key_len, value_len) <= self.free_bytes() + self.row_bytes(slot)
            && self.size().check_row(key_len, value_len).is_ok()
    }
}
