//! Rates that fell on the way and stayed low: an allowance that ran out, or a limit that was set
//! meanwhile.
//!
//! Invariant: a limit is named only where it was read after the fall and not before the run.

use iostrata_plan::{Layer, OpKind, Point, rung};
use iostrata_run::host::IoLimit;
use iostrata_stats::units::{count, microseconds, percent, seconds};

use super::known_limit::limit_words;
use crate::below;
use crate::case::Case;
use crate::lasting::Fall;
use crate::observed::Which;
use crate::statement::Statement;

/// The name of a limit that was set meanwhile in the catalogue.
pub(crate) const LIMIT_SET_MEANWHILE: &str = "limit_set_meanwhile";
/// Points that show what is left after a fall.
const AFTERWARDS: [&str; 6] = [
    rung::READ_4K_DEPTH_1,
    rung::READ_4K_DEPTH_16,
    rung::READ_16K_DEPTH_16,
    rung::WRITE_16K_FILES_8,
    rung::COMMIT_FDATASYNC,
    rung::COMMIT_FDATASYNC_16,
];

/// A limit that was not there when the run began.
fn new_limit<'c>(case: &Case<'c, '_>) -> Option<&'c IoLimit> {
    let known = &case.host.path.limits;
    case.log.limits().iter().copied().find(|limit| !known.contains(limit))
}

/// The points of which nothing was measured after the fall.
fn confirming(case: &Case<'_, '_>) -> Vec<Point> {
    if case.log.falls().is_empty() {
        return Vec::new();
    }
    let fallen = case.log.fallen();
    let wanted = AFTERWARDS.iter().filter_map(|id| fallen.iter().find(|one| one.point.id == *id));
    wanted.map(|seen| seen.point.clone()).collect()
}

pub(crate) fn limit_set_confirming(case: &Case<'_, '_>) -> Vec<Point> {
    if new_limit(case).is_some() { confirming(case) } else { Vec::new() }
}

pub(crate) fn allowance_confirming(case: &Case<'_, '_>) -> Vec<Point> {
    if new_limit(case).is_none() { confirming(case) } else { Vec::new() }
}

pub(crate) fn limit_set(case: &Case<'_, '_>, _: Which) -> Option<Statement> {
    let limit = new_limit(case)?;
    let fall = worst(case)?;
    let text = format!(
        "{} Meanwhile the control group {} was limited to {}.{}",
        what_fell(case, fall),
        limit.cgroup,
        limit_words(limit),
        LASTS
    );
    let found = Statement::sized(Layer::Limit, &fall.loss, text);
    Some(evidence(found, fall).with_some("limit", serde_json::to_value(limit).ok()))
}

pub(super) fn allowance(case: &Case<'_, '_>) -> Option<Statement> {
    if new_limit(case).is_some() {
        return None;
    }
    let fall = worst(case)?;
    let why = match below::buffered_loop(case.host) {
        Some(name) => format!("The page cache that {name} goes through was full."),
        None => "Burst credit or a flash cache that ran out, heat, a neighbour, or a limit below."
            .to_owned(),
    };
    let text = format!("{} {why}{LASTS}", what_fell(case, fall));
    Some(evidence(Statement::sized(Layer::Device, &fall.loss, text), fall))
}

/// What that means for the other figures.
const LASTS: &str = " All figures are those from after the fall; what was measured only before it \
                     is marked.";

fn worst<'c>(case: &Case<'c, '_>) -> Option<&'c Fall> {
    let falls = case.log.falls().iter();
    falls.max_by(|a, b| a.loss.value.total_cmp(&b.loss.value))
}

fn what_fell(case: &Case<'_, '_>, fall: &Fall) -> String {
    let who = match (case.log.falls().len(), fall.kind) {
        (2.., _) => "Reads and writes",
        (_, OpKind::Read) => "Reads",
        (_, _) => "Writes",
    };
    let figure = |value: f64| match fall.unit.as_str() {
        "us" => microseconds(value),
        unit => format!("{} {unit}", count(value)),
    };
    let [from_s, to_s] = fall.between_s;
    format!(
        "{who} fell by {} at {} and stayed there ({}: {} before, {} after).",
        percent(fall.loss.value),
        seconds((from_s + to_s) / 2.0),
        fall.witness,
        figure(fall.before.value),
        figure(fall.after.value)
    )
}

fn evidence(said: Statement, fall: &Fall) -> Statement {
    said.with("fall_pct", fall.loss.value)
        .with("after_s", fall.between_s[0])
        .with("at_latest_s", fall.between_s[1])
        .with("before", fall.before.value)
        .with("after", fall.after.value)
        .with("unit", fall.unit.clone())
        .with("points_that_fell", fall.points as u64)
}
