//! Rotating disks in mirrored pairs, behind a protected cache.

use super::{Citation, Model, Origin, bandwidth, hdd, parameter, time};
use crate::drive::raid::{BATTERY_512M, RAID10_15K};

pub(super) fn model() -> Model {
    let (array, cache) = (RAID10_15K, BATTERY_512M);
    let of_its_time = Origin::Estimated("as controllers of 2008 to 2012 shipped");
    let firmware = Origin::Estimated("a command through firmware and bus");
    let us = |us: u32| u64::from(us) * 1_000;
    let own_caches = Origin::Derived("what left the battery's care must be on the medium");
    let mut parameters = vec![
        parameter("disks, in mirrored pairs", array.spindles, "", of_its_time),
        parameter("stripe", array.stripe_bytes >> 10, "KiB", of_its_time),
        parameter("commands at a time", array.queue_depth, "", of_its_time),
        time("controller, per command to a disk", us(array.controller_overhead_us), firmware),
        parameter("protected cache", cache.cache_bytes >> 20, "MiB", of_its_time),
        time("a write into the cache", us(cache.latency_us), firmware),
        time("controller's processor, per command", us(cache.command_us), firmware),
        bandwidth("into and out of the cache", cache.bytes_per_s as f64, of_its_time),
        parameter("write caches of the disks", "off", "", own_caches),
    ];
    parameters.extend(hdd::rows(&array.disk, hdd::SIBLINGS).into_iter().filter(|row| {
        // What the array has instead of its disks was said above.
        !matches!(row.name, "commands at a time" | "flush, at least" | "write cache")
    }));
    Model {
        name: "raid10-hdd",
        real_drive: "eight Seagate Savvio 15K.1 in RAID 10 behind a controller with a battery, no \
                     real controller in particular",
        power_cut: "Nothing that was done; with `cache=off` neither, as the disks' own caches are \
                    off",
        parameters,
        sources: &[Citation {
            title: "Seagate, Savvio 15K.1 FC Product Manual, Rev. B, sections 4.1 and 4.2",
            url: Some("https://manualsdump.com/amp/en/manuals/136737/19"),
        }],
    }
}
