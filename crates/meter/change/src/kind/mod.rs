//! What each kind of change needs to know before, does, and does to be undone; devices, found again
//! by token.
//!
//! Invariant: `prior` alters nothing and refuses what must not happen; `undo` works from the
//! journal's entry alone, may be repeated, and touches only what it can tell to be ours.

mod database;
pub(crate) mod file;
pub(crate) mod filesystem;
mod group;
pub(crate) mod queue;
pub(crate) mod serving;
pub(crate) mod settings;
pub(crate) mod tracing;
pub(crate) mod tunable;

use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

use crate::change::Change;
use crate::effect::{Effect, Prior, Undone};
use crate::error::{ChangeError, system};
use crate::journal::JournalEntry;
use crate::platform::Platform;
use crate::seen::{DeviceRef, DeviceToken, FileToken, SeenKind};
use settings::{At, PlacedGroup};

/// Whether what a device holds may be lost.
pub(crate) fn may_overwrite(
    platform: &dyn Platform,
    device: &DeviceRef,
    active: &[JournalEntry],
) -> Result<(), ChangeError> {
    filesystem::prior_make(platform, device, active).map(|_nothing| ())
}

/// What is there now, or why the change must not be made. `active` are the session's changes that
/// are in place.
pub(crate) fn prior(
    platform: &dyn Platform,
    change: &Change,
    active: &[JournalEntry],
) -> Result<Prior, ChangeError> {
    match change {
        Change::BackingFile { path, .. } => file::prior_new(platform, path),
        Change::Loop { backing, .. } => file::prior_loop(platform, backing),
        Change::MakeFilesystem { device, .. } => filesystem::prior_make(platform, device, active),
        Change::Mount { device, at, .. } => filesystem::prior_mount(platform, device, at),
        Change::FuseServer { at, .. } => serving::prior(platform, at),
        Change::Remount { at, options } => filesystem::prior_remount(platform, at, options, active),
        Change::Queue { device, attribute, .. } => queue::prior(platform, device, *attribute),
        Change::DropCaches => Ok(Prior::Nothing),
        Change::Sysctl { which, .. } => tunable::prior_sysctl(platform, *which),
        Change::MemoryGroup { name, .. } => group::prior(platform, name, "memory", active),
        Change::CpuGroup { name, .. } => group::prior(platform, name, "cpu", active),
        Change::IoGroup { name, device, .. } => {
            resolve(platform, device)?;
            group::prior(platform, name, "io", active)
        }
        Change::EnterGroup { name } => group::prior_enter(platform, name, active),
        Change::Governor { cpu, .. } => tunable::prior_governor(platform, *cpu),
        Change::ServerDirectory { path } => file::prior_new(platform, path),
        Change::DatabaseServer { .. } => database::prior(platform, change, active),
        Change::ServerSettings { server, .. } => {
            settings::prior(At { platform, server }, &change.named_settings())
        }
        Change::MountTracefs => tracing::prior_mount(platform),
        Change::TraceInstance { name, .. } => tracing::prior_instance(platform, name),
    }
}

/// Makes the change and reads back what the kernel took. `journal` is the locked journal, which a
/// server may have to hold.
pub(crate) fn apply(
    platform: &dyn Platform,
    change: &Change,
    prior: &Prior,
    journal: BorrowedFd<'_>,
) -> Result<Effect, ChangeError> {
    match (change, prior) {
        (Change::BackingFile { path, bytes, prewrite }, _) => {
            file::apply_file(platform, path, *bytes, *prewrite)
        }
        (Change::Loop { direct, block_bytes, .. }, Prior::NoLoop { backing, .. }) => {
            file::apply_loop(platform, backing, *direct, *block_bytes)
        }
        (Change::MakeFilesystem { device, kind, options, label }, _) => {
            filesystem::apply_make(platform, device, *kind, options, label.as_deref())
        }
        (Change::Mount { at, kind, options, .. }, Prior::NoMount { source, missing, .. }) => {
            filesystem::apply_mount(
                platform,
                (source.as_path(), at.as_path()),
                *kind,
                options,
                missing,
            )
        }
        (Change::FuseServer { .. }, Prior::NoServer { missing, .. }) => {
            serving::apply(platform, change, missing, journal)
        }
        (Change::Remount { at, options }, _) => filesystem::apply_remount(platform, at, options),
        (Change::Queue { attribute, value, .. }, Prior::Queue { device, .. }) => {
            queue::apply(platform, device, *attribute, value)
        }
        (Change::DropCaches, _) => tunable::drop_caches(platform),
        (Change::Sysctl { which, value }, _) => tunable::apply_sysctl(platform, *which, *value),
        (Change::MemoryGroup { limit_bytes, .. }, _) => {
            group::apply(platform, prior, change, &group::Limits::Memory(*limit_bytes))
        }
        (Change::CpuGroup { milli_cpus, .. }, _) => {
            group::apply(platform, prior, change, &group::Limits::Cpu(*milli_cpus))
        }
        (Change::IoGroup { device, limits, .. }, _) => {
            let number = group::number_of(platform, device)?;
            group::apply(platform, prior, change, &group::Limits::Io(number, *limits))
        }
        (Change::EnterGroup { .. }, Prior::Outside { process, moves }) => {
            group::apply_enter(platform, process, moves)
        }
        (Change::Governor { cpu, value }, _) => tunable::apply_governor(platform, *cpu, value),
        (Change::ServerDirectory { path }, _) => file::apply_directory(platform, path),
        (Change::DatabaseServer { .. }, Prior::NoDatabaseServer { groups, .. }) => {
            database::apply(platform, change, groups)
        }
        (
            Change::ServerSettings { server, settings, .. },
            Prior::ServerSettings { server: token, values },
        ) => settings::apply(At { platform, server }, settings, (token, values)),
        (Change::MountTracefs, Prior::Tracefs { mounted, dir }) => {
            tracing::apply_mount(platform, *mounted, dir)
        }
        (Change::TraceInstance { events, buffer_kib, clock, .. }, Prior::NoInstance { dir }) => {
            tracing::apply_instance(platform, dir, events, *buffer_kib, clock)
        }
        (change, _) => Err(ChangeError::Damaged { what: change.describe() }),
    }
}

