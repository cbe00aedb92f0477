//! What can be wrong with pages and records.

use iostrata_innodb::PageNo;
use thiserror::Error;

use crate::page::kind::PageKind;
use crate::page::size::RowTooLarge;

/// Why a page must not be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PageFault {
    /// Every byte is zero.
    #[error("page {page} was never written: it is all zeros")]
    Blank {
        /// The page asked for.
        page: PageNo,
    },
    /// The bytes are not those that were sealed: a torn write or damage.
    #[error(
        "page {page} is torn or damaged: its checksum is {stored:#010x}, its bytes give \
         {computed:#010x}; restore it from the doublewrite file or a backup"
    )]
    Checksum {
        /// The page asked for.
        page: PageNo,
        /// What the header holds.
        stored: u32,
        /// What the bytes give.
        computed: u32,
    },
    /// A whole page, but another one: a misdirected read or write.
    #[error("page {page} holds page {found}: a read or write went astray")]
    OtherPage {
        /// The page asked for.
        page: PageNo,
        /// The number in its header.
        found: PageNo,
    },
    /// A kind that this version does not know, or on a level where it cannot stand.
    #[error("page {page} has kind {kind} on level {level}, which no page has")]
    Kind {
        /// The page.
        page: PageNo,
        /// The number of the kind.
        kind: u8,
        /// The level.
        level: u8,
    },
    /// The header contradicts itself or the page's size.
    #[error(
        "page {page} has an impossible header: {count} slots, cells from {heap_top} on with \
         {garbage} dead bytes, prefix {prefix}"
    )]
    Header {
        /// The page.
        page: PageNo,
        /// Slots.
        count: usize,
        /// Offset of the lowest cell.
        heap_top: usize,
        /// Dead bytes.
        garbage: usize,
        /// Shared key bytes.
        prefix: usize,
    },
    /// A field that must be zero is not.
    #[error("page {page} uses header fields that this version does not know; use a newer one")]
    Reserved {
        /// The page.
        page: PageNo,
    },
    /// A slot points outside of the cells.
    #[error("slot {slot} of page {page} points to {cell}, where no whole cell lies")]
    Bounds {
        /// The page.
        page: PageNo,
        /// The slot.
        slot: usize,
        /// Where it points.
        cell: usize,
    },
    /// A row beyond the limits.
    #[error("slot {slot} of page {page} holds a row beyond the limits: {limit}")]
    Row {
        /// The page.
        page: PageNo,
        /// The slot.
        slot: usize,
        /// The limit.
        limit: RowTooLarge,
    },
    /// Keys do not ascend.
    #[error("the key in slot {slot} of page {page} is not greater than the one before it")]
    Order {
        /// The page.
        page: PageNo,
        /// The slot of the later key.
        slot: usize,
    },
    /// A head or the shared prefix is not that of the key.
    #[error("the head in slot {slot} of page {page} is not that of its key")]
    Head {
        /// The page.
        page: PageNo,
        /// The slot.
        slot: usize,
    },
    /// Two cells share bytes.
    #[error("two cells of page {page} overlap at byte {at}")]
    Overlap {
        /// The page.
        page: PageNo,
        /// Where the second begins.
        at: usize,
    },
    /// The dead bytes are not what the cells leave.
    #[error("page {page} counts {counted} dead bytes, but its cells leave {left}")]
    Garbage {
        /// The page.
        page: PageNo,
        /// What the header says.
        counted: usize,
        /// What is so.
        left: usize,
    },
    /// A row that a page of this kind cannot have.
    #[error("slot {slot} of page {page} holds a row that a page of its kind cannot have")]
    Entry {
        /// The page.
        page: PageNo,
        /// The slot.
        slot: usize,
    },
}

/// Why bytes are no record's field or cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CellFault {
    /// They end too early.
    #[error("cut short")]
    CutShort,
    /// A number is too large or longer than it needs to be.
    #[error("a number is out of range or not in its shortest form")]
    Number,
    /// A page kind that does not exist.
    #[error("a page kind is unknown")]
    Kind,
}

