//! Whether the volume is capped: a rate that neither depth nor size nor direction of the requests
//! changes.
//!
//! Method: reads of both sizes run at one even rate from the depth on at which the latency of a
//! single request would allow a third more. Requests per second are capped where both sizes have
//! the same rate, bytes per second where they have the same bandwidth; writes must agree.
//! Invariant: a device that is busy is no cap. Its rate differs with size and direction, rises with
//! depth, or is not even; one that the processors or others held back is not looked at.

use iostrata_run::Replicate;
use iostrata_spec::{IoSpec, OpKind, rung};
use iostrata_stats::{Measured, Verdict, combine};

use crate::disturbed::carries;
use crate::figure::{
    application_latency_us, device_latency_us, median, metric_of, op_of, weighted_mean,
};
use crate::observed::{Observed, Which};

/// Curves of reads, the smaller size first.
pub(crate) const CURVES: [&str; 2] = ["read_4k_depth_", "read_16k_depth_"];
/// Requests in flight that are many enough to show how long they wait.
const MANY: u32 = 32;
const DEPTHS: [u32; 7] = [2, 4, 8, 16, 32, 64, 128];
/// Random writes with several in flight.
const WRITES: [&str; 3] = [rung::WRITE_16K_FILES_8, rung::WRITE_16K_FILES_4, rung::SUSTAINED_16K];
/// What a single request's latency must allow over the cap for a depth to meet it.
const BEYOND: f64 = 1.33;
/// Depths of each curve that must have met the cap.
const DEPTHS_MIN: usize = 2;
/// How far a point may lie from the cap.
const TOLERANCE: f64 = 0.05;
/// How far writes may: the file system's own requests pass the same gate.
const WRITE_TOLERANCE: f64 = 0.08;
/// Standard deviation of the rates of single windows over the cap: a gate opens evenly, a busy
/// device does not.
const SPREAD_MAX: f64 = 0.025;
/// The same where no writes bear witness.
const SPREAD_MAX_READS_ALONE: f64 = 0.01;
/// Windows behind a cap at least.
const WINDOWS_MIN: usize = 6;
/// Share of the latency that the device accounts for where the cap is its own.
const DEVICE_SHARE: f64 = 0.5;
/// Verdicts after which a rate says nothing about a cap of the volume.
const NO_WITNESS: [Verdict; 7] = [
    Verdict::Cached,
    Verdict::CpuLimited,
    Verdict::DirectIgnored,
    Verdict::ForeignIo,
    Verdict::Sparse,
    Verdict::Steal,
    Verdict::Throttled,
];

/// What is capped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Requests per second.
    Requests,
    /// Bytes per second.
    Bytes,
}

/// A cap.
#[derive(Clone, Debug)]
pub(crate) struct Cap {
    /// What it counts.
    pub unit: Unit,
    /// How much of it per second, from the windows that met it.
    pub per_s: Measured,
    /// The fewest requests in flight that meet it, of either size.
    pub depth_min: u32,
    /// More of them, for comparison.
    pub depth_many: u32,
    /// Mean latency with that many in flight, in microseconds.
    pub latency_us: f64,
    /// Mean latency of one request alone, in microseconds.
    pub alone_us: f64,
    /// Whether the time is spent in the device, as its own counters say.
    pub in_device: bool,
    /// Whether writes were measured and end there too.
    pub writes_too: bool,
}

/// The windows of a point that met the cap.
struct Met<'a> {
    depth: u32,
    windows: Vec<&'a Replicate>,
    latency_us: f64,
}

/// Finds a cap in all replicates or in the confirming ones.
pub(crate) fn cap(log: &Observed<'_>, which: Which) -> Option<Cap> {
    let [small, large] = CURVES.map(|curve| flat(log, curve, which));
    let (small, large) = (small?, large?);
    let all: Vec<&Replicate> =
        small.iter().chain(&large).flat_map(|met| met.windows.iter().copied()).collect();
    let has_writes = WRITES.iter().any(|id| !log.replicates(id, which).is_empty());
    let spread_max = if has_writes { SPREAD_MAX } else { SPREAD_MAX_READS_ALONE };
    let (unit, per_s) = [Unit::Requests, Unit::Bytes]
        .into_iter()
        .find_map(|unit| Some((unit, even(&all, unit, spread_max)?)))?;
    let writes: Vec<f64> = WRITES
        .iter()
        .flat_map(|id| log.replicates(id, which))
        .filter(|(_, one)| is_witness(one))
        .filter_map(|(_, one)| counted(one, unit))
        .collect();
    let writes_too = median(writes).map(|rate| (rate / per_s.value - 1.0).abs() <= WRITE_TOLERANCE);
    if writes_too == Some(false) {
        return None;
    }
    let depth_min = small[0].depth.max(large[0].depth);
    let deeper = || small.iter().filter(|met| met.depth > depth_min);
    let many = deeper().rfind(|met| met.depth <= MANY).or_else(|| deeper().next())?;
    let device_us = weighted_mean(many.windows.iter().copied(), device_latency_us);
    Some(Cap {
        unit,
        per_s,
        depth_min,
        depth_many: many.depth,
        latency_us: many.latency_us,
        alone_us: alone_us(log, CURVES[0], which)?,
        in_device: device_us.is_none_or(|us| us >= DEVICE_SHARE * many.latency_us),
        writes_too: writes_too.is_some(),
    })
}

