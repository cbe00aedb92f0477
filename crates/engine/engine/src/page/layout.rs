//! Where every byte of a page lies, how numbers are written there, what fits one, and what can be
//! wrong with it.
//!
//! Purpose: the offsets and widths of the header, of a slot and of a cell, in one place, so that
//! code and documents draw the same picture. Invariant: all integers are little endian, and no two
//! fields overlap (checked while compiling).
//!
//! ```text
//! 0        64                                        heap_top                page size
//! | header | slot 0 | slot 1 | .. -> |  free  | <- .. | cell | dead | cell | .. |
//! ```

use std::fmt;

use iostrata_innodb::{PageNo, Settings};
use thiserror::Error;

/// The kind of a page, as its header holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum PageKind {
    /// Unused.
    Free = 0,
    /// A tree node above the leaves: keys and children.
    Inner = 1,
    /// A tree node at the bottom: keys and values.
    Leaf = 2,
    /// A map of which pages are in use, one bit each.
    Space = 3,
    /// Page 0: where everything begins.
    Super = 4,
}

impl PageKind {
    #[inline]
    pub const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::Free),
            1 => Some(Self::Inner),
            2 => Some(Self::Leaf),
            3 => Some(Self::Space),
            4 => Some(Self::Super),
            _ => None,
        }
    }

    #[inline]
    pub const fn is_slotted(self) -> bool {
        matches!(self, Self::Inner | Self::Leaf)
    }

    /// Whether a page of this kind can stand on this level: leaves on 0, inner pages above, the
    /// others on 0.
    #[inline]
    pub const fn allows_level(self, level: u8) -> bool {
        matches!(self, Self::Inner) == (level > 0)
    }
}

/// Bytes of the header of every page.
pub const HEADER_BYTES: usize = 64;

/// u32: crc32c of all bytes of the page behind this field.
pub const AT_CRC: usize = 0;
/// u8: the [`PageKind`](crate::page::PageKind).
pub const AT_KIND: usize = 4;
/// u8: height above the leaves; 0 in a leaf and in pages of no tree.
pub const AT_LEVEL: usize = 5;
/// u16: number of slots.
pub const AT_COUNT: usize = 6;
/// u64: the page's own number.
pub const AT_PAGE_NO: usize = 8;
/// u64: end of the newest redo frame that changed the page.
pub const AT_LSN: usize = 16;
/// u32: the table whose tree the page belongs to.
pub const AT_TABLE: usize = 24;
/// u32: offset of the lowest cell; the page size when there is none; 0 in unslotted pages.
pub const AT_HEAP_TOP: usize = 28;
/// u32: bytes from `heap_top` to the end that no live cell uses.
pub const AT_GARBAGE: usize = 32;
/// u32: zero; kept for later.
pub const AT_FLAGS: usize = 36;
/// u64: the neighbour to the left on the same level, 0 for none.
pub const AT_LEFT: usize = 40;
/// u64: the neighbour to the right on the same level, 0 for none.
pub const AT_RIGHT: usize = 48;
/// u16: number of leading bytes that all keys of the page but an empty one share.
pub const AT_PREFIX: usize = 56;
/// u16: how many inserts in a row, up to the newest, went behind the last slot.
pub const AT_APPENDS: usize = 58;
/// u32: zero; kept for later.
pub const AT_RESERVED: usize = 60;

/// Bytes of a slot. Slots follow the header in the order of their keys.
pub const SLOT_BYTES: usize = 8;
/// u16 in a slot: offset of the cell in the page.
pub const SLOT_AT_CELL: usize = 0;
/// u16 in a slot: bytes of the key.
pub const SLOT_AT_KEY_LEN: usize = 2;
/// u32 in a slot: the four key bytes behind the shared prefix read as one big-endian number,
/// zeros where the key ends, so that heads compare as the keys do.
pub const SLOT_AT_HEAD: usize = 4;
/// Key bytes in a head.
pub const HEAD_BYTES: usize = 4;

/// Bytes of a cell before its key. The value follows the key.
pub const CELL_HEADER_BYTES: usize = 3;
/// u8 in a cell: flags.
pub const CELL_AT_FLAGS: usize = 0;
/// u16 in a cell: bytes of the value.
pub const CELL_AT_VALUE_LEN: usize = 1;
/// Cell flag: the value ends with a version. Only in leaves.
pub const FLAG_VERSIONED: u8 = 1;
/// Cell flag: the row was deleted and stands for its older versions; its value is its
/// version and nothing else. Only in leaves.
pub const FLAG_TOMBSTONE: u8 = 2;
/// Bytes of a version.
pub const VERSION_BYTES: usize = 16;
/// u64 in a version: which commit wrote the row.
pub const VERSION_AT_NUMBER: usize = 0;
/// u64 in a version: where the version before lies; 0 for none.
pub const VERSION_AT_OLDER: usize = 8;

