//! What an array is: which disks, how many, and what its controller does.
//!
//! Invariant: spindles come in mirrored pairs. The controller's figures are assumptions, as data
//! sheets of controllers give none: a command through firmware and bus in 50 to 100 us, 512 MiB of
//! cache, stripes of 256 KiB, as controllers of 2008 to 2012 shipped.

use super::stripes::Stripes;
use crate::drive::hdd::{HDD_15K, HddParameters};

/// Disks in mirrored pairs, striped; one pair is RAID 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RaidParameters {
    /// Each disk.
    pub disk: HddParameters,
    /// How many; an even number.
    pub spindles: u32,
    /// Bytes that lie on one pair before the next pair follows.
    pub stripe_bytes: u64,
    /// Commands that the controller takes at a time.
    pub queue_depth: u32,
    /// What the controller adds to a command, in us.
    pub controller_overhead_us: u32,
}

impl RaidParameters {
    /// Which bytes lie on which pair.
    ///
    /// # Panics
    /// When the spindles are not pairs.
    pub(super) fn stripes(&self) -> Stripes {
        let spindles = self.spindles;
        assert!(spindles >= 2 && spindles.is_multiple_of(2), "{spindles} spindles are no pairs");
        Stripes::new(spindles / 2, self.stripe_bytes)
    }
}

/// A cache of the controller that a battery keeps through a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProtectedCacheParameters {
    /// Most dirty bytes.
    pub cache_bytes: u64,
    /// From a command's coming to its being done when only the cache is needed, in us.
    pub latency_us: u32,
    /// What the controller's processor works on one command, in us: bounds commands per second.
    pub command_us: u32,
    /// Rate into and out of the cache.
    pub bytes_per_s: u64,
    /// What a flush takes at least, in us.
    pub flush_us_min: u32,
}

/// Two disks of 15,000 turns in RAID 1, their own write caches on, no battery.
pub const RAID1_15K: RaidParameters = RaidParameters {
    disk: HDD_15K,
    spindles: 2,
    stripe_bytes: 256 << 10,
    queue_depth: 256,
    controller_overhead_us: 50,
};

/// Eight disks of 15,000 turns in RAID 10, their own write caches off, for use behind
/// [`BATTERY_512M`].
pub const RAID10_15K: RaidParameters = RaidParameters {
    disk: HddParameters { write_cache: false, ..HDD_15K },
    spindles: 8,
    ..RAID1_15K
};

/// 512 MiB behind a battery.
pub const BATTERY_512M: ProtectedCacheParameters = ProtectedCacheParameters {
    cache_bytes: 512 << 20,
    latency_us: 70,
    command_us: 10,
    bytes_per_s: 1_000_000_000,
    flush_us_min: 0,
};