/// Why bytes are no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RecordFault {
    /// Nothing is recorded under this number.
    #[error("record kind {tag} is unknown; the log is damaged or from a newer version")]
    UnknownTag {
        /// The number.
        tag: u8,
    },
    /// A field of the record is wrong.
    #[error("a record of kind {tag} is damaged: {fault}")]
    Field {
        /// The record's number; 0 when there was not even that.
        tag: u8,
        /// What is wrong.
        fault: CellFault,
    },
}

/// Why a record does not fit its page. The page is unchanged then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ApplyFault {
    /// The page is another one.
    #[error("a record for page {page} met page {found}")]
    OtherPage {
        /// The page the record is for.
        page: PageNo,
        /// The page it met.
        found: PageNo,
    },
    /// The record is not for this kind of page.
    #[error("page {page} is of kind {kind:?}, which this record does not change")]
    WrongKind {
        /// The page.
        page: PageNo,
        /// Its kind.
        kind: PageKind,
    },
    /// A kind that cannot stand on this level.
    #[error("page {page} cannot be of kind {kind:?} on level {level}")]
    WrongLevel {
        /// The page.
        page: PageNo,
        /// The kind.
        kind: PageKind,
        /// The level.
        level: u8,
    },
    /// There is no such slot.
    #[error("page {page} has {count} slots; the record names slot {slot}")]
    NoSlot {
        /// The page.
        page: PageNo,
        /// The slot named.
        slot: usize,
        /// Slots there are.
        count: usize,
    },
    /// Bytes outside of the value, the bits or the body.
    #[error("page {page} has {len} there; the record names {count} from {from} on")]
    OutOfRange {
        /// The page.
        page: PageNo,
        /// The first byte or bit named.
        from: usize,
        /// How many.
        count: usize,
        /// How many there are.
        len: usize,
    },
    /// No room, even after compacting.
    #[error("page {page} has {free} free bytes; the record needs {needed}")]
    Full {
        /// The page.
        page: PageNo,
        /// Bytes needed.
        needed: usize,
        /// Bytes free.
        free: usize,
    },
    /// The row is beyond the limits.
    #[error("a row for page {page} is beyond the limits: {limit}")]
    Row {
        /// The page.
        page: PageNo,
        /// The limit.
        limit: RowTooLarge,
    },
    /// The key does not belong between its neighbours.
    #[error("a key for slot {slot} of page {page} does not lie between those beside it")]
    Order {
        /// The page.
        page: PageNo,
        /// The slot.
        slot: usize,
    },
    /// A row that a page of this kind cannot have: in an inner page a value that is no page number,
    /// a key in slot 0 or a version; in a leaf a version without its header.
    #[error("a row for slot {slot} of page {page} is none that a page of its kind can have")]
    Entry {
        /// The page.
        page: PageNo,
        /// The slot.
        slot: usize,
    },
    /// A bit is already what it was to become: a page given out or back twice.
    #[error("bit {bit} of Space page {page} is already so: a page is given out or back twice")]
    AlreadySo {
        /// The Space page.
        page: PageNo,
        /// The bit.
        bit: u32,
    },
    /// The page contradicts itself.
    #[error("page {page} is damaged: its cells do not fit it")]
    Damaged {
        /// The page.
        page: PageNo,
    },
    /// A revised row has bytes that neither the old value nor the record has.
    #[error("byte {at} of the row in slot {slot} of page {page} has no content")]
    Uncovered {
        /// The page.
        page: PageNo,
        /// The slot.
        slot: usize,
        /// The first such byte of the value.
        at: usize,
    },
    /// The hunks in the record are damaged.
    #[error("the hunks of a record for page {page} are damaged: {fault}")]
    Hunks {
        /// The page.
        page: PageNo,
        /// What is wrong.
        fault: CellFault,
    },
    /// The cells in the record are damaged.
    #[error("the cells of a record for page {page} are damaged: {fault}")]
    Cells {
        /// The page.
        page: PageNo,
        /// What is wrong.
        fault: CellFault,
    },
}
