//! Bytes to records.
//!
//! Invariant: total. Any bytes give a record or a typed fault; a record that comes out encodes to
//! the bytes it was decoded from. The cells within an Image or a Splice and the hunks within a
//! Revise are looked at when they are applied.

use iostrata_innodb::{PageNo, TableId};

use crate::page::cells::{Cell, Cells};
use crate::page::fault::{CellFault, RecordFault};
use crate::page::hunks::Hunks;
use crate::page::kind::PageKind;
use crate::page::record::{Record, Tag};
use crate::page::varint::Reader;

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

    /// All records in a frame's body, back to back. The iterator ends after a fault.
    #[inline]
    pub fn all(body: &'a [u8]) -> Records<'a> {
        Records { rest: body }
    }
}

/// Decodes a frame's body: see [`Record::all`].
#[derive(Clone, Debug)]
pub struct Records<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<(PageNo, Record<'a>), RecordFault>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        match Record::decode(self.rest) {
            Ok((page, record, taken)) => {
                self.rest = self.rest.get(taken..).unwrap_or_default();
                Some(Ok((page, record)))
            }
            Err(fault) => {
                self.rest = &[];
                Some(Err(fault))
            }
        }
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

/// Bytes behind their length, which is at most that of the largest page: cells are shorter in a
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
