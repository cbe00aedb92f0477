//! What kind of block device a sysfs directory describes: by its attributes, then by its name.

use std::path::Path;

use iostrata_run::host::LayerKind;

use crate::host::Root;
use crate::host::sysfs::{is_partition, name_of};

/// What the device with this sysfs directory is.
pub(crate) fn layer_kind(root: &Root, dir: &Path) -> LayerKind {
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
