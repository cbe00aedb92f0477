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
use crate::seen::Mounted;
use crate::world::World;

pub(super) fn prior(
    world: &dyn World,
    name: &str,
    active: &[JournalEntry],
) -> Result<Prior, ChangeError> {
    let mounts = world.mounts().unwrap_or_default();
    let mut moves: Vec<Move> = Vec::new();
    for entry in active {
        let controller = match &entry.change {
            Change::MemoryGroup { name: other, .. } if other == name => "memory",
            Change::IoGroup { name: other, .. } if other == name => "blkio",
            _ => continue,
        };
        let Prior::Group { version, dir, .. } = &entry.prior else { continue };
        if moves.iter().all(|one| one.to != *dir) {
            let home = home(world, &mounts, *version, controller);
            moves.push(Move { home, to: dir.clone() });
        }
    }
    if moves.is_empty() {
        return Err(ChangeError::unavailable(
            format!("the group {name}"),
            "this session made no group of that name",
            "make a memory or I/O group first",
        ));
    }
    Ok(Prior::Outside { process: world.owner(), moves })
}

fn home(world: &dyn World, mounts: &[Mounted], version: GroupVersion, controller: &str) -> PathBuf {
    let old = |mount: &&Mounted| {
        mount.kind == "cgroup" && mount.super_options.iter().any(|option| option == controller)
    };
    let (mount, controller) = match version {
        GroupVersion::V1 => (mounts.iter().find(old), Some(controller)),
        GroupVersion::V2 => (mounts.iter().find(|mount| mount.kind == "cgroup2"), None),
    };
    mount.map(|mount| cgroup::own_group(world, mount, controller)).unwrap_or_default()
}

pub(super) fn apply(
    world: &dyn World,
    process: &Owner,
    moves: &[Move],
) -> Result<Effect, ChangeError> {
    for one in moves {
        enter(world, process, &one.to)?;
    }
    Ok(Effect::Entered { dirs: moves.iter().map(|one| one.to.clone()).collect() })
}

pub(super) fn undo(
    world: &dyn World,
    process: &Owner,
    moves: &[Move],
) -> Result<Undone, ChangeError> {
    if !world.is_alive(process) {
        return Ok(Undone::as_before());
    }
    let pid = process.pid.to_string();
    let mut undone = Undone::as_before();
    for one in moves.iter().rev() {
        // A group that is gone holds nobody.
        let inside = world.read(&one.to.join("cgroup.procs")).unwrap_or_default();
        if inside.split_whitespace().any(|other| other == pid) {
            enter(world, process, &one.home)?;
            undone = Undone::put_back();
        }
    }
    Ok(undone)
}

fn enter(world: &dyn World, process: &Owner, dir: &std::path::Path) -> Result<(), ChangeError> {
    let cell = dir.join("cgroup.procs");
    let moved = world.write(&cell, &process.pid.to_string());
    moved.map_err(|source| system("move this process into", dir, source))
}
