//! Requests that wait above the device: a limit of a control group or of the volume's driver.

use iostrata_run::Finding;
use iostrata_run::host::{IoLimit, LimitScope};
use iostrata_spec::Point;
use iostrata_units::{bytes, count, microseconds, percent};

use super::statement::{Effect, WithEvidence, loss};
use super::{Case, FindingId};
use crate::above_device::{AboveDevice, WATCHED, above_device, limit_used_pct};
use crate::compared::Bar;
use crate::observed::Which;

/// Points measured again at most.
const CONFIRM_MAX: usize = 2;

pub(super) fn confirming(case: &Case<'_, '_>) -> Vec<Point> {
    let hinted: Vec<&str> = reaching(case, Which::All, Bar::Suspicion)
        .into_iter()
        .map(|(id, _)| id)
        .take(CONFIRM_MAX)
        .collect();
    case.points(&hinted)
}

fn reaching(case: &Case<'_, '_>, which: Which, bar: Bar) -> Vec<(&'static str, AboveDevice)> {
    let found = |&(id, us_min): &(&'static str, f64)| {
        let found = above_device(case.log, id, which)?;
        found.reaches(us_min, bar).then_some((id, found))
    };
    WATCHED.iter().filter_map(found).collect()
}

pub(super) fn conclude(case: &Case<'_, '_>) -> Option<Finding> {
    let id = FindingId::LimitAboveDevice;
    let which = Which::Confirming(id.name());
    let (point, found) = reaching(case, which, Bar::Finding)
        .into_iter()
        .max_by(|a, b| a.1.share.value.total_cmp(&b.1.share.value))?;
    let limit = case.host.path.limits.iter().find(|limit| limit.scope == LimitScope::Process);
    let cause = match limit {
        Some(limit) => format!("The control group {} allows {}.", limit.cgroup, words(limit)),
        None => "No control group limit is visible from here: look at the container's or the \
                 service's I/O limits."
            .to_owned(),
    };
    let title = case.log.seen(point).map_or(point, |seen| seen.point.title.as_str());
    let text = format!(
        "{title}: the device answers in {}, the application waits {}; {} of the time is spent \
         above the device. {cause}",
        microseconds(found.device_us),
        microseconds(found.application_us),
        percent(found.share.value)
    );
    let effect = Effect { pct: found.share.value, ci95: found.share.ci95, n: found.share.n };
    let used = case.log.replicates(point, which).iter().find_map(|(_, one)| limit_used_pct(one));
    Some(
        loss(id, found.layer, effect, text)
            .with("point", point)
            .with("application_us", found.application_us)
            .with("device_us", found.device_us)
            .with_some("limit_cgroup", limit.map(|limit| limit.cgroup.clone()))
            .with_some("limit_used_pct", used),
    )
}

/// What a limit allows, in words.
pub(crate) fn words(limit: &IoLimit) -> String {
    let parts: Vec<String> = [
        limit.read_iops.map(|value| format!("{} reads/s", count(value as f64))),
        limit.write_iops.map(|value| format!("{} writes/s", count(value as f64))),
        limit.read_bytes_per_s.map(|value| format!("{}/s read", bytes(value as f64))),
        limit.write_bytes_per_s.map(|value| format!("{}/s written", bytes(value as f64))),
    ]
    .into_iter()
    .flatten()
    .collect();
    parts.join(", ")
}
