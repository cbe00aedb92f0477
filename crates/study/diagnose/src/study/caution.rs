//! Which cautions a point of a study carries: those that change what may be concluded from it.
//!
//! Method: what only a single replicate shows is covered by the interval between replicates, so
//! that it counts where at least half of them show it; that a window was not steady or had few
//! samples adds nothing to that interval; and what the study itself requests, such as a limit that
//! holds requests back, is no caution. The events keep everything.

use iostrata_plan::Pacing;
use iostrata_plan::study::{Cell, IoLimits};
use iostrata_run::Replicate;
use iostrata_stats::{Verdict, Verdicts};

use crate::figure::metric_of;

/// From so many replicates on the interval between them is known.
const REPLICATES_MIN: usize = 3;
/// What passes: one replicate may have it and the next not.
const PASSING: [Verdict; 6] = [
    Verdict::BurstLimited,
    Verdict::CpuLimited,
    Verdict::DepthNotReached,
    Verdict::ForeignIo,
    Verdict::Steal,
    Verdict::Throttled,
];
/// What the interval between replicates covers better.
const WITHIN_ONE: [Verdict; 2] = [Verdict::NotSteady, Verdict::TooFewSamples];

/// The cautions of a point with these replicates.
pub(crate) fn cautions(cell: &Cell, replicates: &[&Replicate]) -> Verdicts {
    let each: Vec<Verdicts> =
        replicates.iter().filter_map(|one| Some(metric_of(one)?.verdicts)).collect();
    let having = |verdict: Verdict| each.iter().filter(|one| one.has(verdict)).count();
    let has_interval = each.len() >= REPLICATES_MIN;
    let counts = |verdict: &Verdict| {
        let is_passing = PASSING.contains(verdict) && 2 * having(*verdict) < each.len();
        let is_within = WITHIN_ONE.contains(verdict);
        !(has_interval && (is_passing || is_within)) && !is_asked_for(cell, *verdict)
    };
    each.iter().flat_map(Verdicts::iter).filter(counts).collect()
}

/// An effect is one over many points: it carries what most of them do.
pub(crate) fn keep_shared(verdicts: &mut Verdicts, shared: &Verdicts) {
    *verdicts = verdicts.iter().filter(|verdict| shared.has(*verdict)).collect();
}

fn is_scheduled(cell: &Cell) -> bool {
    match &cell.transactions {
        Some(load) => load.pacing.is_scheduled(),
        None => cell.workload.pacing != Pacing::Closed,
    }
}

/// Whether a point is as it is because its study wants it so.
fn is_asked_for(cell: &Cell, verdict: Verdict) -> bool {
    let is_limited = cell.conditions.io_limits != IoLimits::default();
    match verdict {
        Verdict::Throttled => is_limited,
        // On a schedule, as many are in flight as have come.
        Verdict::DepthNotReached => is_limited || is_scheduled(cell),
        _ => false,
    }
}
