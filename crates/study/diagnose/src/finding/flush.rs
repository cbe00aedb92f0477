//! What making a commit durable costs, and whether the price is believable.
//!
//! Invariant: the time of a flush counts against the device only where the device's own counters
//! show it (or where it keeps none): a busy processor also makes commits slow.

use iostrata_plan::{Layer, OpKind, Point, rung};
use iostrata_run::Replicate;
use iostrata_stats::units::{count, microseconds, percent};
use iostrata_stats::{PAIRS_MIN, Verdict, paired};

use crate::below::Keeper;
use crate::case::Case;
use crate::disturbed::carries;
use crate::figure::{combined, median, op_of};
use crate::observed::Which;
use crate::statement::Statement;

const COMMIT: &str = rung::COMMIT_FDATASYNC;
const COMMIT_16: &str = rung::COMMIT_FDATASYNC_16;
const EMPTY: &str = rung::FLUSH_EMPTY;
/// A flush from this on is felt by every commit, in microseconds.
const DEAR_US: f64 = 500.0;
/// Share of the commit that the flush must take.
const DEAR_SHARE_PCT: f64 = 60.0;
/// Share of the flush that the device itself must account for.
const DEVICE_SHARE: f64 = 0.5;
/// No medium takes data faster than this when its cache is really emptied, in microseconds.
const CHEAP_US: f64 = 100.0;
/// Gain of 16 committers over one below which flushes are not shared.
const GAIN_MIN: f64 = 1.5;

/// One commit of a replicate, in microseconds.
#[derive(Clone, Copy, Debug)]
struct Commit {
    write_us: f64,
    flush_us: f64,
    flush_p50_us: f64,
    /// Mean flush by the device's counters; the slowest device of the stack.
    device_us: Option<f64>,
    cpu_limited: bool,
}

fn commit(replicate: &Replicate) -> Option<Commit> {
    let stream = replicate.streams.first()?;
    let (write, sync) = (op_of(stream, OpKind::Write)?, op_of(stream, OpKind::Sync)?);
    Some(Commit {
        write_us: write.latency_us.mean,
        flush_us: sync.latency_us.mean,
        flush_p50_us: sync.latency_us.p50,
        device_us: device_flush_us(replicate),
        cpu_limited: carries(replicate, Verdict::CpuLimited),
    })
}

fn device_flush_us(replicate: &Replicate) -> Option<f64> {
    let evidence = replicate.evidence.as_ref()?;
    let layers = evidence.layers.iter().map(|layer| layer.iostat);
    let awaits = layers.chain(evidence.device).filter_map(|device| device.flush_await_ms);
    awaits.map(|ms| ms * 1000.0).reduce(f64::max)
}

fn commits(case: &Case<'_, '_>, which: Which) -> Vec<Commit> {
    case.log.replicates(COMMIT, which).iter().filter_map(|(_, one)| commit(one)).collect()
}

fn middle(commits: &[Commit], of: impl Fn(&Commit) -> Option<f64>) -> Option<f64> {
    median(commits.iter().filter_map(of).collect())
}

/// Whether flushes are expensive, by the device's counters as well.
fn is_dear(commits: &[Commit]) -> bool {
    let (Some(flush), Some(write)) =
        (middle(commits, |one| Some(one.flush_us)), middle(commits, |one| Some(one.write_us)))
    else {
        return false;
    };
    let at_device = match middle(commits, |one| one.device_us) {
        Some(device) => device >= DEVICE_SHARE * flush && device >= DEVICE_SHARE * DEAR_US,
        None => commits.iter().all(|one| !one.cpu_limited),
    };
    flush >= DEAR_US && 100.0 * flush / (flush + write) >= DEAR_SHARE_PCT && at_device
}

/// Whether a commit waits for a costly flush.
pub(super) fn has_dear_flushes(case: &Case<'_, '_>) -> bool {
    is_dear(&commits(case, Which::All))
}

pub(crate) fn volatile_cache_confirming(case: &Case<'_, '_>) -> Vec<Point> {
    if is_dear(&commits(case, Which::All)) { case.points(&[COMMIT, EMPTY]) } else { Vec::new() }
}

