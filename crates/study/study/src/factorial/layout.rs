//! Which volumes a study needs, how large they are, and the changes that make them.
//!
//! Invariant: pure; the same plan and place give the same layout, so that what is shown beforehand
//! is what is done. Every volume has a name, and its backing files and mount points are named after
//! it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use iostrata_change::{
    BackingFile, Change, DeviceRef, FilesystemKind, Loop, MakeFilesystem, Mount, Prewrite,
};
use iostrata_plan::study::{Cell, StudyPlan, Volume, VolumeKind, database_bytes};
use iostrata_plan::{IoSpec, Preparation};
use iostrata_sim::emudisk::Store;

use super::{VolumePlace, emulated};
use crate::StudyError;

const MIB: u64 = 1 << 20;
/// Room of a file system besides its files: journal, tables, reserve.
const OVERHEAD_BYTES: u64 = 192 * MIB;
const OVERHEAD_SHARE: f64 = 0.08;
/// XFS wants 300 MiB.
const LEAST_BYTES: u64 = 320 * MIB;

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
    /// What the cells require.
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
    /// The volume as a sentence names it.
    pub(super) fn words(&self) -> String {
        let options = &self.volume.mount_options;
        if options.is_empty() {
            return format!("the volume {}", self.name);
        }
        format!("the volume {} mounted with {}", self.name, options.join(","))
    }

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
pub fn lay_out(plan: &StudyPlan, place: &VolumePlace) -> Result<Vec<VolumeLayout>, StudyError> {
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
    place: &VolumePlace,
    volume: &Volume,
    name: String,
    memory_bytes: &mut u64,
) -> Result<VolumeLayout, StudyError> {
    let cells: Vec<&Cell> = plan.cells.iter().filter(|cell| cell.volume == *volume).collect();
    let of_databases = database_bytes(cells.iter().copied());
    let set_bytes = filled(&cells, volume) + of_databases;
    // Files are spread over the members; a database has its data on one of them, and its redo on
    // that or another.
    let each = (set_bytes - of_databases) / u64::from(volume.count.max(1)) + of_databases;
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

/// Bytes of files. Every set that stays is there at the same time; of sets that are used up, only
/// the largest.
fn filled(cells: &[&Cell], volume: &Volume) -> u64 {
    let shapes: BTreeSet<SetShape> =
        cells.iter().flat_map(|cell| cell.on_files()).map(SetShape::of).collect();
    let sizes = |used_up: bool| {
        shapes.iter().filter(move |shape| shape.used_up == used_up).map(|shape| shape.size_bytes)
    };
    match volume.kind {
        VolumeKind::Raw => shapes.iter().map(|shape| shape.size_bytes).max().unwrap_or(0),
        _ => sizes(false).sum::<u64>() + sizes(true).max().unwrap_or(0),
    }
}

fn member(
    place: &VolumePlace,
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
        BackingFile { path: backing.clone(), bytes, prewrite }.into(),
        Loop { backing: backing.clone(), direct: true, block_bytes: None }.into(),
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
        MakeFilesystem {
            device: device.clone(),
            kind,
            options: volume.mkfs_options.clone(),
            label: Some(label),
        }
        .into(),
        Mount {
            device: device.clone(),
            at: mount.to_owned(),
            kind,
            options: volume.mount_options.clone(),
        }
        .into(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use iostrata_change::FuseServer;
    use iostrata_plan::study::{Extent, MeasuringOverrides, StudySpec};

    const GIB: u64 = 1 << 30;

    fn place(memory_bytes: u64) -> VolumePlace {
        VolumePlace {
            dir: "/study".into(),
            device: None,
            overwrite_device: false,
            program: "/bin/iostrata".into(),
            memory_bytes,
        }
    }

    fn layouts(factors: &str, memory_bytes: u64) -> Vec<VolumeLayout> {
        let text = format!("name='a'\ntitle='a'\n[base]\nsize='1G'\n[factors]\n{factors}");
        let spec = StudySpec::parse(&text, "a.toml").unwrap();
        let plan = spec.plan(Extent::Quick, None, &MeasuringOverrides::default()).unwrap();
        lay_out(&plan, &place(memory_bytes)).unwrap()
    }

    #[test]
    fn a_disk_is_a_server_with_a_loop_device_and_the_file_system_on_top() {
        let all = layouts("filesystem=['raw','xfs']\ndisk=['none','hdd-15k,queue=1']", 64 * GIB);
        let names: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["raw", "raw-hdd-15k", "xfs", "xfs-hdd-15k"]);
        let [Change::FuseServer(server), rest @ ..] = all[3].members[0].changes.as_slice() else {
            panic!("{:?}", all[3].members[0].changes)
        };
        let FuseServer { at, program, arguments, holds_journal } = server;
        assert_eq!((at, program), (&"/study/xfs-hdd-15k.disk".into(), &"/bin/iostrata".into()));
        assert!(!holds_journal, "a killed study leaves nothing that holds its journal");
        assert!(arguments.contains(&"hdd-15k,queue=1".to_owned()), "{arguments:?}");
        let backing = PathBuf::from("/study/xfs-hdd-15k.disk/disk");
        let Change::Loop(over) = &rest[0] else { panic!("{rest:?}") };
        assert!(over.direct && over.backing == backing);
        assert!(matches!(rest[1..], [Change::MakeFilesystem(_), Change::Mount(_)]));
        assert_eq!(all[3].devices(), [DeviceRef::Loop { backing }]);
        assert!(matches!(all[2].members[0].changes[0], Change::BackingFile(_)));
    }

    #[test]
    fn disks_in_memory_take_no_space_and_what_is_beyond_it_does() {
        let all = layouts("filesystem=['raw']\ndisk=['hdd-15k','nvme']\nrw=['randread']", GIB);
        let stores: Vec<bool> = all
            .iter()
            .map(|one| match &one.members[0].changes[0] {
                Change::FuseServer(server) => {
                    server.arguments.windows(2).any(|two| two == ["--store-dir", "/study"])
                }
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(stores, [false, true], "memory is given out once");
        assert_eq!((space_bytes(&all[..1]), space_bytes(&all)), (0, GIB));
        assert_eq!(filled_bytes(&all), 0, "a raw emulated disk need not be written first");
        assert_eq!(all[0].member_bytes, GIB);
    }

    #[test]
    fn equal_volumes_on_one_kind_of_disk_have_places_of_their_own() {
        let text =
            "filesystem=['ext4']\nvolumes=[1,2]\ndisk=['hdd-15k','hdd-15k,queue=1']\nfiles=[2]";
        let all = layouts(text, 64 * GIB);
        let places: Vec<&PathBuf> = all
            .iter()
            .flat_map(|one| &one.members)
            .filter_map(|one| one.served_at.as_ref())
            .collect();
        let different: BTreeSet<&&PathBuf> = places.iter().collect();
        assert_eq!((places.len(), different.len()), (6, 6), "{places:?}");
    }
}
