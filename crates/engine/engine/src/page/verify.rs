//! Whether a page may be used at all, and whether it is exactly what its records made of it.
//!
//! Purpose: what is checked whenever a page comes from a file, and the deep check of one page, for
//! `check` and for tests. Invariant: behind the first, every reader of [`PageView`] finds what the
//! slots promise; whatever sequence of records was applied, the page passes the second. It does not
//! know the other pages of the tree.

use iostrata_innodb::PageNo;

use super::layout::u32_at;
use super::layout::{ApplyFault, PageFault};
use crate::page::heap::check_entry;
use crate::page::layout::{AT_RESERVED, CHILD_BYTES, PageKind, cell_bytes};
use crate::page::view::{PageView, SlotEntry, cell_parts, computed_crc, head_of};

impl PageView<'_> {
    /// Checksum, page number, kind and bounds: after this, every slot has its cell.
    pub fn verify(&self, expected: PageNo) -> Result<(), PageFault> {
        let (stored, computed) = (self.crc(), computed_crc(self.bytes()));
        if stored != computed {
            let is_blank = self.bytes().iter().all(|byte| *byte == 0);
            return Err(if is_blank {
                PageFault::Blank { page: expected }
            } else {
                PageFault::Checksum { page: expected, stored, computed }
            });
        }
        self.verify_shape(expected)
    }

    /// As [`verify`](Self::verify), without the checksum: for a store that is told not to check.
    pub fn verify_shape(&self, expected: PageNo) -> Result<(), PageFault> {
        let page = self.page_no();
        if page != expected {
            return Err(PageFault::OtherPage { page: expected, found: page });
        }
        let kind = PageKind::from_byte(self.kind_byte())
            .filter(|kind| kind.allows_level(self.level()))
            .ok_or(PageFault::Kind { page, kind: self.kind_byte(), level: self.level() })?;
        if self.header_flags() != 0 || u32_at(self.bytes(), AT_RESERVED) != 0 {
            return Err(PageFault::Reserved { page });
        }
        if !self.has_header_of(kind) {
            return Err(PageFault::Header {
                page,
                count: self.count(),
                heap_top: self.heap_top(),
                garbage: self.garbage(),
                prefix: self.prefix_len(),
            });
        }
        self.verify_bounds(page, kind)
    }

    fn has_header_of(&self, kind: PageKind) -> bool {
        if kind.is_slotted() {
            return self.has_sane_bounds() && self.prefix_len() <= self.size().key_bytes_max();
        }
        let sum = self.count() + self.heap_top() + self.garbage();
        sum + self.prefix_len() + self.appends() == 0
    }

    /// Every slot has its cell, and every child its number.
    fn verify_bounds(&self, page: PageNo, kind: PageKind) -> Result<(), PageFault> {
        let top = self.heap_top();
        for (slot, bytes) in self.slots().iter().enumerate() {
            let place = SlotEntry::from_bytes(bytes);
            let cell = cell_parts(self.bytes(), place).filter(|_| place.cell >= top);
            let Some(cell) = cell else {
                return Err(PageFault::Bounds { page, slot, cell: place.cell });
            };
            if kind == PageKind::Inner && cell.value.len() != CHILD_BYTES {
                return Err(PageFault::Entry { page, slot });
            }
        }
        Ok(())
    }
}

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
