//! What direct I/O does on a file system, from its type, its options and the kernel.
//!
//! Only what is documented or visible in the kernel's code is claimed; the rest is unknown, and
//! whether direct I/O was really done is measured elsewhere (device bytes against issued bytes).

use iostrata_run::host::{DirectIo, DirectIoBehaviour};

use crate::host::Location;
use iostrata_io::Mount;

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
        direct.reason = Some("statx says that this file takes no direct I/O".to_owned());
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
    use super::*;
    use DirectIoBehaviour::{Honoured, Ignored, Refused, Unknown};
    use iostrata_io::parse_mounts as parse;
    use iostrata_run::host::DeviceNumber;

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
