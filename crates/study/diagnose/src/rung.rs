//! The ladder: one rung per measured point, from the device up.
//!
//! Invariant: every point with at least one usable replicate has exactly one rung; rungs of one
//! layer keep the order in which they were first measured.

use iostrata_plan::{Better, Layer};
use iostrata_run::{Replicate, Rung};
use iostrata_stats::{Measured, PAIRS_MIN, Verdict, Verdicts};

use crate::disturbed::carries;
use crate::figure::{
    agrees_with_depth, application_latency_us, combined, device_latency_us, range_of_few,
    weighted_mean,
};
use crate::observed::{EventIndex, PointLog};
use crate::verify::is_trial;

/// One rung per point, in ladder order.
pub(crate) fn rungs_of(log: &EventIndex<'_>) -> Vec<Rung> {
    // Points that only try out advice are shown with the verifications.
    let shown = log.points().iter().filter(|seen| !is_trial(&seen.point.id));
    // What was measured only before the rates fell stays visible as what it is.
    let fallen = log.fallen().iter().filter(|seen| !is_trial(&seen.point.id)).filter_map(|seen| {
        let mut rung = rung(seen)?;
        rung.verdicts.add(Verdict::BurstLimited);
        Some(rung)
    });
    let lasting = shown.filter_map(rung);
    let transactions = log.transactions().iter().filter_map(rung);
    let mut rungs: Vec<Rung> =
        clock_rung(log).into_iter().chain(lasting).chain(fallen).chain(transactions).collect();
    rungs.sort_by_key(|rung| rung.layer);
    rungs
}

/// What reading the clock costs, which every latency contains once.
fn clock_rung(log: &EventIndex<'_>) -> Option<Rung> {
    let (name, read_ns) = log.clock()?;
    Some(Rung {
        name: "clock_read".to_owned(),
        title: format!("reading the {name}"),
        layer: Layer::Host,
        value: read_ns.value,
        value_ci95: read_ns.ci95,
        value_n: read_ns.n,
        value_range: None,
        unit: "ns".to_owned(),
        better: Better::Lower,
        latency_us: None,
        device_latency_us: None,
        bound: None,
        verdicts: read_ns.verdicts.clone(),
    })
}

/// Half an interval from which a disturbance is taken to have moved a figure, relative to it.
const MOVED: f64 = 0.1;

/// The verdicts that change what may be concluded from a rung. What happened to few of its
/// replicates, or left them all alike, is covered by the interval between them; what concerns the
/// whole run is stated once, for the run.
fn decisive(seen: &PointLog<'_>, figure: &Measured) -> Verdicts {
    let replicates = seen.replicates.len();
    let several = replicates >= PAIRS_MIN;
    let moved = figure.relative_half_width() > MOVED;
    let of_half = |verdict| {
        let having = seen.replicates.iter().filter(|one| carries(one, verdict)).count();
        2 * having >= replicates
    };
    let changes = |verdict: &Verdict| match verdict {
        Verdict::ClockFallback | Verdict::MemlockLimited => false,
        Verdict::TooFewSamples => !several,
        Verdict::NotSteady | Verdict::BurstLimited | Verdict::Steal | Verdict::ForeignIo => {
            !several || (moved && of_half(*verdict))
        }
        Verdict::CpuLimited | Verdict::DepthNotReached => of_half(*verdict),
        _ => true,
    };
    figure.verdicts.iter().filter(changes).collect()
}

fn rung(seen: &PointLog<'_>) -> Option<Rung> {
    let all = || seen.replicates.iter().copied();
    let figure = combined(all())?;
    let mean = |value: fn(&Replicate) -> Option<f64>| {
        let us = weighted_mean(all(), value);
        us.filter(|&us| agrees_with_depth(seen.point, figure.value, us))
    };
    Some(Rung {
        name: seen.point.id.clone(),
        title: seen.point.title.clone(),
        layer: seen.point.layer,
        value: figure.value,
        value_ci95: figure.ci95,
        value_n: figure.n,
        value_range: range_of_few(all()),
        unit: seen.point.metric.unit.clone(),
        better: seen.point.metric.better,
        latency_us: mean(application_latency_us),
        device_latency_us: mean(device_latency_us),
        bound: None,
        verdicts: decisive(seen, &figure),
    })
}
