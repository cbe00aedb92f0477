//! Moving this process into its groups and back.
//!
//! Invariant: only the process of the journal is moved, and only back to where it was.

use std::path::PathBuf;

use super::cgroup;
use crate::change::Change;
use crate::effect::{Effect, GroupVersion, Move, Prior, Undone};
use crate::error::{ChangeError, system};
use crate::journal::JournalEntry;
use crate::owner::Owner;
use crate::platform::Platform;
use iostrata_io::Mount;

pub(super) fn prior(
    platform: &dyn Platform,
    name: &str,
    active: &[JournalEntry],
) -> Result<Prior, ChangeError> {
    let mounts = platform.mounts().unwrap_or_default();
    let to_move = |group: MadeGroup<'_>| {
        let home = home(platform, &mounts, group.version, group.controller);
        Move { home, to: group.dir.clone() }
    };
    let moves = groups(name, active)?.into_iter().map(to_move).collect();
    Ok(Prior::Outside { process: platform.owner(), moves })
}

/// A group that the session made.
pub(super) struct MadeGroup<'a> {
    controller: &'static str,
    version: GroupVersion,
    pub(super) dir: &'a PathBuf,
}

/// The groups of a name, each once.
pub(super) fn groups<'a>(
    name: &str,
    active: &'a [JournalEntry],
) -> Result<Vec<MadeGroup<'a>>, ChangeError> {
    let mut groups: Vec<MadeGroup<'a>> = Vec::new();
    for entry in active {
        let controller = match &entry.change {
            Change::MemoryGroup { name: other, .. } if other == name => "memory",
            Change::CpuGroup { name: other, .. } if other == name => "cpu",
            Change::IoGroup { name: other, .. } if other == name => "blkio",
            _ => continue,
        };
        let Prior::Group { version, dir, .. } = &entry.prior else { continue };
        if groups.iter().all(|one| one.dir != dir) {
            groups.push(MadeGroup { controller, version: *version, dir });
        }
    }
    if groups.is_empty() {
        return Err(ChangeError::unavailable(
            format!("the group {name}"),
            "this session made no group of that name",
            "make a memory or I/O group first",
        ));
    }
    Ok(groups)
}

fn home(
    platform: &dyn Platform,
    mounts: &[Mount],
    version: GroupVersion,
    controller: &str,
) -> PathBuf {
    let old = |mount: &&Mount| {
        mount.kind == "cgroup" && mount.super_options.iter().any(|option| option == controller)
    };
    let (mount, controller) = match version {
        GroupVersion::V1 => (mounts.iter().find(old), Some(controller)),
        GroupVersion::V2 => (mounts.iter().find(|mount| mount.kind == "cgroup2"), None),
    };
    mount.map(|mount| cgroup::own_group(platform, mount, controller)).unwrap_or_default()
}

pub(super) fn apply(
    platform: &dyn Platform,
    process: &Owner,
    moves: &[Move],
) -> Result<Effect, ChangeError> {
    for one in moves {
        enter(platform, process, &one.to)?;
    }
    Ok(Effect::Entered { dirs: moves.iter().map(|one| one.to.clone()).collect() })
}

pub(super) fn undo(
    platform: &dyn Platform,
    process: &Owner,
    moves: &[Move],
) -> Result<Undone, ChangeError> {
    if !platform.is_alive(process) {
        return Ok(Undone::as_before());
    }
    let pid = process.pid.to_string();
    let mut undone = Undone::as_before();
    for one in moves.iter().rev() {
        // A group that is gone holds nobody.
        let inside = platform.read(&one.to.join("cgroup.procs")).unwrap_or_default();
        if inside.split_whitespace().any(|other| other == pid) {
            enter(platform, process, &one.home)?;
            undone = Undone::put_back();
        }
    }
    Ok(undone)
}

fn enter(
    platform: &dyn Platform,
    process: &Owner,
    dir: &std::path::Path,
) -> Result<(), ChangeError> {
    let cell = dir.join("cgroup.procs");
    let moved = platform.write(&cell, &process.pid.to_string());
    moved.map_err(|source| system("move this process into", dir, source))
}
