//! Devices of a simulated queue in words.

use iostrata_plan::disk::{DiskModel, DiskSpec};
use iostrata_run::QueueDevice;
use iostrata_sim::drive::DriveFacts;

/// Disks of an array whose number is not given: one mirrored pair.
const SPINDLES_DEFAULT: u32 = 2;

/// The device as the document describes it.
pub fn device(spec: &DiskSpec, facts: &DriveFacts) -> QueueDevice {
    let spindles = match spec.model {
        DiskModel::Raid10Hdd => spec.spindles.unwrap_or(SPINDLES_DEFAULT),
        _ => 1,
    };
    QueueDevice {
        device: spec.to_string(),
        title: title(spec, spindles),
        is_rotational: facts.is_rotational,
        spindles,
        queue_depth: facts.queue_depth,
    }
}

fn title(spec: &DiskSpec, spindles: u32) -> String {
    let mut title = match &spec.model {
        DiskModel::Hdd7k2 => "a disk of 7,200 turns".to_owned(),
        DiskModel::Hdd10k => "a disk of 10,000 turns".to_owned(),
        DiskModel::Hdd15k => "a disk of 15,000 turns".to_owned(),
        DiskModel::Raid10Hdd if spindles == 2 => "two disks in RAID 1".to_owned(),
        DiskModel::Raid10Hdd => format!("{spindles} disks in RAID 10"),
        DiskModel::SsdSata => "SATA flash".to_owned(),
        DiskModel::Nvme => "NVMe flash".to_owned(),
        DiskModel::NvmeNoPlp => "NVMe flash without power-loss protection".to_owned(),
        DiskModel::CloudBurst => "a cloud volume".to_owned(),
        DiskModel::Probe(file) => format!("the disk probed in {}", file.display()),
    };
    match spec.queue_depth {
        Some(1) => title.push_str(" without command queueing"),
        Some(depth) => title.push_str(&format!(" with {depth} commands at a time")),
        None => {}
    }
    match spec.write_cache {
        Some(true) => title.push_str(", write cache on"),
        Some(false) => title.push_str(", write cache off"),
        None => {}
    }
    title
}
