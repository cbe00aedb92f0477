//! Who answers a flush, and what can be known from here of what it then does.

use iostrata_run::host::{DeviceFacts, LayerKind};

use super::place;
use crate::case::Case;

/// What takes the flush of the lowest device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keeper<'c> {
    /// Memory of this machine.
    Memory(&'c str),
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
        Self::Drive
    }

    /// A word for the evidence.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Memory(_) => "memory",
            Self::Process => "process",
            Self::Hypervisor => "hypervisor",
            Self::Drive => "drive",
        }
    }

    pub(super) fn sentence(self) -> String {
        match self {
            Self::Memory(memory) => format!(
                "The data are in memory ({memory}), so that a flush has nothing to do: no commit \
                 survives a power cut."
            ),
            Self::Process => "A process in user space answers it: what it does with a flush \
                              cannot be seen from here."
                .to_owned(),
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
