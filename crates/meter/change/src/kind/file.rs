//! Files for loop devices, the loop devices over them, and directories for databases that a run
//! makes.
//!
//! Invariants: only the file or directory that was made is removed: the inode that was noted, or,
//! after a crash before that, one born after the intent at a place where there was none: a private
//! file not larger than asked for, an empty directory. Nothing that is mounted below a directory is
//! touched. Only loop devices over the very file of the intent are detached, and there was none
//! over it before; whether direct I/O was taken is the kernel's word, not the request's.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use super::filesystem;
use crate::change::Prewrite;
use crate::effect::{Effect, Prior, Undone};
use crate::error::{ChangeError, system};
use crate::kind::{directory_token, file_token};
use crate::platform::{self, Platform};
use crate::seen::{FileToken, LoopDevice, PathEntry, SeenKind};

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

fn is_half_made(seen: &PathEntry, bytes: u64, intended_us: u64) -> bool {
    seen.kind == SeenKind::File
        && seen.is_private
        && seen.bytes <= bytes
        && seen.born_us.is_none_or(|born_us| born_us + CLOCK_GRAIN_US >= intended_us)
}

fn look(platform: &dyn Platform, path: &Path) -> Result<Option<PathEntry>, ChangeError> {
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
    seen: &PathEntry,
    intended_us: u64,
) -> Result<bool, ChangeError> {
    let inside = platform.list(path).map_err(|source| system("list", path, source))?;
    let is_new = seen.born_us.is_none_or(|born_us| born_us + CLOCK_GRAIN_US >= intended_us);
    Ok(inside.is_empty() && is_new)
}

pub(super) fn prior_loop(platform: &dyn Platform, backing: &Path) -> Result<Prior, ChangeError> {
    let token = file_token(platform, backing)?;
    if let Some(device) = over(platform, &token)?.first() {
        return Err(ChangeError::Taken {
            path: backing.to_owned(),
            found: format!("is under {} already", device.path().display()),
            fix: "detach that (losetup --detach) or choose another file",
        });
    }
    Ok(Prior::NoLoop { backing: token, free_read_ahead: free_read_ahead(platform) })
}

pub(super) fn apply_loop(
    platform: &dyn Platform,
    backing: &FileToken,
    direct: bool,
    block_bytes: Option<u32>,
) -> Result<Effect, ChangeError> {
    let attached = platform.attach(backing, direct, block_bytes);
    let device = attached.map_err(|source| unavailable(&backing.path, source))?;
    if direct && !device.direct {
        let (path, backing) = (device.path(), backing.path.display());
        return Err(ChangeError::unavailable(
            format!("direct I/O of {} on {backing}", path.display()),
            "the kernel did not take it",
            "use blocks not smaller than those of the disk below, or a backing file on ext4 \
                  or XFS",
        ));
    }
    Ok(Effect::Loop {
        device: device.path(),
        direct: device.direct,
        block_bytes: device.block_bytes,
        stat: platform.read(&attribute(&device.name, "stat")).unwrap_or_default(),
        sequence: platform.read(&attribute(&device.name, "diskseq")).ok(),
    })
}

pub(super) fn undo_loop(
    platform: &dyn Platform,
    backing: &FileToken,
    free_read_ahead: &BTreeMap<String, String>,
    effect: Option<&Effect>,
) -> Result<Undone, ChangeError> {
    let find = || find_loops(platform, backing, effect);
    let found =
        find().map_err(|source| system("look for loop devices over", &backing.path, source))?;
    if found.is_empty() {
        return Ok(Undone::as_before());
    }
    for device in &found {
        // Attaching sets the read-ahead of the device, and detaching leaves it so.
        if let Some(value) = free_read_ahead.get(&device.name) {
            let _only_a_hint = platform.write(&read_ahead(&device.name), value);
        }
        platform::while_busy(platform, || platform.detach(device))
            .map_err(|source| system("detach", &device.path(), source))?;
    }
    // With users left the kernel detaches when the last one ends.
    let gone = platform::until(platform, platform::TRIES, || Ok(find()?.is_empty()))
        .map_err(|source| system("look at", &backing.path, source))?;
    Ok(if gone { Undone::put_back() } else { Undone::when_unused() })
}

/// The devices over a file, also where the file is out of sight: a file system that was unmounted
/// while a device was over it shows the path no more.
pub(crate) fn find_loops(
    platform: &dyn Platform,
    backing: &FileToken,
    effect: Option<&Effect>,
) -> io::Result<Vec<LoopDevice>> {
    let found = platform.loops_over(backing)?;
    let Some(Effect::Loop { device, direct, block_bytes, sequence: Some(sequence), .. }) = effect
    else {
        return Ok(found);
    };
    let name = device.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let is_same = platform.read(&attribute(&name, "diskseq")).is_ok_and(|now| now == *sequence);
    let is_attached = platform.read(&attribute(&name, "loop/backing_file")).is_ok();
    if !found.is_empty() || !is_same || !is_attached {
        return Ok(found);
    }
    let (backing, direct, block_bytes) = (backing.clone(), *direct, *block_bytes);
    Ok(vec![LoopDevice { name, backing, direct, block_bytes }])
}

fn over(platform: &dyn Platform, token: &FileToken) -> Result<Vec<LoopDevice>, ChangeError> {
    platform
        .loops_over(token)
        .map_err(|source| system("look for loop devices over", &token.path, source))
}

fn unavailable(backing: &Path, source: std::io::Error) -> ChangeError {
    match source.raw_os_error() {
        Some(libc::ENOENT | libc::ENXIO | libc::ENODEV | libc::EINVAL) => ChangeError::unavailable(
            format!("a loop device over {}", backing.display()),
            source,
            "load the loop module (modprobe loop); in a container, pass /dev/loop-control in",
        ),
        _ => system("attach a loop device to", backing, source),
    }
}

/// Read-ahead of the loop devices that are not attached.
fn free_read_ahead(platform: &dyn Platform) -> BTreeMap<String, String> {
    let names = platform.list(Path::new("/sys/block")).unwrap_or_default();
    let is_free = |name: &String| {
        let backing = Path::new("/sys/block").join(name).join("loop/backing_file");
        name.starts_with("loop") && platform.read(&backing).is_err()
    };
    let value = |name: String| {
        let value = platform.read(&read_ahead(&name)).ok()?;
        Some((name, value))
    };
    names.into_iter().filter(is_free).filter_map(value).collect()
}

fn read_ahead(name: &str) -> PathBuf {
    attribute(name, "queue/read_ahead_kb")
}

fn attribute(name: &str, attribute: &str) -> PathBuf {
    Path::new("/sys/block").join(name).join(attribute)
}
