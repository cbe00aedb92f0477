//! Latencies of all replicates of a point taken together.
//!
//! A window of a second holds a few hundred commits: too few for their 99th percentile, and too
//! short for pauses that come once a second. The replicates together are not.

use std::collections::BTreeMap;

use iostrata_load::{Histograms, kind_index};
use iostrata_run::{Percentile, Pooled, PooledLatency, Replicate};
use iostrata_spec::OpKind;
use iostrata_stats::LatencyHistogram;

const PERCENTS: [f64; 6] = [50.0, 90.0, 95.0, 98.0, 99.0, 99.9];
const KINDS: [(OpKind, iostrata_io::OpKind); 3] = [
    (OpKind::Read, iostrata_io::OpKind::Read),
    (OpKind::Write, iostrata_io::OpKind::Write),
    (OpKind::Sync, iostrata_io::OpKind::Sync),
];

/// What is known of one point.
#[derive(Debug, Default)]
struct PointPool {
    replicates: Vec<u32>,
    /// By place of the stream and of the kind.
    latencies: BTreeMap<(usize, usize), LatencyHistogram>,
    streams: Vec<String>,
}

/// The points with several streams, which are rated and compared by their slowest requests.
#[derive(Debug, Default)]
pub(super) struct Pool {
    points: BTreeMap<String, PointPool>,
}

impl Pool {
    /// Takes in a replicate, if its point is one of those.
    pub(super) fn add(&mut self, replicate: &Replicate, histograms: &[Histograms]) {
        if replicate.point.streams.len() < 2 {
            return;
        }
        let pool = self.points.entry(replicate.point.id.clone()).or_default();
        pool.replicates.push(replicate.replicate);
        pool.streams = replicate.streams.iter().map(|stream| stream.name.clone()).collect();
        for (stream, histograms) in histograms.iter().enumerate() {
            for (kind, (_, op)) in KINDS.iter().enumerate() {
                let Some(latency) = &histograms.kinds[kind_index(*op)] else { continue };
                let histogram = latency.response.as_ref().unwrap_or(&latency.service);
                pool.latencies.entry((stream, kind)).or_default().merge(histogram);
            }
        }
    }

    /// What came together so far; the pool is empty afterwards.
    pub(super) fn take(&mut self) -> Vec<Pooled> {
        let points = std::mem::take(&mut self.points);
        let pooled = |(point, pool): (String, PointPool)| Pooled {
            point,
            latencies: pool
                .latencies
                .iter()
                .map(|((stream, kind), histogram)| PooledLatency {
                    stream: pool.streams[*stream].clone(),
                    op: KINDS[*kind].0,
                    n: histogram.count(),
                    percentiles: percentiles(histogram),
                })
                .collect(),
            replicates: pool.replicates,
        };
        points.into_iter().map(pooled).collect()
    }
}

fn percentiles(histogram: &LatencyHistogram) -> Vec<Percentile> {
    let percentile = |percent: f64| {
        let us_ci95 = histogram.percentile_us_ci95(percent, histogram.count());
        Some(Percentile { percent, us: histogram.percentile_us(percent)?, us_ci95 })
    };
    PERCENTS.into_iter().filter_map(percentile).collect()
}
