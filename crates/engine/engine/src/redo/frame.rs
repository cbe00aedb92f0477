//! A frame's bytes.
//!
//! Invariant: a frame is sealed with its place and its incarnation, so that neither a frame of an
//! earlier lap nor one that a crash left behind the end is ever taken for a valid one.

use crc32c::{crc32c, crc32c_append};

use crate::redo::layout::frame;
use crate::redo::layout::{get_u32, get_u64, put_u32};

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

/// Puts a whole frame into `into`, which has its length.
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

/// Whether a whole frame is valid at its place.
pub(crate) fn is_valid(whole: &[u8], start: u64, incarnation: u64) -> bool {
    let crc = crc32c(&whole[frame::KIND..]);
    seal(crc, start, incarnation) == get_u32(whole, frame::CRC)
}

/// The number that an incarnation frame announces; none when it has another length.
pub(crate) fn incarnation_of(whole: &[u8]) -> Option<u64> {
    (whole.len() == frame::INCARNATION_BYTES).then(|| get_u64(whole, frame::OVERHEAD_BYTES))
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
