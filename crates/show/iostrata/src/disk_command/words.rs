//! Disk models in words.

use iostrata_plan::disk::{DiskModel, DiskSpec};

/// What a disk is, in words.
pub fn of(disk: &DiskSpec) -> String {
    let mut words = match &disk.model {
        DiskModel::Hdd7k2 => "a disk of 7,200 turns a minute".to_owned(),
        DiskModel::Hdd10k => "a disk of 10,000 turns a minute".to_owned(),
        DiskModel::Hdd15k => "a disk of 15,000 turns a minute".to_owned(),
        DiskModel::Raid10Hdd => match disk.spindles {
            Some(spindles) => format!("{spindles} disks of 15,000 turns a minute in RAID 10"),
            None => "an array of disks of 15,000 turns a minute in RAID 10".to_owned(),
        },
        DiskModel::SsdSata => "flash behind SATA".to_owned(),
        DiskModel::Nvme => "flash behind NVMe, its cache protected against power loss".to_owned(),
        DiskModel::NvmeNoPlp => "flash behind NVMe, its cache not protected".to_owned(),
        DiskModel::CloudBurst => "a cloud volume that lives on burst credits".to_owned(),
        DiskModel::Probe(file) => format!("the device that {} measured", file.display()),
    };
    if let Some(depth) = disk.queue_depth {
        words += &format!(", {depth} commands at a time");
    }
    if let Some(is_on) = disk.write_cache {
        words += if is_on { ", its write cache on" } else { ", its write cache off" };
    }
    if let Some(flush) = disk.flush {
        words += &format!(", a flush at least {} ms", flush.as_secs_f64() * 1000.0);
    }
    if let Some(credits) = disk.credits {
        words += &format!(", {credits} credits at the beginning");
    }
    words
}

#[cfg(test)]
mod tests {
    #[test]
    fn options_are_said() {
        let disk = "raid10-hdd,spindles=34,queue=1,cache=off,flush=2ms".parse().unwrap();
        assert_eq!(
            super::of(&disk),
            "34 disks of 15,000 turns a minute in RAID 10, 1 commands at a time, its write cache \
             off, a flush at least 2 ms"
        );
    }
}
