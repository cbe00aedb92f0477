//! What the owner of a volume can do about its cap.

use iostrata_run::Advice;
use iostrata_spec::Layer;
use iostrata_units::{bytes, count};

use super::{Found, SettingPlace, line};
use crate::finding::FindingId;

/// Raising a cap that no setting of the server gets round.
pub(super) fn raise_cap(found: &Found<'_>) -> Option<Advice> {
    let id = FindingId::VolumeCap;
    found.get(id).filter(|finding| finding.layer == Layer::Device)?;
    let (setting, value, more) = match found.number(id, "cap_iops") {
        Some(cap) => (
            "IOPS of the volume",
            format!("above {}", count(cap)),
            "Larger requests carry more bytes for the same count.",
        ),
        None => (
            "throughput of the volume",
            format!("above {}/s", bytes(found.number(id, "cap_bytes_per_s")?)),
            "Compressed pages and fewer writes of the same page need less of it.",
        ),
    };
    let text = format!(
        "Only a larger or faster volume, or more that is paid for, raises the cap; no setting of \
         the server does. More requests in flight bring only waiting. {more}"
    );
    Some(line(setting, value, SettingPlace::Volume, &[id], text, "the size or class before"))
}
