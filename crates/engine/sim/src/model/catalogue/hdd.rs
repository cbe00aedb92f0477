//! Rotating disks, single and in an array.

use super::{Citation, Model, Origin, Parameter, bandwidth, parameter, time};
use crate::drive::hdd::{HDD_7K2, HDD_10K, HDD_15K, HddParameters};

const ONE_DISK: &str = "Done writes since the last flush, up to the write cache; nothing with \
                        `cache=off`";
pub(super) const SIBLINGS: Origin = Origin::Estimated("as its siblings' manuals say");

pub(super) fn models() -> Vec<Model> {
    vec![
        Model {
            name: "hdd-7k2",
            real_drive: HDD_7K2.name,
            power_cut: ONE_DISK,
            parameters: rows(&HDD_7K2, Origin::Source),
            sources: &[Citation {
                title: "Seagate, Constellation SAS Product Manual, Rev. E, 100538693, sections 5.1 \
                        and 5.2",
                url: Some(
                    "https://manualsdump.com/en/manuals/\
                     seagate-st9500430ss-st9500432ss-st9500431ss/136786/18",
                ),
            }],
        },
        Model {
            name: "hdd-10k",
            real_drive: HDD_10K.name,
            power_cut: ONE_DISK,
            parameters: rows(&HDD_10K, Origin::Source),
            sources: &[Citation {
                title: "Seagate, Savvio 10K.4 SAS Product Manual, Rev. A, 100539221, sections 4.1 \
                        and 4.2",
                url: Some("https://manualsdump.com/amp/en/manuals/136758/17"),
            }],
        },
        Model {
            name: "hdd-15k",
            real_drive: HDD_15K.name,
            power_cut: ONE_DISK,
            parameters: rows(&HDD_15K, SIBLINGS),
            sources: &[Citation {
                title: "Seagate, Savvio 15K.1 FC Product Manual, Rev. B, sections 4.1 and 4.2",
                url: Some("https://manualsdump.com/amp/en/manuals/136737/19"),
            }],
        },
    ]
}

/// The parameters of one disk; `overhead` is where its controller's time is from.
pub(super) fn rows(disk: &HddParameters, overhead: Origin) -> Vec<Parameter> {
    let source = Origin::Source;
    let us = |us: u32| u64::from(us) * 1_000;
    let seeks = |seek: crate::drive::hdd::SeekTimes| {
        let ms = |us: u32| f64::from(us) / 1e3;
        let (next, mean, full) = (seek.track_to_track_us, seek.average_us, seek.full_stroke_us);
        format!("{} / {} / {}", ms(next), ms(mean), ms(full))
    };
    vec![
        parameter("turns", disk.turns_per_minute, "1/min", source),
        parameter(
            "seeks before a read: next track, mean, full",
            seeks(disk.seek_read),
            "ms",
            source,
        ),
        parameter("seeks before a write", seeks(disk.seek_write), "ms", source),
        bandwidth("medium, first byte", disk.outer_bytes_per_s as f64, source),
        bandwidth("medium, last byte", disk.inner_bytes_per_s as f64, source),
        bandwidth("interface", disk.interface_bytes_per_s as f64, source),
        time("controller, per command", us(disk.controller_overhead_us), overhead),
        parameter("buffer", disk.cache_bytes >> 10, "KiB", source),
        parameter(
            "ranges in the read cache",
            disk.read_segments,
            "",
            Origin::Estimated("manuals say that firmware makes segments as it sees fit"),
        ),
        parameter(
            "ranges in the write cache",
            disk.write_cache_entries,
            "",
            Origin::Estimated(
                "calibrated with the one published figure of such disks under small random writes",
            ),
        ),
        parameter(
            "commands at a time",
            disk.queue_depth,
            "",
            Origin::Estimated("what the command sets of SATA and SAS disks of the time take"),
        ),
        parameter(
            "write cache",
            if disk.write_cache { "on" } else { "off" },
            "",
            Origin::Estimated("as such disks are mostly used"),
        ),
        parameter(
            "flush, at least",
            f64::from(disk.flush_us_min) / 1e3,
            "ms",
            Origin::Estimated("what it writes is its time"),
        ),
    ]
}
