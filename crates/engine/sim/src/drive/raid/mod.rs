//! Disks in mirrored pairs, with and without a cache that a battery protects.
//!
//! Purpose: RAID 1 and RAID 10 over [`crate::drive::hdd`]. Invariant: [`crate::drive::Drive`]'s. It
//! models no broken disk, no rebuild and no parity.

mod array;
mod battery;
mod dirty;
mod parameters;
mod stripes;
#[cfg(test)]
mod tests;

pub use array::{Array, Raid};
pub use battery::{BatteryCache, Protected};
pub use parameters::{
    BATTERY_512M, ProtectedCacheParameters, RAID1_15K, RAID10_15K, RaidParameters,
};
