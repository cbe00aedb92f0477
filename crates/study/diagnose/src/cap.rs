//! Whether the volume is capped: a rate that neither depth nor size nor direction of the requests
//! changes.
//!
//! Method: reads run at one even rate from the depth on at which the latency of a single request
//! would allow a third more. Requests per second are capped where both sizes have the same rate,
//! bytes per second where they have the same bandwidth, both where the small size ends at a rate
//! and the large one at a bandwidth. Writes that go beyond speak against it, those that end there
//! bear witness, and those below prove nothing: too few may have been in flight, or they have a cap
//! of their own.
//! Invariant: a device that is busy is no cap. Its rate differs with size and direction, rises with
//! depth, or is not even; one that the processors or others held back is not considered. Where the
//! hypervisor took time and processors stayed idle, the windows that it held up are trimmed: the
//! others still show the gate.

use iostrata_plan::{IoSpec, OpKind, rung};
use iostrata_run::Replicate;
use iostrata_stats::{Measured, Verdict, combine};

use crate::disturbed::carries;
use crate::figure::{
    application_latency_us, device_latency_us, median, metric_of, op_of, weighted_mean,
};
use crate::observed::{EventIndex, Which};

/// Curves of reads, the smaller size first.
pub(crate) const CURVES: [&str; 2] = ["read_4k_depth_", "read_16k_depth_"];
/// Requests in flight that are many enough to show how long they wait.
const MANY: u32 = 32;
const DEPTHS: [u32; 7] = [2, 4, 8, 16, 32, 64, 128];
/// Random writes with several in flight.
const WRITES: [&str; 4] =
    [rung::WRITE_16K_FILES_8, rung::WRITE_16K_FILES_4, "reference_write", rung::SUSTAINED_16K];
/// The least and the most writes in flight, and how many the former are.
const WRITES_FEW: &str = rung::WRITE_16K_FILES_8;
const WRITES_MANY: &str = rung::SUSTAINED_16K;
const FEW: f64 = 8.0;
/// What a single request's latency must allow over the cap for a depth to meet it.
const BEYOND: f64 = 1.33;
/// Depths of each curve that must have met the cap.
const DEPTHS_MIN: usize = 2;
/// The same where no writes bear witness.
const DEPTHS_MIN_READS_ALONE: usize = 3;
/// How far a point may lie from the cap.
const TOLERANCE: f64 = 0.05;
/// How far writes may: the file system's own requests pass the same gate.
const WRITE_TOLERANCE: f64 = 0.08;
/// Standard deviation of the rates of single windows over the cap: a gate opens evenly, a busy
/// device does not.
const SPREAD_MAX: f64 = 0.025;
/// The same once windows that were held up are trimmed: that makes any rate more even.
const SPREAD_MAX_TRIMMED: f64 = 0.015;
/// The same where no writes bear witness.
const SPREAD_MAX_READS_ALONE: f64 = 0.01;
/// Windows behind a cap at least.
const WINDOWS_MIN: usize = 6;
/// Share of the latency that the device accounts for where the cap is its own.
const DEVICE_SHARE: f64 = 0.5;
/// Verdicts after which a rate proves nothing about a cap of the volume.
const NO_WITNESS: [Verdict; 6] = [
    Verdict::Cached,
    Verdict::CpuLimited,
    Verdict::DirectIgnored,
    Verdict::ForeignIo,
    Verdict::Sparse,
    Verdict::Throttled,
];
/// With this much of the processors idle, steal did not set the pace, in percent.
const IDLE_PCT_MIN: f64 = 25.0;

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
    /// Bytes per second at which the larger reads end, where those are capped apart.
    pub bytes_per_s: Option<Measured>,
    /// Writes per second at which writes end, where that is fewer.
    pub writes_per_s: Option<f64>,
    /// The fewest requests in flight that meet it, of either size.
    pub depth_min: u32,
    /// More of them, for comparison.
    pub depth_many: u32,
    /// Mean latency with that many in flight, in microseconds.
    pub latency_us: f64,
    /// Mean latency of one request alone, in microseconds.
    pub alone_us: f64,
    /// Whether the time is spent in the device, by its own counters.
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
pub(crate) fn cap(log: &EventIndex<'_>, which: Which) -> Option<Cap> {
    let [small, large] = CURVES.map(|curve| flat(log, curve, which));
    let (small, large) = (small?, large?);
    let gate = [Unit::Requests, Unit::Bytes]
        .into_iter()
        .find_map(|unit| Gate::common(&small, &large, unit))
        .or_else(|| Gate::apart(&small, &large))?;
    let written = written(log, &gate);
    if written == WriteEvidence::Beyond {
        return None;
    }
    let depths = small.len().min(large.len());
    let is_confirming = which != Which::All;
    // Two gates at once are as rare as a drive that is bound by its link is common.
    let is_witnessed = written == WriteEvidence::AtTheCap && gate.bytes_per_s.is_none();
    if !is_witnessed
        && (gate.spread > SPREAD_MAX_READS_ALONE.max(gate.step)
            || !is_confirming && depths < DEPTHS_MIN_READS_ALONE)
    {
        return None;
    }
    let depth_min = small[0].depth.max(large[0].depth);
    let deeper = || small.iter().filter(|met| met.depth > depth_min);
    let many = deeper().rfind(|met| met.depth <= MANY).or_else(|| deeper().next())?;
    let device_us = weighted_mean(many.windows.iter().copied(), device_latency_us);
    let writes_per_s = own_writes_per_s(log).filter(|_| written == WriteEvidence::Below);
    Some(Cap {
        unit: gate.unit,
        per_s: gate.per_s,
        bytes_per_s: gate.bytes_per_s,
        writes_per_s,
        depth_min,
        depth_many: many.depth,
        latency_us: many.latency_us,
        alone_us: alone_us(log, CURVES[0], which)?,
        in_device: device_us.is_none_or(|us| us >= DEVICE_SHARE * many.latency_us),
        writes_too: written == WriteEvidence::AtTheCap,
    })
}

