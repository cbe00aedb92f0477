//! The files of a served disk: their names and what `stat` says of them.
//!
//! Invariant: nothing of it changes while the disk is served, so the kernel may keep it.

use std::ffi::OsStr;
use std::time::{Duration, SystemTime};

use fuser::{FileAttr, FileType, INodeNo};

/// The contents of the disk.
pub(crate) const DISK: &str = "disk";
/// What arrived so far, JSON.
pub(crate) const STATS: &str = "stats";
/// Takes one line of text per write.
pub(crate) const CONTROL: &str = "control";

/// How long the kernel may keep names and attributes.
pub(crate) const TTL: Duration = Duration::from_secs(86_400);
/// What programs are told to write at a time.
const BLOCK_BYTES: u32 = 4096;

/// One of them, or the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    Root,
    Disk,
    Stats,
    Control,
}

impl Node {
    /// Everything in the directory.
    pub(crate) const FILES: [Self; 3] = [Self::Disk, Self::Stats, Self::Control];

    pub(crate) fn number(self) -> INodeNo {
        match self {
            Self::Root => INodeNo::ROOT,
            Self::Disk => INodeNo(2),
            Self::Stats => INodeNo(3),
            Self::Control => INodeNo(4),
        }
    }

    pub(crate) fn of(number: INodeNo) -> Option<Self> {
        let all = [Self::Root, Self::Disk, Self::Stats, Self::Control];
        all.into_iter().find(|node| node.number() == number)
    }

    pub(crate) fn named(name: &OsStr) -> Option<Self> {
        Self::FILES.into_iter().find(|node| name == OsStr::new(node.name()))
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Root => ".",
            Self::Disk => DISK,
            Self::Stats => STATS,
            Self::Control => CONTROL,
        }
    }

    pub(crate) fn kind(self) -> FileType {
        match self {
            Self::Root => FileType::Directory,
            _ => FileType::RegularFile,
        }
    }

    pub(crate) fn attributes(self, disk_bytes: u64, since: SystemTime) -> FileAttr {
        // As in /proc, files that are made when they are read have no size.
        let size = if self == Self::Disk { disk_bytes } else { 0 };
        let perm = match self {
            Self::Root => 0o500,
            Self::Disk => 0o600,
            Self::Stats => 0o400,
            Self::Control => 0o200,
        };
        FileAttr {
            ino: self.number(),
            size,
            blocks: size / 512,
            atime: since,
            mtime: since,
            ctime: since,
            crtime: since,
            kind: self.kind(),
            perm,
            nlink: if self == Self::Root { 2 } else { 1 },
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            rdev: 0,
            blksize: BLOCK_BYTES,
            flags: 0,
        }
    }
}
