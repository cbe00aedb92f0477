//! What the machine around the storage did to the figures.
//!
//! Invariant: each is a count of what happened in this run, never a guess about its cause.

use std::collections::BTreeMap;

use iostrata_run::{Finding, Replicate};
use iostrata_spec::Layer;
use iostrata_stats::Verdict;
use iostrata_units::percent;

use super::statement::{WithEvidence, caution};
use super::{Case, FindingId};
use crate::compared::carries;
use crate::figure::median;

/// Replicates that must have been hit.
const REPLICATES_MIN: usize = 3;
/// Share of all replicates that must have been hit.
const SHARE_MIN: f64 = 0.1;

/// The replicates that carry a verdict, and how many there are in all; `None` when too few do, or
/// all of one point.
fn hit<'a>(case: &Case<'_, 'a>, verdict: Verdict) -> Option<(Vec<&'a Replicate>, usize)> {
    let all: Vec<&'a Replicate> =
        case.log.points().iter().flat_map(|seen| seen.replicates.iter().copied()).collect();
    let hit: Vec<&'a Replicate> = all.iter().copied().filter(|one| carries(one, verdict)).collect();
    let first = hit.first()?.point.id.as_str();
    let several = hit.iter().any(|one| one.point.id != first);
    let enough = hit.len() >= REPLICATES_MIN && hit.len() as f64 >= SHARE_MIN * all.len() as f64;
    (several && enough).then_some((hit, all.len()))
}

pub(super) fn foreign_io(case: &Case<'_, '_>) -> Option<Finding> {
    let (hit, all) = hit(case, Verdict::ForeignIo)?;
    let mut seen: BTreeMap<&str, f64> = BTreeMap::new();
    for process in hit
        .iter()
        .filter_map(|one| one.evidence.as_ref()?.foreign.as_ref())
        .flat_map(|f| &f.processes)
    {
        let most = seen.entry(process.comm.as_str()).or_default();
        *most = most.max(process.read_bytes_per_s + process.write_bytes_per_s);
    }
    let mut named: Vec<(&str, f64)> = seen.into_iter().collect();
    named.sort_by(|a, b| b.1.total_cmp(&a.1));
    let names: Vec<&str> = named.iter().take(3).map(|&(name, _)| name).collect();
    let who = if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) };
    let text = format!(
        "Other processes{who} used the device during {} of {all} measurements: figures are lower \
         and less certain than on a quiet machine.",
        hit.len()
    );
    let found = caution(FindingId::ForeignIo, Layer::Host, hit.len() as u64, text);
    Some(
        found
            .with("disturbed", hit.len() as u64)
            .with("measured", all as u64)
            .with("processes", names),
    )
}

pub(super) fn steal(case: &Case<'_, '_>) -> Option<Finding> {
    let (hit, all) = hit(case, Verdict::Steal)?;
    let stolen =
        median(hit.iter().filter_map(|one| Some(one.evidence.as_ref()?.cpu?.steal_pct)).collect());
    let much = stolen.map(|pct| format!(" ({} of them)", percent(pct))).unwrap_or_default();
    let text = format!(
        "The hypervisor took the processors away{much} during {} of {all} measurements: latencies \
         contain waiting that is not the storage's.",
        hit.len()
    );
    let found = caution(FindingId::Steal, Layer::Host, hit.len() as u64, text);
    Some(
        found
            .with("disturbed", hit.len() as u64)
            .with("measured", all as u64)
            .with_some("steal_pct", stolen),
    )
}

pub(super) fn cpu_bound(case: &Case<'_, '_>) -> Option<Finding> {
    let (hit, all) = hit(case, Verdict::CpuLimited)?;
    let cpus = case.host.machine.cpus_allowed.or(case.host.machine.cpus);
    let on = cpus.map(|cpus| format!(" on {cpus} processors")).unwrap_or_default();
    let text = format!(
        "The processors were busy in {} of {all} measurements{on}: there the storage could have done \
         more than the figures say.",
        hit.len()
    );
    let found = caution(FindingId::CpuBoundHost, Layer::Host, hit.len() as u64, text);
    Some(
        found
            .with("limited", hit.len() as u64)
            .with("measured", all as u64)
            .with_some("cpus", cpus),
    )
}