/// A rate that lets through evenly.
struct Gate {
    unit: Unit,
    per_s: Measured,
    bytes_per_s: Option<Measured>,
    /// Standard deviation of single windows over the mean, and what one request more makes of it.
    spread: f64,
    step: f64,
}

impl Gate {
    /// One rate for both sizes.
    fn common(small: &[Met<'_>], large: &[Met<'_>], unit: Unit) -> Option<Self> {
        let all: Vec<&Replicate> = windows_of(small).chain(windows_of(large)).collect();
        let (per_s, spread, step) = even(&all, unit)?;
        Some(Self { unit, per_s, bytes_per_s: None, spread, step })
    }

    /// Requests for the small size, bytes for the large one: each carries more of the other unit
    /// than its own cap would let it.
    fn apart(small: &[Met<'_>], large: &[Met<'_>]) -> Option<Self> {
        let (small, large): (Vec<_>, Vec<_>) =
            (windows_of(small).collect(), windows_of(large).collect());
        let (per_s, spread, step) = even(&small, Unit::Requests)?;
        let (bytes_per_s, spread_large, step_large) = even(&large, Unit::Bytes)?;
        let bytes_of_small = per_s.value * per_request(small.first()?, Unit::Bytes)?;
        let requests_of_large = bytes_per_s.value / per_request(large.first()?, Unit::Bytes)?;
        let is_apart = bytes_per_s.value > (1.0 + TOLERANCE) * bytes_of_small
            && requests_of_large < (1.0 - TOLERANCE) * per_s.value;
        is_apart.then_some(Self {
            unit: Unit::Requests,
            per_s,
            bytes_per_s: Some(bytes_per_s),
            spread: spread.max(spread_large),
            step: step.max(step_large),
        })
    }
}

fn windows_of<'m, 'a: 'm>(met: &'m [Met<'a>]) -> impl Iterator<Item = &'a Replicate> + 'm {
    met.iter().flat_map(|met| met.windows.iter().copied())
}

/// The evidence of random writes about a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WriteEvidence {
    /// They went beyond it.
    Beyond,
    /// They ended there, too.
    AtTheCap,
    /// They stayed below, or there are none.
    Below,
}

fn written(log: &EventIndex<'_>, gate: &Gate) -> WriteEvidence {
    // Writes have the larger size.
    let (unit, most) = match &gate.bytes_per_s {
        Some(bytes) => (Unit::Bytes, bytes.value),
        None => (gate.unit, gate.per_s.value),
    };
    let rates = WRITES.iter().filter_map(|id| {
        let windows = windows(log, id, Which::All);
        median(windows.iter().filter_map(|one| counted(one, unit)).collect())
    });
    let shares: Vec<f64> = rates.map(|rate| rate / most - 1.0).collect();
    if shares.iter().any(|share| *share > WRITE_TOLERANCE) {
        WriteEvidence::Beyond
    } else if shares.iter().any(|share| *share >= -WRITE_TOLERANCE) {
        WriteEvidence::AtTheCap
    } else {
        WriteEvidence::Below
    }
}

/// The rate at which writes end: the same with few and with many in flight, although the latency of
/// one alone would allow a third more of the few.
fn own_writes_per_s(log: &EventIndex<'_>) -> Option<f64> {
    let rate = |id: &str| {
        let windows = windows(log, id, Which::All);
        median(windows.iter().filter_map(|one| counted(one, Unit::Requests)).collect())
    };
    let (few, many) = (rate(WRITES_FEW)?, rate(WRITES_MANY)?);
    let alone = windows(log, rung::OVERWRITE_16K, Which::All);
    let alone_us = weighted_mean(alone, application_latency_us)?;
    let is_level = (few / many - 1.0).abs() <= TOLERANCE;
    (is_level && FEW * 1e6 / alone_us >= BEYOND * few).then_some(many)
}

