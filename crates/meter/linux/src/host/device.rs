//! Block devices in sysfs: found by number, name or device file, their facts, and the walk down
//! from a file system's devices to the disks.
//!
//! Invariant: a device is spoken of by its canonical directory below `/sys`; nothing is opened but
//! attribute files. The walk goes breadth first, so that layers come from the top down, each once,
//! and is bounded in depth and number: sysfs of a broken or hostile container may hold loops.

use std::collections::{BTreeSet, VecDeque};
use std::path::{Path, PathBuf};

use iostrata_run::host::{BlockLayer, DeviceFacts, DeviceNumber, LayerKind, PcieLink};

use crate::host::Root;

/// Facts of the device with this kernel name; only the name when sysfs does not have it.
pub fn device_facts(root: &Root, name: &str) -> DeviceFacts {
    match dir_of_name(root, name) {
        Some(dir) => facts_of_dir(root, &dir),
        None => DeviceFacts::named(name),
    }
}

/// Facts of the device with this sysfs directory.
pub(crate) fn facts_of_dir(root: &Root, dir: &Path) -> DeviceFacts {
    let mut facts = DeviceFacts {
        device_number: number_of(root, dir),
        vendor: root.word(dir.join("device/vendor")).filter(|vendor| !vendor.starts_with("0x")),
        model: root.word(dir.join("device/model")),
        transport: transport(dir),
        size_bytes: root.number::<u64>(dir.join("size")).map(|sectors| sectors.saturating_mul(512)),
        removable: root.flag(dir.join("removable")),
        read_only: root.flag(dir.join("ro")),
        queues: Some(root.names(dir.join("mq")).len() as u32).filter(|queues| *queues > 0),
        numa_node: above(dir, |above| root.number::<i64>(above.join("numa_node")))
            .and_then(|node| u32::try_from(node).ok()),
        pcie_link: above(dir, |above| pcie_link(root, above)),
        ..DeviceFacts::named(&name_of(dir))
    };
    add_limits(root, &dir.join("queue"), &mut facts);
    add_settings(root, &dir.join("queue"), &mut facts);
    facts
}

/// What the device can do.
fn add_limits(root: &Root, queue: &Path, facts: &mut DeviceFacts) {
    let number = |name: &str| root.number::<u64>(queue.join(name));
    facts.logical_block_bytes = number("logical_block_size");
    facts.physical_block_bytes = number("physical_block_size");
    facts.io_bytes_min = number("minimum_io_size");
    facts.io_bytes_optimal = number("optimal_io_size").filter(|bytes| *bytes > 0);
    facts.rotational_flag = root.flag(queue.join("rotational"));
    facts.request_kib_max_hardware = number("max_hw_sectors_kb");
    facts.dax = root.flag(queue.join("dax"));
    facts.discard_granularity_bytes = number("discard_granularity");
    facts.discard_bytes_max = number("discard_max_bytes");
    facts.atomic_write_bytes_min = number("atomic_write_unit_min_bytes");
    facts.atomic_write_bytes_max = number("atomic_write_unit_max_bytes");
    facts.zoned = root.word(queue.join("zoned"));
    facts.fua = root.flag(queue.join("fua"));
}

/// How the device is set.
fn add_settings(root: &Root, queue: &Path, facts: &mut DeviceFacts) {
    let number = |name: &str| root.number::<u64>(queue.join(name));
    facts.write_cache = root.word(queue.join("write_cache"));
    let (used, available) = schedulers(&root.text(queue.join("scheduler")).unwrap_or_default());
    facts.scheduler = used;
    facts.schedulers_available = available;
    facts.nr_requests = number("nr_requests");
    facts.read_ahead_kib = number("read_ahead_kb");
    facts.nomerges = number("nomerges");
    facts.rq_affinity = number("rq_affinity");
    facts.wbt_latency_us = number("wbt_lat_usec");
    facts.request_kib_max = number("max_sectors_kb");
    facts.io_poll = root.flag(queue.join("io_poll"));
    facts.add_random = root.flag(queue.join("add_random"));
    facts.iostats = root.flag(queue.join("iostats"));
}

