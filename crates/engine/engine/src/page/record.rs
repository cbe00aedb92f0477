//! Redo records: every change a page can have, and its bytes.
//!
//! Purpose: what is written to the log and applied to pages. The form of every record: its number
//! (u8), the page number (varint), its own fields in the order they are declared, numbers as
//! varints, flags and kinds as bytes, byte strings behind their length. Invariant: a record is
//! about one page and holds everything that [`Record::apply`] needs besides that page. Decoding is
//! total: any bytes give a record, which encodes to the bytes it came from, or a typed fault. The
//! cells within an Image or a Splice and the hunks within a Revise are checked when they are
//! applied. It is independent of LSNs and frames.

use std::ops::Range;

use iostrata_innodb::{PageNo, TableId};

use super::layout::{ApplyFault, CellFault, PageKind, Reader, RecordFault, push, put};
use super::view::{Cell, Cells, PageView};

/// One change of one page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record<'a> {
    /// The page starts empty; nothing of before is left. Its LSN becomes 0 until the caller stamps
    /// it.
    Init {
        kind: PageKind,
        level: u8,
        table: TableId,
        left: PageNo,
        right: PageNo,
    },
    /// The page starts over with this content. Made by [`Record::image_of`] and
    /// [`Record::image_of_part`].
    Image {
        kind: PageKind,
        level: u8,
        table: TableId,
        left: PageNo,
        right: PageNo,
        /// Slotted pages: their cells, as in [`Cells`]. Others: what is behind the header, without
        /// the zeros at its end.
        body: &'a [u8],
    },
    /// A row more. The slots from here on move up by one.
    Insert {
        /// Its slot: the count or less, as [`find`](crate::page::PageView::find) returns it.
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
        slot: usize,
    },
    /// Another value, of any length; key and flags stay.
    Replace {
        slot: usize,
        value: &'a [u8],
    },
    /// Other flags and another value, of any length, as a difference; the key stays.
    Revise {
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
        from: usize,
    },
    /// Many rows more, side by side. The slots from here on move up.
    Splice {
        at: usize,
        cells: Cells<'a>,
    },
    SetLeft(PageNo),
    SetRight(PageNo),
    /// Bits of a Space page. All of them had the other value before: anything else is a page
    /// given out or back twice.
    SetBits {
        from: u32,
        count: u32,
        set: bool,
    },
    /// Bytes of the Super page's body.
    SetSuper {
        /// Where in [`body`](crate::page::PageView::body) they begin.
        at: usize,
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

impl Record<'_> {
    /// The image of a page. `buffer` is emptied first and holds its content.
    pub fn image_of<'b>(page: &PageView<'_>, buffer: &'b mut Vec<u8>) -> Record<'b> {
        Self::image_of_part(page, 0..page.count(), page.left(), page.right(), buffer)
    }

    /// The image of a page like this one with only some of its slots and with other neighbours:
    /// the right page of a split, or the page that a root's content moves to. In an inner page the
    /// first of the slots loses its key, as slot 0 has none. Pages without slots go whole.
    ///
    /// `buffer` is emptied first and holds the content.
    pub fn image_of_part<'b>(
        page: &PageView<'_>,
        slots: Range<usize>,
        left: PageNo,
        right: PageNo,
        buffer: &'b mut Vec<u8>,
    ) -> Record<'b> {
        buffer.clear();
        let kind = page.kind();
        if kind.is_slotted() {
            let first = slots.start;
            for slot in first..slots.end.min(page.count()) {
                let cell = page.cell(slot);
                let is_keyless = slot == first && kind == PageKind::Inner;
                Cell { key: if is_keyless { &[] } else { cell.key }, ..cell }.push_to(buffer);
            }
        } else if kind != PageKind::Free {
            let body = page.body();
            let zeros = body.iter().rev().take_while(|byte| **byte == 0).count();
            buffer.extend_from_slice(&body[..body.len() - zeros]);
        }
        Record::Image { kind, level: page.level(), table: page.table(), left, right, body: buffer }
    }
}

