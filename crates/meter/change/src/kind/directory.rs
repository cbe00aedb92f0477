//! Directories for databases that a run makes.
//!
//! Invariant: a directory is removed only when it is the one that was made: the inode that was
//! noted, or, after a crash before that, an empty one born after the intent at a place where there
//! was none. Nothing that is mounted below it is touched.

use std::path::Path;

use super::backing::CLOCK_GRAIN_US;
use super::mounting;
use crate::device::directory_token;
use crate::effect::{Effect, Prior, Undone};
use crate::error::{ChangeError, system};
use crate::platform::Platform;
use crate::retry;
use crate::seen::{Seen, SeenKind};

pub(super) fn prior(platform: &dyn Platform, path: &Path) -> Result<Prior, ChangeError> {
    match look(platform, path)? {
        None => Ok(Prior::NoFile { at_us: platform.now_us() }),
        Some(_) => Err(ChangeError::Taken {
            path: path.to_owned(),
            found: "exists".to_owned(),
            fix: "choose another place, or run iostrata restore if a killed run left it",
        }),
    }
}

pub(super) fn apply(platform: &dyn Platform, path: &Path) -> Result<Effect, ChangeError> {
    mounting::make_dirs(platform, &[path.to_owned()])?;
    Ok(Effect::Directory { token: directory_token(platform, path)? })
}

pub(super) fn undo(
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
    let removed = retry::while_busy(platform, || platform.remove_tree(path));
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

fn look(platform: &dyn Platform, path: &Path) -> Result<Option<Seen>, ChangeError> {
    platform.look(path).map_err(|source| system("look at", path, source))
}
