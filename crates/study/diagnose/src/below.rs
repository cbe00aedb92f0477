//! What stands between the files and the drive that keeps them: what passes requests on, what keeps
//! data in memory, and who answers a flush.
//!
//! Invariant: facts of the host alone. A file system that passes requests on to another one is a
//! layer of its own: what is slow behind it is first of all its doing, and no setting of a server
//! gives it back.

use iostrata_plan::Layer;
use iostrata_run::ProbeHost;
use iostrata_run::host::{DeviceFacts, LayerKind, NetworkKind, PathKind};

/// A file system that passes requests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileSystemBetween<'h> {
    /// A process in user space serves it.
    UserSpace(&'h str),
    /// Directories laid over each other; writes go to the upper one.
    Overlay(Option<&'h str>),
    /// Another machine, or the host of this virtual one, serves it.
    Network(&'static str),
}

impl<'h> FileSystemBetween<'h> {
    pub fn of(host: &'h ProbeHost) -> Option<Self> {
        let path = &host.path;
        let name = path.file_system.as_deref();
        let is_fuse = |name: &&str| ["fuse", "fuseblk"].contains(name) || name.starts_with("fuse.");
        match (&path.kind, name.filter(is_fuse)) {
            (_, Some(name)) => Some(Self::UserSpace(name)),
            (PathKind::Network { protocol: NetworkKind::Fuse }, _) => Some(Self::UserSpace("fuse")),
            (PathKind::Network { protocol }, _) => Some(Self::Network(protocol.words())),
            (PathKind::Overlay { upper, .. }, _) => Some(Self::Overlay(upper.as_deref())),
            _ => None,
        }
    }

    /// A word for the evidence.
    pub fn name(self) -> &'static str {
        match self {
            Self::UserSpace(_) => "user_space",
            Self::Overlay(_) => "overlay",
            Self::Network(_) => "network",
        }
    }

    /// What it is and what it does to a request, after the name of the directory.
    pub fn words(self) -> String {
        match self {
            Self::UserSpace(name) => {
                format!("is served by a process in user space ({name}): it handles every request")
            }
            Self::Overlay(upper) => format!(
                "is an overlay, the layers of a container: writes go to {}",
                upper.unwrap_or("an upper directory that cannot be seen from here")
            ),
            Self::Network(how) => {
                format!("is served {how}: the way there is part of every figure")
            }
        }
    }
}

/// A loop device that reads and writes its file through the page cache of this kernel.
pub(crate) fn buffered_loop(host: &ProbeHost) -> Option<&str> {
    let is_buffered =
        |kind: &LayerKind| matches!(kind, LayerKind::Loop { direct_io: Some(false), .. });
    let layers = &host.path.block_stack;
    layers.iter().find(|layer| is_buffered(&layer.kind)).map(|layer| layer.name.as_str())
}

/// Starts of names of devices whose blocks lie on other machines.
const REMOTE: [(&str, &str); 3] = [("rbd", "Ceph RBD"), ("nbd", "NBD"), ("drbd", "DRBD")];

/// How a device's blocks are reached, where they lie on another machine.
pub(crate) fn remote_blocks(host: &ProbeHost) -> Option<&'static str> {
    let numbered = |name: &str, start: &str| {
        let rest = name.strip_prefix(start);
        rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let path = &host.path;
    let by_name = path.block_stack.iter().find_map(|layer| {
        REMOTE.iter().find(|(start, _)| numbered(&layer.name, start)).map(|(_, words)| *words)
    });
    let is_iscsi = |device: &DeviceFacts| device.transport.as_deref() == Some("iscsi");
    by_name.or_else(|| path.devices.iter().any(is_iscsi).then_some("iSCSI"))
}

/// Makers and models of controllers that have memory of their own.
const CONTROLLERS: [&str; 8] =
    ["PERC", "MegaRAID", "LOGICAL VOLUME", "MR9", "ServeRAID", "Smart Array", "AVAGO", "LSI"];

/// What may keep more than the files that are read, below this kernel.
pub(crate) fn cache_below(host: &ProbeHost) -> Option<&'static str> {
    let path = &host.path;
    if path.file_system.as_deref() == Some("zfs") {
        return Some("the cache of ZFS (ARC)");
    }
    if let Some(FileSystemBetween::Network(_)) = FileSystemBetween::of(host) {
        return Some("memory of the machine that serves the files");
    }
    if remote_blocks(host).is_some() {
        return Some("memory of the machine that has the disks");
    }
    let named = |device: &DeviceFacts| {
        let words = [&device.vendor, &device.model].map(|word| word.as_deref().unwrap_or(""));
        CONTROLLERS.iter().any(|name| words.iter().any(|word| word.contains(name)))
    };
    if path.devices.iter().any(named) {
        return Some("memory of the RAID controller");
    }
    None
}

