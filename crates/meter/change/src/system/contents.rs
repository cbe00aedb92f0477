//! What a block device is used for and what it holds, before anything is written to it.
//!
//! Invariant: it only reads. Known signatures are a table; whatever is not known but not zero
//! either counts as something too.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use iostrata_io::{FileSet, FileSetError, FileSetPlan, Place};
use rustix::fs::{major, minor};

use crate::seen::DeviceState;

/// How much is looked at, in bytes.
const HEAD_BYTES: u64 = 1 << 20;

/// Name, offset in bytes, and the bytes there.
const SIGNATURES: &[(&str, usize, &[u8])] = &[
    ("an ext2, ext3 or ext4 file system", 0x438, b"\x53\xef"),
    ("an XFS file system", 0, b"XFSB"),
    ("a btrfs file system", 0x1_0040, b"_BHRfS_M"),
    ("swap space", 4086, b"SWAPSPACE2"),
    ("swap space", 4086, b"SWAP-SPACE"),
    ("an LVM physical volume", 512, b"LABELONE"),
    ("a LUKS volume", 0, b"LUKS\xba\xbe"),
    ("a RAID member", 4096, b"\xfc\x4e\x2b\xa9"),
    ("a RAID member", 0, b"\xfc\x4e\x2b\xa9"),
    ("an f2fs file system", 1024, b"\x10\x20\xf5\xf2"),
    ("a bcache device", 0x1018, b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca"),
    ("an NTFS file system", 3, b"NTFS    "),
    ("an exFAT file system", 3, b"EXFAT   "),
    ("a FAT file system", 0x52, b"FAT32"),
    ("a FAT file system", 0x36, b"FAT1"),
    ("an ISO 9660 file system", 0x8001, b"CD001"),
    ("a Ceph device", 0, b"bluestore block device"),
];

pub(super) fn state(device: &Path) -> io::Result<DeviceState> {
    if let Some(state) = in_use(device)? {
        return Ok(state);
    }
    let node = node(device)?;
    let is_partition = |entry: fs::DirEntry| entry.path().join("partition").exists();
    if fs::read_dir(&node)?.flatten().any(is_partition) {
        return Ok(DeviceState::Partitioned);
    }
    let mut head = Vec::new();
    File::open(device)?.take(HEAD_BYTES).read_to_end(&mut head)?;
    Ok(contents(&head))
}

/// The rules for files and devices that others own, asked without writing.
pub(super) fn in_use(device: &Path) -> io::Result<Option<DeviceState>> {
    let plan = FileSetPlan {
        total_bytes: None,
        overwrite_contents: true,
        ..FileSetPlan::new(Place::Device(device.to_owned()), 512, 512)
    };
    match FileSet::prepare(&plan, &AtomicBool::new(false), &mut |_| {}) {
        Err(FileSetError::Held { by, .. }) if by.starts_with("held") => {
            Ok(Some(DeviceState::Held(by)))
        }
        // btrfs mounts under a number of its own; the kernel only says that the device is taken.
        Err(FileSetError::Held { by, .. }) if by.starts_with("the kernel") => {
            let mount =
                iostrata_io::mounts()?.into_iter().find(|mount| Path::new(&mount.source) == device);
            Ok(Some(match mount {
                Some(mount) => DeviceState::Mounted(format!("mounted at {}", mount.at.display())),
                None => DeviceState::Held(by),
            }))
        }
        Err(FileSetError::Held { by, .. }) => Ok(Some(DeviceState::Mounted(by))),
        Err(FileSetError::System { source, .. }) => Err(source),
        _ => Ok(None),
    }
}

fn contents(head: &[u8]) -> DeviceState {
    let has = |at: usize, bytes: &[u8]| head.get(at..at + bytes.len()) == Some(bytes);
    if let Some((name, ..)) = SIGNATURES.iter().find(|(_, at, bytes)| has(*at, bytes)) {
        return DeviceState::Signed((*name).to_owned());
    }
    if has(512, b"EFI PART") || has(510, b"\x55\xaa") {
        return DeviceState::Partitioned;
    }
    match head.iter().position(|byte| *byte != 0) {
        Some(at) => DeviceState::Signed(format!("unknown data (not zero at byte {at})")),
        None => DeviceState::Empty,
    }
}

/// Where sysfs shows the device.
fn node(device: &Path) -> io::Result<PathBuf> {
    let number = fs::metadata(device)?.rdev();
    let name = format!("{}:{}", major(number), minor(number));
    fs::canonicalize(Path::new("/sys/dev/block").join(name))
}

pub(super) fn disk_of(device: &Path) -> io::Result<String> {
    let node = node(device)?;
    let disk = match node.join("partition").exists() {
        true => node.parent().unwrap_or(&node),
        false => &node,
    };
    Ok(disk.file_name().unwrap_or_default().to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_on_a_device_is_named() {
        let mut head = vec![0; HEAD_BYTES as usize];
        assert_eq!(contents(&head), DeviceState::Empty);
        assert_eq!(contents(&[]), DeviceState::Empty);
        for (name, at, bytes) in SIGNATURES {
            let mut signed = head.clone();
            signed[*at..at + bytes.len()].copy_from_slice(bytes);
            assert_eq!(contents(&signed), DeviceState::Signed((*name).to_owned()));
        }
        head[510..512].copy_from_slice(b"\x55\xaa");
        assert_eq!(contents(&head), DeviceState::Partitioned);
        head[510] = 1;
        assert!(matches!(contents(&head), DeviceState::Signed(what) if what.contains("510")));
    }

    #[test]
    fn the_device_of_the_root_is_mounted() {
        let mounts = fs::read_to_string("/proc/mounts").unwrap();
        let device = mounts.lines().filter_map(|line| line.split(' ').next());
        let Some(device) = device.map(Path::new).find(|path| path.starts_with("/dev/")) else {
            eprintln!("skipped: no device is mounted");
            return;
        };
        assert!(matches!(state(device), Ok(DeviceState::Mounted(_))), "{:?}", state(device));
    }
}
