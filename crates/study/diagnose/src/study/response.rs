//! How long requests wait as a given rate comes near what a limit lets through.
//!
//! Invariant: only points with a schedule have a response time; it runs from the scheduled start.

use iostrata_run::{Finding, FindingKind, StudyAxis, StudyOp, StudyPoint};
use iostrata_spec::Layer;
use serde_json::json;

use super::axis::place;

/// The factor whose levels are rates, in percent of the limit.
pub(crate) const RATE: &str = "rate_pct";
/// A response this many times that at the lowest rate is where waiting begins.
const KNEE_TIMES: f64 = 3.0;

/// One statement per curve over the rate.
pub(crate) fn responses(axes: &[StudyAxis], points: &[StudyPoint]) -> Vec<Finding> {
    let along = axes.iter().filter(|axis| axis.factor == RATE);
    along.filter_map(|axis| response(axis, points)).collect()
}

/// A rate with the response of its point.
struct At<'a> {
    rate_pct: f64,
    point: &'a StudyPoint,
    mean_us: f64,
    p99_us: f64,
}

fn response(axis: &StudyAxis, points: &[StudyPoint]) -> Option<Finding> {
    let at = |(id, &rate_pct): (&String, &f64)| {
        let point = points.iter().find(|point| point.id == *id)?;
        let response = main_op(point)?.response_us?;
        Some(At { rate_pct, point, mean_us: response.mean, p99_us: response.p99 })
    };
    let all: Vec<At<'_>> = axis.points.iter().zip(&axis.x).filter_map(at).collect();
    let [first, .., last] = all.as_slice() else { return None };
    let knee = all.iter().find(|at| at.p99_us > KNEE_TIMES * first.p99_us);
    let begins = knee.map_or_else(
        || format!("it stays below {KNEE_TIMES:.0} times that up to {} %", last.rate_pct),
        |knee| {
            let p99 = iostrata_units::microseconds(knee.p99_us);
            format!("at {} % it is {p99}", knee.rate_pct)
        },
    );
    let shown = |at: &At<'_>| iostrata_units::microseconds(at.p99_us);
    Some(Finding {
        id: "response_at_rate".to_owned(),
        kind: FindingKind::Sizing,
        text: format!(
            "{}: the 99th percentile of the response time is {} at {} % of the limit; {begins}, and \
             at {} % {}",
            place(&axis.levels),
            shown(first),
            first.rate_pct,
            last.rate_pct,
            shown(last)
        ),
        layer: Layer::Limit,
        effect_pct: None,
        effect_pct_ci95: None,
        effect_pct_n: all.iter().map(|at| u64::from(at.point.replicates)).sum(),
        evidence: all
            .iter()
            .flat_map(|at| {
                let name = |what: &str| format!("response_us_{what}_at_{}_pct", at.rate_pct);
                [(name("mean"), json!(at.mean_us)), (name("p99"), json!(at.p99_us))]
            })
            .collect(),
    })
}

fn main_op(point: &StudyPoint) -> Option<&StudyOp> {
    point.read.as_ref().or(point.write.as_ref())
}
