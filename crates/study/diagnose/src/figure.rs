//! Figures of one replicate or one point, taken out of what was stored.
//!
//! Invariant: a figure keeps the verdicts of its replicate and its stream; a missing figure is
//! `None`, never zero. Nothing is compared here.

use iostrata_plan::{FlushCount, MetricKind, OpKind, Pacing, Point, SyncWrites};
use iostrata_run::{OpFigures, Replicate, StreamFigures};
use iostrata_stats::{Interval, Measured, Verdicts, combine_weighted, is_possible};

/// Figures of one kind of request of a stream.
pub(crate) fn op_of(stream: &StreamFigures, op: OpKind) -> Option<&OpFigures> {
    stream.ops[op].as_ref()
}

/// The stream with this name.
pub(crate) fn stream_of<'a>(replicate: &'a Replicate, name: &str) -> Option<&'a StreamFigures> {
    replicate.streams.iter().find(|stream| stream.name == name)
}

/// The figure that a replicate was measured for.
pub fn metric_of(replicate: &Replicate) -> Option<Measured> {
    let metric = &replicate.point.metric;
    let stream = replicate.streams.get(metric.stream)?;
    let op = || op_of(stream, metric.op);
    let mut measured = match metric.kind {
        MetricKind::Iops => op()?.iops.clone(),
        MetricKind::TotalIops => {
            let streams = replicate.streams.iter();
            total_iops(&streams.filter_map(|one| one.total.as_ref()).collect::<Vec<_>>())?
        }
        MetricKind::LatencyMeanUs => op()?.latency_mean_us.clone(),
        MetricKind::ResponseMeanUs => {
            let op = op()?;
            op.response_mean_us.clone().or_else(|| only_mean(op.response_us?.mean))?
        }
        MetricKind::CpuNsPerIo => op().and(only_mean(stream.cpu.ns_per_io?))?,
    };
    measured.verdicts.merge(&stream.verdicts);
    measured.verdicts.merge(&replicate.verdicts);
    measured.value.is_finite().then_some(measured)
}

/// Reads and writes of all streams together per second. Streams share the device, so that their
/// errors may go together: their intervals are added as they stand.
fn total_iops(totals: &[&Measured]) -> Option<Measured> {
    if let [only] = totals {
        return Some((*only).clone());
    }
    let mut verdicts = Verdicts::none();
    totals.iter().for_each(|total| verdicts.merge(&total.verdicts));
    let value = totals.iter().map(|total| total.value).sum();
    let n = totals.iter().map(|total| total.n).min()?;
    let bounds: Option<Vec<[f64; 2]>> = totals.iter().map(|total| total.ci95).collect();
    let ci95 = bounds.map(|bounds| [0, 1].map(|side| bounds.iter().map(|b| b[side]).sum()));
    Some(match ci95 {
        Some(ci95) => Measured::new(value, ci95, n, verdicts),
        None => Measured::without_interval(value, n, verdicts),
    })
}

fn only_mean(mean: f64) -> Option<Measured> {
    mean.is_finite().then(|| Measured::without_interval(mean, 1, Verdicts::none()))
}

/// Replicates of one point as one figure.
pub(crate) fn combined<'a>(
    replicates: impl IntoIterator<Item = &'a Replicate>,
) -> Option<Measured> {
    let per_request = |one: &Replicate| {
        matches!(one.point.metric.kind, MetricKind::LatencyMeanUs | MetricKind::ResponseMeanUs)
    };
    let weigh = |one: &'a Replicate| {
        let weight = if per_request(one) { metric_rate(one)? } else { 1.0 };
        Some((weight, metric_of(one)?))
    };
    combine_weighted(&replicates.into_iter().filter_map(weigh).collect::<Vec<_>>())
}

/// Numbers of replicates for which the lowest and the highest are shown with the interval.
const FEW: std::ops::RangeInclusive<usize> = 2..=5;

/// The lowest and the highest of few replicates: no interval of three holds a figure that is one of
/// two from run to run.
pub(crate) fn range_of_few<'a>(
    replicates: impl IntoIterator<Item = &'a Replicate>,
) -> Option<Interval> {
    let values: Vec<f64> =
        replicates.into_iter().filter_map(|one| Some(metric_of(one)?.value)).collect();
    let low = values.iter().copied().reduce(f64::min)?;
    let high = values.iter().copied().reduce(f64::max)?;
    FEW.contains(&values.len()).then_some([low, high])
}

/// Whether every write of the main stream is followed by its own flush.
fn flushes_each_write(replicate: &Replicate) -> bool {
    let spec = replicate.point.streams.get(replicate.point.metric.stream).map(|one| &one.spec);
    let flush = spec.and_then(|spec| spec.flush);
    flush.is_some_and(|flush| flush.every == 1 && flush.count == FlushCount::Writes)
}

