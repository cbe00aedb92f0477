//! Cells on their way from page to page.
//!
//! Purpose: the form in which Image and Splice records carry rows: for each `flags u8, key length
//! varint, value length varint, key, value`, back to back. Invariant: reading is total; a damaged
//! cell ends the sequence with an error.

use crate::fault::CellFault;
use crate::varint::{self, Reader};

/// One cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell<'a> {
    /// Its flags.
    pub flags: u8,
    /// Its key.
    pub key: &'a [u8],
    /// Its value.
    pub value: &'a [u8],
}

impl<'a> Cell<'a> {
    /// Appends the cell in the form that Image and Splice carry.
    #[inline]
    pub fn push_to(&self, out: &mut Vec<u8>) {
        out.push(self.flags);
        varint::push(out, self.key.len() as u64);
        varint::push(out, self.value.len() as u64);
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
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// The encoded form.
    #[inline]
    #[must_use]
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

/// Decodes [`Cells`].
#[derive(Clone, Debug)]
pub struct CellsIter<'a> {
    reader: Reader<'a>,
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
