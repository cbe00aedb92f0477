//! Latencies of all replicates of a point taken together.
//!
//! A window of a second holds a few hundred commits: too few for their 99th percentile, and too
//! short for pauses that come once a second. The replicates together are not.

use std::collections::BTreeMap;

use iostrata_plan::OpKind;
use iostrata_run::{Event, OpFigures, Pooled, PooledLatency, Replicate};
use iostrata_stats::{LatencyHistogram, Measured, pooled_percentiles};

const PERCENTS: [f64; 6] = [50.0, 90.0, 95.0, 98.0, 99.0, 99.9];

/// The points with several streams among the events of a part: those are rated and compared by
/// their slowest requests.
pub(super) fn pooled(events: &[Event]) -> Vec<Pooled> {
    let mut points: BTreeMap<&str, Vec<&Replicate>> = BTreeMap::new();
    for event in events {
        match event {
            Event::Replicate(replicate) if replicate.point.streams.len() > 1 => {
                points.entry(&replicate.point.id).or_default().push(replicate);
            }
            _ => {}
        }
    }
    let pooled = |(point, replicates): (&str, Vec<&Replicate>)| Pooled {
        point: point.to_owned(),
        replicates: replicates.iter().map(|one| one.replicate).collect(),
        latencies: latencies(&replicates),
    };
    points.into_iter().map(pooled).collect()
}

/// By stream and kind of request.
fn latencies(replicates: &[&Replicate]) -> Vec<PooledLatency> {
    let mut latencies: BTreeMap<(usize, OpKind), Vec<&OpFigures>> = BTreeMap::new();
    for replicate in replicates {
        for (at, stream) in replicate.streams.iter().enumerate() {
            stream.ops.iter().for_each(|(op, figures)| {
                latencies.entry((at, op)).or_default().push(figures);
            });
        }
    }
    let name = |at: usize| replicates[0].streams[at].name.clone();
    let pooled = |((at, op), figures): ((usize, OpKind), Vec<&OpFigures>)| {
        let parts: Vec<(&LatencyHistogram, &Measured)> =
            figures.into_iter().map(OpFigures::response).collect();
        let n = parts.iter().map(|(histogram, _)| histogram.count()).sum();
        let percentiles = pooled_percentiles(&parts, &PERCENTS);
        PooledLatency { stream: name(at), op, n, percentiles }
    };
    latencies.into_iter().map(pooled).collect()
}