/// Confirming points were chosen beyond the cap; they need not be as far beyond it again.
fn beyond_min(which: Which) -> f64 {
    match which {
        Which::All => BEYOND,
        Which::Confirming(_) => 1.0,
    }
}

/// Whether a window is evidence about the volume.
fn is_witness(replicate: &Replicate) -> bool {
    let cpu = replicate.evidence.as_ref().and_then(|evidence| evidence.cpu.as_ref());
    let was_idle = cpu.is_some_and(|cpu| cpu.idle_pct + cpu.iowait_pct >= IDLE_PCT_MIN);
    NO_WITNESS.iter().all(|&verdict| !carries(replicate, verdict))
        && (was_idle || !carries(replicate, Verdict::Steal))
}

fn windows<'a>(log: &EventIndex<'a>, id: &str, which: Which) -> Vec<&'a Replicate> {
    let all = log.replicates(id, which).into_iter().map(|(_, one)| one);
    all.filter(|one| is_witness(one)).collect()
}

fn alone_us(log: &EventIndex<'_>, curve: &str, which: Which) -> Option<f64> {
    let id = format!("{curve}1");
    weighted_mean(windows(log, &id, which), application_latency_us)
}

/// The points of a curve at which a single request's latency allows more than the best rate; `None`
/// where too few are left or their rates differ.
fn flat<'a>(log: &EventIndex<'a>, curve: &str, which: Which) -> Option<Vec<Met<'a>>> {
    let alone_us = alone_us(log, curve, which)?;
    let points: Vec<(Met<'a>, f64)> = DEPTHS
        .iter()
        .filter_map(|&depth| {
            let windows = windows(log, &format!("{curve}{depth}"), which);
            let latency_us = weighted_mean(windows.iter().copied(), application_latency_us)?;
            let rates: Vec<f64> =
                windows.iter().filter_map(|one| counted(one, Unit::Requests)).collect();
            // Of windows that were held up the quickest was held up least.
            let rate = if windows.iter().any(|one| carries(one, Verdict::Steal)) {
                rates.iter().copied().fold(0.0, f64::max)
            } else {
                rates.iter().sum::<f64>() / rates.len() as f64
            };
            Some((Met { depth, windows, latency_us }, rate))
        })
        .collect();
    let best = points.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
    let beyond = |depth: u32| f64::from(depth) * 1e6 / alone_us >= beyond_min(which) * best;
    let is_level = |rate: f64| rate >= (1.0 - TOLERANCE) * best;
    let is_held_up = |met: &Met<'_>| met.windows.iter().all(|one| carries(one, Verdict::Steal));
    let met: Vec<(Met<'a>, f64)> = points
        .into_iter()
        .filter(|(met, rate)| beyond(met.depth) && (is_level(*rate) || !is_held_up(met)))
        .collect();
    let are_level = met.iter().all(|(_, rate)| is_level(*rate));
    (met.len() >= DEPTHS_MIN && are_level).then(|| met.into_iter().map(|(met, _)| met).collect())
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

/// The mean rate of windows in a unit, their standard deviation over it, and what one request more
/// or less is of a window; `None` where they are few or uneven.
fn even(windows: &[&Replicate], unit: Unit) -> Option<(Measured, f64, f64)> {
    let mut rates: Vec<(&Replicate, Measured)> = windows
        .iter()
        .filter(|one| one.point.metric.op == OpKind::Read)
        .filter_map(|one| Some((*one, metric_of(one)?.scaled(per_request(one, unit)?))))
        .collect();
    let middle = median(rates.iter().map(|(_, rate)| rate.value).collect())?;
    let all = rates.len();
    rates.retain(|(one, rate)| {
        !carries(one, Verdict::Steal) || rate.value >= (1.0 - SPREAD_MAX) * middle
    });
    let spread_max = if rates.len() < all { SPREAD_MAX_TRIMMED } else { SPREAD_MAX };
    if rates.len() < WINDOWS_MIN {
        return None;
    }
    let figures: Vec<Measured> = rates.into_iter().map(|(_, rate)| rate).collect();
    let cap = combine(&figures)?;
    let squares = figures.iter().map(|figure| (figure.value / cap.value - 1.0).powi(2));
    let spread = (squares.sum::<f64>() / (figures.len() - 1) as f64).sqrt();
    // Of few requests one more or less is a step of the count, not of the rate.
    let requests = windows.iter().filter_map(|one| {
        let stream = one.streams.first()?;
        Some(op_of(stream, OpKind::Read)?.ios as f64)
    });
    let step = 1.0 / median(requests.collect())?.max(1.0);
    (spread <= spread_max.max(step)).then_some((cap, spread, step))
}
