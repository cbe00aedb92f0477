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

use iostrata_io::Mount as SeenMount;
use serde::{Deserialize, Serialize};

use super::device::{find_again, resolve};
use super::{Change, Entry, JournalEntry, Kind, Site, Uses};
use crate::error::{ChangeError, system};
use crate::names::FilesystemKind;
use crate::platform::{self, MountRequest, Platform, RunError};
use crate::seen::{DeviceRef, DeviceState, DeviceToken, SeenKind};
use crate::undone::{Left, Undone};

/// Mounts a file system. Undone: unmounted, and directories that were made for it removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    /// What.
    pub device: DeviceRef,
    /// Where: an empty directory, or one that is made with all above it.
    pub at: PathBuf,
    /// Its type.
    pub kind: FilesystemKind,
    /// Mount options as of mount(8), one per element.
    pub options: Vec<String>,
}

/// Nothing mounted there, and these directories missing, the outermost first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NoMount {
    device: DeviceToken,
    source: PathBuf,
    missing: Vec<PathBuf>,
}

/// Something was mounted, or mounted again with other options.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MountEffect {
    /// Where.
    pub at: PathBuf,
    /// The options that hold now, of the mount and of the file system.
    pub options: Vec<String>,
}

impl Kind for Mount {
    type Prior = NoMount;
    type Effect = MountEffect;

    fn describe(&self) -> String {
        let Self { device, at, kind, options } = self;
        format!("mount {} of {device} at {}{}", kind.name(), at.display(), with(options))
    }

    fn uses(&mut self) -> Uses<'_> {
        Uses { places: vec![&mut self.at], device: Some(&mut self.device), ..Uses::default() }
    }

    fn carries(&self, later: &Change) -> bool {
        later.is_below(&self.at)
    }

    fn prior(&self, site: &Site<'_>) -> Result<NoMount, ChangeError> {
        let platform = site.platform;
        let found = resolve(platform, &self.device)?;
        let state =
            platform.state(&found.path).map_err(|source| system("look at", &found.path, source))?;
        if matches!(state, DeviceState::Mounted(_) | DeviceState::Held(_)) {
            refuse(&found.path.display().to_string(), state, true)?;
        }
        let missing = place(platform, &self.at)?;
        Ok(NoMount { device: found.token, source: found.path, missing })
    }

    fn apply(&self, site: &Site<'_>, prior: &NoMount) -> Result<MountEffect, ChangeError> {
        let Self { at, kind, options, .. } = self;
        make_dirs(site.platform, &prior.missing)?;
        let request = MountRequest::new(&prior.source, at, *kind, options);
        site.platform.mount(&request).map_err(|refusal| {
            let with = if options.is_empty() { "no options".to_owned() } else { options.join(",") };
            ChangeError::unavailable(
                format!("{} mounted with {with}", kind.name()),
                refusal.said,
                "leave the option out, or use a kernel that has it",
            )
        })?;
        mounted(site.platform, at)
    }

    fn undo(entry: &Entry<'_, Self>, platform: &dyn Platform) -> Result<Undone, ChangeError> {
        let (at, NoMount { device, source, missing }) = (&entry.change.at, entry.prior);
        // The number may have changed hands since; then only the token shows which device is ours.
        let source = match find_again(platform, device)? {
            Some(found) => found.path,
            None => source.to_owned(),
        };
        let of_ours = |mount: &SeenMount| Path::new(&mount.source) == source;
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

    fn made_dirs(prior: &NoMount) -> &[PathBuf] {
        &prior.missing
    }
}

/// What holds of a mount that was just made or changed.
fn mounted(platform: &dyn Platform, at: &Path) -> Result<MountEffect, ChangeError> {
    let options = topmost(platform, at)?.map(|mount| mount.all_options()).unwrap_or_default();
    Ok(MountEffect { at: at.to_owned(), options })
}

/// Options in words.
fn with(options: &[String]) -> String {
    match options {
        [] => String::new(),
        options => format!(" with {}", options.join(",")),
    }
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
pub(super) fn topmost(
    platform: &dyn Platform,
    at: &Path,
) -> Result<Option<SeenMount>, ChangeError> {
    let mounts =
        platform.mounts().map_err(|source: io::Error| system("list mounts at", at, source))?;
    Ok(mounts.into_iter().rev().find(|mount| mount.at == at))
}

/// Makes a file system. What the device held before is lost and cannot be put back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MakeFilesystem {
    /// On what.
    pub device: DeviceRef,
    /// Which.
    pub kind: FilesystemKind,
    /// Further arguments of the mkfs program, one per element.
    pub options: Vec<String>,
    /// Name of the file system.
    pub label: Option<String>,
}

/// Nothing that could be put back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Nothing;

/// A file system was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FormatEffect {
    /// On which node.
    pub device: PathBuf,
    /// Which.
    pub kind: FilesystemKind,
}

impl Kind for MakeFilesystem {
    type Prior = Nothing;
    type Effect = FormatEffect;
    const IS_LASTING: bool = false;