/// Confirming points were chosen beyond the cap; that they are just so again is not asked.
fn beyond_min(which: Which) -> f64 {
    match which {
        Which::All => BEYOND,
        Which::Confirming(_) => 1.0,
    }
}

/// Whether a window says anything about the volume.
fn is_witness(replicate: &Replicate) -> bool {
    NO_WITNESS.iter().all(|&verdict| !carries(replicate, verdict))
}

fn windows<'a>(log: &Observed<'a>, id: &str, which: Which) -> Vec<&'a Replicate> {
    let all = log.replicates(id, which).into_iter().map(|(_, one)| one);
    all.filter(|one| is_witness(one)).collect()
}

fn alone_us(log: &Observed<'_>, curve: &str, which: Which) -> Option<f64> {
    let id = format!("{curve}1");
    weighted_mean(windows(log, &id, which), application_latency_us)
}

/// The points of a curve at which a single request's latency allows more than the best rate; `None`
/// where too few are left or their rates differ.
fn flat<'a>(log: &Observed<'a>, curve: &str, which: Which) -> Option<Vec<Met<'a>>> {
    let alone_us = alone_us(log, curve, which)?;
    let points: Vec<(Met<'a>, f64)> = DEPTHS
        .iter()
        .filter_map(|&depth| {
            let windows = windows(log, &format!("{curve}{depth}"), which);
            let latency_us = weighted_mean(windows.iter().copied(), application_latency_us)?;
            let rates: Vec<f64> =
                windows.iter().filter_map(|one| counted(one, Unit::Requests)).collect();
            let rate = rates.iter().sum::<f64>() / rates.len() as f64;
            Some((Met { depth, windows, latency_us }, rate))
        })
        .collect();
    let best = points.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
    let beyond = |depth: u32| f64::from(depth) * 1e6 / alone_us >= beyond_min(which) * best;
    let met: Vec<(Met<'a>, f64)> =
        points.into_iter().filter(|(met, _)| beyond(met.depth)).collect();
    let level = met.iter().all(|(_, rate)| *rate >= (1.0 - TOLERANCE) * best);
    (met.len() >= DEPTHS_MIN && level).then(|| met.into_iter().map(|(met, _)| met).collect())
}

/// What a window did per second, in the unit of a cap.
fn counted(replicate: &Replicate, unit: Unit) -> Option<f64> {
    let requests = metric_of(replicate)?.value;
    Some(requests * per_request(replicate, unit)?)
}

fn per_request(replicate: &Replicate, unit: Unit) -> Option<f64> {
    let spec: &IoSpec = &replicate.point.streams.first()?.spec;
    Some(match unit {
        Unit::Requests => 1.0,
        Unit::Bytes => f64::from(spec.block_bytes),
    })
}

/// The cap, where all windows ran at one even rate in this unit.
fn even(windows: &[&Replicate], unit: Unit, spread_max: f64) -> Option<Measured> {
    let figures: Vec<Measured> = windows
        .iter()
        .filter(|one| one.point.metric.op == OpKind::Read)
        .filter_map(|one| Some(metric_of(one)?.scaled(per_request(one, unit)?)))
        .collect();
    if figures.len() < WINDOWS_MIN {
        return None;
    }
    let cap = combine(&figures)?;
    let squares = figures.iter().map(|figure| (figure.value / cap.value - 1.0).powi(2));
    let spread = (squares.sum::<f64>() / (figures.len() - 1) as f64).sqrt();
    // Of few requests one more or less is a step of the count, not of the rate.
    let requests = windows.iter().filter_map(|one| {
        let stream = one.streams.first()?;
        Some(op_of(stream, OpKind::Read)?.ios as f64)
    });
    let step = 1.0 / median(requests.collect())?.max(1.0);
    (spread <= spread_max.max(step)).then_some(cap)
}
