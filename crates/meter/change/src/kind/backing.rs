//! Files for loop devices.
//!
//! Invariant: a file is removed only when it is the one that was made: the inode that was noted,
//! or, after a crash before that, a private file not larger than asked for, born after the intent
//! at a place where there was none.

use std::path::Path;

use crate::device::file_token;
use crate::effect::{Effect, Prior, Undone};
use crate::error::{ChangeError, system};
use crate::platform::Platform;
use crate::seen::{Seen, SeenKind};
use crate::settings::Prewrite;

/// Clocks of file systems tick more coarsely than the clock that the intent was stamped with.
pub(super) const CLOCK_GRAIN_US: u64 = 100_000;

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

pub(super) fn apply(
    platform: &dyn Platform,
    path: &Path,
    bytes: u64,
    prewrite: Prewrite,
) -> Result<Effect, ChangeError> {
    platform.make_file(path, bytes, prewrite)?;
    Ok(Effect::File { token: file_token(platform, path)? })
}

pub(super) fn undo(
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
