//! Disks in mirrored pairs, with and without a cache that a battery protects.
//!
//! Purpose: RAID 1 and RAID 10 over [`crate::drive::hdd`]. Invariant: [`crate::drive::Drive`]'s. It
//! models no broken disk, no rebuild and no parity.

mod dirty;
mod layout;
mod mirrors;
mod parameters;
mod plain;
mod protected;
#[cfg(test)]
mod tests;

pub use parameters::{
    BATTERY_512M, ProtectedCacheParameters, RAID1_15K, RAID10_15K, RaidParameters,
};
pub use plain::Raid;
pub use protected::ProtectedRaid;