/// The scheduler in brackets, and all that are listed. A lone name without brackets is in use.
fn schedulers(text: &str) -> (Option<String>, Vec<String>) {
    let mut used = None;
    let mut available = Vec::new();
    for word in text.split_whitespace() {
        let name = word.trim_start_matches('[').trim_end_matches(']');
        if name.len() < word.len() {
            used = Some(name.to_owned());
        }
        available.push(name.to_owned());
    }
    if let (None, [only]) = (&used, available.as_slice()) {
        used = Some(only.clone());
    }
    (used, available)
}

/// How the device is attached, by the buses on the way to it: directories such as `usb2`. The more
/// specific come first, because a USB disk is a SCSI disk as well.
fn transport(dir: &Path) -> Option<String> {
    const BUSES: [(&str, &str); 9] = [
        ("nvme", "nvme"),
        ("session", "iscsi"),
        ("usb", "usb"),
        ("virtio", "virtio"),
        ("ata", "ata"),
        ("mmc", "mmc"),
        ("vbd", "xen"),
        ("VMBUS", "hyperv"),
        ("target", "scsi"),
    ];
    let way: Vec<_> = dir.parent()?.iter().map(|part| part.to_string_lossy()).collect();
    let passes = |bus: &str| {
        let is_bus = |rest: &str| rest.starts_with(|c: char| !c.is_alphabetic());
        way.iter().any(|part| part.strip_prefix(bus).is_some_and(is_bus))
    };
    let found = BUSES.iter().find(|(bus, _)| passes(bus)).map(|(_, name)| *name);
    let made = || way.iter().any(|part| part == "virtual").then_some("virtual");
    found.or_else(made).map(str::to_owned)
}

fn pcie_link(root: &Root, dir: &Path) -> Option<PcieLink> {
    let link = PcieLink {
        speed: root.word(dir.join("current_link_speed")),
        speed_max: root.word(dir.join("max_link_speed")),
        width: root.number(dir.join("current_link_width")),
        width_max: root.number(dir.join("max_link_width")),
    };
    link.speed.is_some().then_some(link)
}

/// The first answer from the device's directory upwards, within `/sys/devices`.
fn above<T>(dir: &Path, ask: impl Fn(&Path) -> Option<T>) -> Option<T> {
    dir.ancestors().take_while(|above| above.starts_with("/sys/devices")).find_map(ask)
}

/// The directory of the device with this number.
pub(crate) fn dir_of_number(root: &Root, number: DeviceNumber) -> Option<PathBuf> {
    root.resolved(format!("/sys/dev/block/{number}"))
}

/// The directory of the device with this kernel name.
pub(crate) fn dir_of_name(root: &Root, name: &str) -> Option<PathBuf> {
    // The kernel writes a slash in a name as an exclamation mark.
    let name = name.replace('/', "!");
    if name.is_empty() || name.starts_with('.') {
        return None;
    }
    root.resolved(format!("/sys/class/block/{name}"))
        .or_else(|| root.resolved(format!("/sys/block/{name}")))
}

/// The directory of the device that a device file such as `/dev/mapper/vg-data` stands for.
pub(crate) fn dir_of_source(root: &Root, source: &str) -> Option<PathBuf> {
    let below_dev = source.strip_prefix("/dev/")?;
    if let Some(dir) = dir_of_name(root, below_dev) {
        return Some(dir);
    }
    if let Some(target) = root.resolved(source).as_deref().and_then(Path::to_str)
        && let Some(dir) = target.strip_prefix("/dev/").and_then(|name| dir_of_name(root, name))
    {
        return Some(dir);
    }
    // A container's /dev lacks the links, so the name is read from the mapper.
    let mapped = below_dev.strip_prefix("mapper/")?;
    let name = root
        .names("/sys/block")
        .into_iter()
        .find(|name| root.word(format!("/sys/block/{name}/dm/name")).as_deref() == Some(mapped))?;
    dir_of_name(root, &name)
}

