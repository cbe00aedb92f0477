//! Where things lie in the files of the redo log: every number of the format, and how integers are
//! read and written.
//!
//! Invariant: all integers are little endian; a header and a control slot fit one 512-byte sector,
//! so that a crash leaves the old or the new one.

/// Version of the format that this code writes and reads.
pub const FORMAT_VERSION: u32 = 1;

/// First bytes of a segment file.
pub const SEGMENT_MAGIC: [u8; 8] = *b"IOSTREDO";
/// First bytes of a control slot.
pub const CONTROL_MAGIC: [u8; 8] = *b"IOSTRCTL";

/// Name of the control file.
pub const CONTROL_NAME: &str = "redo-control";
/// What the names of segment files begin with; a decimal number of six digits or more follows.
pub const SEGMENT_PREFIX: &str = "redo-";

/// Bytes of a control slot, the first at 0, the second behind it.
pub const CONTROL_SLOT_BYTES: usize = 4096;
/// Bytes that a segment's header takes when it is written. The header itself is shorter.
pub const HEADER_BLOCK_BYTES: usize = 4096;
/// What an LSN at which a segment begins and the payload of a segment are multiples of, in bytes.
pub const GRANULE_BYTES: u64 = 16_384;
/// Smallest and largest block of writes, in bytes.
pub const BLOCK_BYTES_MIN: u32 = 512;
/// See [`BLOCK_BYTES_MIN`].
pub const BLOCK_BYTES_MAX: u32 = 16_384;
/// Smallest capacity, in bytes of segment files: three segments of one granule and a header.
pub const CAPACITY_BYTES_MIN: u64 = 65_536;
/// Segments from this size on keep their payload at a whole granule, in bytes of the file.
pub const WIDE_SEGMENT_BYTES: u64 = 1 << 20;
/// Fewest segments of a log.
pub const SEGMENTS_MIN: u64 = 3;
/// Segments that a new log is cut into when it is large enough.
pub const SEGMENTS_WANTED: u64 = 32;
/// Most segments of one size that a growing log has before they become larger.
pub const SEGMENTS_MAX: u64 = 128;

/// A segment header: offsets of its fields.
pub mod header {
    /// [`super::SEGMENT_MAGIC`].
    pub const MAGIC: usize = 0;
    /// u32.
    pub const VERSION: usize = 8;
    /// u32, where the payload begins in the file.
    pub const PAYLOAD_AT: usize = 12;
    /// u64, LSN of the first payload byte; 0 in a segment that was never used.
    pub const FIRST_LSN: usize = 16;
    /// u64.
    pub const PAYLOAD_BYTES: usize = 24;
    /// u64, counts taken segments; the larger of two for the same LSN is valid.
    pub const SEQUENCE: usize = 32;
    /// u32, crc32c of everything before.
    pub const CRC: usize = 40;
    /// Length.
    pub const BYTES: usize = 44;
}

/// A control slot: offsets of its fields.
pub mod control {
    /// [`super::CONTROL_MAGIC`].
    pub const MAGIC: usize = 0;
    /// u32.
    pub const VERSION: usize = 8;
    /// u32, bit 0: closed cleanly, nothing follows the checkpoint; bit 1: opened since.
    pub const FLAGS: usize = 12;
    /// u64, the larger of two slots is valid.
    pub const SEQUENCE: usize = 16;
    /// u64.
    pub const CHECKPOINT_LSN: usize = 24;
    /// u64, seals the frame at the checkpoint.
    pub const INCARNATION: usize = 32;
    /// u64, the log is known to reach at least here.
    pub const DURABLE_LSN: usize = 40;
    /// u64, payload of new segments.
    pub const PAYLOAD_BYTES: usize = 48;
    /// u32, where the payload begins in new segments.
    pub const PAYLOAD_AT: usize = 56;
    /// u32, block of writes when the slot was written.
    pub const BLOCK_BYTES: usize = 60;
    /// u32, crc32c of everything before.
    pub const CRC: usize = 64;
    /// Length.
    pub const BYTES: usize = 68;
    /// u64, the engine whose log it is; 0 when that is not known. Behind what the crc seals, where
    /// programs that do not know it leave zeros.
    pub const IDENTITY: usize = 72;
    /// u32, crc32c of the identity.
    pub const IDENTITY_CRC: usize = 80;
    /// Bit of the flags: closed cleanly.
    pub const CLEAN: u32 = 1;
    /// Bit of the flags: opened since it was closed, so that segments may have been made.
    pub const OPENED: u32 = 2;
}

/// A frame: offsets of its fields.
pub mod frame {
    /// u32, bytes of the body, the kind included; 0 ends the log.
    pub const LEN: usize = 0;
    /// u32, crc32c of the body, then the frame's first LSN (u64), then the incarnation (u64).
    pub const CRC: usize = 4;
    /// u8, first byte of the body.
    pub const KIND: usize = 8;
    /// Length and crc.
    pub const HEAD_BYTES: usize = 8;
    /// Everything that is not the caller's.
    pub const OVERHEAD_BYTES: usize = 9;
    /// Kind: records follow.
    pub const RECORDS: u8 = 0;
    /// Kind: a new incarnation number (u64) follows.
    pub const INCARNATION: u8 = 1;
    /// Largest frame, head included.
    pub const BYTES_MAX: usize = 8 << 20;
    /// Bytes of a whole incarnation frame.
    pub const INCARNATION_BYTES: usize = OVERHEAD_BYTES + 8;
}

const _: () = {
    assert!(header::BYTES <= 512 && control::IDENTITY_CRC + 4 <= 512);
    assert!(header::BYTES == header::CRC + 4 && control::BYTES == control::CRC + 4);
    assert!(HEADER_BLOCK_BYTES >= 512 && HEADER_BLOCK_BYTES.is_multiple_of(512));
    assert!(GRANULE_BYTES.is_multiple_of(BLOCK_BYTES_MAX as u64));
    assert!(GRANULE_BYTES.is_multiple_of(HEADER_BLOCK_BYTES as u64));
    assert!(frame::KIND == frame::HEAD_BYTES && frame::OVERHEAD_BYTES == frame::KIND + 1);
    let smallest = SEGMENTS_MIN * (HEADER_BLOCK_BYTES as u64 + GRANULE_BYTES);
    assert!(smallest <= CAPACITY_BYTES_MIN);
};

pub(crate) fn get_u32(from: &[u8], at: usize) -> u32 {
    let mut bytes = [0; 4];
    bytes.copy_from_slice(&from[at..at + 4]);
    u32::from_le_bytes(bytes)
}

pub(crate) fn get_u64(from: &[u8], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&from[at..at + 8]);
    u64::from_le_bytes(bytes)
}

pub(crate) fn put_u32(into: &mut [u8], at: usize, value: u32) {
    into[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

pub(crate) fn put_u64(into: &mut [u8], at: usize, value: u64) {
    into[at..at + 8].copy_from_slice(&value.to_le_bytes());
}
