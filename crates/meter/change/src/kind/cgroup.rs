//! Where a group with a controller can be made, in either generation of control groups.
//!
//! Version 1: below this process's own group, so that limits above stay in force. Version 2: groups
//! with processes cannot have limited children, so beside it, under the nearest group above that
//! passes the controller on; at the top it is enabled when it is not.
//! Invariant: it only looks.

use std::path::{Path, PathBuf};

use crate::effect::GroupVersion;
use crate::error::ChangeError;
use crate::platform::Platform;
use iostrata_io::Mount;

/// Groups of ours begin so, and are never taken for a home.
pub(super) const OWN: &str = "iostrata-";

/// Where a group goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GroupPlace {
    pub(super) version: GroupVersion,
    /// The directory above it.
    pub(super) parent: PathBuf,
    /// Where the controller has to be enabled first.
    pub(super) enable: Option<PathBuf>,
}

/// Finds a place for a group with `memory` or `io`.
pub(super) fn place(platform: &dyn Platform, controller: &str) -> Result<GroupPlace, ChangeError> {
    let mounts = platform.mounts().unwrap_or_default();
    let old_name = if controller == "io" { "blkio" } else { controller };
    let v1 = mounts.iter().find(|mount| {
        mount.kind == "cgroup" && mount.super_options.iter().any(|option| option == old_name)
    });
    if let Some(mount) = v1 {
        let parent = own_group(platform, mount, Some(old_name));
        return Ok(GroupPlace { version: GroupVersion::V1, parent, enable: None });
    }
    let v2 = mounts.iter().find(|mount| mount.kind == "cgroup2");
    v2.and_then(|mount| place_v2(platform, mount, controller)).ok_or_else(|| {
        ChangeError::unavailable(
            format!("a group with the controller {controller}"),
            "no tree of control groups that can be seen here has it",
            "mount cgroup2 at /sys/fs/cgroup on a kernel with this controller, or give the \
                  container access to it",
        )
    })
}

fn place_v2(platform: &dyn Platform, mount: &Mount, controller: &str) -> Option<GroupPlace> {
    let has = |dir: &Path, file: &str| {
        let names = platform.read(&dir.join(file)).unwrap_or_default();
        names.split_whitespace().any(|name| name == controller)
    };
    let own = own_group(platform, mount, None);
    // The top may have processes and limited children at once.
    let above = own.ancestors().skip(usize::from(own != mount.at));
    let within = above.take_while(|dir| dir.starts_with(&mount.at));
    let passes_on = |dir: &&Path| has(dir, "cgroup.subtree_control");
    let version = GroupVersion::V2;
    if let Some(parent) = within.clone().find(passes_on) {
        return Some(GroupPlace { version, parent: parent.to_owned(), enable: None });
    }
    let top = mount.at.clone();
    has(&top, "cgroup.controllers").then(|| GroupPlace {
        version,
        parent: top.clone(),
        enable: Some(top),
    })
}

/// The directory of this process's group in a tree; within a group of ours, the one around it.
pub(super) fn own_group(
    platform: &dyn Platform,
    mount: &Mount,
    controller: Option<&str>,
) -> PathBuf {
    let text = platform.read(Path::new("/proc/self/cgroup")).unwrap_or_default();
    let path = text.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (_, names, path) = (parts.next()?, parts.next()?, parts.next()?);
        let is_meant = match controller {
            Some(controller) => names.split(',').any(|name| name == controller),
            None => names.is_empty(),
        };
        is_meant.then_some(path)
    });
    let path = Path::new(path.unwrap_or("/"));
    // A container sees its part of the tree: the directory that is mounted is cut off.
    let below = path.strip_prefix(&mount.root).unwrap_or(Path::new(""));
    let is_own = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with(OWN);
    let parts = below.iter().filter(|part| *part != "/").take_while(|part| !is_own(part));
    let dir = parts.fold(mount.at.clone(), |dir, part| dir.join(part));
    match platform.look(&dir) {
        Ok(Some(_)) => dir,
        _ => mount.at.clone(),
    }
}