/// The kernel name of the device with this directory.
pub(crate) fn name_of(dir: &Path) -> String {
    dir.file_name().map(|name| name.to_string_lossy().replace('!', "/")).unwrap_or_default()
}

/// The number of the device with this directory.
pub(crate) fn number_of(root: &Root, dir: &Path) -> Option<DeviceNumber> {
    root.word(dir.join("dev"))?.parse().ok()
}

/// Whether the device is part of a disk, and so has no queue of its own.
pub(crate) fn is_partition(root: &Root, dir: &Path) -> bool {
    root.exists(dir.join("partition"))
}

/// Every member of the btrfs file system that the device belongs to, itself included.
pub(crate) fn btrfs_members(root: &Root, device: &str) -> Vec<String> {
    for file_system in root.names("/sys/fs/btrfs") {
        let members = root.names(format!("/sys/fs/btrfs/{file_system}/devices"));
        if members.iter().any(|member| member == device) {
            return members;
        }
    }
    Vec::new()
}

/// Deepest layer; real stacks have five or six.
const DEPTH_MAX: u32 = 16;
/// Most layers; an array of 100 disks with partitions fits.
const LAYERS_MAX: usize = 512;

/// The layers below some devices, and the sysfs directory of each.
#[derive(Debug, Default)]
pub(crate) struct Stack {
    /// From the top down.
    pub(crate) layers: Vec<BlockLayer>,
    /// Directory of the layer with the same index.
    pub(crate) dirs: Vec<PathBuf>,
}

impl Stack {
    /// Walks down from the devices with these directories.
    pub(crate) fn below(root: &Root, tops: impl IntoIterator<Item = PathBuf>) -> Self {
        let mut stack = Self::default();
        let mut seen = BTreeSet::new();
        let mut waiting: VecDeque<(PathBuf, u32)> = tops.into_iter().map(|dir| (dir, 0)).collect();
        while let Some((dir, depth)) = waiting.pop_front() {
            if depth > DEPTH_MAX || stack.layers.len() >= LAYERS_MAX || !seen.insert(dir.clone()) {
                continue;
            }
            let kind = layer_kind(root, &dir);
            let below = directly_below(root, &dir, &kind);
            waiting.extend(below.iter().map(|dir| (dir.clone(), depth + 1)));
            stack.layers.push(BlockLayer {
                name: name_of(&dir),
                device_number: number_of(root, &dir),
                kind,
                depth,
                below: below.iter().map(|dir| name_of(dir)).collect(),
                size_bytes: root
                    .number::<u64>(dir.join("size"))
                    .map(|sectors| sectors.saturating_mul(512)),
                alignment_offset_bytes: root.number(dir.join("alignment_offset")),
            });
            stack.dirs.push(dir);
        }
        stack
    }

    /// Puts another stack below one of this stack's layers.
    pub(crate) fn append_below(&mut self, at: usize, lower: Stack) {
        let Some(above) = self.layers.get_mut(at) else { return };
        let depth = above.depth + 1;
        let tops = lower.layers.iter().filter(|layer| layer.depth == 0);
        above.below.extend(tops.map(|layer| layer.name.clone()));
        for (layer, dir) in lower.layers.into_iter().zip(lower.dirs) {
            if !self.dirs.contains(&dir) && self.layers.len() < LAYERS_MAX {
                self.layers.push(BlockLayer { depth: depth.saturating_add(layer.depth), ..layer });
                self.dirs.push(dir);
            }
        }
    }
}

