//! Which volumes a study needs, how large they are, and the changes that make them.
//!
//! Invariant: pure; the same plan and place give the same layout, so that what is shown beforehand
//! is what is done. Every volume has a name, and its backing files and mount points are named after
//! it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use iostrata_change::{Change, DeviceRef, FilesystemKind, Prewrite};
use iostrata_emudisk::Store;
use iostrata_spec::study::{Cell, StudyPlan, Volume, VolumeKind};
use iostrata_spec::{IoSpec, Preparation};

use super::emulated;
use crate::StudyError;

const MIB: u64 = 1 << 20;
/// Room of a file system beside its files: journal, tables, reserve.
const OVERHEAD_BYTES: u64 = 192 * MIB;
const OVERHEAD_SHARE: f64 = 0.08;
/// XFS wants 300 MiB.
const LEAST_BYTES: u64 = 320 * MIB;

/// Where a study makes its volumes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The directory of the backing files and mount points.
    pub dir: PathBuf,
    /// A block device to be used instead of backing files.
    pub device: Option<PathBuf>,
    /// Whether the user named that very device to be overwritten, whatever it holds.
    pub overwrite_device: bool,
    /// This program: it runs the processes of workers and serves emulated disks.
    pub program: PathBuf,
    /// Bytes of memory that emulated disks may fill in all; what is beyond lies in files of `dir`.
    pub memory_bytes: u64,
}

/// One block device of a volume.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// The device, found by its backing file or its name.
    pub device: DeviceRef,
    /// Its mount point, for file systems.
    pub mount: Option<PathBuf>,
    /// Where the disk below it is served, for emulated ones.
    pub served_at: Option<PathBuf>,
    /// What makes it, in order.
    pub changes: Vec<Change>,
}

/// A volume as it will be made.
#[derive(Clone, Debug, PartialEq)]
pub struct VolumeLayout {
    /// What the cells asked for.
    pub volume: Volume,
    /// Short name, unique in the study: `ext4`, `xfs_2`.
    pub name: String,
    /// Bytes of each member.
    pub member_bytes: u64,
    /// Bytes of the file sets on it, or of the raw device that is written whole.
    pub filled_bytes: u64,
    /// Bytes that its members take in the place; disks in memory take none.
    pub space_bytes: u64,
    /// The members; none for a plain directory.
    pub members: Vec<Member>,
}

impl VolumeLayout {
    /// The devices of its members.
    pub fn devices(&self) -> Vec<DeviceRef> {
        self.members.iter().map(|member| member.device.clone()).collect()
    }
}

/// File sets with the same shape are made once and shared by cells.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SetShape {
    /// Files over all members.
    pub files: u32,
    /// Bytes over all files.
    pub size_bytes: u64,
    /// Largest block of the cells: file sizes are a multiple of it.
    pub block_bytes: u32,
    /// Whether requests use the set up, so that it is made afresh each time.
    pub used_up: bool,
    preparation: u8,
}

impl SetShape {
    /// The shape of a workload's files.
    pub(super) fn of(spec: &IoSpec) -> Self {
        let preparation = match spec.preparation {
            Preparation::Written => 0,
            Preparation::Fallocated => 1,
            Preparation::Empty => 2,
        };
        Self {
            files: spec.files,
            size_bytes: spec.size_bytes,
            block_bytes: 65_536.max(spec.block_bytes),
            used_up: preparation != 0,
            preparation,
        }
    }
}

/// The volumes of a plan, in the order in which the cells name them.
///
/// # Errors
/// When a path cannot be given to the server of an emulated disk.
pub fn lay_out(plan: &StudyPlan, place: &Place) -> Result<Vec<VolumeLayout>, StudyError> {
    let mut layouts: Vec<VolumeLayout> = Vec::new();
    let mut memory_bytes = place.memory_bytes;
    for cell in &plan.cells {
        if layouts.iter().any(|layout| layout.volume == cell.volume) {
            continue;
        }
        let kind = word(&cell.volume);
        let same = layouts.iter().filter(|layout| word(&layout.volume) == kind).count();
        let name = if same == 0 { kind } else { format!("{kind}_{}", same + 1) };
        layouts.push(volume(plan, place, &cell.volume, name, &mut memory_bytes)?);
    }
    Ok(layouts)
}

/// `ext4`, or `ext4-hdd-15k` on an emulated disk; safe in file names.
fn word(volume: &Volume) -> String {
    let kind = volume.kind.name();
    let Some(disk) = &volume.disk else { return kind.to_owned() };
    format!("{kind}-{}", disk.model.name().replace(|c: char| !c.is_ascii_alphanumeric(), "-"))
}

/// Bytes that all volumes take in the place at one time.
pub fn space_bytes(layouts: &[VolumeLayout]) -> u64 {
    layouts.iter().map(|layout| layout.space_bytes).sum()
}

/// Bytes that making and filling them writes, mkfs left out.
pub fn filled_bytes(layouts: &[VolumeLayout]) -> u64 {
    layouts.iter().map(|layout| layout.filled_bytes).sum()
}