/// Bytes of a value in an inner page: the child's page number.
pub const CHILD_BYTES: usize = 8;

/// Smallest page in bytes.
pub const PAGE_BYTES_MIN: usize = 4 << 10;
/// Largest page in bytes.
pub const PAGE_BYTES_MAX: usize = 64 << 10;

/// Bytes of a cell in the page, its slot not counted.
#[inline]
pub const fn cell_bytes(key_len: usize, value_len: usize) -> usize {
    CELL_HEADER_BYTES.saturating_add(key_len).saturating_add(value_len)
}

/// Bytes a row takes of [`PageView::free_bytes`](crate::page::PageView::free_bytes): its cell and
/// its slot.
#[inline]
pub const fn row_bytes(key_len: usize, value_len: usize) -> usize {
    cell_bytes(key_len, value_len).saturating_add(SLOT_BYTES)
}

/// Every field of the header as (offset, bytes), in order.
pub const HEADER_FIELDS: [(usize, usize); 15] = [
    (AT_CRC, 4),
    (AT_KIND, 1),
    (AT_LEVEL, 1),
    (AT_COUNT, 2),
    (AT_PAGE_NO, 8),
    (AT_LSN, 8),
    (AT_TABLE, 4),
    (AT_HEAP_TOP, 4),
    (AT_GARBAGE, 4),
    (AT_FLAGS, 4),
    (AT_LEFT, 8),
    (AT_RIGHT, 8),
    (AT_PREFIX, 2),
    (AT_APPENDS, 2),
    (AT_RESERVED, 4),
];

const _: () = {
    let mut end = 0;
    let mut at = 0;
    while at < HEADER_FIELDS.len() {
        assert!(HEADER_FIELDS[at].0 == end, "header fields follow each other without a gap");
        assert!(end.is_multiple_of(HEADER_FIELDS[at].1), "every header field is aligned");
        end += HEADER_FIELDS[at].1;
        at += 1;
    }
    assert!(end == HEADER_BYTES);
};
const _: () =
    assert!(SLOT_AT_HEAD + HEAD_BYTES == SLOT_BYTES && HEADER_BYTES.is_multiple_of(SLOT_BYTES));
const _: () = assert!(SLOT_AT_KEY_LEN == SLOT_AT_CELL + 2 && SLOT_AT_HEAD == SLOT_AT_KEY_LEN + 2);
const _: () = assert!(CELL_AT_VALUE_LEN == CELL_AT_FLAGS + 1);
const _: () = assert!(CELL_HEADER_BYTES == CELL_AT_VALUE_LEN + 2);
const _: () = assert!(PAGE_BYTES_MAX - 1 <= u16::MAX as usize, "every cell has a u16 offset");
const _: () = assert!(PAGE_BYTES_MAX / SLOT_BYTES <= u16::MAX as usize, "slots count in a u16");

// Numbers in pages and records.
//
// Purpose: little-endian integers at an offset of a page, and numbers of as few bytes as they
// need: seven bits a byte, the least significant first, the top bit set while more follow
// (LEB128). Invariant: total. Outside of the bytes a read gives 0 and a write does nothing; pages
// are never so short, so that neither happens with a page's own fields. Every varint has exactly
// one form; longer ones are refused, so that what was decoded encodes to the same bytes.

#[inline]
pub(crate) fn push(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Takes from the front of bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    #[inline]
    pub fn left(&self) -> usize {
        self.rest.len()
    }

    #[inline]
    pub fn byte(&mut self) -> Result<u8, CellFault> {
        let (first, rest) = self.rest.split_first().ok_or(CellFault::CutShort)?;
        self.rest = rest;
        Ok(*first)
    }

    #[inline]
    pub fn bytes(&mut self, len: usize) -> Result<&'a [u8], CellFault> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(CellFault::CutShort)?;
        self.rest = rest;
        Ok(taken)
    }

    #[inline]
    pub fn varint(&mut self) -> Result<u64, CellFault> {
        let first = self.byte()?;
        if first < 0x80 { Ok(u64::from(first)) } else { self.varint_from(first) }
    }

    fn varint_from(&mut self, first: u8) -> Result<u64, CellFault> {
        let mut number = u64::from(first & 0x7f);
        for shift in (7..64).step_by(7) {
            let byte = self.byte()?;
            let part = u64::from(byte & 0x7f);
            if part << shift >> shift != part || byte == 0 {
                return Err(CellFault::Number);
            }
            number |= part << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(CellFault::Number)
    }

    /// A length or an index within a page.
    #[inline]
    pub fn small(&mut self) -> Result<usize, CellFault> {
        let number = self.varint()?;
        if number > PAGE_BYTES_MAX as u64 {
            return Err(CellFault::Number);
        }
        Ok(number as usize)
    }
}

