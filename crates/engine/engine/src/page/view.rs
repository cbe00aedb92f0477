//! Reading a page.
//!
//! Purpose: the fields of the header and the rows of a slotted page. Invariant: total; what a
//! damaged page does not have reads as empty. A page that passed [`PageView::verify`] has
//! everything its slots promise. Which page it is and whether it may be read now is the caller's
//! business.

use std::ops::Range;

use iostrata_innodb::{Lsn, PageNo, TableId};

use crate::page::cells::{Cell, Cells};
use crate::page::fields::{u16_at, u32_at, u64_at};
use crate::page::kind::PageKind;
use crate::page::layout::{
    AT_APPENDS, AT_COUNT, AT_CRC, AT_FLAGS, AT_GARBAGE, AT_HEAP_TOP, AT_KIND, AT_LEFT, AT_LEVEL,
    AT_LSN, AT_PAGE_NO, AT_PREFIX, AT_RIGHT, AT_TABLE, CELL_AT_FLAGS, CHILD_BYTES, HEADER_BYTES,
    SLOT_BYTES,
};
use crate::page::row::{SlotEntry, cell_parts};
use crate::page::size::{PageSize, is_page_bytes};

/// The bytes of one page, to read. Copying it copies a reference.
#[derive(Clone, Copy)]
pub struct PageView<'a> {
    bytes: &'a [u8],
}

