//! Attributes of the block device that a file lies on.
//!
//! Invariant: reads sysfs only; a file system without one device (network, memory, btrfs) has none.

use std::fs;
use std::os::fd::BorrowedFd;

use rustix::fs::{FileType, fstat, major, minor};

/// An attribute of the queue under a file or device, by its name in sysfs.
pub(crate) fn attribute(file: BorrowedFd<'_>, name: &str) -> Option<String> {
    let stat = fstat(file).ok()?;
    let is_device = FileType::from_raw_mode(stat.st_mode) == FileType::BlockDevice;
    let device = if is_device { stat.st_rdev } else { stat.st_dev };
    let node = format!("/sys/dev/block/{}:{}", major(device), minor(device));
    // A partition has no queue of its own.
    let paths = [format!("{node}/queue/{name}"), format!("{node}/../queue/{name}")];
    let text = paths.iter().find_map(|path| fs::read_to_string(path).ok())?;
    Some(text.trim().to_owned())
}
