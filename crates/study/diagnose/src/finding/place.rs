//! Facts of the place: what is mounted there and what the device promises.

use iostrata_run::Finding;
use iostrata_run::host::PathKind;
use iostrata_spec::Layer;
use iostrata_units::bytes;

use super::statement::{WithEvidence, caution, sizing};
use super::{Case, FindingId};

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

pub(super) fn not_a_local_disk(case: &Case<'_, '_>) -> Option<Finding> {
    let what = match &case.host.path.kind {
        PathKind::Tmpfs => {
            "lies in memory: nothing here survives a power cut, and no device was \
                            measured"
        }
        PathKind::Network { .. } => {
            "is served from elsewhere: what lies behind it cannot be seen \
                                     from here, and the network is part of every figure"
        }
        _ => return None,
    };
    let path = &case.host.path;
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
