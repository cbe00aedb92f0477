//! Loop devices: attached, found by the file below them, detached.
//!
//! Invariant: before a device is detached it is open and has been asked what it is over, so its
//! number cannot have changed hands.

#![allow(unsafe_code)]

use std::fs::{self, File};
use std::io;
use std::mem;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{major, minor};

use super::server;
use crate::seen::{FileToken, LoopDevice};

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
        // The device may be over a file whose server is gone or hangs: then asking, and even
        // closing it again, waits. The path alone says enough, because only the server of this
        // change has files there.
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
}
