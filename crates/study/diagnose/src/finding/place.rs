//! Facts of the place: what is mounted there and what the device promises.

use iostrata_run::Finding;
use iostrata_run::host::{LayerKind, NetworkKind, PathKind};
use iostrata_spec::Layer;
use iostrata_units::bytes;

use super::FindingId;
use super::statement::{WithEvidence, caution, sizing};
use crate::case::Case;

/// Options that stop a file system from flushing the device.
const NO_BARRIER: [&str; 2] = ["nobarrier", "barrier=0"];
/// Pages of the database.
const PAGE_BYTES: u64 = 16 << 10;

pub(super) fn barriers_off(case: &Case<'_, '_>) -> Option<Finding> {
    let options = &case.host.path.mount_options;
    let option = options.iter().find(|option| NO_BARRIER.contains(&option.as_str()))?;
    let text = format!(
        "The file system is mounted with {option}: it never flushes the device, and a power cut may \
         lose commits that were acknowledged or leave the file system damaged."
    );
    let found = caution(FindingId::BarriersOff, Layer::Filesystem, 0, text);
    Some(found.with("mount_option", option.as_str()))
}

/// What keeps the data in memory, where something does: the file system itself, or the lowest
/// device.
pub(crate) fn in_memory<'c>(case: &Case<'c, '_>) -> Option<&'c str> {
    let path = &case.host.path;
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
pub(crate) fn served_by_process<'c>(case: &Case<'c, '_>) -> Option<&'c str> {
    let path = &case.host.path;
    let is_fuse = |name: &&str| *name == "fuse" || *name == "fuseblk" || name.starts_with("fuse.");
    let by_kind = path.kind == PathKind::Network { protocol: NetworkKind::Fuse };
    path.file_system.as_deref().filter(is_fuse).or(by_kind.then_some("fuse"))
}

pub(super) fn not_a_local_disk(case: &Case<'_, '_>) -> Option<Finding> {
    let path = &case.host.path;
    let what = if let Some(memory) = in_memory(case) {
        format!(
            "lies in memory ({memory}): nothing here survives a power cut, and no disk was measured"
        )
    } else if let Some(file_system) = served_by_process(case) {
        format!(
            "is served by a process in user space ({file_system}): that process is part of every \
             figure, and what lies behind it cannot be seen from here"
        )
    } else if let PathKind::Network { .. } = &path.kind {
        "is served from elsewhere: what lies behind it cannot be seen from here, and the network \
         is part of every figure"
            .to_owned()
    } else {
        return None;
    };
    let text = format!("{} {what}.", path.path);
    let found = caution(FindingId::NotALocalDisk, Layer::Host, 0, text);
    Some(found.with_some("file_system", path.file_system.clone()))
}

pub(super) fn atomic_writes_promised(case: &Case<'_, '_>) -> Option<Finding> {
    let devices = &case.host.path.devices;
    let least = devices.iter().map(|device| device.atomic_write_bytes_max.unwrap_or(0)).min()?;
    if least < PAGE_BYTES {
        return None;
    }
    let text = format!(
        "Every device below promises that writes of up to {} are never torn. Only a server that \
         asks for such writes may do without its doublewrite.",
        bytes(least as f64)
    );
    let found = sizing(FindingId::AtomicWritesPromised, Layer::Device, 0, text);
    Some(found.with("atomic_write_bytes_max", least))
}