#[inline]
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |chunk| u16::from_le_bytes(*chunk))
}

#[inline]
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |chunk| u32::from_le_bytes(*chunk))
}

#[inline]
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |chunk| u64::from_le_bytes(*chunk))
}

#[inline]
pub(crate) fn put(bytes: &mut [u8], at: usize, field: &[u8]) {
    let to = bytes.get_mut(at..).and_then(|rest| rest.get_mut(..field.len()));
    debug_assert!(to.is_some(), "{} bytes at {at} lie in the page", field.len());
    if let Some(to) = to {
        to.copy_from_slice(field);
    }
}

/// `number` as a u16. Only for what is known to fit: offsets and lengths within a page.
#[inline]
pub(crate) fn narrow(number: usize) -> u16 {
    debug_assert!(number <= usize::from(u16::MAX), "{number} fits a u16");
    number as u16
}

// The size of pages and what fits one.
//
// Purpose: the one size all pages of a database have, and the limits of a row that follow from
// it. Invariant: two rows within the limits always fit an empty page, so that every full page can
// be split and every part of a split takes the row it was split for.

/// Bytes of a page: a power of two from 4 KiB to 64 KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageSize(u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "page size {bytes} is not a power of two from {PAGE_BYTES_MIN} to {PAGE_BYTES_MAX}; \
     use 4096, 8192, 16384, 32768 or 65536"
)]
pub struct PageSizeError {
    pub bytes: u64,
}

/// A row that no page of this size holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RowTooLarge {
    /// The key alone is too long.
    #[error("a key of {bytes} bytes is longer than the {bytes_max} a page allows; shorten it")]
    Key {
        /// Bytes of the key.
        bytes: usize,
        /// Most bytes of a key.
        bytes_max: usize,
    },
    /// Key and value together are too long.
    #[error(
        "a row of {bytes} bytes (key and value) is longer than the {bytes_max} a page allows; \
         split it or create the database with larger pages"
    )]
    Row {
        /// Bytes of key and value together.
        bytes: usize,
        /// Most bytes of key and value together.
        bytes_max: usize,
    },
}

impl PageSize {
    pub fn of_settings(settings: &Settings) -> Self {
        match Self::new(settings.page_size) {
            Ok(size) => size,
            Err(error) => panic!("settings were checked, yet {error}"),
        }
    }

    pub const MIN: Self = Self(PAGE_BYTES_MIN as u32);
    /// 16 KiB, what a database has unless another size is set.
    pub const DEFAULT: Self = Self(16 << 10);
    pub const ALL: [Self; 5] =
        [Self(4 << 10), Self(8 << 10), Self(16 << 10), Self(32 << 10), Self(64 << 10)];

    pub const fn new(bytes: u32) -> Result<Self, PageSizeError> {
        if is_page_bytes(bytes as usize) {
            Ok(Self(bytes))
        } else {
            Err(PageSizeError { bytes: bytes as u64 })
        }
    }

    /// The size of a buffer that holds one page, if it can.
    pub const fn of(bytes: usize) -> Option<Self> {
        if is_page_bytes(bytes) { Some(Self(bytes as u32)) } else { None }
    }

    #[inline]
    pub const fn bytes(self) -> usize {
        self.0 as usize
    }

    #[inline]
    pub const fn body_bytes(self) -> usize {
        self.bytes() - HEADER_BYTES
    }

    /// Longest key in bytes: an eighth of the page, so that an inner page has at least six
    /// children.
    #[inline]
    pub const fn key_bytes_max(self) -> usize {
        self.bytes() / 8
    }

    /// Longest cell in bytes: half of what an empty page has room for.
    #[inline]
    pub const fn cell_bytes_max(self) -> usize {
        self.body_bytes() / 2 - SLOT_BYTES
    }

    /// Most bytes of key and value together, a version included.
    #[inline]
    pub const fn row_bytes_max(self) -> usize {
        self.cell_bytes_max() - CELL_HEADER_BYTES
    }

