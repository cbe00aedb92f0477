//! Lines for charts: points that share a curve, by rising place on its axis.
//!
//! Invariant: a curve has at least two points; its values are those of the rungs with the same
//! names. It draws nothing.

use iostrata_plan::{Better, OpKind, Point};
use iostrata_run::{Curve, CurvePoint, OpFigures, Replicate};
use iostrata_stats::units::{microseconds, rate};
use iostrata_stats::{LatencyUs, Measured, combine_weighted, knee};

use crate::database::{self, Database};
use crate::figure::{agrees_with_depth, application_latency_us, median, op_of, stream_of};
use crate::observed::{EventIndex, PointLog};

const READERS: &str = "readers";

pub(crate) fn curves_of(log: &EventIndex<'_>) -> Vec<Curve> {
    let mut names: Vec<&str> = Vec::new();
    for place in log.points().iter().filter_map(|seen| seen.point.curve.as_ref()) {
        if !names.contains(&place.curve.as_str()) {
            names.push(&place.curve);
        }
    }
    let mut curves: Vec<Curve> = names.iter().filter_map(|name| curve(log, name)).collect();
    curves.extend(readers_curve(log));
    curves
}

fn on_curve<'l, 'a>(log: &'l EventIndex<'a>, name: &str) -> Vec<(f64, &'l PointLog<'a>)> {
    let mut members: Vec<(f64, &PointLog<'a>)> = log
        .points()
        .iter()
        .filter_map(|seen| {
            let place = seen.point.curve.as_ref().filter(|place| place.curve == name)?;
            place.x.is_finite().then_some((place.x, seen))
        })
        .collect();
    members.sort_by(|a, b| a.0.total_cmp(&b.0));
    members
}

fn curve(log: &EventIndex<'_>, name: &str) -> Option<Curve> {
    let members = on_curve(log, name);
    let points: Vec<CurvePoint> =
        members.iter().filter_map(|&(x, seen)| curve_point(x, seen)).collect();
    let point = members.first()?.1.point;
    if points.len() < 2 {
        return None;
    }
    let rising = point.metric.better == Better::Higher;
    let knee = if rising { knee_of(&points) } else { None };
    let carried = if name == database::CURVE { Database::of(log).carried_x() } else { None };
    Some(Curve {
        name: name.to_owned(),
        title: title(name, point),
        axis: point.curve.as_ref()?.axis.clone(),
        unit: point.metric.unit.clone(),
        text: text(name, &points, knee.as_ref()),
        knee_x: knee.map(|knee| points[knee.index].x).or(carried),
        points,
    })
}

fn curve_point(x: f64, seen: &PointLog<'_>) -> Option<CurvePoint> {
    let figure = seen.figure()?;
    let p99 = seen.replicates.iter().filter_map(|one| Some(latency_of(one)?.p99)).collect();
    // The same mean as the rung's: one figure has one latency.
    let mean = seen.mean(application_latency_us);
    let mean = mean.filter(|&us| agrees_with_depth(seen.point, figure.value, us));
    Some(point_at(x, seen, &figure, mean, p99))
}

fn point_at(
    x: f64,
    seen: &PointLog<'_>,
    figure: &Measured,
    latency_mean_us: Option<f64>,
    latencies_p99_us: Vec<f64>,
) -> CurvePoint {
    CurvePoint {
        rung: seen.point.id.clone(),
        x,
        value: figure.value,
        value_ci95: figure.ci95,
        value_n: figure.n,
        latency_mean_us,
        latency_p99_us: median(latencies_p99_us),
    }
}

/// The distribution behind a replicate's figure: of the flush where commits are counted, of the
/// response where there is a schedule.
fn latency_of(replicate: &Replicate) -> Option<LatencyUs> {
    let metric = &replicate.point.metric;
    let stream = replicate.streams.get(metric.stream)?;
    match (&stream.ops[OpKind::Sync], metric.op) {
        (Some(sync), OpKind::Write | OpKind::Sync) => sync.response_us.or(Some(sync.latency_us)),
        _ => op_of(stream, metric.op).map(|op| op.response_us.unwrap_or(op.latency_us)),
    }
}

/// Share of the best rate from which a point may be its equal.
const MAY_BE_EQUAL: f64 = 0.9;

/// Where more load stops to pay.
#[derive(Clone, Copy, Debug)]
struct KneePlace {
    index: usize,
    best_index: usize,
    /// Whether more load was tried.
    seen: bool,
}

/// The knee; an earlier point counts when its interval cannot distinguish it from the best.
fn knee_of(points: &[CurvePoint]) -> Option<KneePlace> {
    let loads: Vec<(u32, f64)> = points.iter().map(|point| (point.x as u32, point.value)).collect();
    let knee = knee(&loads)?;
    let best = points[knee.best_index].value;
    let equal = |point: &CurvePoint| {
        point.value >= MAY_BE_EQUAL * best && point.value_ci95.is_some_and(|[_, high]| high >= best)
    };
    let index = points.iter().position(equal).unwrap_or(knee.index).min(knee.index);
    Some(KneePlace { index, best_index: knee.best_index, seen: index + 1 < points.len() })
}

fn title(name: &str, point: &Point) -> String {
    match name {
        "read_4k" => "4 KiB random reads over requests in flight".to_owned(),
        "read_16k" => "16 KiB random reads over requests in flight".to_owned(),
        "write_files" => {
            "16 KiB random overwrites by 8 threads over the number of files".to_owned()
        }
        "commit" => "Durable commits per second over committers".to_owned(),
        database::CURVE => "Commit latency over pages flushed per second".to_owned(),
        _ => point.title.clone(),
    }
}

fn text(name: &str, points: &[CurvePoint], knee: Option<&KneePlace>) -> String {
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return String::new();
    };
    let Some(knee) = knee else {
        return format!(
            "Commits take {} at {} pages/s and {} at {} pages/s.",
            microseconds(first.value),
            first.x,
            microseconds(last.value),
            last.x
        );
    };
    let at = &points[knee.index];
    let best = rate(points[knee.best_index].value);
    let latency = at.latency_mean_us.map(|us| format!(" at {} each", microseconds(us)));
    let latency = latency.unwrap_or_default();
    match (name, knee.seen) {
        ("write_files", _) if knee.index == 0 => {
            format!("One file takes {}; more files bring no more.", rate(at.value))
        }
        ("write_files", _) => {
            format!(
                "It takes {} files to reach {}; one file takes {}.",
                at.x,
                best,
                rate(first.value)
            )
        }
        (_, true) => {
            format!(
                "{}{latency} at {}; more than that brings little but latency.",
                rate(at.value),
                at.x
            )
        }
        (_, false) => format!("Still rising at {}: {}{latency}.", last.x, rate(last.value)),
    }
}

