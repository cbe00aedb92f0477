//! Reading a page.
//!
//! Purpose: the fields of the header, the rows of a slotted page, and how many bytes they take.
//! Invariant: total; what a damaged page does not have reads as empty, and a place outside of it
//! has no cell. A page that passed [`PageView::verify`] has everything its slots promise. Which
//! page it is and whether it may be read now is the caller's business.

use std::ops::Range;

use iostrata_innodb::{Lsn, PageNo, TableId};

use crate::page::cells::{Cell, Cells};
use crate::page::layout::{
    AT_APPENDS, AT_COUNT, AT_CRC, AT_FLAGS, AT_GARBAGE, AT_HEAP_TOP, AT_KIND, AT_LEFT, AT_LEVEL,
    AT_LSN, AT_PAGE_NO, AT_PREFIX, AT_RIGHT, AT_TABLE, CELL_AT_VALUE_LEN, CELL_HEADER_BYTES,
    CHILD_BYTES, HEAD_BYTES, HEADER_BYTES, PageKind, SLOT_AT_CELL, SLOT_AT_HEAD, SLOT_AT_KEY_LEN,
    SLOT_BYTES, row_bytes,
};
use crate::page::numbers::{narrow, u16_at, u32_at, u64_at};
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

    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    #[inline]
    pub fn size(&self) -> PageSize {
        PageSize::of(self.bytes.len()).unwrap_or(PageSize::MIN)
    }

    /// What is behind the header: the fields of the Super page, the bits of a Space page.
    #[inline]
    pub fn body(&self) -> &'a [u8] {
        self.bytes.get(HEADER_BYTES..).unwrap_or_default()
    }

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

    #[inline]
    pub fn level(&self) -> u8 {
        self.bytes.get(AT_LEVEL).copied().unwrap_or(0)
    }

    #[inline]
    pub fn count(&self) -> usize {
        usize::from(u16_at(self.bytes, AT_COUNT))
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }

    #[inline]
    pub fn page_no(&self) -> PageNo {
        PageNo(u64_at(self.bytes, AT_PAGE_NO))
    }

    /// End of the newest redo frame that changed the page.
    #[inline]
    pub fn lsn(&self) -> Lsn {
        Lsn(u64_at(self.bytes, AT_LSN))
    }

    #[inline]
    pub fn table(&self) -> TableId {
        TableId(u32_at(self.bytes, AT_TABLE))
    }

    #[inline]
    pub fn left(&self) -> PageNo {
        PageNo(u64_at(self.bytes, AT_LEFT))
    }

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

    #[inline]
    pub fn row(&self, slot: usize) -> (&'a [u8], &'a [u8]) {
        let cell = self.cell(slot);
        (cell.key, cell.value)
    }

    #[inline]
    pub fn key(&self, slot: usize) -> &'a [u8] {
        debug_assert!(slot < self.count(), "slot {slot} of {}", self.count());
        self.place(slot).and_then(|place| place.key_in(self.bytes)).unwrap_or_default()
    }

    #[inline]
    pub fn value(&self, slot: usize) -> &'a [u8] {
        self.row(slot).1
    }

    #[inline]
    pub fn cell(&self, slot: usize) -> Cell<'a> {
        debug_assert!(slot < self.count(), "slot {slot} of {}", self.count());
        let cell = self.place(slot).and_then(|place| cell_parts(self.bytes, place));
        cell.unwrap_or(Cell { flags: 0, key: &[], value: &[] })
    }

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
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotEntry {
    pub cell: usize,
    pub key_len: usize,
    /// The key's head behind the shared prefix.
    pub head: u32,
}

impl SlotEntry {
    #[inline]
    pub fn from_bytes(slot: &[u8; SLOT_BYTES]) -> Self {
        Self {
            cell: usize::from(u16_at(slot, SLOT_AT_CELL)),
            key_len: usize::from(u16_at(slot, SLOT_AT_KEY_LEN)),
            head: slot_head(slot),
        }
    }

    #[inline]
    pub fn to_bytes(self) -> [u8; SLOT_BYTES] {
        let mut slot = [0; SLOT_BYTES];
        slot[SLOT_AT_CELL..SLOT_AT_CELL + 2].copy_from_slice(&narrow(self.cell).to_le_bytes());
        slot[SLOT_AT_KEY_LEN..SLOT_AT_KEY_LEN + 2]
            .copy_from_slice(&narrow(self.key_len).to_le_bytes());
        slot[SLOT_AT_HEAD..].copy_from_slice(&self.head.to_le_bytes());
        slot
    }

    #[inline]
    pub fn key_in(self, page: &[u8]) -> Option<&[u8]> {
        let start = self.cell + CELL_HEADER_BYTES;
        page.get(start..start + self.key_len)
    }
}

#[inline]
pub(crate) fn slot_head(slot: &[u8; SLOT_BYTES]) -> u32 {
    u32_at(slot, SLOT_AT_HEAD)
}

#[inline]
pub(crate) fn slot_key_len(slot: &[u8; SLOT_BYTES]) -> usize {
    usize::from(u16_at(slot, SLOT_AT_KEY_LEN))
}

/// The head of a key whose shared prefix is `skip` bytes.
#[inline]
pub(crate) fn head_of(key: &[u8], skip: usize) -> u32 {
    let rest = key.get(skip..).unwrap_or_default();
    if let Some(four) = rest.first_chunk::<HEAD_BYTES>() {
        return u32::from_be_bytes(*four);
    }
    let mut four = [0; HEAD_BYTES];
    four[..rest.len()].copy_from_slice(rest);
    u32::from_be_bytes(four)
}

/// The cell at a place, if all of it lies in the page.
#[inline]
pub(crate) fn cell_parts(page: &[u8], place: SlotEntry) -> Option<Cell<'_>> {
    let (header, rest) = page.get(place.cell..)?.split_first_chunk::<CELL_HEADER_BYTES>()?;
    let value_len = usize::from(u16_at(header, CELL_AT_VALUE_LEN));
    let (key, rest) = rest.split_at_checked(place.key_len)?;
    Some(Cell { flags: header[0], key, value: rest.get(..value_len)? })
}

/// The checksum of a page: crc32c of everything behind the field that holds it.
#[inline]
pub(crate) fn computed_crc(page: &[u8]) -> u32 {
    const { assert!(AT_CRC + 4 == AT_KIND) };
    crc32c::crc32c(page.get(AT_KIND..).unwrap_or_default())
}