fn volume(
    plan: &StudyPlan,
    place: &Place,
    volume: &Volume,
    name: String,
    memory_bytes: &mut u64,
) -> Result<VolumeLayout, StudyError> {
    let cells: Vec<&Cell> = plan.cells.iter().filter(|cell| cell.volume == *volume).collect();
    let set_bytes = filled(&cells, volume);
    let each = set_bytes / u64::from(volume.count.max(1));
    let needed = if volume.kind == VolumeKind::Raw {
        each
    } else {
        (each + (each as f64 * OVERHEAD_SHARE) as u64 + OVERHEAD_BYTES).max(LEAST_BYTES)
    };
    let member_bytes = volume.bytes.unwrap_or(0).max(needed).next_multiple_of(MIB);
    let all_bytes = member_bytes * u64::from(volume.count);
    let store = match &volume.disk {
        Some(_) if all_bytes <= *memory_bytes => {
            *memory_bytes -= all_bytes;
            Store::Memory
        }
        _ => Store::File { dir: place.dir.clone() },
    };
    let numbers = if volume.kind == VolumeKind::Here { 0..0 } else { 0..volume.count };
    let members = numbers.map(|number| member(place, volume, &name, number, member_bytes, &store));
    let is_raw_disk = volume.disk.is_some() && volume.kind == VolumeKind::Raw;
    let takes_space = volume.kind != VolumeKind::Here && store != Store::Memory;
    Ok(VolumeLayout {
        volume: volume.clone(),
        member_bytes,
        // What was never written on an emulated disk is read at the same pace as what was.
        filled_bytes: if is_raw_disk { 0 } else { set_bytes },
        space_bytes: if takes_space { all_bytes } else { 0 },
        members: members.collect::<Result<_, _>>()?,
        name,
    })
}

/// Every set that stays is there at the same time; of those that are used up, the largest one.
fn filled(cells: &[&Cell], volume: &Volume) -> u64 {
    let shapes: BTreeSet<SetShape> =
        cells.iter().map(|cell| SetShape::of(&cell.workload)).collect();
    let sizes = |used_up: bool| {
        shapes.iter().filter(move |shape| shape.used_up == used_up).map(|shape| shape.size_bytes)
    };
    match volume.kind {
        VolumeKind::Raw => shapes.iter().map(|shape| shape.size_bytes).max().unwrap_or(0),
        _ => sizes(false).sum::<u64>() + sizes(true).max().unwrap_or(0),
    }
}

fn member(
    place: &Place,
    volume: &Volume,
    name: &str,
    number: u32,
    bytes: u64,
    store: &Store,
) -> Result<Member, StudyError> {
    let name = if volume.count == 1 { name.to_owned() } else { format!("{name}-{number}") };
    let mut served_at = None;
    let (device, mut changes) = match (&volume.disk, &place.device) {
        (Some(disk), _) => {
            let at = place.dir.join(format!("{name}.disk"));
            let made = emulated::changes(place, disk, &at, bytes, store)?;
            served_at = Some(at);
            made
        }
        (None, Some(path)) => {
            let overwrite = place.overwrite_device;
            (DeviceRef::Named { path: path.clone(), overwrite }, Vec::new())
        }
        (None, None) => over_file(place.dir.join(format!("{name}.img")), volume.kind, bytes),
    };
    let kind = match volume.kind {
        VolumeKind::Ext4 => FilesystemKind::Ext4,
        VolumeKind::Xfs => FilesystemKind::Xfs,
        VolumeKind::Btrfs => FilesystemKind::Btrfs,
        VolumeKind::Raw | VolumeKind::Here => {
            return Ok(Member { device, mount: None, served_at, changes });
        }
    };
    let mount = place.dir.join(&name);
    changes.extend(file_system(&device, kind, volume, &name, &mount));
    Ok(Member { device, mount: Some(mount), served_at, changes })
}

/// A loop device over a file.
fn over_file(backing: PathBuf, kind: VolumeKind, bytes: u64) -> (DeviceRef, Vec<Change>) {
    let prewrite = if kind == VolumeKind::Raw { Prewrite::All } else { Prewrite::None };
    let changes = vec![
        Change::BackingFile { path: backing.clone(), bytes, prewrite },
        Change::Loop { backing: backing.clone(), direct: true, block_bytes: None },
    ];
    (DeviceRef::Loop { backing }, changes)
}

fn file_system(
    device: &DeviceRef,
    kind: FilesystemKind,
    volume: &Volume,
    name: &str,
    mount: &Path,
) -> [Change; 2] {
    let label: String = format!("io_{name}").chars().take(12).collect();
    [
        Change::MakeFilesystem {
            device: device.clone(),
            kind,
            options: volume.mkfs_options.clone(),
            label: Some(label),
        },
        Change::Mount {
            device: device.clone(),
            at: mount.to_owned(),
            kind,
            options: volume.mount_options.clone(),
        },
    ]
}
