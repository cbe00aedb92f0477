//! How long requests wait as a given rate comes near what a limit lets through, and how fast their
//! queue grows beyond it.
//!
//! Invariant: only points with a schedule have a response time; it runs from the scheduled start.

use std::collections::BTreeMap;

use iostrata_plan::study::setting::{Setting, SettingValue};
use iostrata_plan::study::{Cell, LevelAt};
use iostrata_plan::{Layer, OpKind, Pacing, Rw, Words};
use iostrata_run::{StudyAxis, StudyBacklog, StudyOp, StudyPoint, StudyResponse};
use iostrata_stats::units::{count, microseconds, seconds};
use iostrata_stats::{LatencyUs, Measured, combine};
use serde_json::json;

use super::points::figures;
use crate::case::{NamedStatement, StudyCase};
use crate::observed::PointLog;
use crate::statement::Statement;

/// Its name in the catalogue.
pub(crate) const RESPONSE: &str = "response_at_rate";
/// The factor whose levels are rates, in percent of the limit.
pub(crate) const RATE: &str = "rate_pct";
/// Where responses are so many times the shortest, requests wait.
const KNEE_TIMES: f64 = 3.0;
/// Requests that come are more than those that are done where this share of them is not done at
/// least: arrivals at random are never exactly as many as requested.
const UNDONE_SHARE_MIN: f64 = 0.02;

/// The response times of the points of an axis of rates, given as level and id by rising level.
pub(crate) fn response(
    factor: &str,
    places: &[(f64, &str)],
    cells: &[&Cell],
    seen: &BTreeMap<&str, PointLog<'_>>,
    points: &[StudyPoint],
) -> Option<StudyResponse> {
    if factor != RATE {
        return None;
    }
    let at = |&(level, id): &(f64, &str)| {
        let point = points.iter().find(|point| point.id == id)?;
        let cell = cells.iter().find(|cell| cell.id == id)?;
        Some((level, point, *cell, main_op(point)?.response_us?))
    };
    let all: Vec<(f64, &StudyPoint, &Cell, LatencyUs)> =
        places.iter().map(at).collect::<Option<_>>()?;
    let lowest_us = all.iter().map(|one| one.3.p99).fold(f64::INFINITY, f64::min);
    let waits = |one: &&(f64, &StudyPoint, &Cell, LatencyUs)| one.3.p99 > KNEE_TIMES * lowest_us;
    // From there on: what only one rate in the middle shows came from elsewhere.
    let knee = all.iter().rev().take_while(waits).last().map(|one| one.0);
    let mut backlogs = all.iter().filter_map(|(level, point, cell, response)| {
        let (per_s, per_s_ci95) = growth(seen.get(cell.id.as_str())?, cell)?;
        Some(StudyBacklog {
            at: *level,
            per_s,
            per_s_ci95,
            window_s: point.measured_s / f64::from(point.replicates.max(1)),
            wait_us_max: response.max,
        })
    });
    Some(StudyResponse {
        mean_us: all.iter().map(|one| one.3.mean).collect(),
        p99_us: all.iter().map(|one| one.3.p99).collect(),
        p99_us_ci95: all.iter().map(|one| p99_us_ci95(one.1)).collect(),
        knee,
        backlog: backlogs.next_back(),
    })
}

fn p99_us_ci95(point: &StudyPoint) -> Option<[f64; 2]> {
    let percentiles = &main_op(point)?.response_percentiles;
    percentiles.iter().find(|one| one.percent == 99.0)?.us_ci95
}

/// Requests per second that come and are not done, where that is beyond doubt. What was done in a
/// window is counted, so that only windows differ; how it was spread within one does not matter.
fn growth(seen: &PointLog<'_>, cell: &Cell) -> Option<(f64, [f64; 2])> {
    let Pacing::Open { rate_iops, .. } = cell.workload.pacing else { return None };
    let asked = rate_iops * f64::from(cell.workload.jobs);
    let counted = figures(seen)
        .into_iter()
        .map(|(_, figure)| Measured::without_interval(figure.value, figure.n, figure.verdicts));
    let done = combine(&counted.collect::<Vec<_>>())?;
    let [low, high] = done.ci95?;
    (high < asked * (1.0 - UNDONE_SHARE_MIN))
        .then_some((asked - done.value, [asked - high, asked - low]))
}

