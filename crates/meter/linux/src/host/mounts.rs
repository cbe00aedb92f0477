//! Which mount a path lies on.
//!
//! Three ways, the surest first: the mount number that statx gives; the device number, among
//! whose mounts the longest mount point above the path wins; and for file systems whose files have
//! another number than their mount (btrfs subvolumes, overlay) the longest mount point alone.

use crate::host::Location;
use crate::host::mountinfo::device_of;
use iostrata_io::Mount;

/// The mount that `location` lies on.
pub(crate) fn mount_of<'a>(mounts: &'a [Mount], location: &Location) -> Option<&'a Mount> {
    if let Some(id) = location.mount_id
        && let Some(entry) = mounts.iter().find(|entry| entry.id == id)
    {
        return Some(entry);
    }
    let same_device = || mounts.iter().filter(|entry| device_of(entry) == Some(location.device));
    longest_above(same_device(), location)
        .or_else(|| (!location.device.is_anonymous()).then(|| same_device().next_back()).flatten())
        .or_else(|| longest_above(mounts.iter(), location))
}

/// The last of the mounts with the longest mount point above the path: a later mount covers an
/// earlier one at the same place.
fn longest_above<'a>(
    mounts: impl Iterator<Item = &'a Mount>,
    location: &Location,
) -> Option<&'a Mount> {
    mounts
        .filter(|entry| location.path.starts_with(&entry.at))
        .max_by_key(|entry| entry.at.components().count())
}

#[cfg(test)]
mod tests {
    use super::*;
    use iostrata_io::parse_mounts as parse;
    use iostrata_run::host::DeviceNumber;

    const MOUNTS: &str = "\
20 1 8:1 / / rw - ext4 /dev/sda1 rw
21 20 8:2 / /data rw - xfs /dev/sdb1 rw
22 20 0:40 / /data/db rw - btrfs /dev/sdc rw
23 20 8:1 /srv /data/db/bind rw - ext4 /dev/sda1 rw
24 20 8:3 / /data rw - xfs /dev/sdd1 rw
";

    fn found(path: &str, device: (u32, u32), mount_id: Option<u64>) -> u64 {
        let device = DeviceNumber { major: device.0, minor: device.1 };
        let location = Location { mount_id, ..Location::new(path, device) };
        mount_of(&parse(MOUNTS), &location).unwrap().id
    }

    #[test]
    fn the_mount_number_wins() {
        assert_eq!(found("/data/x", (8, 3), Some(21)), 21);
    }

    #[test]
    fn the_device_number_chooses_among_covered_mounts() {
        assert_eq!(found("/data/x", (8, 2), None), 21);
        assert_eq!(found("/data/x", (8, 3), None), 24);
        assert_eq!(found("/data/db/bind/x", (8, 1), None), 23);
    }

    #[test]
    fn an_unlisted_anonymous_number_falls_back_to_the_longest_mount_point() {
        assert_eq!(found("/data/db/subvolume/x", (0, 77), None), 22);
        assert_eq!(found("/database", (0, 77), None), 20);
    }

    #[test]
    fn a_known_device_mounted_elsewhere_still_tells_its_file_system() {
        assert_eq!(found("/chroot/x", (8, 2), None), 21);
    }
}
