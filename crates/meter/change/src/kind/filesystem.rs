//! File systems: made, mounted (with the directories that are made for mounts), and the options of
//! a mount that is in place.
//!
//! Invariants: a device in use is refused always; one that holds something is refused unless it is
//! over a file that this session made, or the user's flag named that very device; it is found again
//! by token right before the program runs. Unmounted is only the topmost mount at the place, and
//! only when it is of our device; directories go only when they are empty. Options are set only of
//! mounts that the same session made, and only those with an opposite: setting the opposite, or the
//! value before, undoes them; afterwards all options are compared.

use std::io;
use std::path::{Path, PathBuf};

use iostrata_io::Mount;

use crate::change::{Change, FilesystemKind};
use crate::effect::{Effect, Left, Prior, Undone};
use crate::error::{ChangeError, system};
use crate::journal::JournalEntry;
use crate::kind;
use crate::platform::{self, MountRequest, Platform, RunError};
use crate::seen::{DeviceRef, DeviceState, DeviceToken, SeenKind};

pub(super) fn prior_mount(
    platform: &dyn Platform,
    device: &DeviceRef,
    at: &Path,
) -> Result<Prior, ChangeError> {
    let found = kind::resolve(platform, device)?;
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

pub(super) fn apply_mount(
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

pub(super) fn undo_mount(
    platform: &dyn Platform,
    at: &Path,
    device: &DeviceToken,
    source: &Path,
    missing: &[PathBuf],
) -> Result<Undone, ChangeError> {
    // The number may have changed hands since; then only the token tells which device is ours.
    let source = match kind::find_again(platform, device)? {
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
            Err(error) if !platform::is_missing(&error) && !platform::is_busy(&error) => {
                return Err(system("remove the directory", dir, error));
            }
            _ => {}
        }
    }
    Ok(())
}

pub(super) fn unmount(platform: &dyn Platform, at: &Path) -> Result<Undone, ChangeError> {
    match platform::while_busy(platform, || platform.unmount(at, false)) {
        Err(error) if platform::is_busy(&error) => match platform.unmount(at, true) {
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

pub(super) fn prior_make(
    platform: &dyn Platform,
    device: &DeviceRef,
    active: &[JournalEntry],
) -> Result<Prior, ChangeError> {
    let found = kind::resolve(platform, device)?;
    let state =
        platform.state(&found.path).map_err(|source| system("look at", &found.path, source))?;
    let name = match device {
        DeviceRef::Loop { .. } => format!("{} ({device})", found.path.display()),
        DeviceRef::Named { .. } => device.to_string(),
    };
    refuse(&name, state, may_overwrite(device, active)).map(|()| Prior::Nothing)
}

/// Whether what the device holds may be lost.
fn may_overwrite(device: &DeviceRef, active: &[JournalEntry]) -> bool {
    match device {
        DeviceRef::Named { overwrite, .. } => *overwrite,
        DeviceRef::Loop { backing } => active.iter().any(
            |entry| matches!(&entry.change, Change::BackingFile { path, .. } if path == backing),
        ),
    }
}

pub(super) fn refuse(
    device: &str,
    state: DeviceState,
    may_overwrite: bool,
) -> Result<(), ChangeError> {
    let fix = match &state {
        DeviceState::Empty => return Ok(()),
        DeviceState::Mounted(_) | DeviceState::Held(_) => {
            "it is never touched while in use; free it or choose another device"
        }
        _ if may_overwrite => return Ok(()),
        _ => "name this very device as one to overwrite, or choose an empty one",
    };
    let (device, found) = (device.to_owned(), state.to_string());
    Err(ChangeError::Refused { device, found, fix: fix.to_owned() })
}

pub(super) fn apply_make(
    platform: &dyn Platform,
    device: &DeviceRef,
    kind: FilesystemKind,
    options: &[String],
    label: Option<&str>,
) -> Result<Effect, ChangeError> {
    let found = kind::resolve(platform, device)?;
    let mut arguments: Vec<String> = kind.arguments().iter().map(|&one| one.to_owned()).collect();
    if let Some(label) = label {
        arguments.extend(["-L".to_owned(), label.to_owned()]);
    }
    arguments.extend_from_slice(options);
    arguments.push(found.path.display().to_string());
    match platform.run(kind.program(), &arguments) {
        Ok(()) => Ok(Effect::Formatted { device: found.path, kind }),
        Err(error) => {
            let fix = match &error {
                RunError::Missing => {
                    format!("install it, on Debian: apt-get install {}", kind.package())
                }
                _ => format!("try by hand: {} {}", kind.program(), arguments.join(" ")),
            };
            let what = format!("{} on {}", kind.name(), found.path.display());
            Err(ChangeError::unavailable(what, format!("{}: {error}", kind.program()), fix))
        }
    }
}

/// Options and what undoes them.
const OPPOSITES: &[(&str, &str)] = &[
    ("ro", "rw"),
    ("nodiratime", "diratime"),
    ("lazytime", "nolazytime"),
    ("nosuid", "suid"),
    ("nodev", "dev"),
    ("noexec", "exec"),
    ("sync", "async"),
    ("nobarrier", "barrier"),
    ("barrier=0", "barrier=1"),
    ("discard", "nodiscard"),
    ("nodelalloc", "delalloc"),
    ("dioread_nolock", "dioread_lock"),
    ("noauto_da_alloc", "auto_da_alloc"),
    ("ssd", "nossd"),
];
/// When access times are kept: one of these holds.
const TIMES: &[&str] = &["noatime", "relatime", "strictatime"];
/// Options with a value, and the value that the kernel shows by showing nothing.
const VALUED: &[(&str, &str)] = &[("commit", "5"), ("stripe", "0"), ("max_batch_time", "15000")];

pub(super) fn prior_remount(
    platform: &dyn Platform,
    at: &Path,
    options: &[String],
    active: &[JournalEntry],
) -> Result<Prior, ChangeError> {
    let is_ours = |entry: &JournalEntry| match &entry.change {
        Change::Mount { at: other, .. } => other == at,
        _ => false,
    };
    let mount = topmost(platform, at)?.filter(|_| active.iter().any(is_ours));
    let Some(mount) = mount else {
        return Err(ChangeError::Refused {
            device: at.display().to_string(),
            found: "it is not a mount of this session".to_owned(),
            fix: "mount it with the same session first".to_owned(),
        });
    };
    let all = mount.all_options();
    let undo = options.iter().map(|option| opposite(option, &all)).collect::<Result<_, _>>()?;
    Ok(Prior::Options { undo, all })
}

/// What sets an option back to what it is now.
fn opposite(option: &str, now: &[String]) -> Result<String, ChangeError> {
    if now.iter().any(|one| one == option) {
        return Ok(option.to_owned());
    }
    if TIMES.contains(&option) {
        // Strict is what the kernel shows by showing nothing.
        let holds = TIMES.iter().find(|time| now.iter().any(|one| one == *time));
        return Ok(holds.unwrap_or(&"strictatime").to_string());
    }
    let pair = OPPOSITES.iter().find_map(|&(on, off)| match option {
        _ if option == on => Some(off),
        _ if option == off => Some(on),
        _ => None,
    });
    let valued = option.split_once('=').and_then(|(name, _)| {
        let before = now.iter().find(|one| one.starts_with(&format!("{name}="))).cloned();
        let unset = || VALUED.iter().find(|(valued, _)| *valued == name);
        before.or_else(|| unset().map(|(name, value)| format!("{name}={value}")))
    });
    match (pair, valued) {
        (Some(pair), _) => Ok(pair.to_owned()),
        (None, Some(valued)) => Ok(valued),
        (None, None) => Err(ChangeError::unavailable(
            format!("to set {option} on a mount that is in place"),
            "no other option is known that undoes it",
            "give it when mounting",
        )),
    }
}

pub(super) fn apply_remount(
    platform: &dyn Platform,
    at: &Path,
    options: &[String],
) -> Result<Effect, ChangeError> {
    platform.remount(at, options).map_err(|refusal| {
        ChangeError::unavailable(
            format!("{} set to {}", at.display(), options.join(",")),
            refusal.said,
            "leave the option out, or give it when mounting",
        )
    })?;
    let options = topmost(platform, at)?.map(|mount| mount.all_options()).unwrap_or_default();
    Ok(Effect::Mounted { at: at.to_owned(), options })
}

pub(super) fn undo_remount(
    platform: &dyn Platform,
    at: &Path,
    undo: &[String],
    before: &[String],
    was_done: bool,
) -> Result<Undone, ChangeError> {
    let sorted = |mut options: Vec<String>| {
        options.sort();
        options
    };
    let before = sorted(before.to_vec());
    // What mounted it is undone after this and knows whose mount it is; gone is gone.
    let Some(mount) = topmost(platform, at)? else { return Ok(Undone::as_before()) };
    if sorted(mount.all_options()) == before {
        return Ok(Undone::as_before());
    }
    platform.remount(at, undo).map_err(|refusal| {
        ChangeError::unavailable(
            format!("{} set back to {}", at.display(), undo.join(",")),
            refusal.said,
            "unmount it",
        )
    })?;
    let now = topmost(platform, at)?.map(|mount| sorted(mount.all_options())).unwrap_or_default();
    let mut undone = Undone::put_back();
    if now != before && was_done {
        let thing = format!("options of the mount {}", at.display());
        undone.left.push(Left { thing, found: now.join(","), prior: before.join(",") });
    }
    Ok(undone)
}

#[cfg(test)]
mod tests {
    use super::opposite;

    #[test]
    fn every_option_that_is_taken_has_a_way_back() {
        let now = ["rw", "relatime", "commit=30"].map(str::to_owned);
        let back = |option| opposite(option, &now).ok();
        assert_eq!(back("noatime").as_deref(), Some("relatime"));
        assert_eq!(back("strictatime").as_deref(), Some("relatime"));
        assert_eq!(opposite("noatime", &[]).ok().as_deref(), Some("strictatime"));
        assert_eq!(back("nobarrier").as_deref(), Some("barrier"));
        assert_eq!(back("barrier").as_deref(), Some("nobarrier"));
        assert_eq!(back("commit=60").as_deref(), Some("commit=30"));
        assert_eq!(back("stripe=16").as_deref(), Some("stripe=0"));
        assert_eq!(back("rw").as_deref(), Some("rw"));
        assert_eq!(back("data=journal"), None);
    }
}
