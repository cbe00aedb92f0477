//! Where every byte of a page lies.
//!
//! Purpose: the offsets and widths of the header, of a slot and of a cell, in one place, so that
//! code and documents draw the same picture. Invariant: all integers are little endian, and no two
//! fields overlap (checked while compiling). It reads and writes nothing.
//!
//! ```text
//! 0        64                                        heap_top                page size
//! | header | slot 0 | slot 1 | .. -> |  free  | <- .. | cell | dead | cell | .. |
//! ```

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
