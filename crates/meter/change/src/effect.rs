//! What was there before a change, what the kernel really took, and how it was undone.
//!
//! Invariant: plain data that the journal keeps; enough of it to undo a change without the process
//! that made it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::change::{FilesystemKind, QueueAttribute, VmSetting};
use crate::seen::{DeviceToken, FileToken, Owner};
use crate::variables::{ServerSetting, ServerToken, ServerValues};

/// Values of a device's queue.
pub(crate) type QueueValues = BTreeMap<QueueAttribute, String>;
/// The kernel's write-back settings.
pub(crate) type VmValues = BTreeMap<VmSetting, String>;

/// What was there before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "prior", rename_all = "snake_case")]
pub(crate) enum Prior {
    /// Nothing that could be put back.
    Nothing,
    /// No file.
    NoFile { at_us: u64 },
    /// No loop device over the file; read-ahead of the free devices, which attaching changes.
    NoLoop { backing: FileToken, free_read_ahead: BTreeMap<String, String> },
    /// Nothing mounted there, and these directories missing, the outermost first.
    NoMount { device: DeviceToken, source: PathBuf, missing: Vec<PathBuf> },
    /// Nothing mounted there, these directories missing, the outermost first; a server of this
    /// session starts no earlier than this.
    NoServer { missing: Vec<PathBuf>, since_ticks: u64 },
    /// The options of the mount that have to be set to undo it, and all of them to compare.
    Options { undo: Vec<String>, all: Vec<String> },
    /// The whole queue.
    Queue { device: DeviceToken, values: QueueValues },
    /// A server of this session starts no earlier than this; directories of the groups in which
    /// it is to run.
    NoDatabaseServer { since_ticks: u64, groups: Vec<PathBuf> },
    /// All write-back settings.
    Vm { values: VmValues },
    /// The directory of a group, whether it has to be made, and where its controller has to be
    /// enabled first.
    Group { version: GroupVersion, dir: PathBuf, make: bool, enable: Option<PathBuf> },
    /// Which process, and from where to where.
    Outside { process: Owner, moves: Vec<Move> },
    /// The governor.
    Governor { value: String },
    /// Which server, and the values of all settings that may change, with those that they move.
    ServerSettings { server: ServerToken, values: ServerValues },
    /// Whether tracefs is mounted, and where it is or will be.
    Tracefs { mounted: bool, dir: PathBuf },
    /// No such trace buffer.
    NoInstance { dir: PathBuf },
}

/// One group that a process enters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Move {
    pub(crate) home: PathBuf,
    pub(crate) to: PathBuf,
}

/// Generation of control groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GroupVersion {
    /// One tree per controller; I/O limits hold for direct I/O and syncs, not for write-back.
    V1,
    /// One tree.
    V2,
}

/// What the kernel really did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "effect", rename_all = "snake_case")]
pub enum Effect {
    /// A file was made.
    File {
        /// Which.
        token: FileToken,
    },
    /// A loop device was attached.
    Loop {
        /// Its node at this moment, as `/dev/loop3`.
        device: PathBuf,
        /// Whether it does direct I/O on the file, as the kernel says.
        direct: bool,
        /// Its logical block, in bytes.
        block_bytes: u32,
        /// Its counters at this moment (`/sys/block/loop3/stat`): what it did over earlier files is
        /// still in them.
        #[serde(default)]
        stat: String,
        /// The kernel's number of this attachment (`diskseq`), which no other ever has.
        #[serde(default)]
        sequence: Option<String>,
    },
    /// A file system was made.
    Formatted {
        /// On which node.
        device: PathBuf,
        /// Which.
        kind: FilesystemKind,
    },
    /// Something was mounted, or mounted again with other options.
    Mounted {
        /// Where.
        at: PathBuf,
        /// The options that hold now, those of the mount and those of the file system.
        options: Vec<String>,
    },
    /// A file system is served.
    Served {
        /// Where.
        at: PathBuf,
        /// By which process.
        process: Owner,
    },
    /// A directory was made.
    Directory {
        /// Which.
        token: FileToken,
    },
    /// A database server runs.
    DatabaseServer {
        /// As which process.
        process: Owner,
        /// Its version, as it greets.
        version: String,
    },
    /// A queue attribute was set.
    Queue {
        /// What was asked for.
        asked: String,
        /// What the kernel took.
        took: String,
        /// Every attribute of the queue afterwards.
        values: BTreeMap<QueueAttribute, String>,
    },
    /// A write-back setting was set.
    Vm {
        /// What was asked for.
        asked: String,
        /// What the kernel took.
        took: String,
        /// Every setting afterwards.
        values: BTreeMap<VmSetting, String>,
    },
    /// Caches were dropped.
    Dropped,
    /// A group was made.
    Group {
        /// Generation.
        version: GroupVersion,
        /// Its directory.
        dir: PathBuf,
        /// The limits as read back, by file name.
        limits: BTreeMap<String, String>,
    },
    /// This process is in these groups.
    Entered {
        /// Their directories.
        dirs: Vec<PathBuf>,
    },
    /// A governor was set.
    Governor {
        /// What was asked for.
        asked: String,
        /// What the kernel took.
        took: String,
    },
    /// Settings of a server were set or adjusted.
    ServerSettings {
        /// What was asked for.
        asked: Vec<ServerSetting>,
        /// What the server made of it: every setting of the group, and those that they move.
        took: ServerValues,
    },
    /// tracefs is there.
    Tracefs {
        /// Where.
        dir: PathBuf,
        /// It was there before.
        was_mounted: bool,
    },
    /// A trace buffer was made.
    Instance {
        /// Its directory.
        dir: PathBuf,
        /// Buffer per processor, in KiB.
        buffer_kib: String,
        /// Its clock.
        clock: String,
    },
}

