//! Finding block devices in sysfs, by number, name or device file.
//!
//! Invariant: a device is spoken of by its canonical directory below `/sys`; nothing is opened but
//! attribute files.

use std::path::{Path, PathBuf};

use iostrata_run::host::DeviceNumber;

use crate::host::Root;

/// The directory of the device with this number.
pub(crate) fn dir_of_number(root: &Root, number: DeviceNumber) -> Option<PathBuf> {
    root.resolved(format!("/sys/dev/block/{number}"))
}

/// The directory of the device with this kernel name.
pub(crate) fn dir_of_name(root: &Root, name: &str) -> Option<PathBuf> {
    // The kernel writes a slash in a name as an exclamation mark.
    let name = name.replace('/', "!");
    if name.is_empty() || name.starts_with('.') {
        return None;
    }
    root.resolved(format!("/sys/class/block/{name}"))
        .or_else(|| root.resolved(format!("/sys/block/{name}")))
}

/// The directory of the device that a device file such as `/dev/mapper/vg-data` stands for.
pub(crate) fn dir_of_source(root: &Root, source: &str) -> Option<PathBuf> {
    let below_dev = source.strip_prefix("/dev/")?;
    if let Some(dir) = dir_of_name(root, below_dev) {
        return Some(dir);
    }
    if let Some(target) = root.resolved(source).as_deref().and_then(Path::to_str)
        && let Some(dir) = target.strip_prefix("/dev/").and_then(|name| dir_of_name(root, name))
    {
        return Some(dir);
    }
    // A container's /dev lacks the links, so the mapper is asked for the name.
    let mapped = below_dev.strip_prefix("mapper/")?;
    let name = root
        .names("/sys/block")
        .into_iter()
        .find(|name| root.word(format!("/sys/block/{name}/dm/name")).as_deref() == Some(mapped))?;
    dir_of_name(root, &name)
}

/// The kernel name of the device with this directory.
pub(crate) fn name_of(dir: &Path) -> String {
    dir.file_name().map(|name| name.to_string_lossy().replace('!', "/")).unwrap_or_default()
}

/// The number of the device with this directory.
pub(crate) fn number_of(root: &Root, dir: &Path) -> Option<DeviceNumber> {
    root.word(dir.join("dev"))?.parse().ok()
}

/// Whether the device is part of a disk, and so has no queue of its own.
pub(crate) fn is_partition(root: &Root, dir: &Path) -> bool {
    root.exists(dir.join("partition"))
}

/// Every member of the btrfs file system that the device belongs to, itself included.
pub(crate) fn btrfs_members(root: &Root, device: &str) -> Vec<String> {
    for file_system in root.names("/sys/fs/btrfs") {
        let members = root.names(format!("/sys/fs/btrfs/{file_system}/devices"));
        if members.iter().any(|member| member == device) {
            return members;
        }
    }
    Vec::new()
}