pub(crate) fn volatile_cache(case: &Case<'_, '_>, which: Which) -> Option<Statement> {
    let again = commits(case, which);
    if again.len() < PAIRS_MIN || !is_dear(&again) {
        return None;
    }
    let whole: Vec<f64> = again.iter().map(|one| one.write_us + one.flush_us).collect();
    let writes: Vec<f64> = again.iter().map(|one| one.write_us).collect();
    let share = paired(&whole, &writes).ok()?.loss_pct();
    let flush_us = middle(&again, |one| Some(one.flush_us))?;
    let commit_us = median(whole)?;
    let keeper = Keeper::of(case.host);
    let text = format!(
        "A commit takes {}, {} of it for the flush. {}",
        microseconds(commit_us),
        percent(share.value),
        keeper.of_a_dear_flush()
    );
    Some(
        Statement::sized(keeper.layer(), &share, text)
            .with("flushed_by", keeper.name())
            .with("commit_us", commit_us)
            .with("flush_us", flush_us)
            .with_some("device_flush_us", middle(&again, |one| one.device_us)),
    )
}

/// The write cache of the lowest device that states one.
fn write_cache<'c>(case: &Case<'c, '_>) -> Option<&'c str> {
    case.host.path.devices.iter().rev().find_map(|device| device.write_cache.as_deref())
}

/// A flush as short as a healthy one could be: by the device, or the application's median.
fn shortest_us(commits: &[Commit]) -> Option<f64> {
    middle(commits, |one| {
        Some(one.device_us.map_or(one.flush_p50_us, |us| us.min(one.flush_p50_us)))
    })
}

pub(crate) fn cheap_confirming(case: &Case<'_, '_>) -> Vec<Point> {
    let cheap = shortest_us(&commits(case, Which::All)).is_some_and(|us| us < CHEAP_US);
    if cheap && write_cache(case) == Some("write back") {
        case.points(&[COMMIT])
    } else {
        Vec::new()
    }
}

pub(crate) fn cheap(case: &Case<'_, '_>, which: Which) -> Option<Statement> {
    let again = commits(case, which);
    let flush_us = shortest_us(&again)?;
    if again.len() < PAIRS_MIN || flush_us >= CHEAP_US {
        return None;
    }
    let keeper = Keeper::of(case.host);
    let text = format!(
        "The device reports a volatile write cache, and flushes it in {}. {}",
        microseconds(flush_us),
        keeper.sentence()
    );
    Some(
        Statement::new(Layer::Device, again.len() as u64, text)
            .with("flush_us", flush_us)
            .with("kept_by", keeper.name()),
    )
}

/// Rate of 16 committers over the rate of one.
fn gain(case: &Case<'_, '_>, which: Which) -> Option<(f64, u64)> {
    let rate = |id: &str| {
        let replicates = case.log.replicates(id, which);
        Some((combined(replicates.iter().map(|(_, one)| *one))?.value, replicates.len() as u64))
    };
    let (one, many) = (rate(COMMIT)?, rate(COMMIT_16)?);
    (one.0 > 0.0).then(|| (many.0 / one.0, one.1.min(many.1)))
}

pub(crate) fn no_gain_confirming(case: &Case<'_, '_>) -> Vec<Point> {
    let poor = gain(case, Which::All).is_some_and(|(gain, _)| gain < GAIN_MIN);
    if poor && is_dear(&commits(case, Which::All)) {
        case.points(&[COMMIT, COMMIT_16])
    } else {
        Vec::new()
    }
}

pub(crate) fn no_gain(case: &Case<'_, '_>, which: Which) -> Option<Statement> {
    let (gain, n) = gain(case, which)?;
    let again = commits(case, which);
    if n < PAIRS_MIN as u64 || gain >= GAIN_MIN || !is_dear(&again) {
        return None;
    }
    let text = format!(
        "16 committers make only {} times the commits of one although each waits for a flush of \
         {}: flushes are not shared below the server, only its own group commit helps.",
        count(gain),
        microseconds(middle(&again, |one| Some(one.flush_us))?)
    );
    Some(Statement::new(Layer::FileApi, n, text).with("gain_of_16_committers", gain))
}