/// Directories of the devices that a device is made of.
fn directly_below(root: &Root, dir: &std::path::Path, kind: &LayerKind) -> Vec<PathBuf> {
    if let LayerKind::Partition { .. } = kind {
        return dir.parent().map(|disk| vec![disk.to_owned()]).unwrap_or_default();
    }
    root.names(dir.join("slaves")).iter().filter_map(|name| dir_of_name(root, name)).collect()
}

/// What the device with this sysfs directory is.
fn layer_kind(root: &Root, dir: &Path) -> LayerKind {
    let name = name_of(dir);
    if is_partition(root, dir) {
        let start = root.number::<u64>(dir.join("start"));
        LayerKind::Partition {
            number: root.number(dir.join("partition")),
            start_bytes: start.map(|sectors| sectors.saturating_mul(512)),
        }
    } else if root.exists(dir.join("dm")) {
        mapper_kind(root, dir)
    } else if root.exists(dir.join("md")) {
        LayerKind::Md {
            level: root.word(dir.join("md/level")),
            disks: root.number(dir.join("md/raid_disks")),
            chunk_bytes: root.number(dir.join("md/chunk_size")).filter(|bytes| *bytes > 0),
        }
    } else if name.starts_with("loop") {
        LayerKind::Loop {
            backing_file: root.word(dir.join("loop/backing_file")),
            direct_io: root.flag(dir.join("loop/dio")),
            offset_bytes: root.number(dir.join("loop/offset")),
            backing_file_system: None,
            backing_block_bytes: None,
        }
    } else if name.starts_with("bcache") {
        LayerKind::Bcache
    } else if name.starts_with("zram") {
        LayerKind::Zram
    } else {
        LayerKind::Disk
    }
}

/// Tools that make mapped devices put their own name before the device's identifier.
fn mapper_kind(root: &Root, dir: &Path) -> LayerKind {
    let name = root.word(dir.join("dm/name"));
    let identifier = root.word(dir.join("dm/uuid")).unwrap_or_default();
    if identifier.starts_with("LVM-") {
        LayerKind::Lvm { name }
    } else if identifier.starts_with("CRYPT-") {
        LayerKind::Crypt { name }
    } else if identifier.starts_with("mpath-") {
        LayerKind::Multipath { name }
    } else {
        LayerKind::DeviceMapper { name }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedulers_with_and_without_brackets() {
        let (used, available) = schedulers("none [mq-deadline] kyber bfq \n");
        assert_eq!(used.as_deref(), Some("mq-deadline"));
        assert_eq!(available, ["none", "mq-deadline", "kyber", "bfq"]);
        assert_eq!(schedulers("none\n").0.as_deref(), Some("none"));
        assert_eq!(schedulers(""), (None, Vec::new()));
    }

    #[test]
    fn transports_by_the_way_to_the_device() {
        let found = |way: &str| transport(Path::new(way));
        let is = |way: &str, name: &str| assert_eq!(found(way).as_deref(), Some(name), "{way}");
        is("/sys/devices/pci0000:00/0000:00:02.0/virtio1/block/vda", "virtio");
        is("/sys/devices/pci0000:00/0000:01:00.0/nvme/nvme0/nvme0n1", "nvme");
        is("/sys/devices/virtual/nvme-subsystem/nvme-subsys0/nvme0n1", "nvme");
        is("/sys/devices/pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0/block/sda", "ata");
        is("/sys/devices/pci0000:00/0000:03:00.0/host0/target0:2:0/0:2:0:0/block/sda", "scsi");
        is("/sys/devices/platform/host3/session1/target3:0:0/3:0:0:0/block/sdb", "iscsi");
        is(
            "/sys/devices/pci0000:00/0000:00:14.0/usb2/2-1/2-1:1.0/host6/target6:0:0/6:0:0:0/block/sdc",
            "usb",
        );
        is("/sys/devices/vbd-51712/block/xvda", "xen");
        is("/sys/devices/virtual/block/loop0", "virtual");
        assert_eq!(found("/sys/block/sda"), None);
    }
}
