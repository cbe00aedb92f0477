//! Files for loop devices, the loop devices over them, and directories for databases that a run
//! makes.
//!
//! Invariants: only the file or directory that was made is removed: the inode that was noted, or,
//! after a crash before that, one born after the intent at a place where there was none: a private
//! file not larger than requested, an empty directory. Nothing that is mounted below a directory is
//! touched. Only loop devices over the very file of the intent are detached, and there was none
//! over it before; whether direct I/O was taken is read from the kernel, not assumed from the
//! request.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use iostrata_stats::units;
use serde::{Deserialize, Serialize};

use super::device::{directory_token, file_token};
use super::{Change, Entry, Kind, Site, Uses, filesystem};
use crate::error::{ChangeError, system};
use crate::names::Prewrite;
use crate::platform::{self, Platform};
use crate::seen::{FileToken, LoopDevice, PathEntry, SeenKind};
use crate::undone::Undone;

/// Clocks of file systems tick more coarsely than the clock that the intent was stamped with.
pub(super) const CLOCK_GRAIN_US: u64 = 100_000;

/// Makes a file for a loop device. Undone: the file is removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackingFile {
    /// Where; must not exist, its directory must.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// How much of it is written.
    pub prewrite: Prewrite,
}

/// No file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NoFile {
    at_us: u64,
}

/// A file was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEffect {
    /// Which.
    pub token: FileToken,
}

impl Kind for BackingFile {
    type Prior = NoFile;
    type Effect = FileEffect;
    const OUTLIVES_BOOT: bool = true;

    fn describe(&self) -> String {
        let how = match self.prewrite {
            Prewrite::All => "written in full with random data",
            Prewrite::None => "allocated, not written",
        };
        let size = units::bytes(self.bytes as f64);
        format!("make the file {} of {size}, {how}", self.path.display())
    }

    fn uses(&mut self) -> Uses<'_> {
        Uses { places: vec![&mut self.path], ..Uses::default() }
    }

    fn carries(&self, later: &Change) -> bool {
        matches!(later, Change::Loop(over) if over.backing == self.path) || later.is_on(&self.path)
    }

    fn prior(&self, site: &Site<'_>) -> Result<NoFile, ChangeError> {
        no_file(site.platform, &self.path)
    }

    fn apply(&self, site: &Site<'_>, _: &NoFile) -> Result<FileEffect, ChangeError> {
        site.platform.make_file(&self.path, self.bytes, self.prewrite)?;
        Ok(FileEffect { token: file_token(site.platform, &self.path)? })
    }

    fn undo(entry: &Entry<'_, Self>, platform: &dyn Platform) -> Result<Undone, ChangeError> {
        let Self { path, bytes, .. } = entry.change;
        let Some(seen) = look(platform, path)? else { return Ok(Undone::as_before()) };
        let is_ours = match entry.effect {
            Some(FileEffect { token }) => token.is(&seen) && seen.kind == SeenKind::File,
            None => is_half_made(&seen, *bytes, entry.prior.at_us),
        };
        if !is_ours {
            let thing = path.display().to_string();
            return Ok(Undone::left_alone(thing, "another file", "not there"));
        }
        platform.remove_file(path).map_err(|source| system("remove", path, source))?;
        Ok(Undone::put_back())
    }
}

fn no_file(platform: &dyn Platform, path: &Path) -> Result<NoFile, ChangeError> {
    match look(platform, path)? {
        None => Ok(NoFile { at_us: platform.now_us() }),
        Some(_) => Err(ChangeError::Taken {
            path: path.to_owned(),
            found: "exists".to_owned(),
            fix: "choose another place, or run iostrata restore if a killed run left it",
        }),
    }
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

/// Makes a directory for databases of this run. Undone: removed with all that is in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerDirectory {
    /// Where; must not exist, the directory above it must.
    pub path: PathBuf,
}

/// A directory was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectoryEffect {
    /// Which.
    pub token: FileToken,
}

impl Kind for ServerDirectory {
    type Prior = NoFile;
    type Effect = DirectoryEffect;
    const OUTLIVES_BOOT: bool = true;

    fn describe(&self) -> String {
        format!("make the directory {} for a database server", self.path.display())
    }