/// One statement per curve over the rate.
pub(crate) fn responses(case: &StudyCase<'_>) -> Vec<NamedStatement> {
    let along: Vec<&StudyAxis> = case.axes.iter().filter(|axis| axis.factor == RATE).collect();
    let differs = |at: &&LevelAt| along.iter().any(|axis| !axis.levels.contains(at));
    let place = |axis: &StudyAxis| {
        axis.levels.iter().filter(differs).map(words).collect::<Vec<_>>().join(", ")
    };
    let said = |axis: &&StudyAxis| statement(axis, &place(axis), axis.response.as_ref()?);
    along.iter().filter_map(said).map(|said| (RESPONSE, said)).collect()
}

/// A level as a sentence has it: `random reads`.
fn words(at: &LevelAt) -> String {
    let setting = Setting::named(&at.factor);
    match setting.and_then(|setting| setting.parse(&at.level).ok()) {
        Some(SettingValue::Word(word)) if setting == Setting::named("rw") => {
            Rw::of(word).map_or_else(|| at.level.clone(), |rw| rw.words().to_owned())
        }
        Some(SettingValue::Count(_) | SettingValue::Number(_)) => {
            format!("{} {}", at.factor, at.level)
        }
        _ => at.level.clone(),
    }
}

fn statement(axis: &StudyAxis, place: &str, response: &StudyResponse) -> Option<Statement> {
    let all: Vec<(f64, f64)> = axis.x.iter().copied().zip(response.p99_us.clone()).collect();
    let (first, last) = (all.first()?, all.last()?);
    let who = if place.is_empty() { "requests" } else { place };
    let p99 = |at: &(f64, f64)| microseconds(at.1);
    let before = |knee: f64| all.iter().rev().find(|at| at.0 < knee).unwrap_or(first);
    let waiting = match response.knee.and_then(|knee| all.iter().find(|at| at.0 == knee)) {
        None => format!(
            "{who} wait little at any rate: 99 % of them are done within {} at {} % of the limit \
             and within {} at {} %",
            p99(first),
            first.0,
            p99(last),
            last.0
        ),
        Some(knee) => format!(
            "{who} wait little up to {} % of the limit (99 % of them are done within {}), at {} % \
             they take up to {}",
            before(knee.0).0,
            p99(before(knee.0)),
            knee.0,
            p99(knee)
        ),
    };
    let growing = response.backlog.as_ref().map_or_else(String::new, |backlog| {
        let [low, high] = backlog.per_s_ci95;
        format!(
            "; at {} % the queue grows by {} requests every second (95 % {} to {}): after {} the \
             last one waits {}",
            backlog.at,
            count(backlog.per_s),
            count(low),
            count(high),
            seconds(backlog.window_s),
            microseconds(backlog.wait_us_max)
        )
    });
    let said = Statement::new(Layer::Limit, all.len() as u64, waiting + &growing);
    Some(said.with_all(evidence(axis, response)))
}

/// Every figure under a name that ends in its unit.
fn evidence(axis: &StudyAxis, response: &StudyResponse) -> BTreeMap<String, serde_json::Value> {
    let times = response.mean_us.iter().zip(&response.p99_us);
    let mut evidence: BTreeMap<String, serde_json::Value> = axis
        .x
        .iter()
        .zip(times)
        .flat_map(|(level, (mean, p99))| {
            let name = |what: &str| format!("at_{level}_percent_response_{what}_us");
            [(name("mean"), json!(mean)), (name("p99"), json!(p99))]
        })
        .collect();
    if let Some(backlog) = &response.backlog {
        let name = format!("at_{}_percent_queue_growth_per_s", backlog.at);
        evidence.insert(format!("{name}_ci95"), json!(backlog.per_s_ci95));
        evidence.insert(name, json!(backlog.per_s));
    }
    evidence
}

/// The requests that a point is about: its writes, else its reads.
fn main_op(point: &StudyPoint) -> Option<&StudyOp> {
    point.ops[OpKind::Write].as_ref().or(point.ops[OpKind::Read].as_ref())
}
