//! Reading a page.
//!
//! Purpose: the fields of the header, the rows of a slotted page, and how many bytes they take.
//! Invariant: total; what a damaged page does not have reads as empty, and a place outside of it
//! has no cell. A page that passed [`PageView::verify`] has everything its slots promise. Which
//! page it is and whether it may be read now is the caller's business.

use std::cmp::Ordering;
use std::ops::Range;

use iostrata_innodb::{Lsn, PageNo, TableId};

use super::layout::{
    AT_APPENDS, AT_COUNT, AT_CRC, AT_FLAGS, AT_GARBAGE, AT_HEAP_TOP, AT_KIND, AT_LEFT, AT_LEVEL,
    AT_LSN, AT_PAGE_NO, AT_PREFIX, AT_RIGHT, AT_TABLE, CELL_AT_VALUE_LEN, CELL_HEADER_BYTES,
    CHILD_BYTES, CellFault, FLAG_TOMBSTONE, FLAG_VERSIONED, HEAD_BYTES, HEADER_BYTES, PageKind,
    PageSize, Reader, SLOT_AT_CELL, SLOT_AT_HEAD, SLOT_AT_KEY_LEN, SLOT_BYTES, VERSION_AT_NUMBER,
    VERSION_AT_OLDER, VERSION_BYTES, is_page_bytes, narrow, push, row_bytes, u16_at, u32_at,
    u64_at,
};

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
fn slot_head(slot: &[u8; SLOT_BYTES]) -> u32 {
    u32_at(slot, SLOT_AT_HEAD)
}

#[inline]
fn slot_key_len(slot: &[u8; SLOT_BYTES]) -> usize {
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

// Cells on their way from page to page.
//
// Purpose: the form in which Image and Splice records carry rows: for each `flags u8, key length
// varint, value length varint, key, value`, back to back. Invariant: reading is total; a damaged
// cell ends the sequence with an error.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell<'a> {
    pub flags: u8,
    pub key: &'a [u8],
    /// Its value, with its version behind it if it has one.
    pub value: &'a [u8],
}

/// What the limits and the kind of a page decide about: a cell without its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CellShape {
    pub flags: u8,
    pub key_len: usize,
    pub value_len: usize,
}

impl CellShape {
    /// Whether a version is present where the flags require one, and nothing before a tombstone's.
    #[inline]
    pub fn has_proper_version(self) -> bool {
        let is_versioned = self.flags & FLAG_VERSIONED != 0;
        if self.flags & FLAG_TOMBSTONE != 0 {
            return is_versioned && self.value_len == VERSION_BYTES;
        }
        !is_versioned || self.value_len >= VERSION_BYTES
    }

    /// Whether there is neither a version nor a tombstone.
    #[inline]
    pub fn is_plain(self) -> bool {
        self.flags & (FLAG_VERSIONED | FLAG_TOMBSTONE) == 0
    }
}

/// Which version of a row a cell holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// The commit that wrote it.
    pub number: u64,
    /// Where the version before lies; 0 for none.
    pub older: u64,
}

impl Version {
    /// As the bytes that a versioned value ends with.
    #[inline]
    pub fn to_bytes(self) -> [u8; VERSION_BYTES] {
        let mut bytes = [0; VERSION_BYTES];
        bytes[VERSION_AT_NUMBER..VERSION_AT_OLDER].copy_from_slice(&self.number.to_le_bytes());
        bytes[VERSION_AT_OLDER..].copy_from_slice(&self.older.to_le_bytes());
        bytes
    }
}

impl<'a> Cell<'a> {
    #[inline]
    pub fn is_versioned(&self) -> bool {
        self.flags & FLAG_VERSIONED != 0
    }

    #[inline]
    pub fn is_tombstone(&self) -> bool {
        self.flags & FLAG_TOMBSTONE != 0
    }

    #[inline]
    pub(crate) fn shape(&self) -> CellShape {
        CellShape { flags: self.flags, key_len: self.key.len(), value_len: self.value.len() }
    }

