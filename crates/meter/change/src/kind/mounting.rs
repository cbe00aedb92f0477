//! Mounts, and the directories that are made for them.
//!
//! Invariant: unmounted is only the topmost mount at the place, and only when it is of our device;
//! directories go only when they are empty.

use std::io;
use std::path::{Path, PathBuf};

use super::format::refuse;
use crate::device;
use crate::effect::{Effect, Prior, Undone};
use crate::error::{ChangeError, system};
use crate::platform::{MountRequest, Platform};
use crate::retry;
use crate::seen::{DeviceState, SeenKind};
use crate::settings::FilesystemKind;
use crate::tokens::{DeviceRef, DeviceToken};
use iostrata_io::Mount;

pub(super) fn prior(
    platform: &dyn Platform,
    device: &DeviceRef,
    at: &Path,
) -> Result<Prior, ChangeError> {
    let found = device::resolve(platform, device)?;
    let state =
        platform.state(&found.path).map_err(|source| system("look at", &found.path, source))?;
    if matches!(state, DeviceState::Mounted(_) | DeviceState::Held(_)) {
        refuse(&found.path.display().to_string(), state, true)?;
    }
    let missing = place(platform, at)?;
    Ok(Prior::NoMount { device: found.token, source: found.path, missing })
}

/// The directories that have to be made for a mount, the outermost first.
pub(super) fn place(platform: &dyn Platform, at: &Path) -> Result<Vec<PathBuf>, ChangeError> {
    if topmost(platform, at)?.is_some() {
        return Err(taken(at, "is a mount point already"));
    }
    let missing = missing(platform, at)?;
    if missing.is_empty() && !platform.list(at).map_err(|e| system("list", at, e))?.is_empty() {
        return Err(taken(at, "is not empty"));
    }
    Ok(missing)
}

fn taken(at: &Path, found: &str) -> ChangeError {
    let fix = "choose an empty directory, or one that does not exist";
    ChangeError::Taken { path: at.to_owned(), found: found.to_owned(), fix }
}

/// The directories on the way that do not exist, the outermost first.
fn missing(platform: &dyn Platform, at: &Path) -> Result<Vec<PathBuf>, ChangeError> {
    let mut missing = Vec::new();
    for dir in at.ancestors() {
        match platform.look(dir).map_err(|source| system("look at", dir, source))? {
            None => missing.push(dir.to_owned()),
            Some(seen) if seen.kind == SeenKind::Directory => break,
            Some(_) => return Err(taken(dir, "is not a directory")),
        }
    }
    missing.reverse();
    Ok(missing)
}

pub(super) fn apply(
    platform: &dyn Platform,
    (source, at): (&Path, &Path),
    kind: FilesystemKind,
    options: &[String],
    missing: &[PathBuf],
) -> Result<Effect, ChangeError> {
    make_dirs(platform, missing)?;
    let request = MountRequest::new(source, at, kind, options);
    platform.mount(&request).map_err(|refusal| {
        let with = if options.is_empty() { "no options".to_owned() } else { options.join(",") };
        ChangeError::unavailable(
            format!("{} mounted with {with}", kind.name()),
            refusal.said,
            "leave the option out, or use a kernel that has it",
        )
    })?;
    let options = topmost(platform, at)?.map(|mount| mount.all_options()).unwrap_or_default();
    Ok(Effect::Mounted { at: at.to_owned(), options })
}

pub(super) fn undo(
    platform: &dyn Platform,
    at: &Path,
    device: &DeviceToken,
    source: &Path,
    missing: &[PathBuf],
) -> Result<Undone, ChangeError> {
    // The number may have changed hands since; then only the token tells which device is ours.
    let source = match device::find_again(platform, device)? {
        Some(found) => found.path,
        None => source.to_owned(),
    };
    let of_ours = |mount: &Mount| Path::new(&mount.source) == source;
    let undone = match topmost(platform, at)? {
        None => Undone::as_before(),
        Some(mount) if of_ours(&mount) => unmount(platform, at)?,
        Some(mount) => {
            let found = format!("a mount of {}", mount.source);
            Undone::left_alone(at.display().to_string(), found, "no mount point")
        }
    };
    remove_dirs(platform, missing)?;
    Ok(undone)
}

/// Makes them; the journal of this very session may have made one above the place meanwhile.
pub(super) fn make_dirs(platform: &dyn Platform, missing: &[PathBuf]) -> Result<(), ChangeError> {
    for (number, dir) in missing.iter().enumerate() {
        let is_above = number + 1 < missing.len();
        match platform.make_dir(dir) {
            Err(error) if is_above && error.kind() == io::ErrorKind::AlreadyExists => {}
            made => made.map_err(|error| system("make the directory", dir, error))?,
        }
    }
    Ok(())
}

/// Removes directories that were made for a mount, as far as they are empty.
pub(crate) fn remove_dirs(platform: &dyn Platform, made: &[PathBuf]) -> Result<(), ChangeError> {
    for dir in made.iter().rev() {
        match platform.remove_dir(dir) {
            Err(error) if !retry::is_missing(&error) && !retry::is_busy(&error) => {
                return Err(system("remove the directory", dir, error));
            }
            _ => {}
        }
    }
    Ok(())
}

pub(super) fn unmount(platform: &dyn Platform, at: &Path) -> Result<Undone, ChangeError> {
    match retry::while_busy(platform, || platform.unmount(at, false)) {
        Err(error) if retry::is_busy(&error) => match platform.unmount(at, true) {
            Ok(()) => Ok(Undone::when_unused()),
            Err(error) => Err(system("unmount", at, error)),
        },
        Err(error) => Err(system("unmount", at, error)),
        Ok(()) => Ok(Undone::put_back()),
    }
}

/// The mount that is seen at this place.
pub(super) fn topmost(platform: &dyn Platform, at: &Path) -> Result<Option<Mount>, ChangeError> {
    let mounts =
        platform.mounts().map_err(|source: io::Error| system("list mounts at", at, source))?;
    Ok(mounts.into_iter().rev().find(|mount| mount.at == at))
}