/// What readers see while pages are flushed.
fn readers_curve(log: &EventIndex<'_>) -> Option<Curve> {
    let members = on_curve(log, database::CURVE);
    let points: Vec<CurvePoint> =
        members.iter().filter_map(|&(x, seen)| readers_point(x, seen)).collect();
    let (first, last) = (points.first()?, points.last()?);
    if points.len() < 2 {
        return None;
    }
    let text = format!(
        "Reads take {} with no page writes and {} at {} pages/s.",
        microseconds(first.value),
        microseconds(last.value),
        last.x
    );
    Some(Curve {
        name: "database_reads".to_owned(),
        title: "Read latency over pages flushed per second".to_owned(),
        axis: members.first()?.1.point.curve.as_ref()?.axis.clone(),
        unit: "us".to_owned(),
        text,
        knee_x: Database::of(log).carried_x(),
        points,
    })
}

fn readers_point(x: f64, seen: &PointLog<'_>) -> Option<CurvePoint> {
    let reads = || {
        let streams = seen.replicates.iter().filter_map(|one| stream_of(one, READERS));
        streams.filter_map(|stream| op_of(stream, OpKind::Read))
    };
    let mean = |op: &OpFigures| {
        let mean = op.response_mean_us.as_ref().unwrap_or(&op.latency_mean_us);
        (op.iops.value, mean.clone())
    };
    let figure = combine_weighted(&reads().map(mean).collect::<Vec<_>>())?;
    let p99 = reads().map(|op| op.response_us.unwrap_or(op.latency_us).p99).collect();
    Some(point_at(x, seen, &figure, Some(figure.value), p99))
}
