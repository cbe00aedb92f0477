//! What can be wrong with pages and records.

use iostrata_innodb::PageNo;
use thiserror::Error;

use crate::page::layout::PageKind;
use crate::page::size::RowTooLarge;

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
    #[error("a key for slot {slot} of page {page} does not lie between those beside it")]
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
