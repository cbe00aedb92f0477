//! Frames, and the buffer that they are appended to.
//!
//! Invariant: a frame is sealed with its place and its incarnation, so that neither a frame of an
//! earlier lap nor one that a crash left behind the end is ever taken for a valid one. The buffer
//! holds the log from `base`, a border of blocks, to `end`; what lies before `end` in the block of
//! `end` is always in it, so that a block is written whole without being read.

use crc32c::{crc32c, crc32c_append};
use iostrata_io::disk::Aligned;

use crate::redo::layout::{frame, frame as at, get_u32, get_u64, put_u32};

/// The crc of the body with its kind, before the seal.
#[inline]
pub(crate) fn body_crc(kind: u8, body: &[u8]) -> u32 {
    crc32c_append(crc32c(&[kind]), body)
}

/// The crc of a frame at `start` in an incarnation.
#[inline]
pub(crate) fn seal(body_crc: u32, start: u64, incarnation: u64) -> u32 {
    let mut place = [0; 16];
    place[..8].copy_from_slice(&start.to_le_bytes());
    place[8..].copy_from_slice(&incarnation.to_le_bytes());
    crc32c_append(body_crc, &place)
}

#[inline]
pub(crate) fn put(into: &mut [u8], crc: u32, kind: u8, body: &[u8]) {
    put_u32(into, frame::LEN, (body.len() + 1) as u32);
    put_u32(into, frame::CRC, crc);
    into[frame::KIND] = kind;
    into[frame::OVERHEAD_BYTES..].copy_from_slice(body);
}

/// Bytes of the whole frame that begins with `head`; none when no frame can begin so.
pub(crate) fn bytes_of(head: &[u8]) -> Option<usize> {
    let len = get_u32(head, frame::LEN) as usize;
    let bytes = len.checked_add(frame::HEAD_BYTES)?;
    (len > 0 && bytes <= frame::BYTES_MAX).then_some(bytes)
}

pub(crate) fn is_valid(whole: &[u8], start: u64, incarnation: u64) -> bool {
    let crc = crc32c(&whole[frame::KIND..]);
    seal(crc, start, incarnation) == get_u32(whole, frame::CRC)
}

/// The number that an incarnation frame announces; none when it has another length.
pub(crate) fn incarnation_of(whole: &[u8]) -> Option<u64> {
    (whole.len() == frame::INCARNATION_BYTES).then(|| get_u64(whole, frame::OVERHEAD_BYTES))
}

#[derive(Debug)]
pub(crate) struct Fill {
    buffer: Aligned,
    pub(crate) base: u64,
    pub(crate) end: u64,
    pub(crate) incarnation: u64,
    pub(crate) is_started: bool,
    pub(crate) requests: u64,
}

/// What was taken out of the buffer: the log from `base` to `end`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    pub(crate) base: u64,
    pub(crate) end: u64,
}

impl Fill {
    pub(crate) fn new(buffer: Aligned) -> Self {
        Self { buffer, base: 0, end: 0, incarnation: 0, is_started: false, requests: 0 }
    }

    /// Goes on at `end`, with what lies before it in its block.
    pub(crate) fn resume(&mut self, tail: &[u8], end: u64) {
        self.buffer[..tail.len()].copy_from_slice(tail);
        self.base = end - tail.len() as u64;
        self.end = end;
    }

    #[inline]
    pub(crate) fn used_bytes(&self) -> usize {
        (self.end - self.base) as usize
    }

    #[inline]
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        self.used_bytes() + bytes <= self.buffer.len()
    }

    /// Appends a frame, for which there is room; gives its first LSN.
    #[inline]
    pub(crate) fn push(&mut self, body_crc: u32, kind: u8, body: &[u8]) -> u64 {
        let (start, from) = (self.end, self.used_bytes());
        let bytes = at::OVERHEAD_BYTES + body.len();
        let crc = seal(body_crc, start, self.incarnation);
        put(&mut self.buffer[from..from + bytes], crc, kind, body);
        self.end += bytes as u64;
        start
    }

    /// Swaps in an empty buffer of the same size. The last block is carried over if it is not full.
    pub(crate) fn swap(&mut self, empty: &mut Aligned, block_bytes: u64) -> Taken {
        let taken = Taken { base: self.base, end: self.end };
        let tail = self.end / block_bytes * block_bytes;
        let (from, to) = ((tail - self.base) as usize, self.used_bytes());
        empty[..to - from].copy_from_slice(&self.buffer[from..to]);
        std::mem::swap(&mut self.buffer, empty);
        self.base = tail;
        taken
    }

    /// Forgets everything: for a log that will never write again.
    pub(crate) fn discard(&mut self) {
        self.base = self.end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn place_incarnation_and_every_bit_are_sealed() {
        let body = b"some records";
        let mut whole = vec![0; frame::OVERHEAD_BYTES + body.len()];
        let crc = seal(body_crc(frame::RECORDS, body), 1000, 7);
        put(&mut whole, crc, frame::RECORDS, body);
        assert_eq!(bytes_of(&whole), Some(whole.len()));
        assert!(is_valid(&whole, 1000, 7));
        assert!(!is_valid(&whole, 1001, 7) && !is_valid(&whole, 1000, 8));
        for bit in 8 * frame::CRC..8 * whole.len() {
            let mut damaged = whole.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(!is_valid(&damaged, 1000, 7), "bit {bit}");
        }
    }

    #[test]
    fn no_frame_begins_with_nothing_or_with_too_much() {
        assert_eq!(bytes_of(&[0; 8]), None);
        assert_eq!(bytes_of(&[0xff; 8]), None);
        assert_eq!(bytes_of(&(frame::BYTES_MAX as u32).to_le_bytes()), None);
    }
}