    /// Whether a new row can come in: one that has room for a version as well.
    pub const fn check_new_row(self, key_len: usize, value_len: usize) -> Result<(), RowTooLarge> {
        match self.check_row(key_len, value_len.saturating_add(VERSION_BYTES)) {
            Err(RowTooLarge::Row { .. }) => Err(RowTooLarge::Row {
                bytes: key_len.saturating_add(value_len),
                bytes_max: self.row_bytes_max() - VERSION_BYTES,
            }),
            checked => checked,
        }
    }

    /// Whether a row with a key and a value of so many bytes can be held at all.
    #[inline]
    pub const fn check_row(self, key_len: usize, value_len: usize) -> Result<(), RowTooLarge> {
        if key_len > self.key_bytes_max() {
            return Err(RowTooLarge::Key { bytes: key_len, bytes_max: self.key_bytes_max() });
        }
        if cell_bytes(key_len, value_len) > self.cell_bytes_max() {
            let bytes = key_len.saturating_add(value_len);
            return Err(RowTooLarge::Row { bytes, bytes_max: self.row_bytes_max() });
        }
        Ok(())
    }

    /// Pages that one Space page keeps account of: one bit for each.
    #[inline]
    pub const fn space_bits(self) -> u32 {
        (self.body_bytes() * 8) as u32
    }
}

#[inline]
pub(crate) const fn is_page_bytes(bytes: usize) -> bool {
    bytes.is_power_of_two() && bytes >= PAGE_BYTES_MIN && bytes <= PAGE_BYTES_MAX
}

impl Default for PageSize {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl fmt::Display for PageSize {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// Why a page must not be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PageFault {
    #[error("page {page} was never written: it is all zeros")]
    Blank { page: PageNo },
    #[error(
        "page {page} is torn or damaged: its checksum is {stored:#010x}, its bytes give \
         {computed:#010x}; restore it from the doublewrite file or a backup"
    )]
    Checksum { page: PageNo, stored: u32, computed: u32 },
    #[error("page {page} holds page {found}: a read or write went astray")]
    OtherPage { page: PageNo, found: PageNo },
    #[error("page {page} has kind {kind} on level {level}, which no page has")]
    Kind { page: PageNo, kind: u8, level: u8 },
    #[error(
        "page {page} has an impossible header: {count} slots, cells from {heap_top} on with \
         {garbage} dead bytes, prefix {prefix}"
    )]
    Header { page: PageNo, count: usize, heap_top: usize, garbage: usize, prefix: usize },
    #[error("page {page} uses header fields that this version does not know; use a newer one")]
    Reserved { page: PageNo },
    #[error("slot {slot} of page {page} points to {cell}, where no whole cell lies")]
    Bounds { page: PageNo, slot: usize, cell: usize },
    #[error("slot {slot} of page {page} holds a row beyond the limits: {limit}")]
    Row { page: PageNo, slot: usize, limit: RowTooLarge },
    #[error("the key in slot {slot} of page {page} is not greater than the one before it")]
    Order { page: PageNo, slot: usize },
    #[error("the head in slot {slot} of page {page} is not that of its key")]
    Head { page: PageNo, slot: usize },
    #[error("two cells of page {page} overlap at byte {at}")]
    Overlap { page: PageNo, at: usize },
    #[error("page {page} counts {counted} dead bytes, but its cells leave {left}")]
    Garbage { page: PageNo, counted: usize, left: usize },
    #[error("slot {slot} of page {page} holds a row that a page of its kind cannot have")]
    Entry { page: PageNo, slot: usize },
}

/// Why bytes are no record's field or cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CellFault {
    #[error("cut short")]
    CutShort,
    #[error("a number is out of range or not in its shortest form")]
    Number,
    #[error("a page kind is unknown")]
    Kind,
}

/// Why bytes are no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RecordFault {
    #[error("record kind {tag} is unknown; the log is damaged or from a newer version")]
    UnknownTag { tag: u8 },
    #[error("a record of kind {tag} is damaged: {fault}")]
    Field { tag: u8, fault: CellFault },
}

