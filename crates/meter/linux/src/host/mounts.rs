//! The mount that a path lies on, what sort of place it is, and what direct I/O does there.
//!
//! Three ways lead to the mount, the surest first: the mount number that statx gives; the device
//! number, among whose mounts the longest mount point above the path wins; and for file systems
//! whose files have another number than their mount (btrfs subvolumes, overlay) the longest mount
//! point alone. Of direct I/O only what is documented or visible in the kernel's code is claimed;
//! the rest is unknown, and whether it was really done is measured elsewhere (device bytes against
//! issued bytes).

use iostrata_io::Mount;
use iostrata_run::host::{DeviceNumber, DirectIo, DirectIoBehaviour, NetworkKind, PathKind};

use crate::host::{Location, Root};

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

/// The sort of place; a file system on block devices is given by the caller.
pub(crate) fn path_kind(mount: &Mount, on_block_devices: bool) -> PathKind {
    match mount.kind.as_str() {
        "tmpfs" | "ramfs" => PathKind::Tmpfs,
        "overlay" | "overlayfs" => overlay(mount),
        other => match network_kind(other) {
            Some(protocol) => PathKind::Network { protocol },
            None if on_block_devices => PathKind::Disk,
            None => PathKind::Unknown,
        },
    }
}

fn network_kind(file_system: &str) -> Option<NetworkKind> {
    Some(match file_system {
        "nfs" | "nfs4" => NetworkKind::Nfs,
        "cifs" | "smb3" | "smbfs" => NetworkKind::Cifs,
        "9p" => NetworkKind::NineP,
        "virtiofs" => NetworkKind::Virtiofs,
        "ceph" => NetworkKind::Ceph,
        "afs" | "glusterfs" | "lustre" | "gpfs" | "beegfs" | "orangefs" | "pvfs2" => {
            NetworkKind::Other
        }
        // fuseblk has a block device below and so is a disk.
        "fuse" => NetworkKind::Fuse,
        other if other.starts_with("fuse.") => NetworkKind::Fuse,
        _ => return None,
    })
}

fn overlay(mount: &Mount) -> PathKind {
    let mut lower: Vec<String> =
        mount.super_option("lowerdir").map(split_lower).unwrap_or_default();
    // Newer mount tools list each lower directory as an option of its own.
    lower.extend(
        mount
            .super_options
            .iter()
            .filter_map(|option| option.strip_prefix("lowerdir+="))
            .map(str::to_owned),
    );
    let upper = mount.super_option("upperdir").map(unescaped);
    PathKind::Overlay { lower, upper, upper_file_system: None }
}

/// Splits at colons that are not escaped.
fn split_lower(directories: &str) -> Vec<String> {
    let mut lower = vec![String::new()];
    let mut escaped = false;
    for c in directories.chars() {
        match c {
            '\\' if !escaped => {
                escaped = true;
                continue;
            }
            ':' if !escaped => lower.push(String::new()),
            _ => {
                if let Some(last) = lower.last_mut() {
                    last.push(c);
                }
            }
        }
        escaped = false;
    }
    lower.retain(|directory| !directory.is_empty());
    lower
}

fn unescaped(directory: &str) -> String {
    let mut out = String::with_capacity(directory.len());
    let mut escaped = false;
    for c in directory.chars() {
        if c == '\\' && !escaped {
            escaped = true;
        } else {
            out.push(c);
            escaped = false;
        }
    }
    out
}

/// `(major, minor)` of a Linux release.
pub(crate) type Release = (u32, u32);

/// What to expect of direct I/O at `location`.
pub(crate) fn direct_io(mount: &Mount, location: &Location, kernel: Option<Release>) -> DirectIo {
    let (behaviour, reason) = behaviour(mount, kernel);
    let align = |bytes: Option<u64>| bytes.filter(|bytes| *bytes > 0);
    let mut direct = DirectIo {
        behaviour,
        reason: reason.map(str::to_owned),
        memory_align_bytes: align(location.direct_memory_align_bytes),
        offset_align_bytes: align(location.direct_offset_align_bytes),
    };
    if location.direct_memory_align_bytes == Some(0) && behaviour != DirectIoBehaviour::Ignored {
        direct.behaviour = DirectIoBehaviour::Refused;
        direct.reason = Some("statx reports that this file takes no direct I/O".to_owned());
    }
    direct
}

fn behaviour(mount: &Mount, kernel: Option<Release>) -> (DirectIoBehaviour, Option<&'static str>) {
    use DirectIoBehaviour::{Honoured, Ignored, Refused, Unknown};
    let since = |release: Release| kernel.map(|kernel| kernel >= release);
    match mount.kind.as_str() {
        "ext2" | "xfs" => (Honoured, None),
        "ext3" | "ext4" if mount.super_option("data") == Some("journal") => {
            (Ignored, Some("data=journal sends every write through the page cache"))
        }
        "ext3" | "ext4" => (Honoured, None),
        "nfs" | "nfs4" => (Honoured, Some("bypasses this client's page cache, not the server's")),
        "btrfs" => btrfs(mount, since((6, 15))),
        "tmpfs" => match since((6, 6)) {
            Some(true) => (Ignored, Some("tmpfs accepts the flag; its data are in memory")),
            Some(false) => (Refused, Some("tmpfs refuses the flag before Linux 6.6")),
            None => (Unknown, Some("tmpfs: depends on the kernel release")),
        },
        "ramfs" => (Refused, Some("ramfs has no direct I/O")),
        _ => (Unknown, None),
    }
}

