//! Settings that make buffered writers wait for write-back, and the memory that is shared.

use iostrata_plan::Layer;
use iostrata_run::host::{CgroupVersion, HostFacts};
use iostrata_stats::units::{bytes, percent};

use super::pairs;
use crate::case::Case;
use crate::pair::BUFFERED_WRITE_COST;
use crate::statement::Statement;

/// The name of few dirty bytes in the catalogue.
pub(crate) const SMALL_DIRTY_LIMIT: &str = "small_dirty_limit";
/// Fewer dirty bytes than this make every buffered writer wait for the device: a batch of
/// doublewrite pages, a binary log group and a few sorts do not fit together.
const DIRTY_BYTES_MIN: f64 = (64 << 20) as f64;

/// How much may be dirty before writers wait, and the setting of that limit.
fn dirty_limit(machine: &HostFacts) -> Option<(&'static str, String, f64)> {
    if let Some(limit) = machine.dirty_bytes.filter(|limit| *limit > 0) {
        return Some(("vm.dirty_bytes", limit.to_string(), limit as f64));
    }
    let ratio = machine.dirty_ratio_pct?;
    // A group of version 2 has its own share of dirty data, of the memory that it may use.
    let of_group = machine.cgroup.memory_limit_bytes;
    let is_shared = machine.cgroup.memory_limit_version == Some(CgroupVersion::V2);
    let of_group = of_group.filter(|_| is_shared).unwrap_or(u64::MAX);
    let available = machine.memory_available_bytes?.min(of_group);
    Some(("vm.dirty_ratio", ratio.to_string(), available as f64 * ratio as f64 / 100.0))
}

pub(crate) fn small_dirty_limit(case: &Case<'_, '_>) -> Option<Statement> {
    let (setting, value, limit) = dirty_limit(&case.host.machine)?;
    if limit >= DIRTY_BYTES_MIN {
        return None;
    }
    let seen = pairs::conclude(BUFFERED_WRITE_COST, case).and_then(|one| one.effect_pct());
    let seen = seen.map(|pct| format!(" Here buffered writes lose {} by it.", percent(pct)));
    let text = format!(
        "{setting} is {value}: only {} of file data may wait in memory before writers are stopped \
         and have to wait for the device. Direct I/O is not touched by it; the binary log, \
         temporary files, dumps and everything else that is buffered is.{}",
        bytes(limit),
        seen.unwrap_or_default()
    );
    Some(
        Statement::new(Layer::Filesystem, 0, text)
            .with("setting", setting)
            .with("value", value)
            .with("dirty_bytes_max", limit),
    )
}

/// A group that may use less than this share of the machine's memory is worth a line.
const MEMORY_SHARE_MAX: f64 = 0.5;

pub(crate) fn memory_limit(case: &Case<'_, '_>) -> Option<Statement> {
    let machine = &case.host.machine;
    let cgroup = &machine.cgroup;
    let (limit, all) = (cgroup.memory_limit_bytes?, machine.memory_bytes?);
    if limit as f64 >= MEMORY_SHARE_MAX * all as f64 {
        return None;
    }
    let group = cgroup.memory_limit_group.as_deref().unwrap_or("of this process");
    let text = format!(
        "The control group {group} may use {} of memory: the buffer pool, connections and the page \
         cache share it, and buffered writes wait where it is full.",
        bytes(limit as f64)
    );
    let found = Statement::new(Layer::Limit, 0, text);
    Some(found.with("memory_bytes", limit).with("cgroup", group))
}
