//! Scheduler and request queue.
//!
//! Neither can be compared without root: a scheduler is no more than a hint, and a queue counts as
//! a loss only where requests were seen to wait above the device for a place in it.

use iostrata_plan::{Layer, Point};
use iostrata_run::FindingKind;
use iostrata_stats::units::rate;
use iostrata_stats::{PAIRS_MIN, Verdict};

use crate::above_device::{ABOVE_US_MIN_MANY, above_device};
use crate::case::Case;
use crate::cause::{queue_device, queue_explains, queue_requests};
use crate::compared::Bar;
use crate::disturbed::carries;
use crate::figure::{combined, median};
use crate::observed::Which;
use crate::statement::Statement;

/// The name of a short queue in the catalogue.
pub(crate) const SMALL_QUEUE: &str = "small_queue";
/// Rate from which the cost of a scheduler per request shows.
const FAST_IOPS: f64 = 20_000.0;
/// Growth over the last doubling before the queue was full from which on it counts as still paying.
const STILL_GROWING: f64 = 1.25;
/// Growth beyond the queue's size up to which it counts as stopped there.
const STOPPED: f64 = 1.05;
/// How far the device's queue may exceed the stated size, for counting noise.
const PINNED: f64 = 1.1;
const CURVE: &str = "read_4k_depth_";

pub(crate) fn scheduler_cost(case: &Case<'_, '_>) -> Option<Statement> {
    let device = queue_device(case)?;
    let scheduler = device.scheduler.as_deref().filter(|name| *name == "bfq")?;
    let best = [1, 2, 4, 8, 16, 32, 64, 128]
        .iter()
        .filter_map(|depth| case.log.seen(&format!("{CURVE}{depth}")))
        .filter_map(|seen| Some((seen.figure()?.value, seen.replicates.len())))
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .filter(|(iops, _)| *iops >= FAST_IOPS)?;
    let text = format!(
        "{} is scheduled by {scheduler}, which spends processor time on every request; on a device \
         of {} it is seldom worth it. It was not compared: that takes root.",
        device.name,
        rate(best.0)
    );
    let found = Statement::new(Layer::Block, best.1 as u64, text);
    Some(found.with("scheduler", scheduler).with("iops_best", best.0))
}

/// Depths around the queue's size: half of it, all of it, twice.
fn depths(case: &Case<'_, '_>) -> Option<[u64; 3]> {
    let size = queue_requests(queue_device(case)?)?;
    (2..=64).contains(&size).then_some([size / 2, size, size * 2])
}

fn ids(depths: [u64; 3]) -> [String; 3] {
    depths.map(|depth| format!("{CURVE}{depth}"))
}

/// Whether throughput grew until the queue was full and stopped there, while the application kept
/// more requests than the queue holds.
fn is_too_small(case: &Case<'_, '_>, which: Which) -> Option<u64> {
    let depths = depths(case)?;
    let of = ids(depths).map(|id| case.log.replicates(&id, which));
    let rate = |at: usize| combined(of[at].iter().map(|(_, one)| *one)).map(|figure| figure.value);
    let (half, full, twice) = (rate(0)?, rate(1)?, rate(2)?);
    let queue = median(
        of[2]
            .iter()
            .filter_map(|(_, one)| Some(one.evidence.as_ref()?.device?.queue_size))
            .collect(),
    )?;
    let limited = of.iter().flatten().any(|(_, one)| carries(one, Verdict::CpuLimited));
    let small = full >= STILL_GROWING * half
        && twice <= STOPPED * full
        && queue <= PINNED * depths[1] as f64
        && !limited;
    small.then(|| of.iter().map(Vec::len).min().unwrap_or(0) as u64)
}

pub(crate) fn small_queue_confirming(case: &Case<'_, '_>) -> Vec<Point> {
    match (is_too_small(case, Which::All), depths(case)) {
        (Some(_), Some(depths)) => {
            let ids = ids(depths);
            case.points(&[&ids[0], &ids[1], &ids[2]])
        }
        _ => Vec::new(),
    }
}

pub(crate) fn small_queue(case: &Case<'_, '_>, which: Which) -> Option<Statement> {
    let n = is_too_small(case, which)?;
    if n < PAIRS_MIN as u64 {
        return None;
    }
    let [_, size, twice] = depths(case)?;
    let device = queue_device(case)?;
    let text = format!(
        "Throughput grows until the queue of {} holds {size} requests and stops there: the queue, \
         not the device, is what holds requests back. A larger nr_requests helps where the driver \
         has room for more; read it back after setting it.",
        device.name
    );
    let deep = [format!("{CURVE}16"), format!("{CURVE}{twice}")];
    let wait = deep
        .iter()
        .filter(|point| queue_explains(case, point).is_some())
        .filter_map(|point| above_device(case, point, Which::All))
        .find(|wait| wait.reaches(ABOVE_US_MIN_MANY, Bar::Finding));
    let said = match wait {
        Some(wait) => Statement::sized(Layer::Block, &wait.share, text),
        None => Statement::new(Layer::Block, n, text).of_kind(FindingKind::Sizing),
    };
    Some(said.with("queue_requests", size).with("device", device.name.as_str()))
}