    fn uses(&mut self) -> Uses<'_> {
        Uses { places: vec![&mut self.path], ..Uses::default() }
    }

    fn carries(&self, later: &Change) -> bool {
        later.is_below(&self.path)
    }

    fn prior(&self, site: &Site<'_>) -> Result<NoFile, ChangeError> {
        no_file(site.platform, &self.path)
    }

    fn apply(&self, site: &Site<'_>, _: &NoFile) -> Result<DirectoryEffect, ChangeError> {
        filesystem::make_dirs(site.platform, std::slice::from_ref(&self.path))?;
        Ok(DirectoryEffect { token: directory_token(site.platform, &self.path)? })
    }

    fn undo(entry: &Entry<'_, Self>, platform: &dyn Platform) -> Result<Undone, ChangeError> {
        let path = entry.change.path.as_path();
        let Some(seen) = look(platform, path)? else { return Ok(Undone::as_before()) };
        let is_ours = match entry.effect {
            Some(DirectoryEffect { token }) => token.is(&seen),
            // Nothing is put into it before it is noted.
            None => was_just_made(platform, path, &seen, entry.prior.at_us)?,
        };
        if !is_ours || seen.kind != SeenKind::Directory {
            let thing = path.display().to_string();
            return Ok(Undone::left_alone(thing, "not the one that was made", "not there"));
        }
        let mounts =
            platform.mounts().map_err(|source| system("list mounts below", path, source))?;
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

/// Attaches a free loop device. Undone: detached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loop {
    /// The file, over which there is no loop device yet.
    pub backing: PathBuf,
    /// Direct I/O on the file, so that nothing is cached twice; refused is an error.
    pub direct: bool,
    /// Logical block size of the device in bytes; absent: the kernel's choice.
    pub block_bytes: Option<u32>,
}

/// No loop device over the file; read-ahead of the free devices, which attaching changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NoLoop {
    pub(crate) backing: FileToken,
    free_read_ahead: BTreeMap<String, String>,
}

/// A loop device was attached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopEffect {
    /// Its node at this moment, as `/dev/loop3`.
    pub device: PathBuf,
    /// Whether it does direct I/O on the file, as the kernel reports it.
    pub direct: bool,
    /// Its logical block, in bytes.
    pub block_bytes: u32,
    /// Its counters at this moment (`/sys/block/loop3/stat`): what it did over earlier files is
    /// still in them.
    #[serde(default)]
    pub stat: String,
    /// The kernel's number of this attachment (`diskseq`), which no other ever has.
    #[serde(default)]
    pub sequence: Option<String>,
}

impl Kind for Loop {
    type Prior = NoLoop;
    type Effect = LoopEffect;

    fn describe(&self) -> String {
        let direct = if self.direct { " with direct I/O" } else { "" };
        let block = self.block_bytes.map(|bytes| format!(", blocks of {bytes} bytes"));
        let backing = self.backing.display();
        format!("attach a loop device to {backing}{direct}{}", block.unwrap_or_default())
    }

    fn uses(&mut self) -> Uses<'_> {
        Uses { places: vec![&mut self.backing], ..Uses::default() }
    }

    fn carries(&self, later: &Change) -> bool {
        later.is_on(&self.backing)
    }

    fn prior(&self, site: &Site<'_>) -> Result<NoLoop, ChangeError> {
        let backing = file_token(site.platform, &self.backing)?;
        if let Some(device) = over(site.platform, &backing)?.first() {
            return Err(ChangeError::Taken {
                path: self.backing.clone(),
                found: format!("is under {} already", device.path().display()),
                fix: "detach that (losetup --detach) or choose another file",
            });
        }
        Ok(NoLoop { backing, free_read_ahead: free_read_ahead(site.platform) })
    }

    fn apply(&self, site: &Site<'_>, prior: &NoLoop) -> Result<LoopEffect, ChangeError> {
        let (platform, backing) = (site.platform, &prior.backing);
        let attached = platform.attach(backing, self.direct, self.block_bytes);
        let device = attached.map_err(|source| unavailable(&backing.path, source))?;
        if self.direct && !device.direct {
            let (path, backing) = (device.path(), backing.path.display());
            return Err(ChangeError::unavailable(
                format!("direct I/O of {} on {backing}", path.display()),
                "the kernel did not take it",
                "use blocks not smaller than those of the disk below, or a backing file on ext4 \
                  or XFS",
            ));
        }
        Ok(LoopEffect {
            device: device.path(),
            direct: device.direct,
            block_bytes: device.block_bytes,
            stat: platform.read(&attribute(&device.name, "stat")).unwrap_or_default(),
            sequence: platform.read(&attribute(&device.name, "diskseq")).ok(),
        })
    }

    fn undo(entry: &Entry<'_, Self>, platform: &dyn Platform) -> Result<Undone, ChangeError> {
        let NoLoop { backing, free_read_ahead } = entry.prior;
        let find = || find_loops(platform, backing, entry.effect);
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
}

/// The devices over a file, also where the file is out of sight: a file system that was unmounted
/// while a device was over it shows the path no more.
pub(crate) fn find_loops(
    platform: &dyn Platform,
    backing: &FileToken,
    effect: Option<&LoopEffect>,
) -> io::Result<Vec<LoopDevice>> {
    let found = platform.loops_over(backing)?;
    let Some(LoopEffect { device, direct, block_bytes, sequence: Some(sequence), .. }) = effect
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
