//! What of the host was found to stand in the way: quotas, queues, write-back, where a volume
//! begins, what lies between and how it is mounted.

use iostrata_run::host::CgroupVersion;
use iostrata_run::{Advice, ProbeHost, Risk};
use iostrata_stats::units::bytes;

use super::{Found, SettingPlace, line};
use crate::finding::alignment::MISALIGNED_START;
use crate::finding::place::{FILE_SYSTEM_BETWEEN, LOOP_WITHOUT_DIRECT_IO, SYNC_MOUNT};
use crate::finding::queue::SMALL_QUEUE;
use crate::finding::quota::CPU_QUOTA;
use crate::finding::write_back::SMALL_DIRTY_LIMIT;

/// A queue of fewer requests than this was set by hand: no driver of a fast device starts so low.
const QUEUE_BY_HAND_MAX: f64 = 16.0;
/// A usual queue; the driver caps it at what it has.
const QUEUE_USUAL: &str = "256";
/// Attachments that really take only a few requests at a time.
const FEW_AT_A_TIME: [&str; 2] = ["usb", "mmc"];

/// Raising a processor quota that ran out.
pub(super) fn cpu_quota(found: &Found<'_>, host: &ProbeHost) -> Option<Advice> {
    let id = CPU_QUOTA;
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
    let id = SMALL_QUEUE;
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

/// Dirty data that a database host may hold: enough for bursts of buffered writes, and written back
/// before a sync waits for long.
const DIRTY_BYTES: u64 = 256 << 20;

/// Room for dirty pages in bytes: a ratio of much memory is gigabytes that one sync waits for.
pub(super) fn dirty_limit(found: &Found<'_>) -> Option<Advice> {
    let id = SMALL_DIRTY_LIMIT;
    let (setting, value) = (found.word(id, "setting")?, found.word(id, "value")?);
    let text = format!(
        "{setting} = {value} stops buffered writers long before the device is busy. {} hold their \
         bursts and still keep a sync short; set vm.dirty_background_bytes to a quarter of it, so \
         that write-back begins before writers wait.",
        bytes(DIRTY_BYTES as f64)
    );
    let undo = format!("sysctl {setting}={value}");
    let value = DIRTY_BYTES.to_string();
    Some(line("vm.dirty_bytes", value, SettingPlace::Sysctl, &[id], text, &undo))
}

/// A start on a boundary.
pub(super) fn aligned_start(found: &Found<'_>) -> Option<Advice> {
    let id = MISALIGNED_START;
    let device = found.word(id, "device")?;
    let what = found.word(id, "begin_of")?;
    let text = format!(
        "Partition tools begin at 1 MiB by themselves. The {what} has to be made anew, which \
         destroys what is on it: back up first, restore afterwards."
    );
    let place =
        if what == "partition" { SettingPlace::PartitionTable } else { SettingPlace::LoopSetup };
    let setting = format!("first byte of {device}");
    let advice = line(&setting, "1048576", place, &[id], text, "restore the volume as it was");
    Some(Advice { risk: Risk::Rebuild, ..advice })
}

/// A volume instead of a file system that passes requests on.
pub(super) fn own_volume(found: &Found<'_>) -> Option<Advice> {
    let id = FILE_SYSTEM_BETWEEN;
    found.get(id)?;
    let text = "Every request passes what stands between, and no setting of the server changes \
                that. Mount a disk at the data directory (a container: a volume) and probe it there."
        .to_owned();
    let (setting, value) = ("data directory", "a volume of its own");
    Some(line(setting, value, SettingPlace::DataDirectory, &[id], text, "move the data back"))
}

/// A mount without the option that makes writes wait.
pub(super) fn mount_option(found: &Found<'_>) -> Option<Advice> {
    let id = SYNC_MOUNT;
    let option = found.word(id, "mount_option")?;
    let text = format!(
        "{option} makes the file system wait for the device where nothing asked for it. What a \
         server has to have durable it syncs itself."
    );
    let undo = format!("mount with {option} again");
    Some(line(option, "off", SettingPlace::MountOption, &[id], text, &undo))
}

/// A loop device that does not go through the page cache.
pub(super) fn direct_loop(found: &Found<'_>) -> Option<Advice> {
    let id = LOOP_WITHOUT_DIRECT_IO;
    let device = found.word(id, "device")?;
    let text = "Reads and writes then reach what holds the file, and are not kept in memory twice."
        .to_owned();
    let setting = format!("direct I/O of {device}");
    let undo = format!("losetup --direct-io=off /dev/{device}");
    Some(line(&setting, "on", SettingPlace::LoopSetup, &[id], text, &undo))
}