impl Record<'_> {
    #[inline]
    pub fn encode(&self, page: PageNo, out: &mut Vec<u8>) {
        out.push(self.tag() as u8);
        push(out, page.0);
        match *self {
            Self::Init { kind, level, table, left, right } => {
                push_start(out, kind, level, table, [left, right]);
            }
            Self::Image { kind, level, table, left, right, body } => {
                push_start(out, kind, level, table, [left, right]);
                push_bytes(out, body);
            }
            Self::Insert { slot, flags, key, value } => {
                push(out, slot as u64);
                Cell { flags, key, value }.push_to(out);
            }
            Self::Delete { slot } => push(out, slot as u64),
            Self::Replace { slot, value } => {
                push(out, slot as u64);
                push_bytes(out, value);
            }
            Self::Revise { slot, flags, len, hunks } => {
                push(out, slot as u64);
                out.push(flags);
                push(out, len as u64);
                push_bytes(out, hunks.bytes());
            }
            Self::Truncate { from } => push(out, from as u64),
            Self::Splice { at, cells } => {
                push(out, at as u64);
                push_bytes(out, cells.bytes());
            }
            Self::SetLeft(to) | Self::SetRight(to) => push(out, to.0),
            Self::SetBits { from, count, .. } => {
                push(out, u64::from(from));
                push(out, u64::from(count));
            }
            Self::SetSuper { at, bytes } => {
                push(out, at as u64);
                push_bytes(out, bytes);
            }
        }
    }

    #[inline]
    pub(crate) fn tag(&self) -> Tag {
        match self {
            Self::Init { .. } => Tag::Init,
            Self::Image { .. } => Tag::Image,
            Self::Insert { .. } => Tag::Insert,
            Self::Delete { .. } => Tag::Delete,
            Self::Replace { .. } => Tag::Replace,
            Self::Revise { .. } => Tag::Revise,
            Self::Truncate { .. } => Tag::Truncate,
            Self::Splice { .. } => Tag::Splice,
            Self::SetLeft(_) => Tag::SetLeft,
            Self::SetRight(_) => Tag::SetRight,
            Self::SetBits { set: true, .. } => Tag::SetBits,
            Self::SetBits { set: false, .. } => Tag::ClearBits,
            Self::SetSuper { .. } => Tag::SetSuper,
        }
    }
}

fn push_start(out: &mut Vec<u8>, kind: PageKind, level: u8, table: TableId, links: [PageNo; 2]) {
    out.push(kind as u8);
    out.push(level);
    push(out, u64::from(table.0));
    push(out, links[0].0);
    push(out, links[1].0);
}

#[inline]
fn push_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    push(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

impl<'a> Record<'a> {
    /// The record at the beginning of `bytes`, its page, and how many bytes it took.
    #[inline]
    pub fn decode(bytes: &'a [u8]) -> Result<(PageNo, Self, usize), RecordFault> {
        let mut reader = Reader::new(bytes);
        let number = reader.byte().map_err(|fault| RecordFault::Field { tag: 0, fault })?;
        let tag = Tag::from_byte(number).ok_or(RecordFault::UnknownTag { tag: number })?;
        let decoded = fields(tag, &mut reader);
        let (page, record) = decoded.map_err(|fault| RecordFault::Field { tag: number, fault })?;
        Ok((page, record, bytes.len() - reader.left()))
    }
}

#[inline]
fn fields<'a>(tag: Tag, from: &mut Reader<'a>) -> Result<(PageNo, Record<'a>), CellFault> {
    let page = PageNo(from.varint()?);
    let record = match tag {
        Tag::Init | Tag::Image => start(tag, from)?,
        Tag::Insert => {
            let slot = from.small()?;
            let Cell { flags, key, value } = Cell::read(from)?;
            Record::Insert { slot, flags, key, value }
        }
        Tag::Delete => Record::Delete { slot: from.small()? },
        Tag::Replace => Record::Replace { slot: from.small()?, value: string(from)? },
        Tag::Revise => {
            let (slot, flags, len) = (from.small()?, from.byte()?, from.small()?);
            Record::Revise { slot, flags, len, hunks: Hunks::new(string(from)?) }
        }
        Tag::Truncate => Record::Truncate { from: from.small()? },
        Tag::Splice => Record::Splice { at: from.small()?, cells: Cells::new(string(from)?) },
        Tag::SetLeft => Record::SetLeft(PageNo(from.varint()?)),
        Tag::SetRight => Record::SetRight(PageNo(from.varint()?)),
        Tag::SetBits | Tag::ClearBits => {
            let (first, count) = (number_u32(from)?, number_u32(from)?);
            Record::SetBits { from: first, count, set: tag == Tag::SetBits }
        }
        Tag::SetSuper => Record::SetSuper { at: from.small()?, bytes: string(from)? },
    };
    Ok((page, record))
}