/// Whether the lowest device is one that the host of a virtual machine serves.
pub(crate) fn is_served_by_host(host: &ProbeHost) -> bool {
    let lowest = host.path.devices.last().and_then(|device| device.transport.as_deref());
    lowest == Some("virtio")
}

/// Layers of blocks between the file system and the drives that do more than pass requests on.
pub(crate) fn block_layers(host: &ProbeHost) -> Vec<String> {
    let words = |kind: &LayerKind| match kind {
        LayerKind::Crypt { .. } => Some("dm-crypt".to_owned()),
        LayerKind::Md { level, .. } => Some(format!("md {}", level.as_deref().unwrap_or("array"))),
        LayerKind::Bcache => Some("bcache".to_owned()),
        LayerKind::DeviceMapper { .. } => Some("a mapped device".to_owned()),
        _ => None,
    };
    let layers = &host.path.block_stack;
    let thin = thin_volume(host).map(|_| "a thin volume".to_owned());
    let mut all: Vec<String> =
        layers.iter().filter_map(|layer| words(&layer.kind)).chain(thin).collect();
    all.dedup();
    all
}

/// The pool behind a thin volume of LVM: what is written for the first time takes room in it.
pub(crate) fn thin_volume(host: &ProbeHost) -> Option<&str> {
    let name = |kind: &'_ LayerKind| matches!(kind, LayerKind::Lvm { name: Some(name) } if name.ends_with("-tpool"));
    let pool = host.path.block_stack.iter().find(|layer| name(&layer.kind))?;
    Some(&pool.name)
}

/// What keeps the data in memory, where something does: the file system itself, or the lowest
/// device.
pub(crate) fn in_memory(host: &ProbeHost) -> Option<&str> {
    let path = &host.path;
    if path.kind == PathKind::Tmpfs {
        return path.file_system.as_deref().or(Some("memory"));
    }
    path.block_stack.iter().filter(|layer| layer.below.is_empty()).find_map(|layer| {
        let is_ram_disk = layer
            .name
            .strip_prefix("ram")
            .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()));
        match &layer.kind {
            LayerKind::Zram => Some(layer.name.as_str()),
            LayerKind::Loop { backing_file_system: Some(file_system), .. } => {
                ["tmpfs", "ramfs"].contains(&file_system.as_str()).then_some(file_system.as_str())
            }
            _ => is_ram_disk.then_some(layer.name.as_str()),
        }
    })
}

/// The file system, where a process in user space serves it.
pub(crate) fn served_by_process(host: &ProbeHost) -> Option<&str> {
    match FileSystemBetween::of(host) {
        Some(FileSystemBetween::UserSpace(name)) => Some(name),
        _ => None,
    }
}

