//! Block devices: loop devices attached, found by the file below them and detached; and what a
//! device is used for and what it holds, before anything is written to it.
//!
//! Invariants: before a device is detached it is open and its backing file has been queried, so its
//! number cannot have changed hands. Inspecting what a device holds only reads. Known signatures
//! are a table; whatever is not known but not zero either counts as something too.
#![allow(unsafe_code)]

use std::fs::{self, File};
use std::io::{self, Read};
use std::mem;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use iostrata_io::{FileSet, FileSetError, FileSetPlan, Place};
use rustix::fs::{major, minor};

use super::server;
use crate::seen::{DeviceState, FileToken, LoopDevice};

const LOOP_CLR_FD: u32 = 0x4C01;
const LOOP_GET_STATUS64: u32 = 0x4C05;
const LOOP_CONFIGURE: u32 = 0x4C0A;
const LOOP_CTL_GET_FREE: u32 = 0x4C82;
const FLAG_DIRECT_IO: u32 = 16;

/// Another process may take the free device first.
const TRIES: u32 = 64;
/// A node that was just made may not be there yet.
const NODE_WAIT: Duration = Duration::from_millis(20);

/// The kernel's struct loop_info64.
#[repr(C)]
#[derive(Clone, Copy)]
struct Info {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    size_limit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_bytes: u32,
    flags: u32,
    file_name: [u8; 64],
    crypt_name: [u8; 64],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}

/// The kernel's struct loop_config.
#[repr(C)]
struct Config {
    fd: u32,
    block_bytes: u32,
    info: Info,
    reserved: [u64; 8],
}

const _: () = assert!(mem::size_of::<Info>() == 232 && mem::size_of::<Config>() == 304);

/// No flags, no offset, no name.
const NO_INFO: Info = Info {
    device: 0,
    inode: 0,
    rdevice: 0,
    offset: 0,
    size_limit: 0,
    number: 0,
    encrypt_type: 0,
    encrypt_key_bytes: 0,
    flags: 0,
    file_name: [0; 64],
    crypt_name: [0; 64],
    encrypt_key: [0; 32],
    init: [0; 2],
};

/// An ioctl that takes a number or nothing, or a pointer to `argument`.
fn call<T>(file: &File, request: u32, argument: *mut T) -> io::Result<i32> {
    // SAFETY: every caller passes null for a request without an argument, or a pointer to a live
    // structure with the layout that the kernel has for this request.
    let returned = unsafe { libc::ioctl(file.as_raw_fd(), request as _, argument) };
    if returned < 0 { Err(io::Error::last_os_error()) } else { Ok(returned) }
}

const NONE: *mut u8 = std::ptr::null_mut();

fn status(device: &File) -> io::Result<Info> {
    let mut info = NO_INFO;
    call(device, LOOP_GET_STATUS64, &raw mut info)?;
    Ok(info)
}

pub(super) fn attach(
    backing: &FileToken,
    direct: bool,
    block_bytes: Option<u32>,
) -> io::Result<LoopDevice> {
    let file = File::options().read(true).write(true).open(&backing.path)?;
    let meta = file.metadata()?;
    if (major(meta.dev()), minor(meta.dev())) != backing.device || meta.ino() != backing.inode {
        return Err(io::Error::other("another file took its place"));
    }
    let control = File::options().read(true).write(true).open("/dev/loop-control")?;
    let mut info = NO_INFO;
    info.flags = if direct { FLAG_DIRECT_IO } else { 0 };
    let name = backing.path.as_os_str().as_encoded_bytes();
    let len = name.len().min(info.file_name.len() - 1);
    info.file_name[..len].copy_from_slice(&name[..len]);
    let fd = file.as_raw_fd() as u32;
    let mut config = Config { fd, block_bytes: block_bytes.unwrap_or(0), info, reserved: [0; 8] };
    for _ in 0..TRIES {
        let number = call(&control, LOOP_CTL_GET_FREE, NONE)?;
        let name = format!("loop{number}");
        let device = open_node(&name)?;
        match call(&device, LOOP_CONFIGURE, &raw mut config) {
            Ok(_) => return Ok(describe(name, backing.clone())),
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::from_raw_os_error(libc::EBUSY))
}

fn open_node(name: &str) -> io::Result<File> {
    let node = Path::new("/dev").join(name);
    let open = || File::options().read(true).write(true).open(&node);
    for _ in 1..TRIES {
        match open() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                std::thread::sleep(NODE_WAIT);
            }
            opened => return opened,
        }
    }
    open()
}