/// Mean latency of the work that the metric counts, as the application sees it, in microseconds.
/// A write that is followed by its own flush lasts until the flush is done.
pub(crate) fn application_latency_us(replicate: &Replicate) -> Option<f64> {
    let metric = &replicate.point.metric;
    let stream = replicate.streams.get(metric.stream)?;
    let op = op_of(stream, metric.op)?;
    if metric.kind == MetricKind::ResponseMeanUs {
        return op.response_us.map(|response| response.mean);
    }
    let flush_us = match (&stream.ops[OpKind::Sync], metric.op) {
        (Some(sync), OpKind::Write) if flushes_each_write(replicate) => sync.latency_us.mean,
        _ => 0.0,
    };
    Some(op.latency_us.mean + flush_us)
}

/// Mean latency of the same work by the device's own counters, in microseconds. Only for direct
/// points of one stream: the counters cannot distinguish streams, and write-back of the page cache
/// does other requests at other times.
pub(crate) fn device_latency_us(replicate: &Replicate) -> Option<f64> {
    let [stream] = replicate.point.streams.as_slice() else { return None };
    if !stream.spec.direct {
        return None;
    }
    let device = replicate.evidence.as_ref()?.device?;
    let us = |ms: Option<f64>| ms.map(|ms| ms * 1000.0);
    let flush_us = us(device.flush_await_ms).unwrap_or(0.0);
    match replicate.point.metric.op {
        OpKind::Read => us(device.read_await_ms),
        OpKind::Write => {
            let durable = flushes_each_write(replicate) || stream.spec.sync != SyncWrites::None;
            us(device.write_await_ms).map(|write| write + if durable { flush_us } else { 0.0 })
        }
        OpKind::Sync => us(device.flush_await_ms),
        // The device counts requests, not transactions.
        _ => None,
    }
}

/// Requests per second that a replicate was measured for, or flushes where those are its figure.
fn metric_rate(replicate: &Replicate) -> Option<f64> {
    let metric = &replicate.point.metric;
    Some(op_of(replicate.streams.get(metric.stream)?, metric.op)?.iops.value)
}

/// Mean over the requests of all replicates: each weighs with its rate, so that this and the mean
/// of their rates make the requests that were in flight.
pub(crate) fn weighted_mean<'a>(
    replicates: impl IntoIterator<Item = &'a Replicate>,
    value: impl Fn(&Replicate) -> Option<f64>,
) -> Option<f64> {
    let weigh = |one: &'a Replicate| Some((metric_rate(one)?, value(one)?));
    let (mut sum, mut weight) = (0.0, 0.0);
    for (rate, value) in replicates.into_iter().filter_map(weigh) {
        if value.is_finite() {
            sum += value * rate;
            weight += rate;
        }
    }
    (weight > 0.0).then(|| sum / weight)
}

/// Whether a point's figure and a mean latency of its requests can both be true. Requests on a
/// schedule may wait in any number.
pub(crate) fn agrees_with_depth(point: &Point, figure: f64, latency_us: f64) -> bool {
    let spec = point.streams.get(point.metric.stream).map(|stream| &stream.spec);
    let closed = spec.filter(|spec| spec.pacing == Pacing::Closed);
    let is_rate = point.metric.kind == MetricKind::Iops;
    closed.is_none_or(|spec| !is_rate || is_possible(figure, latency_us, spec.in_flight_max()))
}

/// The mean; `None` of nothing.
pub(crate) fn mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (sum, n) = values.into_iter().fold((0.0, 0.0), |(sum, n), value| (sum + value, n + 1.0));
    (n > 0.0).then(|| sum / n)
}

/// The middle value; of an even number the mean of the two in the middle.
pub(crate) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.retain(|value| value.is_finite());
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        n if n % 2 == 1 => Some(values[middle]),
        _ => Some((values[middle - 1] + values[middle]) / 2.0),
    }
}

/// The requested rate of a stream per second; `None` for one that runs as fast as it can.
pub(crate) fn asked_per_s(point: &Point, name: &str) -> Option<f64> {
    let planned = point.streams.iter().find(|stream| stream.name == name)?;
    let Pacing::Open { rate_iops, .. } = planned.spec.pacing else { return None };
    Some(rate_iops * f64::from(planned.spec.jobs.max(1)))
}

/// Share of the requested arrival rate that was achieved by a stream, at most 1 for noise above it;
/// `None` for a stream that runs as fast as it can.
pub(crate) fn achieved_share(replicate: &Replicate, name: &str) -> Option<f64> {
    let asked = asked_per_s(&replicate.point, name)?;
    let stream = stream_of(replicate, name)?;
    let moved = stream.ops.iter().filter(|(kind, _)| *kind != OpKind::Sync);
    let done: f64 = moved.map(|(_, op)| op.iops.value).sum();
    (asked > 0.0).then(|| done / asked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_of_streams_add_up() {
        let total = |value| Measured::new(value, [value - 1.0, value + 2.0], 30, Verdicts::none());
        assert_eq!(total_iops(&[]), None);
        assert_eq!(total_iops(&[&total(10.0)]), Some(total(10.0)));
        let both = total_iops(&[&total(10.0), &total(5.0)]).unwrap();
        assert_eq!((both.value, both.ci95, both.n), (15.0, Some([13.0, 19.0]), 30));
    }
}