    #[inline]
    pub fn version(&self) -> Option<Version> {
        if !self.is_versioned() {
            return None;
        }
        let version = self.value.last_chunk::<VERSION_BYTES>()?;
        let number = u64_at(version, VERSION_AT_NUMBER);
        Some(Version { number, older: u64_at(version, VERSION_AT_OLDER) })
    }

    /// The value without its version.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        let version = if self.is_versioned() { VERSION_BYTES } else { 0 };
        self.value.get(..self.value.len().wrapping_sub(version)).unwrap_or_default()
    }

    /// Appends the cell in the form that Image and Splice carry.
    #[inline]
    pub fn push_to(&self, out: &mut Vec<u8>) {
        out.push(self.flags);
        push(out, self.key.len() as u64);
        push(out, self.value.len() as u64);
        out.extend_from_slice(self.key);
        out.extend_from_slice(self.value);
    }

    #[inline]
    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self, CellFault> {
        let flags = reader.byte()?;
        let key_len = reader.small()?;
        let value_len = reader.small()?;
        Ok(Self { flags, key: reader.bytes(key_len)?, value: reader.bytes(value_len)? })
    }
}

/// A sequence of cells in the form that Image and Splice carry. Iterating decodes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cells<'a> {
    bytes: &'a [u8],
}

impl<'a> Cells<'a> {
    /// The cells in `bytes`, written by [`Cell::push_to`] or [`cells_of`]. Damage shows while
    /// iterating.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

impl<'a> IntoIterator for Cells<'a> {
    type Item = Result<Cell<'a>, CellFault>;
    type IntoIter = CellsIter<'a>;

    fn into_iter(self) -> CellsIter<'a> {
        CellsIter { reader: Reader::new(self.bytes) }
    }
}

#[derive(Clone, Debug)]
pub struct CellsIter<'a> {
    reader: Reader<'a>,
}

impl CellsIter<'_> {
    /// Bytes of the cells that are still to come.
    #[inline]
    pub fn left_bytes(&self) -> usize {
        self.reader.left()
    }
}

impl<'a> Iterator for CellsIter<'a> {
    type Item = Result<Cell<'a>, CellFault>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.reader.left() == 0 {
            return None;
        }
        let cell = Cell::read(&mut self.reader);
        if cell.is_err() {
            self.reader = Reader::new(&[]);
        }
        Some(cell)
    }
}

// Finding a key in a page.
//
// Invariant: keys ascend as byte strings. Heads are compared first: a search reads the slots
// alone until one or few candidates are left. On a damaged page the answer is arbitrary, but at
// most the count.