/// Puts back what was there, as far as what is there now is ours.
pub(crate) fn undo(
    platform: &dyn Platform,
    entry: &JournalEntry,
    next: &[JournalEntry],
) -> Result<Undone, ChangeError> {
    if let Some(group) = PlacedGroup::of(platform, entry) {
        return group.undo();
    }
    match (&entry.change, &entry.prior) {
        (Change::MakeFilesystem { .. } | Change::DropCaches, _) => Ok(Undone::as_before()),
        (Change::BackingFile { path, bytes, .. }, Prior::NoFile { at_us }) => {
            file::undo_file(platform, path, *bytes, *at_us, entry.effect.as_ref())
        }
        (Change::Loop { .. }, Prior::NoLoop { backing, free_read_ahead }) => {
            file::undo_loop(platform, backing, free_read_ahead, entry.effect.as_ref())
        }
        (Change::Mount { at, .. }, Prior::NoMount { device, source, missing }) => {
            filesystem::undo_mount(platform, at, device, source, missing)
        }
        (Change::FuseServer { at, .. }, Prior::NoServer { missing, since_ticks }) => {
            serving::undo(platform, entry, at, missing, *since_ticks)
        }
        (Change::Remount { at, .. }, Prior::Options { undo, all }) => {
            filesystem::undo_remount(platform, at, undo, all, entry.effect.is_some())
        }
        (Change::Queue { attribute, value, .. }, Prior::Queue { device, values }) => {
            queue::undo(platform, entry, (*attribute, value), device, values)
        }
        (Change::Sysctl { which, value }, Prior::Vm { values }) => {
            tunable::undo_sysctl(platform, *which, *value, values, entry.effect.as_ref())
        }
        (
            Change::MemoryGroup { .. } | Change::CpuGroup { .. } | Change::IoGroup { .. },
            Prior::Group { version, dir, make, enable },
        ) => group::undo(platform, entry, (*version, dir), *make, enable.as_deref()),
        (Change::EnterGroup { .. }, Prior::Outside { process, moves }) => {
            group::undo_enter(platform, process, moves)
        }
        (Change::Governor { cpu, value }, Prior::Governor { value: was }) => {
            tunable::undo_governor(platform, *cpu, value, was, entry.effect.as_ref())
        }
        (Change::ServerDirectory { path }, Prior::NoFile { at_us }) => {
            file::undo_directory(platform, path, *at_us, entry.effect.as_ref())
        }
        (Change::DatabaseServer { .. }, Prior::NoDatabaseServer { since_ticks, .. }) => {
            database::undo(platform, entry, next, *since_ticks)
        }
        (Change::MountTracefs, Prior::Tracefs { mounted, dir }) => {
            tracing::undo_mount(platform, *mounted, dir)
        }
        (Change::TraceInstance { .. }, Prior::NoInstance { dir }) => {
            tracing::undo_instance(platform, dir)
        }
        (change, _) => Err(ChangeError::Damaged { what: change.describe() }),
    }
}

// Devices named by token, and found again by it.
//
// Invariant: a loop device is the one over a backing file (path, file system and inode), and a
// named device is the one that stood at its path (number and sequence); what stands there now but
// is not the same is never touched.

/// A device as it stands at this moment.
#[derive(Clone, Debug)]
pub(crate) struct ResolvedDevice {
    /// Its node.
    pub(crate) path: PathBuf,
    /// Name of the whole disk, as in `/sys/block`.
    pub(crate) disk: String,
    pub(crate) token: DeviceToken,
}

impl ResolvedDevice {
    fn queue_cell(&self, name: &str) -> PathBuf {
        Path::new("/sys/block").join(&self.disk).join("queue").join(name)
    }
}

/// The device that is meant, now.
pub(crate) fn resolve(
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
fn find_again(
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
fn directory_token(platform: &dyn Platform, path: &Path) -> Result<FileToken, ChangeError> {
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
fn file_token(platform: &dyn Platform, path: &Path) -> Result<FileToken, ChangeError> {
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
