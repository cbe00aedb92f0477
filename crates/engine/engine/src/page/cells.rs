//! Cells on their way from page to page.
//!
//! Purpose: the form in which Image and Splice records carry rows: for each `flags u8, key length
//! varint, value length varint, key, value`, back to back. Invariant: reading is total; a damaged
//! cell ends the sequence with an error.

use crate::page::fault::CellFault;

use crate::page::layout::{
    FLAG_TOMBSTONE, FLAG_VERSIONED, VERSION_AT_NUMBER, VERSION_AT_OLDER, VERSION_BYTES,
};
use crate::page::numbers::{Reader, push, u64_at};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell<'a> {
    pub flags: u8,
    pub key: &'a [u8],
    /// Its value, with its version behind it if it has one.
    pub value: &'a [u8],
}

/// What the limits and the kind of a page decide about: a cell without its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CellShape {
    pub flags: u8,
    pub key_len: usize,
    pub value_len: usize,
}

impl CellShape {
    /// Whether there is a version where the flags say so, and nothing before a tombstone's.
    #[inline]
    pub fn has_proper_version(self) -> bool {
        let is_versioned = self.flags & FLAG_VERSIONED != 0;
        if self.flags & FLAG_TOMBSTONE != 0 {
            return is_versioned && self.value_len == VERSION_BYTES;
        }
        !is_versioned || self.value_len >= VERSION_BYTES
    }

    /// Whether there is neither a version nor a tombstone.
    #[inline]
    pub fn is_plain(self) -> bool {
        self.flags & (FLAG_VERSIONED | FLAG_TOMBSTONE) == 0
    }
}

/// Which version of a row a cell holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// The commit that wrote it.
    pub number: u64,
    /// Where the version before lies; 0 for none.
    pub older: u64,
}

impl Version {
    /// As the bytes that a versioned value ends with.
    #[inline]
    pub fn to_bytes(self) -> [u8; VERSION_BYTES] {
        let mut bytes = [0; VERSION_BYTES];
        bytes[VERSION_AT_NUMBER..VERSION_AT_OLDER].copy_from_slice(&self.number.to_le_bytes());
        bytes[VERSION_AT_OLDER..].copy_from_slice(&self.older.to_le_bytes());
        bytes
    }
}

impl<'a> Cell<'a> {
    #[inline]
    pub fn is_versioned(&self) -> bool {
        self.flags & FLAG_VERSIONED != 0
    }

    #[inline]
    pub fn is_tombstone(&self) -> bool {
        self.flags & FLAG_TOMBSTONE != 0
    }

    #[inline]
    pub(crate) fn shape(&self) -> CellShape {
        CellShape { flags: self.flags, key_len: self.key.len(), value_len: self.value.len() }
    }

    #[inline]
    pub fn version(&self) -> Option<Version> {
        if !self.is_versioned() {
            return None;
        }
        let version = self.value.last_chunk::<VERSION_BYTES>()?;
        let number = u64_at(version, VERSION_AT_NUMBER);
        Some(Version { number, older: u64_at(version, VERSION_AT_OLDER) })
    }

    /// The value without its version.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        let version = if self.is_versioned() { VERSION_BYTES } else { 0 };
        self.value.get(..self.value.len().wrapping_sub(version)).unwrap_or_default()
    }

    /// Appends the cell in the form that Image and Splice carry.
    #[inline]
    pub fn push_to(&self, out: &mut Vec<u8>) {
        out.push(self.flags);
        push(out, self.key.len() as u64);
        push(out, self.value.len() as u64);
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
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    #[inline]
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

#[derive(Clone, Debug)]
pub struct CellsIter<'a> {
    reader: Reader<'a>,
}

impl CellsIter<'_> {
    /// Bytes of the cells that are still to come.
    #[inline]
    pub fn left_bytes(&self) -> usize {
        self.reader.left()
    }
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
