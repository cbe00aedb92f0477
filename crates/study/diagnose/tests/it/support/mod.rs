//! A made-up storage whose every figure is known, and the event log that probing it would leave.
//!
//! Purpose: inject one defect at a time and see what is reported. Invariant: the same disk and seed
//! always give the same log. The runner's part is played faithfully: suspicions are logged, their
//! confirming points measured again with new noise.

mod disk;
mod host;
mod plan;
mod random;
pub mod study;

use iostrata_diagnose::{ProbeEnd, summarise, suspect};
use iostrata_plan::Point;
use iostrata_run::{Event, Finding, ProbeDocument, ProbeHost};
use iostrata_stats::{Verdict, Verdicts};

pub use disk::Disk;
pub use host::{host, io_limit, layer};
pub use plan::plan;
pub use random::Random;

/// Replicates that confirm or clear a suspicion.
const CONFIRMATIONS: u32 = 4;

/// A probe of a disk: everything it stored, confirmations included.
pub fn probe(disk: &Disk, host: &ProbeHost, seed: u64) -> Vec<Event> {
    probe_with(disk, host, seed, |_| Verdicts::none())
}

/// The same with verdicts chosen by the point's id.
pub fn probe_with(
    disk: &Disk,
    host: &ProbeHost,
    seed: u64,
    verdicts: impl Fn(&str) -> Verdicts,
) -> Vec<Event> {
    probe_over_time(|_| disk.clone(), host, seed, verdicts)
}

/// A probe of a disk that changes: what it is at each second of the run.
pub fn probe_over_time(
    disk_at: impl Fn(f64) -> Disk,
    host: &ProbeHost,
    seed: u64,
    verdicts: impl Fn(&str) -> Verdicts,
) -> Vec<Event> {
    probe_of(plan(), disk_at, host, seed, verdicts)
}

/// A probe that measures nothing but these points.
pub fn probe_points(disk: &Disk, host: &ProbeHost, seed: u64, ids: &[&str]) -> Vec<Event> {
    let mut plan = plan();
    plan.iter_mut().for_each(|(points, _)| points.retain(|point| ids.contains(&&*point.id)));
    probe_of(plan, |_| disk.clone(), host, seed, |_| Verdicts::none())
}

fn probe_of(
    plan: Vec<(Vec<Point>, u32)>,
    disk_at: impl Fn(f64) -> Disk,
    host: &ProbeHost,
    seed: u64,
    verdicts: impl Fn(&str) -> Verdicts,
) -> Vec<Event> {
    let (mut random, mut events, mut now_s) = (Random::new(seed), Vec::new(), 0.0);
    let mut measure = |events: &mut Vec<Event>, points: &[Point], replicates: u32| {
        let first = next_replicate(events, points);
        for number in first..first + replicates {
            for point in points {
                let verdicts = verdicts(&point.id);
                let mut one = disk_at(now_s).measure(point, number, &mut random, &verdicts);
                one.started_s = now_s;
                now_s += one.duration_s + 0.1;
                events.push(Event::Replicate(Box::new(one)));
            }
        }
    };
    for (points, replicates) in plan {
        measure(&mut events, &points, replicates);
    }
    for suspicion in suspect(&events, host) {
        let confirm = suspicion.confirm.iter().map(|point| point.id.clone()).collect();
        events.push(Event::Suspected { id: suspicion.id.to_owned(), confirm });
        measure(&mut events, &suspicion.confirm, CONFIRMATIONS);
    }
    events.push(Event::Finished { at_s: 100.0, bytes_written: 1 << 30 });
    events
}

fn next_replicate(events: &[Event], points: &[iostrata_plan::Point]) -> u32 {
    let used = events.iter().filter_map(|event| match event {
        Event::Replicate(one) if points.iter().any(|point| point.id == one.point.id) => {
            Some(one.replicate + 1)
        }
        _ => None,
    });
    used.max().unwrap_or(0)
}

/// The document of a whole probe of a disk.
pub fn document(disk: &Disk, host: &ProbeHost, seed: u64) -> ProbeDocument {
    summarise(host.clone(), &probe(disk, host, seed), ProbeEnd::default())
}

/// The finding with this id.
pub fn found<'d>(document: &'d ProbeDocument, id: &str) -> Option<&'d Finding> {
    document.findings.iter().find(|finding| finding.id == id)
}

/// The ids of all findings of a kind that takes performance away.
pub fn loss_ids(document: &ProbeDocument) -> Vec<&str> {
    let losses = document.findings.iter().filter(|one| one.effect_pct.is_some());
    losses.map(|one| one.id.as_str()).collect()
}

/// Only this verdict.
pub fn only(verdict: Verdict) -> Verdicts {
    [verdict].into_iter().collect()
}