fn attribute(name: &str, attribute: &str) -> Option<String> {
    let cell = Path::new("/sys/block").join(name).join(attribute);
    Some(fs::read_to_string(cell).ok()?.trim().to_owned())
}

/// What the kernel made of it.
fn describe(name: String, backing: FileToken) -> LoopDevice {
    let direct = attribute(&name, "loop/dio").as_deref() == Some("1");
    let block = attribute(&name, "queue/logical_block_size");
    let block_bytes = block.and_then(|block| block.parse().ok()).unwrap_or(512);
    LoopDevice { name, backing, direct, block_bytes }
}

pub(super) fn over(file: &FileToken) -> io::Result<Vec<LoopDevice>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/sys/block")?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(backing) = attribute(&name, "loop/backing_file") else { continue };
        let path = backing.strip_suffix(" (deleted)").unwrap_or(&backing);
        // Only devices that may be ours are opened: opening one keeps its owner from detaching it.
        if Path::new(path) != file.path && Path::new(&backing) != file.path {
            continue;
        }
        // The device may be over a file whose server is gone or hangs: then a query, and even
        // closing it again, waits. The path alone is enough, because only the server of this change
        // has files there.
        if is_served(&file.path) {
            found.push(describe(name, file.clone()));
            continue;
        }
        let opened = match File::open(PathBuf::from("/dev").join(&name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            opened => opened?,
        };
        if is_over(&opened, file)? {
            found.push(describe(name, file.clone()));
        }
    }
    Ok(found)
}

/// Whether a file lies on what a program serves.
fn is_served(path: &Path) -> bool {
    let mounts = iostrata_io::mounts().unwrap_or_default().into_iter();
    let covers = mounts.filter(|mount| path.starts_with(&mount.at));
    // Of several at one place the last covers the others.
    covers.max_by_key(|mount| mount.at.components().count()).is_some_and(|mount| mount.is_fuse())
}

/// Whether an open device is over this file; one that was detached meanwhile is over none.
fn is_over(device: &File, file: &FileToken) -> io::Result<bool> {
    match status(device) {
        Ok(info) => {
            let number = (major_of(info.device), minor_of(info.device));
            Ok(info.inode == file.inode && number == file.device)
        }
        Err(error) if error.raw_os_error() == Some(libc::ENXIO) => Ok(false),
        // Of a file the server of which is gone nothing is known but its path.
        Err(error) if server::is_dead(&error) => Ok(true),
        Err(error) => Err(error),
    }
}

/// The kernel's own form of a device number: 12 bits of major between 8 and 12 of minor.
fn major_of(device: u64) -> u32 {
    ((device >> 8) & 0xfff) as u32
}

fn minor_of(device: u64) -> u32 {
    ((device & 0xff) | ((device >> 12) & 0xf_ff00)) as u32
}

pub(super) fn detach(device: &LoopDevice) -> io::Result<()> {
    let opened = match File::open(device.path()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        opened => opened?,
    };
    let is_ours = match is_served(&device.backing.path) {
        true => attribute(&device.name, "loop/backing_file")
            .is_some_and(|path| Path::new(&path) == device.backing.path),
        false => is_over(&opened, &device.backing)?,
    };
    if !is_ours {
        return Ok(());
    }
    match call(&opened, LOOP_CLR_FD, NONE) {
        Err(error) if error.raw_os_error() == Some(libc::ENXIO) => Ok(()),
        done => done.map(drop),
    }
}

/// How much is read, in bytes.
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

/// The rules for files and devices that others own, checked without writing.
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
        // btrfs mounts under a number of its own; the kernel only reports that the device is taken.
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
    fn device_numbers_are_told_apart() {
        let encoded =
            |major: u64, minor: u64| (minor & 0xff) | (major << 8) | ((minor & !0xff) << 12);
        for (major, minor) in [(254, 0), (7, 3), (259, 300), (8, 1_000_000)] {
            let device = encoded(major, minor);
            assert_eq!(u64::from(major_of(device)), major);
            assert_eq!(u64::from(minor_of(device)), minor);
        }
    }

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
