//! The application's latency against the device's own account of the same requests.
//!
//! Invariant: only used where the device did the same requests (as many of them, to a third, unless
//! a limit is known to have held them back) and nothing was answered from memory. A small device
//! latency makes any share look large, so that the time above the device must also be long in
//! itself.

use iostrata_plan::{Layer, OpKind, rung};
use iostrata_run::Replicate;
use iostrata_stats::{Measured, PAIRS_MIN, Verdict, Verdicts, paired};

use crate::case::Case;
use crate::cause::{Cause, cause};
use crate::compared::Bar;
use crate::disturbed::{carries, did_its_work};
use crate::figure::{application_latency_us, device_latency_us, op_of};
use crate::observed::Which;

/// Smallest share of the latency above the device worth naming, in percent.
pub(crate) const SHARE_PCT_MIN: f64 = 50.0;
/// Smallest time above the device worth naming with one request in flight, in microseconds.
pub(crate) const ABOVE_US_MIN_ALONE: f64 = 100.0;
/// The same with several in flight, where a request also waits for its turn on a processor.
pub(crate) const ABOVE_US_MIN_MANY: f64 = 300.0;
/// How far the device's count of requests may differ from the application's.
const COUNT_TOLERANCE: f64 = 0.33;

/// The points that are examined, with the time above the device that counts.
pub(crate) const WATCHED: &[(&str, f64)] = &[
    (rung::READ_4K_DEPTH_1, ABOVE_US_MIN_ALONE),
    (rung::READ_16K_DEPTH_1, ABOVE_US_MIN_ALONE),
    (rung::READ_4K_DEPTH_16, ABOVE_US_MIN_MANY),
    (rung::READ_16K_DEPTH_16, ABOVE_US_MIN_MANY),
    (rung::OVERWRITE_16K, ABOVE_US_MIN_ALONE),
    (rung::WRITE_16K_FILES_8, ABOVE_US_MIN_MANY),
];

/// Where the latency of a point is spent.
#[derive(Clone, Debug)]
pub(crate) struct AboveDevice {
    /// Share of the latency that the device does not account for, in percent.
    pub share: Measured,
    /// Latency at the application, in microseconds.
    pub application_us: f64,
    /// Latency at the device, in microseconds.
    pub device_us: f64,
    /// The layer of what holds the requests back, as far as that is known.
    pub layer: Layer,
    /// Whether the processors were the limit.
    cpu_limited: bool,
}

impl AboveDevice {
    /// Whether the time above the device reaches a bar.
    pub fn reaches(&self, above_us_min: f64, bar: Bar) -> bool {
        let above_us = self.application_us - self.device_us;
        let low = self.share.ci95.map_or(f64::NEG_INFINITY, |[low, _]| low);
        let enough =
            |part: f64| self.share.value >= part * SHARE_PCT_MIN && above_us >= part * above_us_min;
        let proven = self.share.n >= PAIRS_MIN as u64 && low > 0.0 && !self.cpu_limited;
        match bar {
            Bar::Suspicion => proven && enough(0.9),
            Bar::Finding => proven && enough(1.0),
            Bar::Margin => proven && enough(1.0) && low >= SHARE_PCT_MIN,
        }
    }
}

/// Sets the application's latency of a point against the device's.
pub(crate) fn above_device(case: &Case<'_, '_>, id: &str, which: Which) -> Option<AboveDevice> {
    let cause = cause(case, id);
    if cause == Cause::PageCache {
        return None;
    }
    let replicates: Vec<&Replicate> = case
        .log
        .replicates(id, which)
        .into_iter()
        .map(|(_, one)| one)
        .filter(|one| same(one))
        .collect();
    let latencies = |of: fn(&Replicate) -> Option<f64>| {
        replicates.iter().filter_map(|one| of(one)).collect::<Vec<f64>>()
    };
    let (device, application) = (latencies(device_latency_us), latencies(application_latency_us));
    let loss = paired(&application, &device).ok()?.loss_pct();
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let mut verdicts = Verdicts::none();
    replicates.iter().for_each(|one| verdicts.merge(&one.verdicts));
    let held_back = verdicts.has(Verdict::Throttled)
        || replicates.iter().any(|one| limit_used_pct(one).is_some_and(|used| used >= 80.0));
    Some(AboveDevice {
        share: Measured { verdicts, ..loss },
        application_us: mean(&application),
        device_us: mean(&device),
        layer: cause.layer(replicates.first()?.point.metric.op, held_back),
        cpu_limited: replicates.iter().any(|one| carries(one, Verdict::CpuLimited)),
    })
}

/// How far the tightest known I/O limit was used, in percent.
pub(crate) fn limit_used_pct(replicate: &Replicate) -> Option<f64> {
    replicate.evidence.as_ref()?.throttle.as_ref()?.io_limit_used_pct
}

/// Whether the device served what the application requested: both latencies are there, and the
/// counts of requests agree. Where a limit is known to have held requests back, requests of others
/// may be among the device's: they do not make its own latency shorter.
fn same(replicate: &Replicate) -> bool {
    let held_back = carries(replicate, Verdict::Throttled);
    if !did_its_work(replicate) || carries(replicate, Verdict::ForeignIo) && !held_back {
        return false;
    }
    let counted = || {
        let metric = &replicate.point.metric;
        let asked = op_of(replicate.streams.get(metric.stream)?, metric.op)?.iops.value;
        let device = replicate.evidence.as_ref()?.device?;
        let done = match metric.op {
            OpKind::Read => device.reads_per_s,
            OpKind::Write => device.writes_per_s,
            OpKind::Sync => device.flushes_per_s?,
            _ => return None,
        };
        let positive = |us: f64| us > 0.0;
        application_latency_us(replicate).filter(|&us| positive(us))?;
        device_latency_us(replicate).filter(|&us| positive(us))?;
        Some(held_back || (done / asked - 1.0).abs() <= COUNT_TOLERANCE)
    };
    counted().unwrap_or(false)
}
