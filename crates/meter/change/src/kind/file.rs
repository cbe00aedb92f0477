//! Files for loop devices, and directories for databases that a run makes.
//!
//! Invariant: only the one that was made is removed: the inode that was noted, or, after a crash
//! before that, one born after the intent at a place where there was none: a private file not
//! larger than asked for, an empty directory. Nothing that is mounted below a directory is touched.

use std::path::Path;

use super::filesystem;
use crate::device::{directory_token, file_token};
use crate::effect::{Effect, Prior, Undone};
use crate::error::{ChangeError, system};
use crate::platform::{self, Platform};
use crate::seen::{Seen, SeenKind};
use crate::settings::Prewrite;

/// Clocks of file systems tick more coarsely than the clock that the intent was stamped with.
pub(super) const CLOCK_GRAIN_US: u64 = 100_000;

pub(super) fn prior_new(platform: &dyn Platform, path: &Path) -> Result<Prior, ChangeError> {
    match look(platform, path)? {
        None => Ok(Prior::NoFile { at_us: platform.now_us() }),
        Some(_) => Err(ChangeError::Taken {
            path: path.to_owned(),
            found: "exists".to_owned(),
            fix: "choose another place, or run iostrata restore if a killed run left it",
        }),
    }
}

pub(super) fn apply_file(
    platform: &dyn Platform,
    path: &Path,
    bytes: u64,
    prewrite: Prewrite,
) -> Result<Effect, ChangeError> {
    platform.make_file(path, bytes, prewrite)?;
    Ok(Effect::File { token: file_token(platform, path)? })
}

pub(super) fn undo_file(
    platform: &dyn Platform,
    path: &Path,
    bytes: u64,
    intended_us: u64,
    effect: Option<&Effect>,
) -> Result<Undone, ChangeError> {
    let Some(seen) = look(platform, path)? else { return Ok(Undone::as_before()) };
    let is_ours = match effect {
        Some(Effect::File { token }) => {
            (seen.device, seen.inode) == (token.device, token.inode) && seen.kind == SeenKind::File
        }
        _ => is_half_made(&seen, bytes, intended_us),
    };
    if !is_ours {
        let thing = path.display().to_string();
        return Ok(Undone::left_alone(thing, "another file", "not there"));
    }
    platform.remove_file(path).map_err(|source| system("remove", path, source))?;
    Ok(Undone::put_back())
}

fn is_half_made(seen: &Seen, bytes: u64, intended_us: u64) -> bool {
    seen.kind == SeenKind::File
        && seen.is_private
        && seen.bytes <= bytes
        && seen.born_us.is_none_or(|born_us| born_us + CLOCK_GRAIN_US >= intended_us)
}

fn look(platform: &dyn Platform, path: &Path) -> Result<Option<Seen>, ChangeError> {
    platform.look(path).map_err(|source| system("look at", path, source))
}

pub(super) fn apply_directory(platform: &dyn Platform, path: &Path) -> Result<Effect, ChangeError> {
    filesystem::make_dirs(platform, &[path.to_owned()])?;
    Ok(Effect::Directory { token: directory_token(platform, path)? })
}

pub(super) fn undo_directory(
    platform: &dyn Platform,
    path: &Path,
    intended_us: u64,
    effect: Option<&Effect>,
) -> Result<Undone, ChangeError> {
    let Some(seen) = look(platform, path)? else { return Ok(Undone::as_before()) };
    let is_ours = match effect {
        Some(Effect::Directory { token }) => {
            (seen.device, seen.inode) == (token.device, token.inode)
        }
        // Nothing is put into it before it is noted.
        _ => was_just_made(platform, path, &seen, intended_us)?,
    };
    if !is_ours || seen.kind != SeenKind::Directory {
        let thing = path.display().to_string();
        return Ok(Undone::left_alone(thing, "not the one that was made", "not there"));
    }
    let mounts = platform.mounts().map_err(|source| system("list mounts below", path, source))?;
    if let Some(mount) = mounts.iter().find(|mount| mount.at.starts_with(path)) {
        return Err(ChangeError::unavailable(
            format!("to remove {}", path.display()),
            format!("{} is mounted at {}", mount.source, mount.at.display()),
            "unmount it first (umount)",
        ));
    }
    // A server that was killed just now may still make files.
    let removed = platform::while_busy(platform, || platform.remove_tree(path));
    removed.map_err(|source| system("remove", path, source))?;
    Ok(Undone::put_back())
}

fn was_just_made(
    platform: &dyn Platform,
    path: &Path,
    seen: &Seen,
    intended_us: u64,
) -> Result<bool, ChangeError> {
    let inside = platform.list(path).map_err(|source| system("list", path, source))?;
    let is_new = seen.born_us.is_none_or(|born_us| born_us + CLOCK_GRAIN_US >= intended_us);
    Ok(inside.is_empty() && is_new)
}
