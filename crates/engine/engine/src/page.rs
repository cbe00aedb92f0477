//! Slotted pages and redo records of the embedded engine.
//!
//! Purpose: the bytes of a page, the bytes of a redo record, and the one function that changes a
//! page: [`Record::apply`]. Here are that function, the mutable view that it changes
//! ([`PageEdit`]), and what is checked: whether a page that comes from a file may be used at all,
//! and whether it is exactly what its records made of it.
//! Invariants: everything here is pure. The same record on the same page gives the same bytes, and
//! no bytes, however damaged, make a function panic or read outside the page. The running engine
//! and recovery both come to [`Record::apply`], so that recovery cannot do anything else than what
//! was done; a fault leaves the page as it was. To the outside a [`PageEdit`] offers what the log
//! does not carry: formatting, the LSN, the checksum. Behind the check of a page from a file every
//! reader of [`PageView`] finds what the slots promise; whatever sequence of records was applied,
//! the page passes the deep check. It is independent of files, caches, latches and trees: the
//! caller decides which page is meant and stamps the LSN.

mod heap;
pub mod layout;
mod record;
mod view;

use std::ops::Range;

use iostrata_innodb::{Lsn, PageNo, TableId};

pub use heap::Split;
pub use layout::{
    ApplyFault, CellFault, PageFault, PageKind, PageSize, PageSizeError, RecordFault, RowTooLarge,
    cell_bytes, row_bytes,
};
pub use record::{Hunks, Record};
pub use view::{Cell, Cells, CellsIter, PageView, Version, cells_of, shortest_separator};

use heap::{Survey, check_entry, survey};
use layout::{
    AT_APPENDS, AT_COUNT, AT_CRC, AT_GARBAGE, AT_HEAP_TOP, AT_KIND, AT_LEFT, AT_LEVEL, AT_LSN,
    AT_PAGE_NO, AT_PREFIX, AT_RESERVED, AT_RIGHT, AT_TABLE, CHILD_BYTES, HEADER_BYTES,
    is_page_bytes, narrow, put, u32_at,
};
use view::{SlotEntry, cell_parts, computed_crc, head_of};

/// The bytes of one page, to change.
pub struct PageEdit<'a> {
    bytes: &'a mut [u8],
}

impl<'a> PageEdit<'a> {
    /// The page in `bytes`, which must be as long as a page.
    ///
    /// # Panics
    /// When no [`PageSize`] has this length: the caller mistook the buffer.
    #[inline]
    pub fn new(bytes: &'a mut [u8]) -> Self {
        assert!(is_page_bytes(bytes.len()), "a buffer of {} bytes is no page", bytes.len());
        Self { bytes }
    }

    #[inline]
    pub fn view(&self) -> PageView<'_> {
        PageView::measured(self.bytes)
    }

    /// Makes it an empty page: every byte is written, the LSN is 0.
    pub fn format(
        &mut self,
        kind: PageKind,
        level: u8,
        table: TableId,
        page_no: PageNo,
        left: PageNo,
        right: PageNo,
    ) {
        self.bytes.fill(0);
        put(self.bytes, AT_KIND, &[kind as u8]);
        put(self.bytes, AT_LEVEL, &[level]);
        put(self.bytes, AT_TABLE, &table.0.to_le_bytes());
        put(self.bytes, AT_PAGE_NO, &page_no.0.to_le_bytes());
        self.set_left(left);
        self.set_right(right);
        if kind.is_slotted() {
            self.set_heap_top(self.bytes.len());
        }
    }

    /// Stamps the end of the redo frame that changed the page last.
    #[inline]
    pub fn set_lsn(&mut self, lsn: Lsn) {
        put(self.bytes, AT_LSN, &lsn.0.to_le_bytes());
    }

    /// Writes the checksum, after everything else and before the page goes to a file.
    #[inline]
    pub fn seal(&mut self) {
        let crc = computed_crc(self.bytes);
        put(self.bytes, AT_CRC, &crc.to_le_bytes());
    }

    #[inline]
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        self.bytes
    }

    #[inline]
    fn set_left(&mut self, left: PageNo) {
        put(self.bytes, AT_LEFT, &left.0.to_le_bytes());
    }

    #[inline]
    fn set_right(&mut self, right: PageNo) {
        put(self.bytes, AT_RIGHT, &right.0.to_le_bytes());
    }

    #[inline]
    pub(crate) fn set_count(&mut self, count: usize) {
        put(self.bytes, AT_COUNT, &narrow(count).to_le_bytes());
    }

    #[inline]
    pub(crate) fn set_heap_top(&mut self, at: usize) {
        put(self.bytes, AT_HEAP_TOP, &(at as u32).to_le_bytes());
    }

    #[inline]
    pub(crate) fn set_garbage(&mut self, bytes: usize) {
        put(self.bytes, AT_GARBAGE, &(bytes as u32).to_le_bytes());
    }

    #[inline]
    pub(crate) fn set_prefix_len(&mut self, bytes: usize) {
        put(self.bytes, AT_PREFIX, &narrow(bytes).to_le_bytes());
    }

    #[inline]
    pub(crate) fn set_appends(&mut self, inserts: usize) {
        let inserts = inserts.min(usize::from(u16::MAX));
        put(self.bytes, AT_APPENDS, &narrow(inserts).to_le_bytes());
    }
}

