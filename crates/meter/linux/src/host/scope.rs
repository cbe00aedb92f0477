//! What to observe for a path: its devices, the limits on them, what a flush may cost there.

use std::collections::BTreeSet;

use iostrata_run::host::{BlockLayer, LayerKind, PathFacts};

use crate::host::Root;
use crate::host::cgroup::{Cgroup, FoundLimit, SELF, group_v1, group_v2, limits_on, quota_group};
use crate::host::judge::FlushCost;

/// The part of the host that a measured path depends on.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// Devices that the file system's requests arrive at: one, or several for btrfs.
    pub(crate) tops: Vec<String>,
    /// Devices with nothing known below them.
    pub(crate) bottoms: Vec<String>,
    /// All devices with a queue, from the top down.
    pub(crate) devices: Vec<String>,
    /// How often a byte written at the top is written at the bottom, where that is known.
    pub(crate) copies: Option<f64>,
    pub(crate) flush_cost: FlushCost,
    pub(crate) limits: Vec<FoundLimit>,
    pub(crate) cpu_group: Option<Cgroup>,
    /// Devices whose counters the kernel was told not to keep.
    pub(crate) uncounted: Vec<String>,
}

impl Scope {
    /// Everything that the path described by `facts` depends on.
    pub fn of(root: &Root, facts: &PathFacts) -> Self {
        let mounts = crate::host::mounts(root);
        let tops = tops(&facts.block_stack);
        // The top group has the file but no quota to count.
        let counts = |group: &Cgroup| {
            let text = root.text(group.dir().join("cpu.stat"));
            text.is_some_and(|text| text.contains("nr_periods"))
        };
        Self {
            copies: copies(&facts.block_stack, tops.len()),
            tops,
            bottoms: facts
                .block_stack
                .iter()
                .filter(|layer| layer.below.is_empty())
                .map(|layer| layer.name.clone())
                .collect(),
            devices: facts.devices.iter().map(|device| device.name.clone()).collect(),
            flush_cost: FlushCost::of(facts),
            limits: limits_on(root, &mounts, &facts.block_stack, SELF),
            cpu_group: quota_group(root, &mounts, SELF)
                .or_else(|| group_v2(root, &mounts, SELF))
                .filter(counts)
                .or_else(|| group_v1(root, &mounts, "cpu", SELF).filter(counts)),
            uncounted: facts
                .devices
                .iter()
                .filter(|device| device.iostats == Some(false))
                .map(|device| device.name.clone())
                .collect(),
        }
    }

    /// Adds another path's scope: a workload that is spread over several volumes is observed on all
    /// of them. The flush cost is the larger one; copies are known only if they are the same.
    pub fn join(&mut self, other: Self) {
        if self.devices.is_empty() && self.tops.is_empty() {
            *self = other;
            return;
        }
        let add = |to: &mut Vec<String>, from: Vec<String>| {
            from.into_iter().for_each(|name| {
                if !to.contains(&name) {
                    to.push(name);
                }
            });
        };
        add(&mut self.tops, other.tops);
        add(&mut self.bottoms, other.bottoms);
        add(&mut self.devices, other.devices);
        add(&mut self.uncounted, other.uncounted);
        self.copies = self.copies.filter(|copies| other.copies == Some(*copies));
        if other.flush_cost.bytes > self.flush_cost.bytes {
            self.flush_cost = other.flush_cost;
        }
        self.limits.extend(other.limits);
        self.cpu_group = self.cpu_group.take().or(other.cpu_group);
    }

    /// A name for the devices that requests arrive at.
    pub(crate) fn top_name(&self) -> Option<String> {
        (!self.tops.is_empty()).then(|| self.tops.join("+"))
    }
}

/// The uppermost devices that have a queue; a partition stands for its disk, because what happens
/// on the disk's other partitions disturbs as well.
fn tops(layers: &[BlockLayer]) -> Vec<String> {
    let mut tops = Vec::new();
    for layer in layers.iter().filter(|layer| layer.depth == 0) {
        let name = match (&layer.kind, layer.below.first()) {
            (LayerKind::Partition { .. }, Some(disk)) => disk,
            _ => &layer.name,
        };
        if !tops.contains(name) {
            tops.push(name.clone());
        }
    }
    tops
}

/// Writes at the bottom per write at the top. RAID with parity, sub-volumes of LVM, caches and
/// loop devices write more or less than that, so that nothing is claimed for them.
fn copies(layers: &[BlockLayer], tops: usize) -> Option<f64> {
    let mapped: BTreeSet<&str> = layers
        .iter()
        .filter(|layer| matches!(layer.kind, LayerKind::Lvm { .. }))
        .map(|layer| layer.name.as_str())
        .collect();
    let mut copies = 1.0;
    for layer in layers {
        copies *= match &layer.kind {
            LayerKind::Md { level, disks, .. } => match (level.as_deref(), disks) {
                (Some("raid0" | "linear"), _) => 1.0,
                (Some("raid1"), Some(disks)) => f64::from(*disks),
                _ => return None,
            },
            LayerKind::Lvm { .. }
                if layer.below.iter().any(|name| mapped.contains(name.as_str())) =>
            {
                return None;
            }
            LayerKind::Loop { .. } | LayerKind::Bcache | LayerKind::DeviceMapper { .. } => {
                return None;
            }
            _ => 1.0,
        };
    }
    (tops == 1).then_some(copies)
}
