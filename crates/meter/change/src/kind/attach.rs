//! Loop devices.
//!
//! Invariant: only loop devices over the very file of the intent are detached, and there was none
//! over it before. Whether direct I/O was taken is the kernel's word, not the request's.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use crate::device::file_token;
use crate::effect::{Effect, Prior, Undone};
use crate::error::{ChangeError, system};
use crate::platform;
use crate::platform::Platform;
use crate::seen::{FileToken, LoopDevice};

pub(super) fn prior(platform: &dyn Platform, backing: &Path) -> Result<Prior, ChangeError> {
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

pub(super) fn apply(
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

pub(super) fn undo(
    platform: &dyn Platform,
    backing: &FileToken,
    free_read_ahead: &BTreeMap<String, String>,
    effect: Option<&Effect>,
) -> Result<Undone, ChangeError> {
    let find = || find(platform, backing, effect);
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
pub(crate) fn find(
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
