//! Mounting through the calls that give a reason (fsopen(2)), and setting options.
//!
//! Invariant: nothing is attached to the tree before the file system took every option.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use rustix::fs::CWD;
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, MoveMountFlags, UnmountFlags,
    fsconfig_create, fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen, mount_remount,
    move_mount,
};

use crate::platform::{MountRequest, Refusal};

/// Longest message of the kernel, in bytes.
const MESSAGE_BYTES: usize = 1024;

/// Options that belong to the mount and not to the file system.
const OF_THE_MOUNT: &[(&str, MountAttrFlags)] = &[
    ("nosuid", MountAttrFlags::MOUNT_ATTR_NOSUID),
    ("nodev", MountAttrFlags::MOUNT_ATTR_NODEV),
    ("noexec", MountAttrFlags::MOUNT_ATTR_NOEXEC),
    ("noatime", MountAttrFlags::MOUNT_ATTR_NOATIME),
    ("nodiratime", MountAttrFlags::MOUNT_ATTR_NODIRATIME),
    ("strictatime", MountAttrFlags::MOUNT_ATTR_STRICTATIME),
    ("relatime", MountAttrFlags::empty()),
    ("atime", MountAttrFlags::empty()),
    ("diratime", MountAttrFlags::empty()),
    ("suid", MountAttrFlags::empty()),
    ("dev", MountAttrFlags::empty()),
    ("exec", MountAttrFlags::empty()),
    ("defaults", MountAttrFlags::empty()),
];

pub(super) fn mount(request: &MountRequest) -> Result<(), Refusal> {
    let context = match fsopen(request.kind, FsOpenFlags::FSOPEN_CLOEXEC) {
        Err(Errno::NODEV) => {
            let said = format!("this kernel has no {}", request.kind);
            return Err(Refusal { said, source: Errno::NODEV.into() });
        }
        opened => opened.map_err(plain)?,
    };
    let context = context.as_fd();
    let told = |errno| refusal(context, errno);
    fsconfig_set_string(context, "source", &request.source).map_err(told)?;
    let mut attributes = MountAttrFlags::empty();
    for option in &request.options {
        match OF_THE_MOUNT.iter().find(|(name, _)| name == option) {
            Some((_, flag)) => attributes |= *flag,
            None => set(context, option).map_err(|errno| {
                let Refusal { said, source } = refusal(context, errno);
                Refusal { said: format!("{option}: {said}"), source }
            })?,
        }
        if option == "ro" {
            attributes |= MountAttrFlags::MOUNT_ATTR_RDONLY;
        }
    }
    fsconfig_create(context).map_err(told)?;
    let mounted = fsmount(context, FsMountFlags::FSMOUNT_CLOEXEC, attributes).map_err(told)?;
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    move_mount(mounted.as_fd(), c"", CWD, &request.at, flags).map_err(plain)
}

fn set(context: BorrowedFd<'_>, option: &str) -> Result<(), Errno> {
    match option.split_once('=') {
        Some((name, value)) => fsconfig_set_string(context, name, value),
        None => fsconfig_set_flag(context, option),
    }
}

fn plain(errno: Errno) -> Refusal {
    let source = io::Error::from(errno);
    Refusal { said: source.to_string(), source }
}

/// With what the file system said, where it said something.
fn refusal(context: BorrowedFd<'_>, errno: Errno) -> Refusal {
    let mut said = Vec::new();
    let mut message = [0; MESSAGE_BYTES];
    while let Ok(bytes) = rustix::io::read(context, &mut message) {
        let text = String::from_utf8_lossy(&message[..bytes]).into_owned();
        // A letter for the weight and a blank come first.
        said.push(text.get(2..).unwrap_or(&text).trim().to_owned());
        if bytes == 0 || said.len() > 8 {
            break;
        }
    }
    match said.is_empty() {
        true => plain(errno),
        false => Refusal { said: said.join("; "), source: errno.into() },
    }
}

/// Options of mount(2) that are flags, and those that take a flag away.
const FLAGS: &[(&str, &str, MountFlags)] = &[
    ("ro", "rw", MountFlags::RDONLY),
    ("nosuid", "suid", MountFlags::NOSUID),
    ("nodev", "dev", MountFlags::NODEV),
    ("noexec", "exec", MountFlags::NOEXEC),
    ("noatime", "atime", MountFlags::NOATIME),
    ("nodiratime", "diratime", MountFlags::NODIRATIME),
    ("relatime", "norelatime", MountFlags::RELATIME),
    ("strictatime", "nostrictatime", MountFlags::STRICTATIME),
    ("sync", "async", MountFlags::SYNCHRONOUS),
    ("lazytime", "nolazytime", MountFlags::LAZYTIME),
];
/// Of these only one holds.
const TIMES: MountFlags =
    MountFlags::NOATIME.union(MountFlags::RELATIME).union(MountFlags::STRICTATIME);

pub(super) fn remount(at: &Path, now: Vec<String>, options: &[String]) -> Result<(), Refusal> {
    let mut flags = MountFlags::empty();
    let mut data = Vec::new();
    for option in now.iter().chain(options) {
        let on = FLAGS.iter().find(|(on, _, _)| on == option);
        let off = FLAGS.iter().find(|(_, off, _)| off == option);
        match (on, off) {
            (Some((_, _, flag)), _) if TIMES.contains(*flag) => {
                flags = flags.difference(TIMES).union(*flag);
            }
            (Some((_, _, flag)), _) => flags |= *flag,
            (_, Some((_, _, flag))) => flags = flags.difference(*flag),
            _ if options.contains(option) => data.push(option.as_str()),
            _ => {}
        }
    }
    let data = std::ffi::CString::new(data.join(",")).map_err(|_| plain(Errno::INVAL))?;
    mount_remount(at, flags, &*data).map_err(plain)
}

pub(super) fn unmount(at: &Path, lazily: bool) -> io::Result<()> {
    let flags = if lazily { UnmountFlags::DETACH } else { UnmountFlags::empty() };
    Ok(rustix::mount::unmount(at, flags | UnmountFlags::NOFOLLOW)?)
}
