//! Devices named by token, and found again by it.
//!
//! Invariant: a loop device is the one over a backing file (path, file system and inode), and a
//! named device is the one that stood at its path (number and sequence); what stands there now but
//! is not the same is never touched.

use std::path::{Path, PathBuf};

use crate::error::{ChangeError, system};
use crate::platform::Platform;
use crate::seen::{DeviceRef, DeviceToken, FileToken, SeenKind};

/// A device as it stands at this moment.
#[derive(Clone, Debug)]
pub(super) struct ResolvedDevice {
    /// Its node.
    pub(super) path: PathBuf,
    /// Name of the whole disk, as in `/sys/block`.
    pub(super) disk: String,
    pub(super) token: DeviceToken,
}

impl ResolvedDevice {
    pub(super) fn queue_cell(&self, name: &str) -> PathBuf {
        Path::new("/sys/block").join(&self.disk).join("queue").join(name)
    }
}

/// The device that is meant, now.
pub(super) fn resolve(
    platform: &dyn Platform,
    device: &DeviceRef,
) -> Result<ResolvedDevice, ChangeError> {
    match device {
        DeviceRef::Loop { backing } => {
            let token = file_token(platform, backing)?;
            let found = over(platform, &token)?;
            found.ok_or_else(|| {
                ChangeError::unavailable(
                    device.to_string(),
                    "there is none",
                    "attach a loop device to the file first",
                )
            })
        }
        DeviceRef::Named { path, .. } => named(platform, path)?.ok_or_else(|| {
            let why = "there is no such block device";
            let fix = "name a block device, for example from lsblk";
            ChangeError::unavailable(path.display().to_string(), why, fix)
        }),
    }
}

/// The same device as then, if it is still there.
pub(super) fn find_again(
    platform: &dyn Platform,
    token: &DeviceToken,
) -> Result<Option<ResolvedDevice>, ChangeError> {
    match token {
        DeviceToken::Loop(file) => over(platform, file),
        DeviceToken::Named { path, .. } => {
            Ok(named(platform, path)?.filter(|found| found.token == *token))
        }
    }
}

/// What identifies an existing directory.
pub(super) fn directory_token(
    platform: &dyn Platform,
    path: &Path,
) -> Result<FileToken, ChangeError> {
    let seen = platform.look(path).map_err(|source| system("look at", path, source))?;
    match seen {
        Some(seen) if seen.kind == SeenKind::Directory => {
            Ok(FileToken { path: path.to_owned(), device: seen.device, inode: seen.inode })
        }
        _ => Err(ChangeError::unavailable(
            path.display().to_string(),
            "there is no such directory",
            "make it first",
        )),
    }
}

/// What identifies an existing regular file.
pub(super) fn file_token(platform: &dyn Platform, path: &Path) -> Result<FileToken, ChangeError> {
    let seen = platform.look(path).map_err(|source| system("look at", path, source))?;
    match seen {
        Some(seen) if seen.kind == SeenKind::File => {
            Ok(FileToken { path: path.to_owned(), device: seen.device, inode: seen.inode })
        }
        _ => Err(ChangeError::unavailable(
            path.display().to_string(),
            "there is no such regular file",
            "make the backing file first",
        )),
    }
}

fn over(platform: &dyn Platform, file: &FileToken) -> Result<Option<ResolvedDevice>, ChangeError> {
    let found =
        platform.loops_over(file).map_err(|source| system("look at", &file.path, source))?;
    Ok(found.into_iter().next().map(|device| ResolvedDevice {
        path: device.path(),
        disk: device.name,
        token: DeviceToken::Loop(file.clone()),
    }))
}

fn named(platform: &dyn Platform, path: &Path) -> Result<Option<ResolvedDevice>, ChangeError> {
    let seen = platform.look(path).map_err(|source| system("look at", path, source))?;
    let Some(seen) = seen.filter(|seen| seen.kind == SeenKind::BlockDevice) else {
        return Ok(None);
    };
    let disk = platform.disk_of(path).map_err(|source| system("find the disk of", path, source))?;
    let sequence = platform.read(&Path::new("/sys/block").join(&disk).join("diskseq")).ok();
    let token = DeviceToken::Named { path: path.to_owned(), number: seen.number, sequence };
    Ok(Some(ResolvedDevice { path: path.to_owned(), disk, token }))
}
