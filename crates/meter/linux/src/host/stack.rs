//! The walk down from a file system's devices to the disks.
//!
//! Breadth first, so that the layers come from the top down, each once. Bounded in depth and
//! number: sysfs of a broken or hostile container may hold loops.

use std::collections::{BTreeSet, VecDeque};
use std::path::{Path, PathBuf};

use iostrata_run::host::{BlockLayer, LayerKind};

use crate::host::Root;
use crate::host::sysfs::{dir_of_name, is_partition, name_of, number_of};

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