impl PageView<'_> {
    /// The slot with this key, or the slot where it would go.
    #[inline]
    pub fn find(&self, key: &[u8]) -> Result<usize, usize> {
        self.find_near(self.near(key), key)
    }

    /// The first half of [`find`](Self::find), which reads no cell: the first slot whose head is
    /// not less than the key's, or the count.
    #[inline]
    pub fn near(&self, key: &[u8]) -> usize {
        let slots = self.slots();
        let first = self.first_with_key();
        first + lower_bound(slots.get(first..).unwrap_or_default(), head_of(key, self.prefix_len()))
    }

    /// An empty key comes first and has no part in the shared prefix.
    #[inline]
    fn first_with_key(&self) -> usize {
        usize::from(self.slots().first().is_some_and(|slot| slot_key_len(slot) == 0))
    }

    /// The second half of [`find`](Self::find), `near` being the answer of the first.
    #[inline]
    pub fn find_near(&self, low: usize, key: &[u8]) -> Result<usize, usize> {
        let slots = self.slots();
        let first = self.first_with_key();
        if key.is_empty() {
            return if first == 1 { Ok(0) } else { Err(0) };
        }
        if slots.len() == first {
            return Err(first);
        }
        let skip = self.prefix_len();
        let head = head_of(key, skip);
        // One cell must be read in any case: the head is meaningless when the prefix differs.
        let near = &slots[low.min(slots.len() - 1)];
        let near_key = SlotEntry::from_bytes(near).key_in(self.bytes()).unwrap_or_default();
        if near_key == key {
            return Ok(low.min(slots.len() - 1));
        }
        match beside_prefix(key, near_key, skip) {
            Ordering::Less => Err(first),
            Ordering::Greater => Err(slots.len()),
            Ordering::Equal if low < slots.len() && slot_head(near) == head => {
                self.find_among_equals(low, head, key)
            }
            Ordering::Equal => Err(low),
        }
    }

    /// The beginning of the cell that [`find_near`](Self::find_near) reads, at most so many bytes.
    #[inline]
    pub fn near_cell(&self, near: usize, bytes: usize) -> &[u8] {
        let slots = self.slots();
        let entry = slots.get(near).or(slots.last()).map(SlotEntry::from_bytes);
        let rest = entry.and_then(|entry| self.bytes().get(entry.cell..)).unwrap_or_default();
        &rest[..rest.len().min(bytes)]
    }

    /// The search from the first slot on that has the key's head.
    fn find_among_equals(&self, low: usize, head: u32, key: &[u8]) -> Result<usize, usize> {
        let slots = &self.slots()[low..];
        let equals = slots.iter().take_while(|slot| slot_head(slot) == head).take(2).count();
        let equals = if equals < 2 {
            &slots[..equals]
        } else {
            &slots[..slots.partition_point(|slot| slot_head(slot) == head)]
        };
        let key_of = |slot| SlotEntry::from_bytes(slot).key_in(self.bytes()).unwrap_or_default();
        let found = equals.binary_search_by(|slot| key_of(slot).cmp(key));
        found.map(|at| low + at).map_err(|at| low + at)
    }

    /// In an inner page: the slot whose child holds this key, and that child. Slot 0 counts as
    /// less than every key. `(0, NO_PAGE)` when the page is empty.
    #[inline]
    pub fn child_for(&self, key: &[u8]) -> (usize, PageNo) {
        let slot = match self.find(key) {
            Ok(slot) => slot,
            Err(next) => next.saturating_sub(1),
        };
        if slot < self.count() { (slot, self.child(slot)) } else { (0, iostrata_innodb::NO_PAGE) }
    }
}

/// Slots that one round of a search divides its range by.
const PARTS: usize = 8;
/// So many slots are counted through instead of divided further.
const COUNTED_MAX: usize = 16;

/// The first slot whose head is not less. Each round reads slots that do not depend on each other,
/// so that a page that is not in the processor's cache costs two or three waits and not one for
/// every halving.
#[inline]
fn lower_bound(slots: &[[u8; SLOT_BYTES]], head: u32) -> usize {
    let mut base = 0;
    let mut rest = slots;
    while rest.len() > COUNTED_MAX {
        let step = rest.len() / PARTS;
        let below = |part: usize| usize::from(slot_head(&rest[part * step]) < head);
        let part: usize = (1..PARTS).map(below).sum();
        let end = if part + 1 == PARTS { rest.len() } else { (part + 1) * step };
        rest = &rest[part * step..end];
        base += part * step;
    }
    base + rest.iter().map(|slot| usize::from(slot_head(slot) < head)).sum::<usize>()
}

/// How a key compares with the prefix that all keys share, `of` being one of them; equal when it
/// begins with it.
#[inline]
fn beside_prefix(key: &[u8], of: &[u8], skip: usize) -> Ordering {
    let prefix = of.get(..skip).unwrap_or_default();
    match key.get(..skip) {
        Some(start) => start.cmp(prefix),
        // Shorter than the prefix: less when it is its beginning.
        None => key.cmp(prefix),
    }
}

/// The shortest beginning of `above` that is greater than `below`: what an inner page needs to
/// separate two neighbouring pages. All of `above` when it is not greater.
#[inline]
pub fn shortest_separator<'k>(below: &[u8], above: &'k [u8]) -> &'k [u8] {
    let same = below.iter().zip(above).take_while(|(one, other)| one == other).count();
    above.get(..=same).unwrap_or(above)
}