fn start<'a>(tag: Tag, from: &mut Reader<'a>) -> Result<Record<'a>, CellFault> {
    let kind = PageKind::from_byte(from.byte()?).ok_or(CellFault::Kind)?;
    let level = from.byte()?;
    let table = TableId(number_u32(from)?);
    let left = PageNo(from.varint()?);
    let right = PageNo(from.varint()?);
    if tag == Tag::Init {
        return Ok(Record::Init { kind, level, table, left, right });
    }
    Ok(Record::Image { kind, level, table, left, right, body: string(from)? })
}

/// Bytes behind their length, which is at most the size of the largest page: cells are shorter in a
/// record than with their slots in a page.
#[inline]
fn string<'a>(from: &mut Reader<'a>) -> Result<&'a [u8], CellFault> {
    let len = from.small()?;
    from.bytes(len)
}

#[inline]
fn number_u32(from: &mut Reader<'_>) -> Result<u32, CellFault> {
    u32::try_from(from.varint()?).map_err(|_| CellFault::Number)
}

// The difference between two values of a row.
//
// Purpose: the form in which a Revise record carries a new value: for each stretch of new bytes
// `bytes kept since the end of the last one varint, bytes that follow varint, these bytes`, back
// to back. Invariant: positions are those of both values, nothing is shifted. What no hunk covers
// stays as it was; what the old value does not have is covered. Reading is total.

/// Least bytes that a hunk takes besides its new bytes. Hunks no further apart than this are
/// joined: writing the bytes between them again costs no more.
const HUNK_BYTES: usize = 2;

const WORD_BYTES: usize = 8;
const LOW_BITS: u64 = u64::from_le_bytes([0x7f; WORD_BYTES]);
const TOP_BITS: u64 = !LOW_BITS;

/// What turns one value into another, as a Revise carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hunks<'a> {
    bytes: &'a [u8],
}

impl<'a> Hunks<'a> {
    /// The hunks in `bytes`, written by [`Hunks::between`]. Damage shows when they are applied.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// The encoded form; empty when the new value is the beginning of the old one, or the same.
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// What turns `old` into the two parts of `new` one behind the other. `out` is emptied first
    /// and holds the hunks: at most 6 bytes more than the new value.
    #[inline]
    pub fn between(old: &[u8], new: [&[u8]; 2], out: &'a mut Vec<u8>) -> Self {
        out.clear();
        let mut joined = HunkWriter { new, out, last_end: 0, open: 0..0 };
        let (first, rest) = old.split_at(new[0].len().min(old.len()));
        joined.compare(0, first, new[0]);
        joined.compare(new[0].len(), rest, new[1]);
        let len = new[0].len() + new[1].len();
        if old.len() < len {
            joined.note(old.len()..len);
        }
        joined.write_open();
        Self { bytes: out }
    }

