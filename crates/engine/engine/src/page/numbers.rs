//! Numbers in pages and records.
//!
//! Purpose: little-endian integers at an offset of a page, and numbers of as few bytes as they
//! need: seven bits a byte, the least significant first, the top bit set while more follow
//! (LEB128). Invariant: total. Outside of the bytes a read gives 0 and a write does nothing; pages
//! are never so short, so that neither happens with a page's own fields. Every varint has exactly
//! one form; longer ones are refused, so that what was decoded encodes to the same bytes.

use crate::page::fault::CellFault;

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
        if number > crate::page::layout::PAGE_BYTES_MAX as u64 {
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
}
