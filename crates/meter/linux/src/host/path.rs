//! What lies under a path, put together from mounts, sysfs and control groups, and what to observe
//! for it: its devices, the limits on them, what a flush may cost there.
//!
//! Two places are followed through a file to the disk below it: the upper directory of an overlay
//! and the backing file of a loop device. At most two such steps are taken.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use iostrata_io::Mount;
use iostrata_run::host::{BlockLayer, DirectIoBehaviour, LayerKind, PathFacts, PathKind};

use crate::host::cgroup::{
    Cgroup, FoundLimit, SELF, controls_on, group_v1, group_v2, limits_on, quota_group,
};
use crate::host::device::{
    Stack, btrfs_members, dir_of_name, dir_of_number, dir_of_source, facts_of_dir, is_partition,
    name_of,
};
use crate::host::judge::FlushCost;
use crate::host::mounts::{Release, block_device, direct_io, mount_of, path_kind, release};
use crate::host::{HostError, Location, Root};

/// Files followed from one path.
const FILE_STEPS_MAX: u32 = 2;

/// Describes what lies under `path`, or under its directory when only the last part is missing.
///
/// # Errors
/// [`HostError::NoSuchPath`] when the directory is missing too, [`HostError::Unreadable`] when the
/// system does not let it be examined. What merely cannot be found out becomes a note.
pub fn describe_path(root: &Root, path: &Path) -> Result<PathFacts, HostError> {
    let mounts = crate::host::mounts(root);
    let kernel = root.word("/proc/sys/kernel/osrelease").and_then(|text| release(&text));
    let found = Describer { root, mounts: &mounts, kernel }.describe(path, FILE_STEPS_MAX)?;
    let mut facts = found.facts;
    facts.devices = devices(root, &found.stack);
    facts.limits = limits_on(root, &mounts, &found.stack.layers, SELF)
        .into_iter()
        .map(|found| found.limit)
        .collect();
    facts.io_controls = controls_on(root, &mounts, &found.stack.layers);
    facts.block_stack = found.stack.layers;
    Ok(facts)
}

/// Facts of every layer that has a queue, from the top down.
fn devices(root: &Root, stack: &Stack) -> Vec<iostrata_run::host::DeviceFacts> {
    let with_queue = stack.dirs.iter().filter(|dir| !is_partition(root, dir));
    with_queue.map(|dir| facts_of_dir(root, dir)).collect()
}

struct Describer<'a> {
    root: &'a Root,
    mounts: &'a [Mount],
    kernel: Option<Release>,
}

/// Facts without the stack, and the stack.
struct FoundPath {
    facts: PathFacts,
    stack: Stack,
}

