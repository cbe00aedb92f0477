//! Whether a page may be used at all.
//!
//! Purpose: what is checked whenever a page comes from a file. Invariant: behind it, every reader
//! of [`PageView`] finds what the slots promise. Whether the rows make sense is for
//! [`PageView::verify_structure`].

use iostrata_innodb::PageNo;

use crate::page::fault::PageFault;
use crate::page::fields::u32_at;
use crate::page::kind::PageKind;
use crate::page::layout::{AT_CRC, AT_KIND, AT_RESERVED, CHILD_BYTES};
use crate::page::row::{SlotEntry, cell_parts};
use crate::page::view::PageView;

/// The checksum of a page: crc32c of everything behind the field that holds it.
#[inline]
pub(crate) fn computed_crc(page: &[u8]) -> u32 {
    const { assert!(AT_CRC + 4 == AT_KIND) };
    crc32c::crc32c(page.get(AT_KIND..).unwrap_or_default())
}

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