    fn describe(&self) -> String {
        let Self { device, kind, options, label } = self;
        let label = label.as_ref().map(|label| format!(" called {label}"));
        let lost = " (what it holds is lost)";
        let (name, label) = (kind.name(), label.unwrap_or_default());
        format!("make {name}{label} on {device}{}{lost}", with(options))
    }

    fn uses(&mut self) -> Uses<'_> {
        Uses { device: Some(&mut self.device), ..Uses::default() }
    }

    fn prior(&self, site: &Site<'_>) -> Result<Nothing, ChangeError> {
        may_overwrite(site.platform, &self.device, site.active).map(|()| Nothing)
    }

    fn apply(&self, site: &Site<'_>, _: &Nothing) -> Result<FormatEffect, ChangeError> {
        let kind = self.kind;
        let found = resolve(site.platform, &self.device)?;
        let fixed = kind.arguments().iter().map(|&one| one.to_owned());
        let mut arguments: Vec<String> = fixed.collect();
        if let Some(label) = &self.label {
            arguments.extend(["-L".to_owned(), label.clone()]);
        }
        arguments.extend_from_slice(&self.options);
        arguments.push(found.path.display().to_string());
        match site.platform.run(kind.program(), &arguments) {
            Ok(()) => Ok(FormatEffect { device: found.path, kind }),
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

    fn undo(_: &Entry<'_, Self>, _: &dyn Platform) -> Result<Undone, ChangeError> {
        Ok(Undone::as_before())
    }
}

/// Whether what a device holds may be lost. `active` are the session's changes that are in place.
pub(crate) fn may_overwrite(
    platform: &dyn Platform,
    device: &DeviceRef,
    active: &[JournalEntry],
) -> Result<(), ChangeError> {
    let found = resolve(platform, device)?;
    let state =
        platform.state(&found.path).map_err(|source| system("look at", &found.path, source))?;
    let (name, is_given_up) = match device {
        DeviceRef::Named { overwrite, .. } => (device.to_string(), *overwrite),
        DeviceRef::Loop { backing } => {
            let is_it = |entry: &JournalEntry| match &entry.change {
                Change::BackingFile(file) => file.path == *backing,
                _ => false,
            };
            let name = format!("{} ({device})", found.path.display());
            (name, active.iter().any(is_it))
        }
    };
    refuse(&name, state, is_given_up)
}

fn refuse(device: &str, state: DeviceState, may_overwrite: bool) -> Result<(), ChangeError> {
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

/// Changes options of a mount that the same session made. Undone: the options as before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remount {
    /// Where it is mounted.
    pub at: PathBuf,
    /// Options to set; only those that have an opposite, so that they can be undone.
    pub options: Vec<String>,
}

/// The options of the mount that have to be set to undo it, and all of them to compare.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MountOptions {
    undo: Vec<String>,
    all: Vec<String>,
}

impl Kind for Remount {
    type Prior = MountOptions;
    type Effect = MountEffect;

    fn describe(&self) -> String {
        format!("set options of the mount {}{}", self.at.display(), with(&self.options))
    }

    fn uses(&mut self) -> Uses<'_> {
        Uses { places: vec![&mut self.at], ..Uses::default() }
    }

    fn carries(&self, later: &Change) -> bool {
        later.is_below(&self.at)
    }

    fn prior(&self, site: &Site<'_>) -> Result<MountOptions, ChangeError> {
        let is_ours = |entry: &JournalEntry| match &entry.change {
            Change::Mount(mount) => mount.at == self.at,
            _ => false,
        };
        let mount = topmost(site.platform, &self.at)?.filter(|_| site.active.iter().any(is_ours));
        let Some(mount) = mount else {
            return Err(ChangeError::Refused {
                device: self.at.display().to_string(),
                found: "it is not a mount of this session".to_owned(),
                fix: "mount it with the same session first".to_owned(),
            });
        };
        let all = mount.all_options();
        let opposites = self.options.iter().map(|option| opposite(option, &all));
        Ok(MountOptions { undo: opposites.collect::<Result<_, _>>()?, all })
    }

    fn apply(&self, site: &Site<'_>, _: &MountOptions) -> Result<MountEffect, ChangeError> {
        let Self { at, options } = self;
        site.platform.remount(at, options).map_err(|refusal| {
            ChangeError::unavailable(
                format!("{} set to {}", at.display(), options.join(",")),
                refusal.said,
                "leave the option out, or give it when mounting",
            )
        })?;
        mounted(site.platform, at)
    }

    fn undo(entry: &Entry<'_, Self>, platform: &dyn Platform) -> Result<Undone, ChangeError> {
        let (at, MountOptions { undo, all }) = (&entry.change.at, entry.prior);
        let sorted = |mut options: Vec<String>| {
            options.sort();
            options
        };
        let before = sorted(all.clone());
        // The change that mounted it is undone after this and checks whose mount it is; nothing is
        // left to do if it is gone.
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
        let now =
            topmost(platform, at)?.map(|mount| sorted(mount.all_options())).unwrap_or_default();
        let mut undone = Undone::put_back();
        if now != before && entry.effect.is_some() {
            let thing = format!("options of the mount {}", at.display());
            undone.left.push(Left { thing, found: now.join(","), prior: before.join(",") });
        }
        Ok(undone)
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