fn btrfs(mount: &Mount, buffers: Option<bool>) -> (DirectIoBehaviour, Option<&'static str>) {
    use DirectIoBehaviour::{Honoured, Ignored, Unknown};
    let plain = mount.has_super_option("nodatasum") || mount.has_super_option("nodatacow");
    let compress = mount
        .super_options
        .iter()
        .any(|option| option.starts_with("compress") && !option.ends_with("=none"));
    if compress && !mount.has_super_option("nodatacow") {
        return (Ignored, Some("btrfs writes compressed data through the page cache"));
    }
    match buffers {
        _ if plain => (Honoured, None),
        Some(true) => (Ignored, Some("btrfs writes checksummed data through the page cache")),
        Some(false) => (Honoured, None),
        None => (Unknown, Some("btrfs: depends on the kernel release")),
    }
}

/// The release number of a kernel, from `uname -r`.
pub(crate) fn release(text: &str) -> Option<Release> {
    let mut parts = text.split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use DirectIoBehaviour::{Honoured, Ignored, Refused, Unknown};
    use iostrata_io::parse_mounts as parse;

    use super::*;

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

    fn kind_of(line: &str, on_block_devices: bool) -> PathKind {
        path_kind(&parse(line)[0], on_block_devices)
    }

    #[test]
    fn types_and_their_kinds() {
        let kind = |fs: &str| kind_of(&format!("1 1 0:9 / /m rw - {fs} source rw"), true);
        assert_eq!(kind("ramfs"), PathKind::Tmpfs);
        assert_eq!(kind("nfs4"), PathKind::Network { protocol: NetworkKind::Nfs });
        assert_eq!(kind("9p"), PathKind::Network { protocol: NetworkKind::NineP });
        assert_eq!(kind("fuse.sshfs"), PathKind::Network { protocol: NetworkKind::Fuse });
        assert_eq!(kind("fuseblk"), PathKind::Disk);
        assert_eq!(kind("xfs"), PathKind::Disk);
        assert_eq!(kind_of("1 1 0:9 / /m rw - zfs pool/data rw", false), PathKind::Unknown);
    }

    #[test]
    fn overlay_directories_with_escapes() {
        let line =
            r"1 1 0:9 / /m rw - overlay o rw,lowerdir=/a\134:b:/c,upperdir=/u\134\054v,workdir=/w";
        let PathKind::Overlay { lower, upper, .. } = kind_of(line, false) else { panic!() };
        assert_eq!(lower, ["/a:b", "/c"]);
        assert_eq!(upper.as_deref(), Some("/u,v"));
    }

    fn expect(file_system: &str, options: &str, kernel: Option<Release>) -> DirectIoBehaviour {
        let mount = &parse(&format!("1 1 8:1 / / rw - {file_system} /dev/sda1 {options}"))[0];
        let location = Location::new("/x", DeviceNumber { major: 8, minor: 1 });
        direct_io(mount, &location, kernel).behaviour
    }

    #[test]
    fn file_systems_and_options() {
        assert_eq!(expect("ext4", "rw", None), Honoured);
        assert_eq!(expect("ext4", "rw,data=journal", None), Ignored);
        assert_eq!(expect("btrfs", "rw", Some((6, 18))), Ignored);
        assert_eq!(expect("btrfs", "rw", Some((6, 1))), Honoured);
        assert_eq!(expect("btrfs", "rw,nodatacow", Some((6, 18))), Honoured);
        assert_eq!(expect("btrfs", "rw,compress=zstd:3", Some((6, 1))), Ignored);
        assert_eq!(expect("tmpfs", "rw", Some((6, 18))), Ignored);
        assert_eq!(expect("tmpfs", "rw", Some((5, 10))), Refused);
        assert_eq!(expect("zfs", "rw", Some((6, 18))), Unknown);
    }

    #[test]
    fn a_file_that_takes_no_direct_io() {
        let mount = &parse("1 1 8:1 / / rw - ext4 /dev/sda1 rw")[0];
        let mut location = Location::new("/x", DeviceNumber { major: 8, minor: 1 });
        location.direct_memory_align_bytes = Some(0);
        assert_eq!(direct_io(mount, &location, None).behaviour, Refused);
        location.direct_memory_align_bytes = Some(4);
        location.direct_offset_align_bytes = Some(512);
        let direct = direct_io(mount, &location, None);
        assert_eq!((direct.behaviour, direct.offset_align_bytes), (Honoured, Some(512)));
    }

    #[test]
    fn releases() {
        assert_eq!(release("6.18.44-fc-v595"), Some((6, 18)));
        assert_eq!(release("6.1-rc3"), Some((6, 1)));
        assert_eq!(release("linux"), None);
    }
}
