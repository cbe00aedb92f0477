//! How a capacity is cut into segments.
//!
//! Invariant: payloads are multiples of the granule, so that a block of writes never lies across
//! two segments; the segments together never take more than the capacity.

use crate::error::EngineError;
use crate::redo::layout::{
    CAPACITY_BYTES_MIN, GRANULE_BYTES, HEADER_BLOCK_BYTES, SEGMENTS_MAX, SEGMENTS_WANTED,
    WIDE_SEGMENT_BYTES, frame,
};

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
