//! Numbers of as few bytes as they need.
//!
//! Purpose: seven bits a byte, the least significant first, the top bit set while more follow
//! (LEB128). Invariant: every number has exactly one form; longer forms are refused, so that what
//! was decoded encodes to the same bytes.

use crate::page::fault::CellFault;

/// Appends `number`.
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

    /// Bytes not yet taken.
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
