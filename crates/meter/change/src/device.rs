//! Devices named by token, and found again by it.
//!
//! Invariant: a loop device is the one over a backing file (path, file system and inode), and a
//! named device is the one that stood at its path (number and sequence); what stands there now but
//! is not the same is never touched.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{ChangeError, system};
use crate::world::{FileToken, SeenKind, World};

/// A block device, named by what stays the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceRef {
    /// The loop device over a backing file.
    Loop {
        /// The file.
        backing: PathBuf,
    },
    /// A device that the user named.
    Named {
        /// Its path.
        path: PathBuf,
        /// The user's flag named this very device as one whose contents may be lost.
        overwrite: bool,
    },
}

impl fmt::Display for DeviceRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Loop { backing } => write!(f, "the loop device over {}", backing.display()),
            Self::Named { path, .. } => write!(f, "{}", path.display()),
        }
    }
}

/// What a device is in use for, or holds; the first that applies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceState {
    /// It, one of its partitions or its disk is mounted or swapped on; where.
    Mounted(String),
    /// Another device or an exclusive opener holds it; which.
    Held(String),
    /// It has partitions.
    Partitioned,
    /// It holds something: the name of a known signature, or where the first bytes are not zero.
    Signed(String),
    /// Nothing known, and the first MiB is zero.
    Empty,
}

impl fmt::Display for DeviceState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mounted(by) => f.write_str(by),
            Self::Held(by) => f.write_str(by),
            Self::Partitioned => f.write_str("it has partitions"),
            Self::Signed(what) => write!(f, "it holds {what}"),
            Self::Empty => f.write_str("it is empty"),
        }
    }
}

/// By what a device is found again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DeviceToken {
    Loop(FileToken),
    Named { path: PathBuf, number: (u32, u32), sequence: Option<String> },
}

/// A device as it stands at this moment.
#[derive(Clone, Debug)]
pub(crate) struct Resolved {
    /// Its node.
    pub(crate) path: PathBuf,
    /// Name of the whole disk, as in `/sys/block`.
    pub(crate) disk: String,
    pub(crate) token: DeviceToken,
}

impl Resolved {
    pub(crate) fn queue_cell(&self, name: &str) -> PathBuf {
        Path::new("/sys/block").join(&self.disk).join("queue").join(name)
    }
}

/// The device that is meant, now.
pub(crate) fn resolve(world: &dyn World, device: &DeviceRef) -> Result<Resolved, ChangeError> {
    match device {
        DeviceRef::Loop { backing } => {
            let token = file_token(world, backing)?;
            let found = over(world, &token)?;
            found.ok_or_else(|| ChangeError::Unavailable {
                what: device.to_string(),
                why: "there is none".to_owned(),
                fix: "attach a loop device to the file first".to_owned(),
            })
        }
        DeviceRef::Named { path, .. } => named(world, path)?.ok_or_else(|| {
            let why = "there is no such block device".to_owned();
            let fix = "name a block device, for example from lsblk".to_owned();
            ChangeError::Unavailable { what: path.display().to_string(), why, fix }
        }),
    }
}

/// The same device as then, if it is still there.
pub(crate) fn find_again(
    world: &dyn World,
    token: &DeviceToken,
) -> Result<Option<Resolved>, ChangeError> {
    match token {
        DeviceToken::Loop(file) => over(world, file),
        DeviceToken::Named { path, .. } => {
            Ok(named(world, path)?.filter(|found| found.token == *token))
        }
    }
}

/// What identifies an existing regular file.
pub(crate) fn file_token(world: &dyn World, path: &Path) -> Result<FileToken, ChangeError> {
    let seen = world.look(path).map_err(|source| system("look at", path, source))?;
    match seen {
        Some(seen) if seen.kind == SeenKind::File => {
            Ok(FileToken { path: path.to_owned(), device: seen.device, inode: seen.inode })
        }
        _ => Err(ChangeError::Unavailable {
            what: path.display().to_string(),
            why: "there is no such regular file".to_owned(),
            fix: "make the backing file first".to_owned(),
        }),
    }
}

fn over(world: &dyn World, file: &FileToken) -> Result<Option<Resolved>, ChangeError> {
    let found = world.loops_over(file).map_err(|source| system("look at", &file.path, source))?;
    Ok(found.into_iter().next().map(|device| Resolved {
        path: device.path(),
        disk: device.name,
        token: DeviceToken::Loop(file.clone()),
    }))
}

fn named(world: &dyn World, path: &Path) -> Result<Option<Resolved>, ChangeError> {
    let seen = world.look(path).map_err(|source| system("look at", path, source))?;
    let Some(seen) = seen.filter(|seen| seen.kind == SeenKind::BlockDevice) else {
        return Ok(None);
    };
    let disk = world.disk_of(path).map_err(|source| system("find the disk of", path, source))?;
    let sequence = world.read(&Path::new("/sys/block").join(&disk).join("diskseq")).ok();
    let token = DeviceToken::Named { path: path.to_owned(), number: seen.number, sequence };
    Ok(Some(Resolved { path: path.to_owned(), disk, token }))
}
