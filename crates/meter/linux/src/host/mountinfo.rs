//! The mounts of a machine, or of a directory that stands in for one.

use iostrata_io::Mount;
use iostrata_run::host::DeviceNumber;

use crate::host::Root;

/// All mounts that this process sees, in the order of mountinfo.
pub fn mounts(root: &Root) -> Vec<Mount> {
    let text = root.text("/proc/self/mountinfo");
    text.map(|text| iostrata_io::parse_mounts(&text)).unwrap_or_default()
}

/// The number of the file system's device; `None` where the kernel shows none.
pub(crate) fn device_of(mount: &Mount) -> Option<DeviceNumber> {
    mount.device.parse().ok()
}

/// The same where it is a block device; the numbers of other file systems are their own alone.
pub(crate) fn block_device(mount: &Mount) -> Option<DeviceNumber> {
    device_of(mount).filter(|number| !number.is_anonymous())
}
