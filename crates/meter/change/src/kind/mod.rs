//! What each kind of change needs to know before, does, and does to be undone.
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

use crate::change::Change;
use crate::effect::{Effect, Prior, Undone};
use crate::error::ChangeError;
use crate::journal::JournalEntry;
use crate::platform::Platform;
use crate::seen::DeviceRef;
use settings::{At, Placed};

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
            crate::device::resolve(platform, device)?;
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
    if let Some(group) = Placed::of(platform, entry) {
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
