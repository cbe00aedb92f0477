//! Where things lie in the files of the redo log: every number of the format, and how integers are
//! read and written.
//!
//! Invariant: all integers are little endian; a header and a control slot fit one 512-byte sector,
//! so that a crash leaves the old or the new one.

use crate::error::EngineError;

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

const CAPACITY_BYTES_MAX: u64 = 1 << 44;
/// Room that no age limit gives away, in bytes: each recovery appends one incarnation frame, and a
/// log that is full must be recoverable a few hundred times before it gets a checkpoint.
const RECOVERY_BYTES: u64 = 256 * frame::INCARNATION_BYTES as u64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    pub(crate) payload_bytes: u64,
    pub(crate) payload_at: u32,
}

impl Geometry {
    pub(crate) fn file_bytes(self) -> u64 {
        u64::from(self.payload_at) + self.payload_bytes
    }

    /// Whether the numbers of a file can be one of ours.
    pub(crate) fn is_possible(self) -> bool {
        let starts = [HEADER_BLOCK_BYTES as u64, GRANULE_BYTES];
        starts.contains(&u64::from(self.payload_at))
            && (GRANULE_BYTES..=CAPACITY_BYTES_MAX).contains(&self.payload_bytes)
            && self.payload_bytes.is_multiple_of(GRANULE_BYTES)
    }

    fn for_file(bytes: u64) -> Self {
        let wide = bytes >= WIDE_SEGMENT_BYTES;
        let payload_at = if wide { GRANULE_BYTES } else { HEADER_BLOCK_BYTES as u64 };
        let granules = bytes.saturating_sub(payload_at) / GRANULE_BYTES;
        let payload_bytes = granules.max(1) * GRANULE_BYTES;
        Self { payload_bytes, payload_at: payload_at as u32 }
    }
}

fn check_capacity(bytes: u64) -> Result<(), EngineError> {
    if (CAPACITY_BYTES_MIN..=CAPACITY_BYTES_MAX).contains(&bytes) {
        return Ok(());
    }
    let (name, range) = ("redo capacity in bytes", "65536 to 17592186044416");
    Err(EngineError::range(name, bytes, range))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) geometry: Geometry,
    pub(crate) segments: u64,
}

impl Plan {
    pub(crate) fn fresh(capacity_bytes: u64) -> Result<Self, EngineError> {
        check_capacity(capacity_bytes)?;
        let geometry = Geometry::for_file(capacity_bytes / SEGMENTS_WANTED);
        Ok(Self { geometry, segments: capacity_bytes / geometry.file_bytes() })
    }

    /// For a log that has segments of one size: they are kept while their number stays sensible;
    /// otherwise their size is halved or doubled. So a larger capacity never means less room.
    pub(crate) fn keeping(capacity_bytes: u64, old: Geometry) -> Result<Self, EngineError> {
        check_capacity(capacity_bytes)?;
        let of = |geometry: Geometry| {
            let segments = (capacity_bytes / geometry.file_bytes()).min(SEGMENTS_MAX);
            Self { geometry, segments }
        };
        let mut plan = of(old);
        while plan.segments < SEGMENTS_WANTED / 2 {
            let half = Geometry::for_file(plan.geometry.file_bytes() / 2);
            if half.payload_bytes >= plan.geometry.payload_bytes {
                break;
            }
            // Twice the fewest would have more room than those of the old size from there on.
            plan = of(half);
            plan.segments = plan.segments.min(SEGMENTS_WANTED - 1);
        }
        // A few large segments have less room than many small ones, the one with the checkpoint
        // being of no use.
        let mut larger = plan;
        while larger.segments == SEGMENTS_MAX {
            larger = of(Geometry::for_file(larger.geometry.file_bytes() * 2));
            if larger.room_bytes() > plan.room_bytes() {
                plan = larger;
            }
        }
        Ok(plan)
    }

    /// Bytes that may lie between the checkpoint and the newest LSN. The segment with the
    /// checkpoint cannot be used again yet, wherever in it the checkpoint lies.
    pub(crate) fn room_bytes(self) -> u64 {
        (self.segments - 1) * self.geometry.payload_bytes - RECOVERY_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redo::layout::SEGMENTS_MIN;

    #[test]
    fn every_capacity_is_cut_and_kept_within() {
        for shift in 16..=40 {
            for capacity in [1_u64 << shift, (1 << shift) + 12_345, 3 << (shift - 1)] {
                let plan = Plan::fresh(capacity).unwrap();
                let taken = plan.segments * plan.geometry.file_bytes();
                assert!(plan.geometry.is_possible(), "{capacity}: {plan:?}");
                assert!((SEGMENTS_MIN..=SEGMENTS_MAX).contains(&plan.segments), "{plan:?}");
                assert!(taken <= capacity && taken * 4 >= capacity * 3, "{capacity}: {plan:?}");
                assert_eq!(Plan::keeping(capacity, plan.geometry).unwrap(), plan);
            }
        }
        assert!(Plan::fresh(65_535).is_err());
        assert!(Plan::fresh(CAPACITY_BYTES_MAX + 1).is_err());
    }

    #[test]
    fn a_larger_capacity_never_means_less_room() {
        for (shift, more) in
            (16..=36).flat_map(|shift| [(shift, 0), (shift, 12_345), (shift, 700_001)])
        {
            let old = Plan::fresh((1 << shift) + more).unwrap().geometry;
            let (mut capacity, mut last) = (CAPACITY_BYTES_MIN, 0);
            while capacity < 1 << 42 {
                let plan = Plan::keeping(capacity, old).unwrap();
                let taken = plan.segments * plan.geometry.file_bytes();
                assert!(plan.geometry.is_possible() && taken <= capacity, "{capacity}: {plan:?}");
                assert!((SEGMENTS_MIN..=SEGMENTS_MAX).contains(&plan.segments), "{plan:?}");
                assert!(taken * 2 >= capacity, "{capacity}: {plan:?}");
                let room = plan.room_bytes();
                assert!(room >= last, "{capacity} from {old:?}: {plan:?} has {room}, not {last}");
                let again = Plan::keeping(capacity, plan.geometry).unwrap();
                assert!(again.geometry == plan.geometry && again.room_bytes() >= room, "{again:?}");
                (capacity, last) = (capacity + capacity / 200 + 1, room);
            }
        }
    }

    #[test]
    fn a_size_is_kept_until_the_number_gets_out_of_hand() {
        let old = Plan::fresh(1 << 30).unwrap();
        assert_eq!(Plan::keeping(2 << 30, old.geometry).unwrap().geometry, old.geometry);
        assert_ne!(Plan::keeping(8 << 30, old.geometry).unwrap().geometry, old.geometry);
        assert_ne!(Plan::keeping(1 << 20, old.geometry).unwrap().geometry, old.geometry);
    }
}
