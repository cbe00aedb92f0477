//! Settings of the host that were found to stand in the way: quotas, queues, write-back, where a
//! volume begins.

use iostrata_run::host::CgroupVersion;
use iostrata_run::{Advice, ProbeHost};

use super::{Found, SettingPlace, line};
use crate::finding::FindingId;

/// A queue of fewer requests than this was set by hand: no driver of a fast device starts so low.
const QUEUE_BY_HAND_MAX: f64 = 16.0;
/// A usual queue; the driver caps it at what it has.
const QUEUE_USUAL: &str = "256";
/// Attachments that really take only a few requests at a time.
const FEW_AT_A_TIME: [&str; 2] = ["usb", "mmc"];

/// Raising a processor quota that ran out.
pub(super) fn cpu_quota(found: &Found<'_>, host: &ProbeHost) -> Option<Advice> {
    let id = FindingId::CpuQuota;
    found.get(id)?;
    let cgroup = &host.machine.cgroup;
    let group = cgroup.cpu_quota_group.as_deref()?;
    let cpus = cgroup.cpu_quota_cpus?;
    let (file, value) = match cgroup.cpu_quota_version? {
        CgroupVersion::V1 => ("cpu.cfs_quota_us", "-1"),
        CgroupVersion::V2 => ("cpu.max", "max"),
    };
    let text = format!(
        "The group may use {cpus:.2} processors and runs out of them while the storage waits. \
         Raise the quota, or lift it if it is not meant to be there."
    );
    let undo = format!("set it to {cpus:.2} processors again");
    Some(line(&format!("{file} of {group}"), value, SettingPlace::ControlGroup, &[id], text, &undo))
}

/// A longer queue, where the one in use is too short for anything.
pub(super) fn nr_requests(found: &Found<'_>, host: &ProbeHost) -> Option<Advice> {
    let id = FindingId::SmallQueue;
    let size = found.number(id, "queue_requests")?;
    let name = found.word(id, "device")?;
    let device = host.path.devices.iter().find(|device| device.name == name)?;
    let few = device.transport.as_deref().is_some_and(|how| FEW_AT_A_TIME.contains(&how));
    if size >= QUEUE_BY_HAND_MAX || few {
        return None;
    }
    let text = format!(
        "The queue holds {size} requests and more are waiting. Read it back after writing it: the \
         kernel caps it at what the driver has room for."
    );
    let undo = format!("write {size} to it again");
    let setting = format!("nr_requests of {name}");
    Some(line(&setting, QUEUE_USUAL, SettingPlace::Sysfs, &[id], text, &undo))
}

/// The kernel's own share of memory for dirty pages again.
pub(super) fn dirty_limit(found: &Found<'_>) -> Option<Advice> {
    let id = FindingId::SmallDirtyLimit;
    let (setting, value) = (found.word(id, "setting")?, found.word(id, "value")?);
    let text = format!(
        "The kernel's default. {setting} = {value} stops buffered writers long before the device \
         is busy; setting the ratio clears vm.dirty_bytes."
    );
    let undo = format!("sysctl {setting}={value}");
    Some(line("vm.dirty_ratio", "20", SettingPlace::Sysctl, &[id], text, &undo))
}

/// A start on a boundary.
pub(super) fn aligned_start(found: &Found<'_>) -> Option<Advice> {
    let id = FindingId::MisalignedStart;
    let device = found.word(id, "device")?;
    let what = found.word(id, "begin_of")?;
    let text = format!(
        "Partition tools begin at 1 MiB by themselves. The {what} has to be made anew and its data \
         restored."
    );
    let place =
        if what == "partition" { SettingPlace::PartitionTable } else { SettingPlace::LoopSetup };
    let setting = format!("first byte of {device}");
    Some(line(&setting, "1048576", place, &[id], text, "restore the volume as it was"))
}
