//! What the original printed, compared with what was measured now.
//!
//! Invariant: a figure without a matching point stays blank; nothing printed is altered.

use std::collections::BTreeMap;

use iostrata_plan::OpKind;
use iostrata_plan::study::{Cell, LevelAt, Take, Then, ThenFigure, ThenMetric};
use iostrata_run::host::Iostat;
use iostrata_run::{DeviceMetric, Replicate, StudyOp, StudyPoint, ThenRow};
use iostrata_stats::{Interval, LatencyUs, Measured, Verdict};

use super::points::point;
use super::queue::device_figure;
use crate::observed::PointLog;

/// A figure of today's, and the point that it is of.
type Now = (Measured, String);

/// One row per printed figure.
pub(crate) fn rows(then: Option<&Then>, points: &[StudyPoint]) -> Vec<ThenRow> {
    let figures = then.map_or(&[][..], |then| &then.figures);
    figures.iter().map(|figure| row(figure, points)).collect()
}

fn row(figure: &ThenFigure, points: &[StudyPoint]) -> ThenRow {
    let now = now(figure, &figure.at, points);
    let below = figure.over.as_ref().map(|over| self::now(figure, over, points));
    let now = match below {
        None => now,
        Some(below) => now.zip(below).and_then(|(above, below)| ratio(above, &below)),
    };
    let printed = figure.value_high.map_or(figure.value, |high| (figure.value + high) / 2.0);
    let (now, point) = now.unzip();
    ThenRow {
        then_high: figure.value_high,
        ..ThenRow::of(&figure.text, &figure.unit, figure.value, printed, now, point)
    }
}

/// Today's figure at some levels; with several matching points, as the row selects.
fn now(figure: &ThenFigure, at: &[LevelAt], points: &[StudyPoint]) -> Option<Now> {
    // A factor that was not varied keeps nothing out, as in answers.
    let is_varied = |level: &&LevelAt| {
        let mut levels = points.iter().flat_map(|point| &point.levels);
        levels.any(|other| other.factor == level.factor)
    };
    let varied: Vec<&LevelAt> = at.iter().filter(is_varied).collect();
    let matches = |point: &&StudyPoint| varied.iter().all(|level| point.levels.contains(level));
    let found = points.iter().filter(matches);
    let found = found.filter_map(|point| Some((of(figure.metric, point)?, point.id.clone())));
    let found: Vec<Now> = found.collect();
    let better = |a: &Now, b: &Now| a.0.value.total_cmp(&b.0.value);
    match figure.take {
        Take::Only if found.len() == 1 => found.into_iter().next(),
        Take::Only => None,
        Take::Max => found.into_iter().max_by(better),
        Take::Min => found.into_iter().min_by(better),
    }
}

