//! Redo records: every change a page can have.
//!
//! Purpose: what is written to the log and applied to pages. Invariant: a record speaks about one
//! page and says everything that [`Record::apply`] needs besides that page. It knows neither LSNs
//! nor frames.

use iostrata_innodb::{PageNo, TableId};

use crate::page::cells::Cells;
use crate::page::hunks::Hunks;
use crate::page::kind::PageKind;

/// One change of one page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record<'a> {
    /// The page begins anew, empty; nothing of before is left. Its LSN becomes 0 until the caller
    /// stamps it.
    Init {
        /// Its kind.
        kind: PageKind,
        /// Its height above the leaves: 0 but for inner pages.
        level: u8,
        /// Its table.
        table: TableId,
        /// Its left neighbour.
        left: PageNo,
        /// Its right neighbour.
        right: PageNo,
    },
    /// The page begins anew with this content. Made by [`Record::image_of`] and
    /// [`Record::image_of_part`].
    Image {
        /// Its kind.
        kind: PageKind,
        /// Its height above the leaves: 0 but for inner pages.
        level: u8,
        /// Its table.
        table: TableId,
        /// Its left neighbour.
        left: PageNo,
        /// Its right neighbour.
        right: PageNo,
        /// Slotted pages: their cells, as in [`Cells`]. Others: what is behind the header, without
        /// the zeros at its end.
        body: &'a [u8],
    },
    /// A row more. The slots from here on move up by one.
    Insert {
        /// Its slot: the count or less, where [`find`](crate::page::PageView::find) says.
        slot: usize,
        /// Flags of the cell: [`FLAG_VERSIONED`](crate::page::layout::FLAG_VERSIONED),
        /// [`FLAG_TOMBSTONE`](super::layout::FLAG_TOMBSTONE); others are kept and mean nothing.
        flags: u8,
        /// Its key; empty in slot 0 of an inner page and nowhere else there.
        key: &'a [u8],
        /// Its value; a page number (u64, little endian) in an inner page.
        value: &'a [u8],
    },
    /// A row less. The slots behind it move down by one. In an inner page the new slot 0, if
    /// slot 0 went, loses its key: it stands for everything smaller, too.
    Delete {
        /// Its slot.
        slot: usize,
    },
    /// Another value, of any length; key and flags stay.
    Replace {
        /// The row's slot.
        slot: usize,
        /// The new value.
        value: &'a [u8],
    },
    /// Other flags and another value, of any length, said as what differs; the key stays.
    Revise {
        /// The row's slot.
        slot: usize,
        /// Flags of the cell afterwards, as in Insert.
        flags: u8,
        /// Bytes of the value afterwards, a version included.
        len: usize,
        /// Where the value differs from the old one. Bytes that no hunk covers stay.
        hunks: Hunks<'a>,
    },
    /// The rows from a slot on go. Nothing happens when it is the count.
    Truncate {
        /// The first slot that goes.
        from: usize,
    },
    /// Many rows more, side by side. The slots from here on move up.
    Splice {
        /// The slot of the first.
        at: usize,
        /// The rows, ascending.
        cells: Cells<'a>,
    },
    /// Another left neighbour.
    SetLeft(PageNo),
    /// Another right neighbour.
    SetRight(PageNo),
    /// Bits of a Space page. All of them had the other value before: anything else is a page
    /// given out or back twice.
    SetBits {
        /// The first bit.
        from: u32,
        /// How many.
        count: u32,
        /// What they become.
        set: bool,
    },
    /// Bytes of the Super page's body.
    SetSuper {
        /// Where in [`body`](crate::page::PageView::body) they begin.
        at: usize,
        /// The new bytes.
        bytes: &'a [u8],
    },
}

impl Record<'_> {
    /// Whether the record needs nothing of what the page held before: it may be applied to a page
    /// that was never written or is torn.
    #[inline]
    pub const fn starts_page(&self) -> bool {
        matches!(self, Self::Init { .. } | Self::Image { .. })
    }
}

/// First byte of an encoded record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Tag {
    Init = 1,
    Image = 2,
    Insert = 3,
    Delete = 4,
    Replace = 5,
    Revise = 6,
    Truncate = 7,
    Splice = 8,
    SetLeft = 9,
    SetRight = 10,
    SetBits = 11,
    ClearBits = 12,
    SetSuper = 13,
}

impl Tag {
    pub(crate) const ALL: [Self; 13] = [
        Self::Init,
        Self::Image,
        Self::Insert,
        Self::Delete,
        Self::Replace,
        Self::Revise,
        Self::Truncate,
        Self::Splice,
        Self::SetLeft,
        Self::SetRight,
        Self::SetBits,
        Self::ClearBits,
        Self::SetSuper,
    ];

    #[inline]
    pub(crate) fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.get(usize::from(byte).checked_sub(1)?).copied()
    }
}