impl Describer<'_> {
    fn describe(&self, path: &Path, file_steps: u32) -> Result<FoundPath, HostError> {
        let location = self.root.locate(path)?;
        let mut facts = facts_of_room(&location);
        if let Some(number) = location.block_device {
            facts.kind = PathKind::BlockDevice;
            facts.direct_io.behaviour = DirectIoBehaviour::Honoured;
            let tops = dir_of_number(self.root, number);
            if tops.is_none() {
                facts.notes.push(format!("sysfs does not describe the device {number}"));
            }
            let stack = self.stack_below(tops, file_steps, &mut facts.notes);
            return Ok(FoundPath { facts, stack });
        }
        let Some(mount) = mount_of(self.mounts, &location) else {
            facts.notes.push("no mount of this process holds the path".to_owned());
            return Ok(FoundPath { facts, stack: Stack::default() });
        };
        add_mount(&mut facts, mount);
        let tops = self.devices_of(mount, &location, &mut facts.notes);
        facts.kind = path_kind(mount, !tops.is_empty());
        facts.direct_io = direct_io(mount, &location, self.kernel);
        let mut stack = self.stack_below(tops, file_steps, &mut facts.notes);
        self.follow_overlay(&mut facts, &mut stack, &location, file_steps);
        add_notes_of_kind(&mut facts);
        Ok(FoundPath { facts, stack })
    }

    /// Directories of the devices that a mount stands on.
    fn devices_of(
        &self,
        mount: &Mount,
        location: &Location,
        notes: &mut Vec<String>,
    ) -> Vec<PathBuf> {
        if mount.kind == "btrfs" {
            return self.devices_of_btrfs(mount, notes);
        }
        if mount.kind == "overlay" {
            return Vec::new();
        }
        let number = block_device(mount).unwrap_or(location.device);
        if !number.is_anonymous() {
            let dir = dir_of_number(self.root, number);
            if dir.is_none() {
                notes.push(format!("sysfs does not describe the device {number}"));
            }
            return dir.into_iter().collect();
        }
        // bcachefs and the like: several devices joined by colons.
        let sources = mount.source.split(':').filter(|source| source.starts_with("/dev/"));
        sources.filter_map(|source| dir_of_source(self.root, source)).collect()
    }

    fn devices_of_btrfs(&self, mount: &Mount, notes: &mut Vec<String>) -> Vec<PathBuf> {
        let Some(source) = dir_of_source(self.root, &mount.source) else {
            notes.push(format!("the device {} of btrfs was not found", mount.source));
            return Vec::new();
        };
        let members = btrfs_members(self.root, &name_of(&source));
        if members.is_empty() {
            notes.push("other devices of this btrfs, if any, are not known".to_owned());
            return vec![source];
        }
        members.iter().filter_map(|name| dir_of_name(self.root, name)).collect()
    }

    /// The stack below some devices, on through the backing files of loop devices.
    fn stack_below(
        &self,
        tops: impl IntoIterator<Item = PathBuf>,
        file_steps: u32,
        notes: &mut Vec<String>,
    ) -> Stack {
        let mut stack = Stack::below(self.root, tops);
        let loops: Vec<(usize, String)> = stack
            .layers
            .iter()
            .enumerate()
            .filter_map(|(at, layer)| match &layer.kind {
                LayerKind::Loop { backing_file: Some(file), .. } => Some((at, file.clone())),
                _ => None,
            })
            .collect();
        for (at, file) in loops {
            match self.behind(Path::new(&file), file_steps) {
                Some(found) => {
                    add_backing(&mut stack.layers[at].kind, &found.facts);
                    stack.append_below(at, found.stack);
                }
                None => notes.push(format!("what lies below the file {file} was not found")),
            }
        }
        stack
    }

    fn follow_overlay(
        &self,
        facts: &mut PathFacts,
        stack: &mut Stack,
        location: &Location,
        file_steps: u32,
    ) {
        let PathKind::Overlay { upper, upper_file_system, .. } = &mut facts.kind else { return };
        let Some(directory) = upper else { return };
        let mut found = self.behind(Path::new(directory.as_str()), file_steps);
        if found.is_none() {
            facts.notes.push(format!(
                "the upper directory {directory} of the overlay cannot be seen from here (a \
                 container?)"
            ));
            found = self.alike(location, file_steps);
            facts.notes.push(match &found {
                Some(found) => format!(
                    "{} lies on a file system of the same size, which is taken to be below it",
                    found.facts.path
                ),
                None => "so its disk is not known".to_owned(),
            });
        }
        if let Some(found) = found {
            *upper_file_system = found.facts.file_system;
            facts.direct_io = found.facts.direct_io;
            facts.notes.extend(found.facts.notes);
            *stack = found.stack;
        }
    }

    /// A mount with a device whose size and number of inodes are those of the overlay, which
    /// reports those of the file system below it. Container runtimes mount a few files of theirs
    /// (`/etc/hosts`) from that file system.
    fn alike(&self, overlay: &Location, file_steps: u32) -> Option<FoundPath> {
        let steps = file_steps.checked_sub(1)?;
        let size = |location: &Location| {
            location.total_bytes.filter(|bytes| *bytes > 0).zip(location.inodes_total)
        };
        let wanted = size(overlay)?;
        let mount = self.mounts.iter().find(|mount| {
            let on_device = block_device(mount).is_some() || mount.kind == "btrfs";
            let there = || self.root.locate(&mount.at).ok();
            on_device && there().as_ref().and_then(size) == Some(wanted)
        })?;
        self.describe(&mount.at, steps).ok()
    }

    /// What lies below a file or directory that backs something else. Unlike the requested path, it
    /// must exist itself.
    fn behind(&self, file: &Path, file_steps: u32) -> Option<FoundPath> {
        let steps = file_steps.checked_sub(1)?;
        if !self.root.exists(file) {
            return None;
        }
        self.describe(file, steps).ok()
    }
}

/// What holds the file behind a loop device; nothing where that is itself a device.
fn add_backing(kind: &mut LayerKind, behind: &PathFacts) {
    if let LayerKind::Loop { backing_file_system, backing_block_bytes, .. } = kind
        && behind.kind != PathKind::BlockDevice
    {
        *backing_file_system = behind.file_system.clone();
        *backing_block_bytes = behind.block_bytes;
    }
}