impl Effect {
    /// What was asked for and what the kernel or server took, where it is one value.
    pub fn asked_and_took(&self) -> Option<(&str, &str)> {
        match self {
            Self::Queue { asked, took, .. }
            | Self::Vm { asked, took, .. }
            | Self::Governor { asked, took } => Some((asked, took)),
            Self::ServerSettings { asked, took } => match asked.as_slice() {
                [one] => Some((&one.value, took.get(&one.name)?)),
                _ => None,
            },
            _ => None,
        }
    }

    /// The node of a loop device, or of what a file system was made on.
    pub fn device(&self) -> Option<&Path> {
        match self {
            Self::Loop { device, .. } | Self::Formatted { device, .. } => Some(device),
            _ => None,
        }
    }

    /// The process of a server that was started.
    pub fn process(&self) -> Option<&Owner> {
        match self {
            Self::Served { process, .. } | Self::DatabaseServer { process, .. } => Some(process),
            _ => None,
        }
    }

    /// The directory that was mounted on or made.
    pub fn dir(&self) -> Option<&Path> {
        match self {
            Self::Mounted { at, .. } => Some(at),
            Self::Directory { token } => Some(&token.path),
            Self::Group { dir, .. } | Self::Tracefs { dir, .. } | Self::Instance { dir, .. } => {
                Some(dir)
            }
            _ => None,
        }
    }
}

/// How a change was undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// It was in place and is as before.
    PutBack,
    /// It was as before already: it never happened, or went with the device or a reboot.
    AsBefore,
    /// The kernel does it when the last user of the thing ends.
    WhenUnused,
    /// What is there is neither ours nor what was before; it is left.
    LeftAlone,
}

/// A thing that was left as it was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Left {
    /// What.
    pub thing: String,
    /// What was found there.
    pub found: String,
    /// What was there before.
    pub prior: String,
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { thing, found, prior } = self;
        write!(f, "{thing} is {found}, was {prior}: somebody else set it, so it is left")
    }
}

/// How one change was undone, and what was left doing it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undone {
    /// How.
    pub how: How,
    /// Things that are neither ours nor as before.
    pub left: Vec<Left>,
}

impl Undone {
    pub(crate) fn put_back() -> Self {
        Self { how: How::PutBack, left: Vec::new() }
    }

    pub(crate) fn as_before() -> Self {
        Self { how: How::AsBefore, left: Vec::new() }
    }

    pub(crate) fn when_unused() -> Self {
        Self { how: How::WhenUnused, left: Vec::new() }
    }

    pub(crate) fn left_alone(thing: String, found: impl Into<String>, prior: &str) -> Self {
        let left = Left { thing, found: found.into(), prior: prior.to_owned() };
        Self { how: How::LeftAlone, left: vec![left] }
    }

    /// Sets a value back by `put`, unless it is as before already, or somebody else's by now.
    pub(crate) fn of_value<E>(
        thing: String,
        now: &str,
        was: &str,
        is_ours: bool,
        put: impl FnOnce() -> Result<(), E>,
    ) -> Result<Self, E> {
        if now == was {
            return Ok(Self::as_before());
        }
        if !is_ours {
            return Ok(Self::left_alone(thing, now, was));
        }
        put().map(|()| Self::put_back())
    }
}
