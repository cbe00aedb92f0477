//! The files of a served disk, and who speaks to it by them: what arrived, and what shall go wrong.
//!
//! Invariants: names and what `stat` returns for the files do not change while the disk is served,
//! so the kernel may keep it. The client only opens the files `stats` and `control` of the
//! directory; a dead server is an error, not a wait.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use fuser::{FileAttr, FileType, INodeNo};
use serde::{Deserialize, Serialize};

use crate::emudisk::error::ClientError;
use crate::emudisk::fault::Fault;

/// The contents of the disk.
pub(crate) const DISK: &str = "disk";
/// What arrived so far, JSON.
const STATS: &str = "stats";
/// Takes one line of text per write.
const CONTROL: &str = "control";

/// How long the kernel may keep names and attributes.
pub(crate) const TTL: Duration = Duration::from_secs(86_400);
/// The block size that programs see in `stat`.
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

/// A disk that is served at a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Client {
    at: PathBuf,
}

impl Client {
    /// Of the disk that is served at this directory.
    pub fn at(at: &Path) -> Self {
        Self { at: at.to_owned() }
    }

    /// What arrived so far.
    ///
    /// # Errors
    /// Nothing is served there, or by another version.
    pub fn stats(&self) -> Result<DiskStats, ClientError> {
        let text = fs::read_to_string(self.at.join(STATS))
            .map_err(|source| ClientError::NotServed { at: self.at.clone(), source })?;
        serde_json::from_str(&text).map_err(|error| ClientError::Statistics {
            at: self.at.clone(),
            found: error.to_string(),
        })
    }

    /// Lets something go wrong. Returns when it is so: after a power cut, when everything that was
    /// in flight has failed.
    ///
    /// # Errors
    /// Nothing is served there, or the server refuses.
    pub fn control(&self, fault: &Fault) -> Result<(), ClientError> {
        let opened = fs::File::options().write(true).open(self.at.join(CONTROL));
        let mut file =
            opened.map_err(|source| ClientError::NotServed { at: self.at.clone(), source })?;
        let command = fault.to_string();
        match file.write(command.as_bytes()) {
            Ok(bytes) if bytes == command.len() => Ok(()),
            Ok(_) => {
                let source = io::Error::from(io::ErrorKind::WriteZero);
                Err(ClientError::Refused { at: self.at.clone(), command, source })
            }
            Err(source) => Err(ClientError::Refused { at: self.at.clone(), command, source }),
        }
    }
}

/// Whether a disk has power.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Power {
    /// It serves.
    On,
    /// Every request fails with EIO.
    Off,
}

/// Counters of a served disk since it was started. All numbers are of the served file: requests
/// as they come from the loop device, merged by the block layer already.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DiskStats {
    /// The disk as it was requested, such as `hdd-15k,queue=1`.
    pub model: String,
    /// Its size.
    pub size_bytes: u64,
    /// The process that serves it.
    pub pid: u32,
    /// Reads that came.
    pub reads: u64,
    /// Writes that came.
    pub writes: u64,
    /// Flushes that came.
    pub flushes: u64,
    /// Discards and zeroings that came; they take no time.
    pub discards: u64,
    /// Bytes of read requests.
    pub read_bytes: u64,
    /// Bytes of write requests.
    pub write_bytes: u64,
    /// Most requests in flight at a time.
    pub depth_max: u32,
    /// Requests in flight, averaged over the time in which there was at least one.
    pub depth_mean: f64,
    /// Share of reads and writes that began where the one before them ended, 0 to 1.
    pub in_order: f64,
    /// Replies that were sent more than 100 us after the moment that the model gave.
    pub late: u64,
    /// How long after the model's moment replies were sent, on average over all of them, in us.
    pub late_us_mean: f64,
    /// The longest of these, in us.
    pub late_us_max: f64,
    /// What the way to the server and back takes and is taken off each request, in us.
    pub overhead_us: f64,
    /// Requests that failed with an injected error.
    pub errors_injected: u64,
    /// Writes that failed because the contents may not grow.
    pub errors_full: u64,
    /// Bytes of done writes that a power cut could take now.
    pub unflushed_bytes: u64,
    /// Bytes that the contents take.
    pub store_bytes: u64,
    /// Whether there is power.
    pub power: Power,
    /// Power cuts so far.
    pub cuts: u64,
}
