//! The header of a segment file.
//!
//! Invariant: what decodes was written by `encode`; a header torn by a crash is none.

use crc32c::crc32c;

use crate::error::{EngineError, OpenError};
use crate::redo::geometry::Geometry;
use crate::redo::layout::{FORMAT_VERSION, GRANULE_BYTES, SEGMENT_MAGIC, header};
use crate::redo::layout::{get_u32, get_u64, put_u32, put_u64};

/// Beyond it no LSN can be, so that sums of LSNs and lengths cannot overflow.
pub(crate) const LSN_MAX: u64 = 1 << 62;

/// What a segment file says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// LSN of the first payload byte.
    pub(crate) first: u64,
    /// 0 when the segment was never used. Of two for the same LSN the larger is valid: the other
    /// was left behind by a crash.
    pub(crate) sequence: u64,
    pub(crate) geometry: Geometry,
}

impl Header {
    /// Behind its last payload byte.
    pub(crate) fn end(&self) -> u64 {
        self.first + self.geometry.payload_bytes
    }

    pub(crate) fn encode(&self, into: &mut [u8]) {
        into[header::MAGIC..header::MAGIC + 8].copy_from_slice(&SEGMENT_MAGIC);
        put_u32(into, header::VERSION, FORMAT_VERSION);
        put_u32(into, header::PAYLOAD_AT, self.geometry.payload_at);
        put_u64(into, header::FIRST_LSN, self.first);
        put_u64(into, header::PAYLOAD_BYTES, self.geometry.payload_bytes);
        put_u64(into, header::SEQUENCE, self.sequence);
        let crc = crc32c(&into[..header::CRC]);
        put_u32(into, header::CRC, crc);
    }

    /// None when there is no valid header.
    pub(crate) fn decode(from: &[u8], file: &str) -> Result<Option<Self>, EngineError> {
        let magic = &from[header::MAGIC..header::MAGIC + 8];
        if magic != SEGMENT_MAGIC || get_u32(from, header::CRC) != crc32c(&from[..header::CRC]) {
            return Ok(None);
        }
        check_version(get_u32(from, header::VERSION), file)?;
        let geometry = Geometry {
            payload_bytes: get_u64(from, header::PAYLOAD_BYTES),
            payload_at: get_u32(from, header::PAYLOAD_AT),
        };
        let (first, sequence) = (get_u64(from, header::FIRST_LSN), get_u64(from, header::SEQUENCE));
        let possible = geometry.is_possible()
            && first < LSN_MAX
            && first.is_multiple_of(GRANULE_BYTES)
            && sequence < u64::MAX;
        Ok(possible.then_some(Self { first, sequence, geometry }))
    }
}

pub(crate) fn check_version(found: u32, file: &str) -> Result<(), EngineError> {
    if found == FORMAT_VERSION {
        return Ok(());
    }
    let found = format!("{found} ({file})");
    Err(OpenError::Format { found, known: FORMAT_VERSION }.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Header {
        let geometry = Geometry { payload_bytes: 3 * GRANULE_BYTES, payload_at: 4096 };
        Header { first: 5 * GRANULE_BYTES, sequence: 9, geometry }
    }

    #[test]
    fn it_comes_back_and_any_changed_byte_is_seen() {
        let mut bytes = vec![0; header::BYTES];
        sample().encode(&mut bytes);
        assert_eq!(Header::decode(&bytes, "x").unwrap(), Some(sample()));
        for at in 0..header::BYTES {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            assert_eq!(Header::decode(&damaged, "x").unwrap(), None, "{at}");
        }
    }

    #[test]
    fn another_version_is_refused_by_name() {
        let mut bytes = vec![0; header::BYTES];
        sample().encode(&mut bytes);
        put_u32(&mut bytes, header::VERSION, 7);
        let crc = crc32c(&bytes[..header::CRC]);
        put_u32(&mut bytes, header::CRC, crc);
        let refused = Header::decode(&bytes, "redo-000001").unwrap_err();
        assert!(refused.to_string().contains("format 7 (redo-000001)"), "{refused}");
    }
}