/// What takes the flush of the lowest device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Keeper<'c> {
    /// Memory of this machine.
    Memory(&'c str),
    /// A file system that passes requests on.
    Between(FileSystemBetween<'c>),
    /// ZFS, which writes to its intent log first.
    Zfs,
    /// Another machine that has the blocks.
    Remote(&'static str),
    /// Layers of blocks above the drives.
    Layers(Vec<String>),
    /// A process in user space, behind a loop device.
    Process,
    /// The host of this virtual machine.
    Hypervisor,
    /// A drive.
    Drive,
}

/// Ways in which only a virtual machine's disks are attached.
const VIRTUAL: [&str; 3] = ["virtio", "xen", "hyperv"];

impl<'c> Keeper<'c> {
    pub fn of(host: &'c ProbeHost) -> Self {
        if let Some(memory) = in_memory(host) {
            return Self::Memory(memory);
        }
        let path = &host.path;
        match FileSystemBetween::of(host) {
            None | Some(FileSystemBetween::Overlay(_)) => {}
            Some(between) => return Self::Between(between),
        }
        if path.file_system.as_deref() == Some("zfs") {
            return Self::Zfs;
        }
        if let Some(how) = remote_blocks(host) {
            return Self::Remote(how);
        }
        let is_process = |kind: &LayerKind| match kind {
            LayerKind::Loop { backing_file_system: Some(name), .. } => name.starts_with("fuse"),
            _ => false,
        };
        let mut bottoms = path.block_stack.iter().filter(|layer| layer.below.is_empty());
        if bottoms.any(|layer| is_process(&layer.kind)) {
            return Self::Process;
        }
        let attached = |device: &DeviceFacts| {
            device.transport.as_deref().is_some_and(|how| VIRTUAL.contains(&how))
        };
        let is_guest = host.machine.virtualisation.is_some();
        if is_guest || path.devices.last().is_some_and(attached) {
            return Self::Hypervisor;
        }
        match block_layers(host) {
            none if none.is_empty() => Self::Drive,
            layers => Self::Layers(layers),
        }
    }

    /// The layer that a dear flush is charged to.
    pub fn layer(&self) -> Layer {
        match self {
            Self::Between(_) | Self::Zfs => Layer::Filesystem,
            Self::Layers(_) => Layer::Block,
            _ => Layer::Device,
        }
    }

    /// Who makes a flush dear, and what helps.
    pub fn of_a_dear_flush(&self) -> String {
        let who = match self {
            Self::Memory(_) | Self::Process | Self::Drive => {
                return "A drive with power-loss protection flushes in well under 100 us; until \
                        then only more transactions per flush help."
                    .to_owned();
            }
            Self::Between(between) => format!("The directory {}", between.words()),
            Self::Zfs => "ZFS writes every sync to its intent log: a log device (SLOG) of its own \
                          shortens it"
                .to_owned(),
            Self::Remote(how) => format!("The flush is a trip to another machine ({how})"),
            Self::Layers(layers) => {
                format!("It passes {} and waits for the slowest drive below", layers.join(", "))
            }
            Self::Hypervisor => "The virtual machine's host answers the flush: another class of \
                                 volume, or another cache mode of the host, changes it"
                .to_owned(),
        };
        format!("{who}. From here only more transactions per flush help.")
    }

    /// A word for the evidence.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Memory(_) => "memory",
            Self::Between(between) => between.name(),
            Self::Zfs => "zfs",
            Self::Remote(_) => "remote",
            Self::Layers(_) => "layers",
            Self::Process => "process",
            Self::Hypervisor => "hypervisor",
            Self::Drive => "drive",
        }
    }

    pub fn sentence(&self) -> String {
        match self {
            Self::Memory(memory) => format!(
                "The data are in memory ({memory}), so that a flush has nothing to do: no commit \
                 survives a power cut."
            ),
            Self::Process => "A process in user space answers it: what it does with a flush \
                              cannot be seen from here."
                .to_owned(),
            Self::Between(between) => format!(
                "The directory {}; what it does with a flush cannot be seen from here.",
                between.words()
            ),
            Self::Zfs => {
                "ZFS answers it: with sync=disabled commits do not survive a power cut.".to_owned()
            }
            Self::Remote(how) => format!(
                "Another machine answers it ({how}): whether commits survive a power cut there \
                 cannot be seen from here."
            ),
            Self::Layers(layers) => format!(
                "It passes {}: either the caches of the drives below are protected against a power \
                 cut, or the flush does nothing.",
                layers.join(", ")
            ),
            Self::Hypervisor => "This is a virtual disk: its host decides what a flush does. It \
                                 may reach a protected cache, or only the host's memory (QEMU's \
                                 cache=unsafe ignores it). Ask the host's administrator whether \
                                 commits survive a power cut; it cannot be measured from here."
                .to_owned(),
            Self::Drive => "No medium is written that fast: either the drive's cache is protected \
                            against a power cut, or its flush does nothing. The data sheet says \
                            which (power-loss protection)."
                .to_owned(),
        }
    }
}