impl<'a> PageView<'a> {
    /// The page in `bytes`, which must be as long as a page.
    ///
    /// # Panics
    /// When no [`PageSize`] has this length: the caller mistook the buffer.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Self {
        assert!(is_page_bytes(bytes.len()), "a buffer of {} bytes is no page", bytes.len());
        Self { bytes }
    }

    /// For [`PageEdit`](crate::page::PageEdit), whose buffer was measured when it was made.
    #[inline]
    pub(crate) fn measured(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// All bytes of the page.
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The page's size.
    #[inline]
    pub fn size(&self) -> PageSize {
        PageSize::of(self.bytes.len()).unwrap_or(PageSize::MIN)
    }

    /// What is behind the header: the fields of the Super page, the bits of a Space page.
    #[inline]
    pub fn body(&self) -> &'a [u8] {
        self.bytes.get(HEADER_BYTES..).unwrap_or_default()
    }

    /// The checksum in the header.
    #[inline]
    pub fn crc(&self) -> u32 {
        u32_at(self.bytes, AT_CRC)
    }

    /// What the page is for. An unknown number, which [`verify`](Self::verify) does not let
    /// through, reads as Free.
    #[inline]
    pub fn kind(&self) -> PageKind {
        PageKind::from_byte(self.kind_byte()).unwrap_or(PageKind::Free)
    }

    #[inline]
    pub(crate) fn kind_byte(&self) -> u8 {
        self.bytes.get(AT_KIND).copied().unwrap_or(0)
    }

    /// Height above the leaves.
    #[inline]
    pub fn level(&self) -> u8 {
        self.bytes.get(AT_LEVEL).copied().unwrap_or(0)
    }

    /// Number of slots.
    #[inline]
    pub fn count(&self) -> usize {
        usize::from(u16_at(self.bytes, AT_COUNT))
    }

    /// Whether there is no slot.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// The page's own number.
    #[inline]
    pub fn page_no(&self) -> PageNo {
        PageNo(u64_at(self.bytes, AT_PAGE_NO))
    }

    /// End of the newest redo frame that changed the page.
    #[inline]
    pub fn lsn(&self) -> Lsn {
        Lsn(u64_at(self.bytes, AT_LSN))
    }

    /// The table the page belongs to.
    #[inline]
    pub fn table(&self) -> TableId {
        TableId(u32_at(self.bytes, AT_TABLE))
    }

    /// The neighbour to the left, [`NO_PAGE`](iostrata_innodb::NO_PAGE) for none.
    #[inline]
    pub fn left(&self) -> PageNo {
        PageNo(u64_at(self.bytes, AT_LEFT))
    }

    /// The neighbour to the right, [`NO_PAGE`](iostrata_innodb::NO_PAGE) for none.
    #[inline]
    pub fn right(&self) -> PageNo {
        PageNo(u64_at(self.bytes, AT_RIGHT))
    }

    #[inline]
    pub(crate) fn heap_top(&self) -> usize {
        u32_at(self.bytes, AT_HEAP_TOP) as usize
    }

    #[inline]
    pub(crate) fn garbage(&self) -> usize {
        u32_at(self.bytes, AT_GARBAGE) as usize
    }

    #[inline]
    pub(crate) fn header_flags(&self) -> u32 {
        u32_at(self.bytes, AT_FLAGS)
    }

    #[inline]
    pub(crate) fn prefix_len(&self) -> usize {
        usize::from(u16_at(self.bytes, AT_PREFIX))
    }

    #[inline]
    pub(crate) fn appends(&self) -> usize {
        usize::from(u16_at(self.bytes, AT_APPENDS))
    }

    /// Where the slots end and the gap begins.
    #[inline]
    pub(crate) fn slots_end(&self) -> usize {
        HEADER_BYTES + self.count() * SLOT_BYTES
    }

    /// All slots; none when a damaged count exceeds the page.
    #[inline]
    pub(crate) fn slots(&self) -> &'a [[u8; SLOT_BYTES]] {
        self.bytes.get(HEADER_BYTES..self.slots_end()).unwrap_or_default().as_chunks().0
    }

    #[inline]
    pub(crate) fn place(&self, slot: usize) -> Option<SlotEntry> {
        let at = HEADER_BYTES + slot * SLOT_BYTES;
        self.bytes.get(at..).and_then(<[u8]>::first_chunk).map(SlotEntry::from_bytes)
    }

    /// Key and value of a slot below [`count`](Self::count).
    #[inline]
    pub fn row(&self, slot: usize) -> (&'a [u8], &'a [u8]) {
        let cell = self.cell(slot);
        (cell.key, cell.value)
    }

    /// Key of a slot.
    #[inline]
    pub fn key(&self, slot: usize) -> &'a [u8] {
        debug_assert!(slot < self.count(), "slot {slot} of {}", self.count());
        self.place(slot).and_then(|place| place.key_in(self.bytes)).unwrap_or_default()
    }

    /// Value of a slot.
    #[inline]
    pub fn value(&self, slot: usize) -> &'a [u8] {
        self.row(slot).1
    }

    /// Flags, key and value of a slot.
    #[inline]
    pub fn cell(&self, slot: usize) -> Cell<'a> {
        debug_assert!(slot < self.count(), "slot {slot} of {}", self.count());
        let cell = self.place(slot).and_then(|place| cell_parts(self.bytes, place));
        cell.unwrap_or(Cell { flags: 0, key: &[], value: &[] })
    }

    /// Flags of a slot's cell.
    #[inline]
    pub fn flags(&self, slot: usize) -> u8 {
        debug_assert!(slot < self.count(), "slot {slot} of {}", self.count());
        let place = self.place(slot);
        let flags = place.and_then(|place| self.bytes.get(place.cell + CELL_AT_FLAGS));
        flags.copied().unwrap_or(0)
    }

    /// The child a slot of an inner page points to.
    #[inline]
    pub fn child(&self, slot: usize) -> PageNo {
        let value = self.value(slot).first_chunk::<CHILD_BYTES>();
        PageNo(value.map_or(0, |value| u64::from_le_bytes(*value)))
    }
}

/// The cells of a range of slots, as a Splice carries them. `out` is emptied first and holds them;
/// slots beyond the count are left out.
#[inline]
pub fn cells_of<'o>(page: &PageView<'_>, slots: Range<usize>, out: &'o mut Vec<u8>) -> Cells<'o> {
    out.clear();
    for slot in slots.start..slots.end.min(page.count()) {
        page.cell(slot).push_to(out);
    }
    Cells::new(out)
}

impl std::fmt::Debug for PageView<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("PageView")
            .field("page_no", &self.page_no())
            .field("kind", &self.kind())
            .field("level", &self.level())
            .field("count", &self.count())
            .field("free_bytes", &self.free_bytes())
            .field("lsn", &self.lsn())
            .finish_non_exhaustive()
    }
}
