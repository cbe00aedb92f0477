//! Settings as a volume and as what is switched on it.

use iostrata_stats::units::Size;

use super::conflict::{Conflict, refuse};
use super::settings::Settings;
use crate::disk::DiskSpec;
use crate::study::setting::{Setting, SettingId};
use crate::study::{Conditions, IoLimits, QueueSetting, Volume, VolumeKind};

/// Queue attributes in the order in which they are set: the scheduler resets the others.
const QUEUE: &[SettingId] = &[
    SettingId::Scheduler,
    SettingId::NrRequests,
    SettingId::ReadAheadKb,
    SettingId::Nomerges,
    SettingId::RqAffinity,
    SettingId::WbtLatUsec,
    SettingId::AddRandom,
    SettingId::Iostats,
];

const DIRTY: &[SettingId] = &[
    SettingId::DirtyRatio,
    SettingId::DirtyBackgroundRatio,
    SettingId::DirtyBytes,
    SettingId::DirtyBackgroundBytes,
    SettingId::DirtyExpireCentisecs,
    SettingId::DirtyWritebackCentisecs,
];

/// mkfs.xfs makes nothing smaller, and btrfs needs room for two copies of its metadata.
const XFS_BYTES_MIN: u64 = 300 << 20;
const BTRFS_BYTES_MIN: u64 = 128 << 20;

/// The volume.
///
/// # Errors
/// When the files do not fit it, or not all of its members get a file.
pub(in crate::study) fn volume(settings: &Settings<'_>) -> Result<Volume, Conflict> {
    let kind = settings.filesystem();
    let has_redo = !settings.makes_requests() && settings.is_on(SettingId::RedoVolume);
    let count = if has_redo { 2 } else { settings.count(SettingId::Volumes).unwrap_or(1) };
    let bytes = settings.bytes(SettingId::VolumeSize);
    let files = settings.count(SettingId::Files);
    let size = settings.bytes(SettingId::Size).unwrap_or(0);
    if let Some(files) = files.filter(|_| !has_redo)
        && files < count
    {
        let why = format!("{count} volumes and only {files} files to spread over them");
        return refuse(SettingId::Volumes, why, format!("use at least {count} files"));
    }
    if let Some(bytes) = bytes
        && bytes.saturating_mul(count) < size
    {
        let why = format!("{} of files do not fit {count} x {}", Size(size), Size(bytes));
        return refuse(SettingId::VolumeSize, why, "make the volume larger or the size smaller");
    }
    let least = match kind {
        VolumeKind::Xfs => XFS_BYTES_MIN,
        VolumeKind::Btrfs => BTRFS_BYTES_MIN,
        VolumeKind::Raw | VolumeKind::Ext4 | VolumeKind::Here => 0,
    };
    if let Some(bytes) = bytes
        && bytes < least
    {
        let why = format!("{} cannot be made on {}", kind.name(), Size(bytes));
        return refuse(SettingId::VolumeSize, why, format!("use at least {}", Size(least)));
    }
    Ok(Volume {
        kind,
        disk: disk(settings)?,
        bytes,
        count: count as u32,
        mkfs_options: settings.options(SettingId::MkfsOptions),
        mount_options: settings.options(SettingId::MountOptions),
    })
}

/// The emulated disk.
fn disk(settings: &Settings<'_>) -> Result<Option<DiskSpec>, Conflict> {
    let Some(disk) = settings.disk() else { return Ok(None) };
    if settings.filesystem() == VolumeKind::Here {
        let why = "nothing is made for the directory as it is, so no disk can lie under it";
        return refuse(SettingId::Disk, why, "use filesystem raw, ext4, xfs or btrfs");
    }
    Ok(Some(disk.clone()))
}

/// What is switched.
///
/// # Errors
/// When a bound is given twice.
pub(in crate::study) fn conditions(settings: &Settings<'_>) -> Result<Conditions, Conflict> {
    let text = |id: SettingId| settings.assigned(id).map(|set| set.label.clone());
    let attribute = |id: &SettingId| {
        let attribute = Setting::of(*id).name.to_string();
        Some(QueueSetting { attribute, value: text(*id)? })
    };
    // The kernel takes plain numbers.
    let dirty = |id: &SettingId| {
        let value = settings.bytes(*id).map(|bytes| bytes.to_string()).or_else(|| text(*id))?;
        Some((Setting::of(*id).name.to_string(), value))
    };
    for (ratio, bytes) in [
        (SettingId::DirtyRatio, SettingId::DirtyBytes),
        (SettingId::DirtyBackgroundRatio, SettingId::DirtyBackgroundBytes),
    ] {
        if settings.assigned(ratio).is_some() && settings.assigned(bytes).is_some() {
            let why = format!("the kernel keeps either this or {}", Setting::of(ratio).name);
            return refuse(bytes, why, "keep one of the two");
        }
    }
    Ok(Conditions {
        queue: QUEUE.iter().filter_map(attribute).collect(),
        memory_limit_bytes: settings.bytes(SettingId::MemoryLimit),
        io_limits: io_limits(settings)?,
        dirty: DIRTY.iter().filter_map(dirty).collect(),
        drop_caches: settings.is_on(SettingId::DropCaches),
    })
}

fn io_limits(settings: &Settings<'_>) -> Result<IoLimits, Conflict> {
    let both = settings.count(SettingId::IopsLimit);
    let (read, write) = (SettingId::ReadIopsLimit, SettingId::WriteIopsLimit);
    for id in [read, write] {
        if both.is_some() && settings.assigned(id).is_some() {
            return refuse(id, "iops_limit bounds both reads and writes", "keep one of the two");
        }
    }
    Ok(IoLimits {
        read_iops: both.or(settings.count(read)),
        write_iops: both.or(settings.count(write)),
        read_bytes_per_s: settings.bytes(SettingId::ReadBandwidthLimit),
        write_bytes_per_s: settings.bytes(SettingId::WriteBandwidthLimit),
    })
}