fn of(metric: ThenMetric, point: &StudyPoint) -> Option<Measured> {
    let (n, verdicts) = (point.value_n, &point.verdicts);
    let now = |value, ci95| Measured { value, ci95, n, verdicts: verdicts.clone() };
    let weighted = |of: &dyn Fn(&StudyOp) -> Option<f64>| {
        let ops: Vec<&StudyOp> =
            point.ops.iter().filter(|(kind, _)| *kind != OpKind::Sync).map(|(_, op)| op).collect();
        let all: f64 = ops.iter().map(|op| op.iops).sum();
        let sums: Option<Vec<f64>> = ops.iter().map(|op| Some(op.iops * of(op)?)).collect();
        sums.filter(|_| all > 0.0).map(|sums| sums.iter().sum::<f64>() / all)
    };
    let latency = |of: fn(&LatencyUs) -> f64| weighted(&|op| Some(of(&op.latency_us)));
    let response = |of: fn(&LatencyUs) -> f64| weighted(&|op| op.response_us.as_ref().map(of));
    match metric {
        ThenMetric::Iops => Some(now(point.value, point.value_ci95)),
        ThenMetric::BytesPerS => {
            let factor = point.bytes_per_s / point.value;
            let scaled = point.value_ci95.map(|ends| ends.map(|end| end * factor));
            factor.is_finite().then(|| now(point.bytes_per_s, scaled))
        }
        ThenMetric::LatencyMeanUs => latency(|one| one.mean).map(|mean| now(mean, None)),
        ThenMetric::LatencyP95Us => latency(|one| one.p95).map(|p95| now(p95, None)),
        ThenMetric::ResponseMeanUs => response(|one| one.mean).map(|mean| now(mean, None)),
        ThenMetric::ResponseP99Us => response(|one| one.p99).map(|p99| now(p99, None)),
        ThenMetric::DeviceIops
        | ThenMetric::DeviceMergedPerS
        | ThenMetric::DeviceMibPerS
        | ThenMetric::DeviceRequestSectors
        | ThenMetric::DeviceQueueSize
        | ThenMetric::DeviceAwaitMs => {
            device(metric, point.device.as_ref()?).map(|value| now(value, None))
        }
        ThenMetric::LatencyP999Us if point.transactions.is_none() => {
            latency(|one| one.p99_9).map(|p99_9| now(p99_9, None))
        }
        // All others are figures of transactions.
        _ => {
            let figure = point.transactions.as_ref()?.figures.get(metric.name())?;
            Some(Measured { n: figure.n, ..now(figure.value, figure.ci95) })
        }
    }
}

/// A metric of a point with its interval and samples.
pub(super) fn of_point(
    metric: ThenMetric,
    point: &StudyPoint,
) -> Option<(f64, Option<Interval>, u64)> {
    of(metric, point).map(|now| (now.value, now.ci95, now.n))
}

/// The same of every single replicate of a cell, by its round.
pub(crate) fn by_replicate(
    metric: ThenMetric,
    cell: &Cell,
    seen: &PointLog<'_>,
) -> BTreeMap<u32, Measured> {
    let figure = |(round, one): (u32, &Replicate)| {
        let alone = PointLog::new(&one.point, vec![one]);
        let mut now = of(metric, &point(cell, &alone)?)?;
        if now.ci95.is_none() {
            now.verdicts.add(Verdict::TooFewSamples);
        }
        Some((round, now))
    };
    seen.rounds().filter_map(figure).collect()
}

/// A column of iostat over reads and writes together, as it was printed before 2010.
fn device(metric: ThenMetric, iostat: &Iostat) -> Option<f64> {
    match metric {
        ThenMetric::DeviceIops => device_figure(DeviceMetric::RequestsPerS, iostat),
        ThenMetric::DeviceMergedPerS => device_figure(DeviceMetric::MergedPerS, iostat),
        ThenMetric::DeviceMibPerS => {
            Some((iostat.read_kib_per_s + iostat.write_kib_per_s) / 1024.0)
        }
        ThenMetric::DeviceRequestSectors => {
            Some(2.0 * device_figure(DeviceMetric::RequestKib, iostat)?)
        }
        ThenMetric::DeviceQueueSize => device_figure(DeviceMetric::QueueSize, iostat),
        ThenMetric::DeviceAwaitMs => device_figure(DeviceMetric::AwaitMs, iostat),
        _ => None,
    }
}

/// One figure over another. The interval takes both into account as if they were independent.
fn ratio((above, of): Now, (below, over): &Now) -> Option<Now> {
    let value = above.value / below.value;
    let relative = |now: &Measured| now.ci95.map(|[low, high]| (high - low) / 2.0 / now.value);
    let half = relative(&above).zip(relative(below)).map(|(a, b)| value * a.hypot(b));
    let mut verdicts = above.verdicts;
    verdicts.merge(&below.verdicts);
    let (ci95, n) = (half.map(|half| [value - half, value + half]), above.n.min(below.n));
    let ratio = Measured { value, ci95, n, verdicts };
    value.is_finite().then(|| (ratio, format!("{of} / {over}")))
}
