//! What the owner of a volume can do about its caps.

use iostrata_plan::Layer;
use iostrata_run::Advice;
use iostrata_stats::units::{bytes, count};

use super::{Found, SettingPlace, line};
use crate::finding::capped::VOLUME_CAP;

/// Raising caps that no setting of the server gets round.
pub(super) fn raise_cap(found: &Found<'_>) -> Vec<Advice> {
    let id = VOLUME_CAP;
    if found.get(id).is_none_or(|finding| finding.layer != Layer::Device) {
        return Vec::new();
    }
    let one = |setting: &str, value: String, more: &str| {
        let text = format!(
            "Only a larger or faster volume, or more that is paid for, raises the cap; no setting \
             of the server does. More requests in flight only wait. {more}"
        );
        line(setting, value, SettingPlace::Volume, &[id], text, "the size or class before")
    };
    let requests = found.number(id, "cap_iops").map(|cap| {
        let more = "Larger requests carry more bytes for the same count.";
        one("IOPS of the volume", format!("above {}", count(cap)), more)
    });
    let capped = found.number(id, "cap_bytes_per_s");
    let capped = capped.or_else(|| found.number(id, "also_cap_bytes_per_s")).map(|cap| {
        let more = "Compressed pages and fewer writes of the same page need less of it.";
        one("throughput of the volume", format!("above {}/s", bytes(cap)), more)
    });
    requests.into_iter().chain(capped).collect()
}
