//! Requests that wait above the device: a known limit, another known cause, or one that is not
//! known.
//!
//! Invariant: what is known comes first. Only where no limit, no queue and no process explains the
//! wait is the cause called unknown, with what would reveal it.

use iostrata_plan::{Layer, Point};
use iostrata_stats::units::{microseconds, percent};

use super::known_limit::{LimitHit, reached};
use super::queue::{SMALL_QUEUE, small_queue};
use crate::above_device::{AboveDevice, WATCHED, above_device, limit_used_pct};
use crate::below::FileSystemBetween;
use crate::case::Case;
use crate::cause::{Cause, cause};
use crate::compared::Bar;
use crate::observed::Which;
use crate::statement::Statement;

/// Its name in the catalogue.
pub(crate) const LIMIT_ABOVE_DEVICE: &str = "limit_above_device";
/// Points measured again at most.
const CONFIRM_MAX: usize = 2;

pub(crate) fn confirming(case: &Case<'_, '_>) -> Vec<Point> {
    if reached(case).is_some() || FileSystemBetween::of(case.host).is_some() {
        return Vec::new();
    }
    let hinted: Vec<&str> = reaching(case, Which::All, Bar::Suspicion)
        .into_iter()
        .map(|(id, _)| id)
        .take(CONFIRM_MAX)
        .collect();
    case.points(&hinted)
}

fn reaching(case: &Case<'_, '_>, which: Which, bar: Bar) -> Vec<(&'static str, AboveDevice)> {
    let found = |&(id, us_min): &(&'static str, f64)| {
        let found = above_device(case, id, which)?;
        found.reaches(us_min, bar).then_some((id, found))
    };
    WATCHED.iter().filter_map(found).collect()
}

fn largest(found: Vec<(&'static str, AboveDevice)>) -> Option<(&'static str, AboveDevice)> {
    found.into_iter().max_by(|a, b| a.1.share.value.total_cmp(&b.1.share.value))
}

pub(crate) fn conclude(case: &Case<'_, '_>, which: Which) -> Option<Statement> {
    match reached(case) {
        Some(reached) => Some(known(case, &reached)),
        None => waiting(case, which),
    }
}

/// A limit that was used up; the wait above the device is its size where that was seen.
fn known(case: &Case<'_, '_>, reached: &LimitHit<'_>) -> Statement {
    let (n, text) = (reached.hit as u64, reached.sentence());
    let said = match largest(reaching(case, Which::All, Bar::Finding)) {
        Some((point, found)) => {
            Statement::sized(Layer::Limit, &found.share, text).with("point", point)
        }
        None => Statement::new(Layer::Limit, n, text),
    };
    said.with("limit_cgroup", reached.limit.cgroup.as_str())
        .with("limit_device", reached.limit.device.as_str())
        .with("limit_used_pct", reached.used_pct)
        .with("limited", n)
        .with("measured", reached.measured as u64)
}

/// Time above the device, with its cause as far as it is known.
fn waiting(case: &Case<'_, '_>, which: Which) -> Option<Statement> {
    // What passes requests on is named by itself.
    if FileSystemBetween::of(case.host).is_some() {
        return None;
    }
    let mut found = reaching(case, which, Bar::Finding);
    if small_queue(case, Which::Confirming(SMALL_QUEUE)).is_some() {
        found.retain(|(point, _)| !matches!(cause(case, point), Cause::Queue { .. }));
    }
    let (point, found) = largest(found)?;
    let cause = cause(case, point);
    let title = case.log.seen(point).map_or(point, |seen| seen.point.title.as_str());
    let text = format!(
        "{title}: the device answers in {}, the application waits {}; {} of the time is spent \
         above the device. {}",
        microseconds(found.device_us),
        microseconds(found.application_us),
        percent(found.share.value),
        cause.sentence()
    );
    let used = case.log.replicates(point, which).iter().find_map(|(_, one)| limit_used_pct(one));
    let group = match &cause {
        Cause::Limit(limit) => Some(limit.cgroup.clone()),
        _ => None,
    };
    let queue = match &cause {
        Cause::Queue { device, requests } => Some((*device, *requests)),
        _ => None,
    };
    Some(
        Statement::sized(found.layer, &found.share, text)
            .with_some("queue_requests", queue.map(|(_, requests)| requests))
            .with_some("device", queue.map(|(device, _)| device.to_owned()))
            .with("point", point)
            .with("application_us", found.application_us)
            .with("device_us", found.device_us)
            .with("cause", cause.name())
            .with("cause_known", cause != Cause::Unknown)
            .with_some("limit_cgroup", group)
            .with_some("limit_used_pct", used),
    )
}
