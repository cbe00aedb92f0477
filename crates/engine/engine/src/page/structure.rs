//! Whether a page is exactly what its records made of it.
//!
//! Purpose: the deep check of one page, for `check` and for tests. Invariant: whatever sequence of
//! records was applied, the page passes. It does not know the other pages of the tree.

use iostrata_innodb::PageNo;

use crate::page::fault::{ApplyFault, PageFault};
use crate::page::heap::check_entry;
use crate::page::layout::cell_bytes;
use crate::page::row::{SlotEntry, head_of};
use crate::page::view::PageView;

impl PageView<'_> {
    /// Everything there is to check in a page but its checksum: bounds, limits, order, heads,
    /// overlaps, sums. Pages without slots have only their bounds.
    pub fn verify_structure(&self) -> Result<(), PageFault> {
        let page = self.page_no();
        self.verify_shape(page)?;
        if !self.kind().is_slotted() {
            return Ok(());
        }
        for slot in 0..self.count() {
            self.verify_row(page, slot)?;
        }
        self.verify_heap(page)
    }

    fn verify_row(&self, page: PageNo, slot: usize) -> Result<(), PageFault> {
        let cell = self.cell(slot);
        check_entry((page, self.size(), self.kind()), slot, cell.shape()).map_err(|fault| {
            match fault {
                ApplyFault::Row { limit, .. } => PageFault::Row { page, slot, limit },
                _ => PageFault::Entry { page, slot },
            }
        })?;
        if slot > 0 && self.key(slot - 1) >= cell.key {
            return Err(PageFault::Order { page, slot });
        }
        let skip = self.prefix_len();
        let last = self.key(self.count() - 1);
        let has_prefix =
            cell.key.is_empty() || cell.key.get(..skip).is_some_and(|key| last.starts_with(key));
        let head = self.place(slot).map(|place| place.head);
        if !has_prefix || head != Some(head_of(cell.key, skip)) {
            return Err(PageFault::Head { page, slot });
        }
        Ok(())
    }

    /// Cells do not overlap, and what they leave is counted as dead.
    fn verify_heap(&self, page: PageNo) -> Result<(), PageFault> {
        let spans = self.slots().iter().enumerate().map(|(slot, bytes)| {
            let place = SlotEntry::from_bytes(bytes);
            (place.cell, cell_bytes(place.key_len, self.value(slot).len()))
        });
        let mut spans: Vec<(usize, usize)> = spans.collect();
        spans.sort_unstable();
        let mut end = self.heap_top();
        let mut dead = 0;
        for (at, len) in spans {
            if at < end {
                return Err(PageFault::Overlap { page, at });
            }
            dead += at - end;
            end = at + len;
        }
        dead += self.bytes().len() - end;
        if dead != self.garbage() {
            return Err(PageFault::Garbage { page, counted: self.garbage(), left: dead });
        }
        Ok(())
    }
}