/// Why a record does not fit its page. The page is unchanged then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ApplyFault {
    #[error("a record for page {page} met page {found}")]
    OtherPage { page: PageNo, found: PageNo },
    #[error("page {page} is of kind {kind:?}, which this record does not change")]
    WrongKind { page: PageNo, kind: PageKind },
    #[error("page {page} cannot be of kind {kind:?} on level {level}")]
    WrongLevel { page: PageNo, kind: PageKind, level: u8 },
    #[error("page {page} has {count} slots; the record names slot {slot}")]
    NoSlot { page: PageNo, slot: usize, count: usize },
    #[error("page {page} has {len} there; the record names {count} from {from} on")]
    OutOfRange { page: PageNo, from: usize, count: usize, len: usize },
    #[error("page {page} has {free} free bytes; the record needs {needed}")]
    Full { page: PageNo, needed: usize, free: usize },
    #[error("a row for page {page} is beyond the limits: {limit}")]
    Row { page: PageNo, limit: RowTooLarge },
    #[error("a key for slot {slot} of page {page} does not lie between its neighbours")]
    Order { page: PageNo, slot: usize },
    /// In an inner page a value that is no page number, a key in slot 0 or a version; in a leaf a
    /// version without its header.
    #[error("a row for slot {slot} of page {page} is none that a page of its kind can have")]
    Entry { page: PageNo, slot: usize },
    #[error("bit {bit} of Space page {page} is already so: a page is given out or back twice")]
    AlreadySo { page: PageNo, bit: u32 },
    #[error("page {page} is damaged: its cells do not fit it")]
    Damaged { page: PageNo },
    #[error("byte {at} of the row in slot {slot} of page {page} has no content")]
    Uncovered { page: PageNo, slot: usize, at: usize },
    #[error("the hunks of a record for page {page} are damaged: {fault}")]
    Hunks { page: PageNo, fault: CellFault },
    #[error("the cells of a record for page {page} are damaged: {fault}")]
    Cells { page: PageNo, fault: CellFault },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_return_and_have_one_form() {
        for number in (0..64).flat_map(|bit| [1u64 << bit, (1 << bit) - 1]).chain([u64::MAX]) {
            let mut out = Vec::new();
            push(&mut out, number);
            let mut reader = Reader::new(&out);
            assert_eq!(reader.varint(), Ok(number));
            assert_eq!(reader.left(), 0);
            for cut in 0..out.len() {
                assert_eq!(Reader::new(&out[..cut]).varint(), Err(CellFault::CutShort));
            }
            *out.last_mut().unwrap() |= 0x80;
            out.push(0);
            assert_eq!(Reader::new(&out).varint(), Err(CellFault::Number));
        }
        assert_eq!(Reader::new(&[0xff; 12]).varint(), Err(CellFault::Number));
        assert_eq!(Reader::new(&[0xff; 9]).varint(), Err(CellFault::CutShort));
        let mut large = [0x80u8; 10];
        large[9] = 2;
        assert_eq!(Reader::new(&large).varint(), Err(CellFault::Number), "65 bits");
    }

    #[test]
    fn only_powers_of_two_from_4_to_64_kib_are_sizes() {
        for size in PageSize::ALL {
            assert_eq!(PageSize::new(size.bytes() as u32), Ok(size));
            assert_eq!(PageSize::of(size.bytes()), Some(size));
        }
        for bytes in [0, 1, 2048, 4095, 4097, 12288, 131_072] {
            assert_eq!(PageSize::new(bytes), Err(PageSizeError { bytes: u64::from(bytes) }));
            assert_eq!(PageSize::of(bytes as usize), None);
        }
    }

    #[test]
    fn the_limits_of_a_row_are_exact() {
        for size in PageSize::ALL {
            let (key, row) = (size.key_bytes_max(), size.row_bytes_max());
            assert_eq!(size.check_row(key, row - key), Ok(()));
            assert_eq!(size.check_row(0, row), Ok(()));
            let error = size.check_row(key + 1, 0);
            assert_eq!(error, Err(RowTooLarge::Key { bytes: key + 1, bytes_max: key }));
            let error = size.check_row(1, row);
            assert_eq!(error, Err(RowTooLarge::Row { bytes: row + 1, bytes_max: row }));
            let new = row - VERSION_BYTES;
            assert_eq!(size.check_new_row(1, new - 1), Ok(()));
            let error = size.check_new_row(1, new);
            assert_eq!(error, Err(RowTooLarge::Row { bytes: new + 1, bytes_max: new }));
            assert!(size.check_new_row(1, usize::MAX).is_err());
            assert!(size.check_row(usize::MAX, usize::MAX).is_err());
            assert!(size.check_row(1, usize::MAX).is_err());
        }
    }

    #[test]
    fn two_largest_cells_fit_a_page() {
        for size in PageSize::ALL {
            let two = 2 * (size.cell_bytes_max() + SLOT_BYTES);
            assert!(two <= size.body_bytes() && two + 2 > size.body_bytes());
        }
    }
}
