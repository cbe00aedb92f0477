//! One slot and the cell it points to.
//!
//! Invariant: total; a place outside of the page has no cell.

use crate::page::cells::Cell;
use crate::page::fields::{narrow, u16_at, u32_at};
use crate::page::layout::{
    CELL_AT_VALUE_LEN, CELL_HEADER_BYTES, HEAD_BYTES, SLOT_AT_CELL, SLOT_AT_HEAD, SLOT_AT_KEY_LEN,
    SLOT_BYTES,
};

/// What a slot says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotEntry {
    /// Offset of the cell.
    pub cell: usize,
    /// Bytes of the key.
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

    /// The key's bytes in the page.
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
