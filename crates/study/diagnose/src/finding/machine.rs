//! What the machine around the storage did to the figures.
//!
//! Invariant: each is a count of what happened in this run, never a guess about its cause.

use std::collections::BTreeMap;

use iostrata_plan::Layer;
use iostrata_run::Replicate;
use iostrata_stats::Verdict;
use iostrata_stats::units::percent;

use super::quota;
use crate::case::Case;
use crate::disturbed::{carries, is_widespread};
use crate::figure::median;
use crate::statement::Statement;

/// Most processes that are named.
const NAMED_MAX: usize = 3;

/// The replicates that carry a verdict, and how many there are in all; `None` when too few do, or
/// all of one point.
fn hit<'a>(case: &Case<'_, 'a>, verdict: Verdict) -> Option<(Vec<&'a Replicate>, usize)> {
    let all = case.log.all_replicates();
    let hit: Vec<&'a Replicate> = all.iter().copied().filter(|one| carries(one, verdict)).collect();
    is_widespread(&hit, all.len()).then_some((hit, all.len()))
}

/// A process seen during measurements.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Suspect {
    /// Measurements in which it did I/O.
    windows: usize,
    /// Its share of what other processes did, summed over the measurements: often and much.
    weight: f64,
}

/// The processes that did most of the foreign I/O over all measurements, the first first. A
/// process that is there in every window outranks one that was large once.
fn suspects<'a>(hit: &[&'a Replicate]) -> Vec<(&'a str, Suspect)> {
    let mut seen: BTreeMap<&str, Suspect> = BTreeMap::new();
    for foreign in hit.iter().filter_map(|one| one.evidence.as_ref()?.foreign.as_ref()) {
        let mut by_name: BTreeMap<&str, f64> = BTreeMap::new();
        for process in &foreign.processes {
            let bytes_per_s = process.read_bytes_per_s + process.write_bytes_per_s;
            *by_name.entry(process.comm.as_str()).or_default() += bytes_per_s;
        }
        let all: f64 = by_name.values().sum();
        for (name, bytes_per_s) in by_name.into_iter().filter(|(_, bytes)| *bytes > 0.0) {
            let suspect = seen.entry(name).or_default();
            suspect.windows += 1;
            suspect.weight += bytes_per_s / all;
        }
    }
    let mut ranked: Vec<(&str, Suspect)> = seen.into_iter().collect();
    ranked.sort_by(|a, b| b.1.weight.total_cmp(&a.1.weight));
    ranked
}

pub(crate) fn foreign_io(case: &Case<'_, '_>) -> Option<Statement> {
    let (hit, all) = hit(case, Verdict::ForeignIo)?;
    let ranked = suspects(&hit);
    let named = ranked.iter().take(NAMED_MAX);
    let names: Vec<&str> = named.clone().map(|&(name, _)| name).collect();
    let windows: Vec<u64> = named.clone().map(|(_, suspect)| suspect.windows as u64).collect();
    let each: Vec<String> =
        named.map(|(name, suspect)| format!("{name} in {}", suspect.windows)).collect();
    let who = if each.is_empty() { String::new() } else { format!(" ({})", each.join(", ")) };
    let text = format!(
        "Other processes used the device during {} of {all} measurements{who}: figures are lower \
         and less certain than on a quiet machine.",
        hit.len()
    );
    let found = Statement::new(Layer::Host, hit.len() as u64, text);
    Some(
        found
            .with("disturbed", hit.len() as u64)
            .with("measured", all as u64)
            .with("processes", names)
            .with("process_windows", windows),
    )
}

pub(crate) fn steal(case: &Case<'_, '_>) -> Option<Statement> {
    let (hit, all) = hit(case, Verdict::Steal)?;
    let stolen =
        median(hit.iter().filter_map(|one| Some(one.evidence.as_ref()?.cpu?.steal_pct)).collect());
    let much = stolen.map_or_else(|| "Steal".to_owned(), |pct| format!("{} steal", percent(pct)));
    let text = format!(
        "{much} in {} of {all} measurements: latencies contain waiting for the hypervisor, not for \
         the storage.",
        hit.len()
    );
    let found = Statement::new(Layer::Host, hit.len() as u64, text);
    Some(
        found
            .with("disturbed", hit.len() as u64)
            .with("measured", all as u64)
            .with_some("steal_pct", stolen),
    )
}

pub(crate) fn cpu_bound(case: &Case<'_, '_>) -> Option<Statement> {
    let measured = case.log.all_replicates();
    let busy = |one: &Replicate| carries(one, Verdict::CpuLimited) && !quota::is_held_back(one);
    let hit: Vec<&Replicate> = measured.iter().copied().filter(|one| busy(one)).collect();
    let all = measured.len();
    if !is_widespread(&hit, all) {
        return None;
    }
    let cpus = case.host.machine.cpus_allowed.or(case.host.machine.cpus);
    let on = cpus.map(|cpus| format!(" on {cpus} processors")).unwrap_or_default();
    let text = format!(
        "The processors were busy in {} of {all} measurements{on}: there the storage could have done \
         more than the figures say.",
        hit.len()
    );
    let found = Statement::new(Layer::Host, hit.len() as u64, text);
    Some(
        found
            .with("limited", hit.len() as u64)
            .with("measured", all as u64)
            .with_some("cpus", cpus),
    )
}
