//! Limits and mount options that stand between the server and its device.

use iostrata_run::host::{CgroupVersion, IoLimit, LimitScope};
use iostrata_run::{Advice, ProbeHost};

use super::{Found, Place, line};
use crate::finding::{FindingId, limit_words};

/// Lifting every limit that is known to hold this process back, where it was seen to.
pub(super) fn lift_limits(found: &Found<'_>, host: &ProbeHost) -> Vec<Advice> {
    if found.get(FindingId::LimitAboveDevice).is_none() {
        return Vec::new();
    }
    let limits = host.path.limits.iter().filter(|limit| limit.scope == LimitScope::Process);
    limits.map(lift).collect()
}

fn lift(limit: &IoLimit) -> Advice {
    let (setting, value) = match limit.version {
        CgroupVersion::V2 => {
            (format!("io.max of {}", limit.cgroup), format!("{} max", limit.device_number))
        }
        CgroupVersion::V1 => (
            format!("blkio.throttle.*_device of {}", limit.cgroup),
            format!("{} 0", limit.device_number),
        ),
    };
    let words = limit_words(limit);
    let text = format!(
        "The group allows {words} on {}, which is less than the device gives. Lift it if it is not \
         meant to be there.",
        limit.device
    );
    let undo = format!("set it to {words} again");
    line(&setting, value, Place::ControlGroup, &[FindingId::LimitAboveDevice], text, &undo)
}

/// Turning barriers on again.
pub(super) fn barriers(found: &Found<'_>) -> Option<Advice> {
    let option = found.word(FindingId::BarriersOff, "mount_option")?;
    let text = format!(
        "{option} keeps flushes from the device: commits that were acknowledged may be lost in a \
         power cut."
    );
    let undo = format!("mount with {option} again");
    Some(line("barrier", "1", Place::MountOption, &[FindingId::BarriersOff], text, &undo))
}
