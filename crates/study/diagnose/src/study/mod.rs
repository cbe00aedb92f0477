//! The whole document of a study from its plan and its event log.
//!
//! Invariant: it works on any part of a log (interrupted, points missing) and states nothing about
//! what was not measured. Pure.

mod answer;
mod axis;
mod busy;
mod caution;
mod difference;
mod effect;
pub(crate) mod finding;
mod headline;
pub(crate) mod layer_loss;
mod points;
mod queue;
pub(crate) mod queue_finding;
pub(crate) mod response;
mod sentence;
mod sides;
mod single_effects;
mod stolen;
mod then;
mod transactions;

use std::collections::BTreeMap;

use iostrata_plan::Layer;
use iostrata_plan::study::StudyPlan;
use iostrata_run::{ChangeRecord, Event, ProbeHost, StudyDocument, StudyPoint, Unavailable};
use serde_json::json;

use crate::ProbeEnd;
use crate::case::StudyCase;
use crate::observed::PointLog;
use crate::rules::statements_of;
pub use stolen::is_lost_to_steal;

/// The summary of a study's events.
pub fn summarise_study(
    host: ProbeHost,
    plan: &StudyPlan,
    events: &[Event],
    end: ProbeEnd,
) -> StudyDocument {
    let seen = points::by_point(events);
    let points = points::points(plan, &seen);
    let (mut effects, interactions) = effect::effects_of(plan, &seen);
    let shared = points::run_verdicts(&points);
    effects.iter_mut().for_each(|one| caution::keep_shared(&mut one.verdicts, &shared));
    let axes = axis::axes_of(plan, &seen, &points);
    let queue_changes = queue::queue_changes(plan, &seen, &points);
    let unavailable = unavailable(events);
    let findings = statements_of(&StudyCase {
        plan,
        seen: &seen,
        points: &points,
        effects: &effects,
        axes: &axes,
        changes: &queue_changes,
        unavailable: &unavailable,
    });
    let mut document = StudyDocument {
        study: plan.name.clone(),
        title: plan.title.clone(),
        question: plan.question.clone(),
        extent: plan.extent,
        host,
        headline: Vec::new(),
        answers: answer::answers_of(plan, &seen, &points, &findings),
        factors: plan.factors.clone(),
        findings,
        then_source: plan.then.as_ref().map(|then| then.source.clone()),
        then_machine: plan.then.as_ref().map(|then| then.machine.clone()),
        then: then::rows(plan.then.as_ref(), &points),
        changes: changes(events),
        unavailable,
        precise_pct: precise_pct(plan, &points),
        precision: plan.measuring.precision,
        replicates_dropped: dropped(plan, &seen),
        duration_s: end.duration_s,
        fixed_minute_s: plan.fixed_minute_s(),
        bytes_written: end.bytes_written,
        interrupted: end.interrupted,
        verdicts: shared,
        method: method(events, &seen, &points),
        layers: vec![Layer::Device, Layer::Block, Layer::Limit, Layer::Filesystem, Layer::FileApi],
        report: None,
        points,
        unknown: Vec::new(),
        effects,
        interactions,
        axes,
        queue_changes,
    };
    document.check();
    document.headline = headline::headline(&document);
    document
}

fn changes(events: &[Event]) -> Vec<ChangeRecord> {
    let change = |event: &Event| match event {
        Event::Changed(change) => Some(change.clone()),
        _ => None,
    };
    events.iter().filter_map(change).collect()
}

fn unavailable(events: &[Event]) -> Vec<Unavailable> {
    let mut all: Vec<Unavailable> = Vec::new();
    for event in events {
        if let Event::Unavailable(one) = event
            && !all.contains(one)
        {
            all.push(one.clone());
        }
    }
    all
}

fn precise_pct(plan: &StudyPlan, points: &[StudyPoint]) -> f64 {
    let is_precise = |point: &&StudyPoint| {
        point
            .value_ci95
            .is_some_and(|[low, high]| (high - low) / 2.0 <= plan.measuring.precision * point.value)
    };
    100.0 * points.iter().filter(is_precise).count() as f64 / points.len().max(1) as f64
}

/// Planned replicates that are missing, over the points that were measured.
fn dropped(plan: &StudyPlan, seen: &BTreeMap<&str, PointLog<'_>>) -> u64 {
    let planned = u64::from(plan.measuring.replicates);
    let missing = |id: &str| {
        let have =
            seen.get(id).map_or(0, |seen| seen.replicates.len() as u64 + u64::from(seen.left_out));
        if have == 0 { 0 } else { planned.saturating_sub(have) }
    };
    plan.cells.iter().map(|cell| missing(&cell.id)).sum()
}

/// Figures of the method: what clock and tracing cost, what the loop device can do.
fn method(
    events: &[Event],
    seen: &BTreeMap<&str, PointLog<'_>>,
    points: &[StudyPoint],
) -> BTreeMap<String, serde_json::Value> {
    let mut method = BTreeMap::new();
    for event in events {
        if let Event::Clock { name, read_ns, .. } = event {
            method.insert("clock".to_owned(), json!(name));
            method.insert("clock_read_ns".to_owned(), json!(read_ns.value));
        }
    }
    for (id, seen) in seen.iter().filter(|(id, _)| id.starts_with("ceiling_")) {
        if let Some(figure) = seen.figure() {
            method.insert(format!("{id}_iops"), json!(figure.value));
            method.insert(format!("{id}_iops_ci95"), json!(figure.ci95));
            method.insert(format!("{id}_iops_n"), json!(figure.n));
        }
    }
    let ratio = |point: &StudyPoint| {
        let traced = seen.get(point.id.as_str())?.traced?;
        (point.value > 0.0 && traced.iops > 0.0).then(|| traced.iops / point.value)
    };
    let ratios: Vec<f64> = points.iter().filter_map(ratio).collect();
    if !ratios.is_empty() {
        let mean = ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64;
        method.insert("traced_over_measured".to_owned(), json!(mean.exp()));
        method.insert("traced_points".to_owned(), json!(ratios.len()));
    }
    method
}