fn facts_of_room(location: &Location) -> PathFacts {
    // A file system without a fixed table of inodes reports 0 of them.
    let fixed = location.inodes_total.filter(|inodes| *inodes > 0);
    PathFacts {
        device_number: Some(location.device),
        block_bytes: location.block_bytes,
        total_bytes: location.total_bytes,
        free_bytes: location.free_bytes,
        inodes_total: fixed,
        inodes_free: fixed.and(location.inodes_free),
        ..PathFacts::unknown(location.path.to_string_lossy())
    }
}

fn add_mount(facts: &mut PathFacts, mount: &Mount) {
    facts.mount_point = Some(mount.at.to_string_lossy().into_owned());
    facts.file_system = Some(mount.kind.clone());
    facts.mount_source = Some(without_user(&mount.source));
    for option in mount.options.iter().chain(&mount.super_options) {
        let option = without_secret(option);
        if !facts.mount_options.contains(&option) {
            facts.mount_options.push(option);
        }
    }
    let is_ro = |options: &[String]| options.iter().any(|option| option == "ro");
    facts.read_only = Some(is_ro(&mount.options) || is_ro(&mount.super_options));
}

fn add_notes_of_kind(facts: &mut PathFacts) {
    match &facts.kind {
        PathKind::Tmpfs => facts.notes.push("this place is memory, not storage".to_owned()),
        PathKind::Network { .. } => {
            facts.notes.push("the device is on the other side and cannot be seen".to_owned());
        }
        PathKind::Unknown => {
            facts.notes.push("no block device was found below this file system".to_owned());
        }
        PathKind::Overlay { upper: None, .. } => {
            facts.notes.push("an overlay without an upper directory takes no writes".to_owned());
        }
        _ => {}
    }
}

/// Mount options whose value must not be kept.
const SECRET_OPTIONS: [&str; 12] = [
    "password",
    "password2",
    "passwd",
    "pass",
    "secret",
    "secretfile",
    "user",
    "username",
    "credentials",
    "cred",
    "key",
    "cruid",
];

/// The option as it may be kept: of a secret only its name is left.
fn without_secret(option: &str) -> String {
    match option.split_once('=') {
        Some((name, _)) if SECRET_OPTIONS.contains(&name) => format!("{name}=..."),
        _ => option.to_owned(),
    }
}

/// The mount source without a user's name and password before `@`.
fn without_user(source: &str) -> String {
    let Some((before, after)) = source.rsplit_once('@') else { return source.to_owned() };
    let scheme = before.rfind("//").map_or(0, |slashes| slashes + 2);
    // A blank or a single slash before the sign: part of a path, not of an address.
    if before[scheme..].contains(['/', ' ']) {
        return source.to_owned();
    }
    format!("{}{after}", &before[..scheme])
}

// What to observe for a path: its devices, the limits on them, what a flush may cost there.

/// The part of the host that a measured path depends on.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// Devices that the file system's requests arrive at: one, or several for btrfs.
    pub(crate) tops: Vec<String>,
    /// Devices with nothing known below them.
    pub(crate) bottoms: Vec<String>,
    /// All devices with a queue, from the top down.
    pub(crate) devices: Vec<String>,
    /// How often a byte written at the top is written at the bottom, where that is known.
    pub(crate) copies: Option<f64>,
    pub(crate) flush_cost: FlushCost,
    pub(crate) limits: Vec<FoundLimit>,
    pub(crate) cpu_group: Option<Cgroup>,
    /// Devices whose counters are switched off in the kernel.
    pub(crate) uncounted: Vec<String>,
}

impl Scope {
    /// Everything that the path described by `facts` depends on.
    pub fn of(root: &Root, facts: &PathFacts) -> Self {
        let mounts = crate::host::mounts(root);
        let tops = tops(&facts.block_stack);
        // The top group has the file but no quota to count.
        let counts = |group: &Cgroup| {
            let text = root.text(group.dir().join("cpu.stat"));
            text.is_some_and(|text| text.contains("nr_periods"))
        };
        Self {
            copies: copies(&facts.block_stack, tops.len()),
            tops,
            bottoms: facts
                .block_stack
                .iter()
                .filter(|layer| layer.below.is_empty())
                .map(|layer| layer.name.clone())
                .collect(),
            devices: facts.devices.iter().map(|device| device.name.clone()).collect(),
            flush_cost: FlushCost::of(facts),
            limits: limits_on(root, &mounts, &facts.block_stack, SELF),
            cpu_group: quota_group(root, &mounts, SELF)
                .or_else(|| group_v2(root, &mounts, SELF))
                .filter(counts)
                .or_else(|| group_v1(root, &mounts, "cpu", SELF).filter(counts)),
            uncounted: facts
                .devices
                .iter()
                .filter(|device| device.iostats == Some(false))
                .map(|device| device.name.clone())
                .collect(),
        }
    }