/// The readers of [`PageView`], so that an edit reads like a view.
macro_rules! readers {
    ($($name:ident($($argument:ident: $kind:ty),*) -> $result:ty;)*) => {
        impl PageEdit<'_> {
            $(
                #[doc = concat!("See [`PageView::", stringify!($name), "`].")]
                #[inline]
                pub fn $name(&self, $($argument: $kind),*) -> $result {
                    self.view().$name($($argument),*)
                }
            )*
        }
    };
}

readers! {
    bytes() -> &[u8];
    size() -> PageSize;
    kind() -> PageKind;
    count() -> usize;
    page_no() -> PageNo;
    key(slot: usize) -> &[u8];
    bit(bit: u32) -> bool;
    bits_set_in(bits: Range<u32>) -> u32;
}

// The Space page: one bit for each of a run of pages.
//
// Invariant: bit n is bit n % 8, counted from the least significant, of byte n / 8 behind the
// header; it is set when the page is in use. Which page bit 0 stands for is the caller's
// business.

impl PageView<'_> {
    /// Whether a bit is set; bits beyond [`space_bits`](PageSize::space_bits) are not.
    #[inline]
    pub fn bit(&self, bit: u32) -> bool {
        let byte = self.body().get(bit as usize / 8).copied().unwrap_or(0);
        byte >> (bit % 8) & 1 == 1
    }

    pub fn bits_set_in(&self, bits: Range<u32>) -> u32 {
        let end = bits.end.min(self.size().space_bits());
        let first = bits.start / 64;
        let words = self.body().as_chunks().0;
        let range = words.get(first as usize..end.div_ceil(64) as usize).unwrap_or_default();
        (first..)
            .zip(range)
            .map(|(at, word)| {
                (u64::from_le_bytes(*word) & mask(bits.start, end, at * 64)).count_ones()
            })
            .sum()
    }

    /// The first bit at or behind `from` that is not set.
    pub fn first_clear(&self, from: u32) -> Option<u32> {
        let words = self.body().as_chunks().0;
        let first = from / 64;
        let mut hidden = !mask(from, u32::MAX, first * 64);
        for (at, word) in (first..).zip(words.get(first as usize..)?) {
            let clear = !(u64::from_le_bytes(*word) | std::mem::take(&mut hidden));
            if clear != 0 {
                return Some(at * 64 + clear.trailing_zeros());
            }
        }
        None
    }
}

/// The bits of the word that begins at bit `base` that lie in `start..end`.
fn mask(start: u32, end: u32, base: u32) -> u64 {
    let below = start.saturating_sub(base);
    let above = base.saturating_add(64).saturating_sub(end);
    if below >= 64 || above >= 64 {
        return 0;
    }
    (u64::MAX << below) & (u64::MAX >> above)
}

/// Sets or clears bits. They lie within the body.
fn write_bits(body: &mut [u8], bits: Range<u32>, set: bool) {
    let (words, _) = body.as_chunks_mut();
    for at in bits.start / 64..bits.end.div_ceil(64) {
        let mask = mask(bits.start, bits.end, at * 64);
        if let Some(word) = words.get_mut(at as usize) {
            let old = u64::from_le_bytes(*word);
            *word = (if set { old | mask } else { old & !mask }).to_le_bytes();
        }
    }
}

