//! Limits and mount options that stand between the server and its device.

use iostrata_run::host::{IoLimit, LimitScope};
use iostrata_run::{Advice, ProbeHost};

use super::{Found, SettingPlace, line};
use crate::finding::above::LIMIT_ABOVE_DEVICE;
use crate::finding::fell::LIMIT_SET_MEANWHILE;
use crate::finding::known_limit::{lifting, limit_words};
use crate::finding::place::BARRIERS_OFF;

/// Lifting every limit that is known to hold this process back, where it was seen to: the one that
/// was used up, or all where that is not known.
pub(super) fn lift_limits(found: &Found<'_>, host: &ProbeHost) -> Vec<Advice> {
    let id = LIMIT_ABOVE_DEVICE;
    if found.get(id).is_none() {
        return Vec::new();
    }
    let (group, device) = (found.word(id, "limit_cgroup"), found.word(id, "limit_device"));
    let is_it = |limit: &&IoLimit| match (group, device) {
        (Some(group), Some(device)) => limit.cgroup == group && limit.device == device,
        _ => limit.scope == LimitScope::Process,
    };
    host.path.limits.iter().filter(is_it).flat_map(|limit| lift(limit, id)).collect()
}

/// Lifting the limit that was set while the run went on.
pub(super) fn lift_new(found: &Found<'_>) -> Vec<Advice> {
    let id = LIMIT_SET_MEANWHILE;
    let limit = found.get(id).and_then(|finding| finding.evidence.get("limit"));
    let limit = limit.and_then(|limit| serde_json::from_value(limit.clone()).ok());
    limit.map(|limit| lift(&limit, id)).unwrap_or_default()
}

fn lift(limit: &IoLimit, why: &str) -> Vec<Advice> {
    let words = limit_words(limit);
    let text = format!(
        "The group allows {words} on {}, which is less than the device gives. Lift it if it is not \
         meant to be there.",
        limit.device
    );
    let undo = format!("set it to {words} again");
    let one = |(file, value): (String, String)| {
        let setting = format!("{file} of {}", limit.cgroup);
        line(&setting, value, SettingPlace::ControlGroup, &[why], text.clone(), &undo)
    };
    lifting(limit).into_iter().map(one).collect()
}

/// Turning barriers on again.
pub(super) fn barriers(found: &Found<'_>) -> Option<Advice> {
    let option = found.word(BARRIERS_OFF, "mount_option")?;
    let text = format!(
        "{option} keeps flushes from the device: commits that were acknowledged may be lost in a \
         power cut."
    );
    let undo = format!("mount with {option} again");
    Some(line("barrier", "1", SettingPlace::MountOption, &[BARRIERS_OFF], text, &undo))
}