    /// Adds another path's scope: a workload that is spread over several volumes is observed on all
    /// of them. The flush cost is the larger one; copies are known only if they are the same.
    pub fn join(&mut self, other: Self) {
        if self.devices.is_empty() && self.tops.is_empty() {
            *self = other;
            return;
        }
        let add = |to: &mut Vec<String>, from: Vec<String>| {
            from.into_iter().for_each(|name| {
                if !to.contains(&name) {
                    to.push(name);
                }
            });
        };
        add(&mut self.tops, other.tops);
        add(&mut self.bottoms, other.bottoms);
        add(&mut self.devices, other.devices);
        add(&mut self.uncounted, other.uncounted);
        self.copies = self.copies.filter(|copies| other.copies == Some(*copies));
        if other.flush_cost.bytes > self.flush_cost.bytes {
            self.flush_cost = other.flush_cost;
        }
        self.limits.extend(other.limits);
        self.cpu_group = self.cpu_group.take().or(other.cpu_group);
    }

    /// A name for the devices that requests arrive at.
    pub(crate) fn top_name(&self) -> Option<String> {
        (!self.tops.is_empty()).then(|| self.tops.join("+"))
    }
}

/// The uppermost devices that have a queue; a partition stands for its disk, because what happens
/// on the disk's other partitions disturbs as well.
fn tops(layers: &[BlockLayer]) -> Vec<String> {
    let mut tops = Vec::new();
    for layer in layers.iter().filter(|layer| layer.depth == 0) {
        let name = match (&layer.kind, layer.below.first()) {
            (LayerKind::Partition { .. }, Some(disk)) => disk,
            _ => &layer.name,
        };
        if !tops.contains(name) {
            tops.push(name.clone());
        }
    }
    tops
}

/// Writes at the bottom per write at the top. RAID with parity, sub-volumes of LVM, caches and
/// loop devices write more or less than that, so that nothing is claimed for them.
fn copies(layers: &[BlockLayer], tops: usize) -> Option<f64> {
    let mapped: BTreeSet<&str> = layers
        .iter()
        .filter(|layer| matches!(layer.kind, LayerKind::Lvm { .. }))
        .map(|layer| layer.name.as_str())
        .collect();
    let mut copies = 1.0;
    for layer in layers {
        copies *= match &layer.kind {
            LayerKind::Md { level, disks, .. } => match (level.as_deref(), disks) {
                (Some("raid0" | "linear"), _) => 1.0,
                (Some("raid1"), Some(disks)) => f64::from(*disks),
                _ => return None,
            },
            LayerKind::Lvm { .. }
                if layer.below.iter().any(|name| mapped.contains(name.as_str())) =>
            {
                return None;
            }
            LayerKind::Loop { .. } | LayerKind::Bcache | LayerKind::DeviceMapper { .. } => {
                return None;
            }
            _ => 1.0,
        };
    }
    (tops == 1).then_some(copies)
}

#[cfg(test)]
mod secrets_tests {
    use super::*;

    #[test]
    fn names_stay_and_values_go() {
        assert_eq!(without_secret("password=hunter2"), "password=...");
        assert_eq!(without_secret("data=ordered"), "data=ordered");
        assert_eq!(without_secret("user_xattr"), "user_xattr");
    }

    #[test]
    fn users_are_cut_from_addresses_only() {
        assert_eq!(without_user("ann:pw@server:/srv"), "server:/srv");
        assert_eq!(without_user("//ann@server/share"), "//server/share");
        assert_eq!(without_user("/dev/disk/by-id/a@b"), "/dev/disk/by-id/a@b");
        assert_eq!(without_user("pool/data@snapshot"), "pool/data@snapshot");
        assert_eq!(without_user("/dev/vda"), "/dev/vda");
    }
}
