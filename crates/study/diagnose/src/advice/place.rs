//! Where the data should lie, and how that place is mounted.

use iostrata_run::Advice;

use super::{Found, SettingPlace, line};
use crate::finding::FindingId;

/// A volume instead of a file system that passes requests on.
pub(super) fn own_volume(found: &Found<'_>) -> Option<Advice> {
    let id = FindingId::FileSystemBetween;
    found.get(id)?;
    let text = "Every request passes what stands between, and no setting of the server changes \
                that. Mount a disk at the data directory (a container: a volume) and probe it there."
        .to_owned();
    let (setting, value) = ("data directory", "a volume of its own");
    Some(line(setting, value, SettingPlace::DataDirectory, &[id], text, "move the data back"))
}

/// A mount without the option that makes writes wait.
pub(super) fn mount_option(found: &Found<'_>) -> Option<Advice> {
    let id = FindingId::SyncMount;
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
    let id = FindingId::LoopWithoutDirectIo;
    let device = found.word(id, "device")?;
    let text = "Reads and writes then reach what holds the file, and are not kept in memory twice."
        .to_owned();
    let setting = format!("direct I/O of {device}");
    let undo = format!("losetup --direct-io=off /dev/{device}");
    Some(line(&setting, "on", SettingPlace::LoopSetup, &[id], text, &undo))
}