    /// Whether they turn a value of `old_len` bytes into one of `len`.
    #[inline]
    pub(crate) fn check(
        self,
        (page, slot): (PageNo, usize),
        old_len: usize,
        len: usize,
    ) -> Result<(), ApplyFault> {
        let mut reader = Reader::new(self.bytes);
        let mut end = 0;
        while reader.left() > 0 {
            let (kept, bytes) =
                read(&mut reader).map_err(|fault| ApplyFault::Hunks { page, fault })?;
            let (from, count) = (end + kept, bytes.len());
            if from + count > len {
                return Err(ApplyFault::OutOfRange { page, from, count, len });
            }
            let at = old_len.max(end);
            if from > at {
                return Err(ApplyFault::Uncovered { page, slot, at });
            }
            end = from + count;
        }
        let at = old_len.max(end);
        if len > at { Err(ApplyFault::Uncovered { page, slot, at }) } else { Ok(()) }
    }

    /// Writes the new bytes over a value that they were checked for.
    #[inline]
    pub(crate) fn write_to(self, value: &mut [u8]) {
        let mut reader = Reader::new(self.bytes);
        let mut end = 0;
        while let Ok((kept, bytes)) = read(&mut reader) {
            put(value, end + kept, bytes);
            end += kept + bytes.len();
        }
    }
}

/// Bytes kept, and the new bytes behind them.
#[inline]
fn read<'a>(reader: &mut Reader<'a>) -> Result<(usize, &'a [u8]), CellFault> {
    let (kept, count) = (reader.small()?, reader.small()?);
    Ok((kept, reader.bytes(count)?))
}

/// Hunks while they are found.
struct HunkWriter<'n, 'o> {
    new: [&'n [u8]; 2],
    out: &'o mut Vec<u8>,
    /// Where the last hunk that was written ends.
    last_end: usize,
    /// The hunk that may still grow; empty before the first.
    open: Range<usize>,
}

impl HunkWriter<'_, '_> {
    /// Notes where the values differ as far as both have bytes, `at` being the place of the first.
    #[inline]
    fn compare(&mut self, mut at: usize, old: &[u8], new: &[u8]) {
        let len = old.len().min(new.len());
        let (old, old_rest) = old[..len].as_chunks();
        let (new, new_rest) = new[..len].as_chunks();
        for (old, new) in old.iter().zip(new) {
            self.note_word(at, u64::from_le_bytes(*old) ^ u64::from_le_bytes(*new));
            at += WORD_BYTES;
        }
        self.note_word(at, padded(old_rest) ^ padded(new_rest));
    }

    /// Notes the bytes at `at` that are not zero in `difference`.
    #[inline]
    fn note_word(&mut self, at: usize, difference: u64) {
        // The top bit of every byte that is not zero.
        let mut tops = (((difference & LOW_BITS) + LOW_BITS) | difference) & TOP_BITS;
        if tops == TOP_BITS {
            return self.note(at..at + WORD_BYTES);
        }
        while tops != 0 {
            let byte = at + tops.trailing_zeros() as usize / 8;
            self.note(byte..byte + 1);
            tops &= tops - 1;
        }
    }

    /// More bytes of a hunk, behind those noted before.
    #[inline]
    fn note(&mut self, bytes: Range<usize>) {
        if self.open.is_empty() || bytes.start > self.open.end + HUNK_BYTES {
            self.write_open();
            self.open = bytes;
        } else {
            self.open.end = bytes.end;
        }
    }

    #[inline]
    fn write_open(&mut self) {
        let Range { start, end } = self.open;
        if start == end {
            return;
        }
        push(self.out, (start - self.last_end) as u64);
        push(self.out, (end - start) as u64);
        let [first, second] = self.new;
        let cut = first.len();
        self.out.extend_from_slice(&first[start.min(cut)..end.min(cut)]);
        self.out.extend_from_slice(&second[start.max(cut) - cut..end.max(cut) - cut]);
        self.last_end = end;
    }
}

#[inline]
fn padded(rest: &[u8]) -> u64 {
    rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}
