//! Who answers a flush, and what can be known from here of what it then does.

use iostrata_plan::Layer;
use iostrata_run::host::{DeviceFacts, LayerKind};

use super::place;
use crate::between::{self, FileSystemBetween};
use crate::case::Case;

/// What takes the flush of the lowest device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Keeper<'c> {
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
    pub(super) fn of(case: &Case<'c, '_>) -> Self {
        if let Some(memory) = place::in_memory(case) {
            return Self::Memory(memory);
        }
        let path = &case.host.path;
        match FileSystemBetween::of(case.host) {
            None | Some(FileSystemBetween::Overlay(_)) => {}
            Some(between) => return Self::Between(between),
        }
        if path.file_system.as_deref() == Some("zfs") {
            return Self::Zfs;
        }
        if let Some(how) = between::remote_blocks(case.host) {
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
        let is_guest = case.host.machine.virtualisation.is_some();
        if is_guest || path.devices.last().is_some_and(attached) {
            return Self::Hypervisor;
        }
        match between::block_layers(case.host) {
            none if none.is_empty() => Self::Drive,
            layers => Self::Layers(layers),
        }
    }

    /// The layer that a dear flush is charged to.
    pub(super) fn layer(&self) -> Layer {
        match self {
            Self::Between(_) | Self::Zfs => Layer::Filesystem,
            Self::Layers(_) => Layer::Block,
            _ => Layer::Device,
        }
    }

    /// Who makes a flush dear, and what helps.
    pub(super) fn of_a_dear_flush(&self) -> String {
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
    pub(super) fn name(&self) -> &'static str {
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

    pub(super) fn sentence(&self) -> String {
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
                                 cache=unsafe ignores it). Ask whoever runs the host whether \
                                 commits survive a power cut; it cannot be measured from here."
                .to_owned(),
            Self::Drive => "No medium is written that fast: either the drive's cache is protected \
                            against a power cut, or its flush does nothing. The data sheet says \
                            which (power-loss protection)."
                .to_owned(),
        }
    }
}
