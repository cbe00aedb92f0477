//! Records of the version log, back to back in a segment.
//!
//! Form: replacing number u64, marks u8, cell flags u8, table u32, key length u32, value length
//! u32, key, value; numbers are little-endian. Invariant: reading is total; what does not fit into
//! the bytes at hand is no record.

pub(crate) const FIRST_OF_COMMIT: u8 = 1;
pub(crate) const TO_PURGE: u8 = 2;

pub(crate) const HEADER_BYTES: usize = 22;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record<'a> {
    pub number: u64,
    /// `FIRST_OF_COMMIT`, `TO_PURGE`.
    pub marks: u8,
    pub flags: u8,
    /// Table of the key; 0 without a key.
    pub table: u32,
    /// Key to purge, or empty.
    pub key: &'a [u8],
    /// Value of the cell with its version.
    pub value: &'a [u8],
}

impl<'a> Record<'a> {
    #[inline]
    pub(crate) fn len(&self) -> usize {
        HEADER_BYTES + self.key.len() + self.value.len()
    }

    #[inline]
    pub(crate) fn push_to(&self, out: &mut Vec<u8>) {
        let mut header = [0; HEADER_BYTES];
        header[..8].copy_from_slice(&self.number.to_le_bytes());
        header[8] = self.marks;
        header[9] = self.flags;
        header[10..14].copy_from_slice(&self.table.to_le_bytes());
        header[14..18].copy_from_slice(&(self.key.len() as u32).to_le_bytes());
        header[18..].copy_from_slice(&(self.value.len() as u32).to_le_bytes());
        out.extend_from_slice(&header);
        out.extend_from_slice(self.key);
        out.extend_from_slice(self.value);
    }

    /// The record at `at`, and where the next one begins.
    #[inline]
    pub(crate) fn read(bytes: &'a [u8], at: usize) -> Option<(Self, usize)> {
        let bytes = bytes.get(at..)?;
        let len = record_len(bytes)?;
        let (header, rest) = bytes.get(..len)?.split_at(HEADER_BYTES);
        let (key, value) = rest.split_at(u32_at(header, 14) as usize);
        let number = u64::from_le_bytes(header[..8].try_into().ok()?);
        let (marks, flags, table) = (header[8], header[9], u32_at(header, 10));
        Some((Self { number, marks, flags, table, key, value }, at + len))
    }
}

/// Bytes of the record that `bytes` begin with, of which the header must be there.
#[inline]
pub(crate) fn record_len(bytes: &[u8]) -> Option<usize> {
    let header = bytes.get(..HEADER_BYTES)?;
    Some(HEADER_BYTES + u32_at(header, 14) as usize + u32_at(header, 18) as usize)
}

#[inline]
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut four = [0; 4];
    four.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(four)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_back_and_cut_ones_are_none() {
        let one = Record { number: 7, marks: 3, flags: 9, table: 5, key: b"key", value: b"value" };
        let two = Record { number: 1 << 60, key: b"", value: b"", ..one };
        let mut bytes = Vec::new();
        one.push_to(&mut bytes);
        two.push_to(&mut bytes);
        assert_eq!(Record::read(&bytes, 0), Some((one, one.len())));
        assert_eq!(Record::read(&bytes, one.len()), Some((two, bytes.len())));
        assert_eq!(Record::read(&bytes, bytes.len()), None);
        for end in 0..one.len() {
            assert_eq!(Record::read(&bytes[..end], 0), None);
        }
    }
}