impl Record<'_> {
    /// Changes page `no` as the record describes. The LSN and the checksum stay for the caller to
    /// write, but a record that starts the page sets them to 0.
    #[inline]
    pub fn apply(&self, page: &mut PageEdit<'_>, no: PageNo) -> Result<(), ApplyFault> {
        if self.starts_page() {
            return self.start(page, no);
        }
        if page.page_no() != no {
            return Err(ApplyFault::OtherPage { page: no, found: page.page_no() });
        }
        match *self {
            Self::SetBits { from, count, set } => return set_bits(page, no, from, count, set),
            Self::SetSuper { at, bytes } => return set_super(page, no, at, bytes),
            _ => {}
        }
        let kind = page.kind();
        if !kind.is_slotted() {
            return Err(ApplyFault::WrongKind { page: no, kind });
        }
        if !page.view().has_sane_bounds() {
            return Err(ApplyFault::Damaged { page: no });
        }
        match *self {
            Self::Insert { slot, flags, key, value } => {
                page.insert(no, slot, Cell { flags, key, value })
            }
            Self::Delete { slot } => page.delete(no, slot),
            Self::Replace { slot, value } => page.replace(no, slot, value),
            Self::Revise { slot, flags, len, hunks } => page.revise(no, slot, (flags, len), hunks),
            Self::Truncate { from } => page.truncate(no, from),
            Self::Splice { at, cells } => page.splice(no, at, cells),
            Self::SetLeft(left) => {
                page.set_left(left);
                Ok(())
            }
            Self::SetRight(right) => {
                page.set_right(right);
                Ok(())
            }
            Self::Init { .. }
            | Self::Image { .. }
            | Self::SetBits { .. }
            | Self::SetSuper { .. } => Ok(()), // done above
        }
    }

    /// Init and Image: whatever was there, the page starts empty.
    fn start(&self, page: &mut PageEdit<'_>, no: PageNo) -> Result<(), ApplyFault> {
        let (kind, level, table, left, right, body) = match *self {
            Self::Init { kind, level, table, left, right } => {
                (kind, level, table, left, right, &[][..])
            }
            Self::Image { kind, level, table, left, right, body } => {
                (kind, level, table, left, right, body)
            }
            _ => return Ok(()),
        };
        if !kind.allows_level(level) {
            return Err(ApplyFault::WrongLevel { page: no, kind, level });
        }
        let found = check_body(page, no, kind, body)?;
        page.format(kind, level, table, no, left, right);
        if kind.is_slotted() {
            if found.count > 0 {
                page.lay(0, Cells::new(body), found);
            }
        } else {
            put(page.bytes_mut(), HEADER_BYTES, body);
        }
        Ok(())
    }
}

/// Whether the content of an image fits a page of its kind.
fn check_body(
    page: &PageEdit<'_>,
    no: PageNo,
    kind: PageKind,
    body: &[u8],
) -> Result<Survey, ApplyFault> {
    let size = page.size();
    if kind.is_slotted() {
        let found = survey(Cells::new(body), (no, size, kind), 0, (None, None))?;
        let (needed, free) = (found.bytes, size.body_bytes());
        if needed > free {
            return Err(ApplyFault::Full { page: no, needed, free });
        }
        return Ok(found);
    }
    let len = if kind == PageKind::Free { 0 } else { size.body_bytes() };
    if body.len() > len {
        return Err(ApplyFault::OutOfRange { page: no, from: 0, count: body.len(), len });
    }
    Ok(Survey::default())
}

fn set_bits(
    page: &mut PageEdit<'_>,
    no: PageNo,
    from: u32,
    count: u32,
    set: bool,
) -> Result<(), ApplyFault> {
    expect_kind(page, no, PageKind::Space)?;
    let len = page.size().space_bits();
    let bits: Range<u32> = match from.checked_add(count) {
        Some(end) if end <= len => from..end,
        _ => {
            let (from, count, len) = (from as usize, count as usize, len as usize);
            return Err(ApplyFault::OutOfRange { page: no, from, count, len });
        }
    };
    if page.bits_set_in(bits.clone()) != if set { 0 } else { count } {
        let bit = bits.clone().find(|bit| page.bit(*bit) == set).unwrap_or(from);
        return Err(ApplyFault::AlreadySo { page: no, bit });
    }
    if let Some(body) = page.bytes_mut().get_mut(HEADER_BYTES..) {
        write_bits(body, bits, set);
    }
    Ok(())
}

fn set_super(
    page: &mut PageEdit<'_>,
    no: PageNo,
    at: usize,
    bytes: &[u8],
) -> Result<(), ApplyFault> {
    expect_kind(page, no, PageKind::Super)?;
    let len = page.size().body_bytes();
    if at > len || bytes.len() > len - at {
        return Err(ApplyFault::OutOfRange { page: no, from: at, count: bytes.len(), len });
    }
    put(page.bytes_mut(), HEADER_BYTES + at, bytes);
    Ok(())
}

fn expect_kind(page: &PageEdit<'_>, no: PageNo, kind: PageKind) -> Result<(), ApplyFault> {
    if page.kind() == kind {
        return Ok(());
    }
    Err(ApplyFault::WrongKind { page: no, kind: page.kind() })
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

    /// As [`verify`](Self::verify), without the checksum: for a store without checksums.
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
