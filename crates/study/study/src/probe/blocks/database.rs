//! The database-shaped load: redo, page writes with their doublewrite, and readers at once.
//!
//! Levels rise in pages flushed per second; what commits and reads then take says how much flushing
//! the storage carries beside them.

use iostrata_plan::{
    Access, Better, CurvePlace, IoApi, IoSpec, Layer, Metric, MetricKind, Mix, OpKind, Pacing,
    Point, RateProcess, Stream, rung,
};
use iostrata_run::Event;

use super::files::flush_every;
use super::{Block, measured, point, spec, with_depth};
use crate::probe::shape::{PAGE_BYTES, Shape};

/// Levels, as shares of the page rate that the storage takes when it does nothing else.
const LEVELS: [f64; 6] = [0.0, 0.1, 0.2, 0.35, 0.5, 0.7];
/// InnoDB's cleaners do not flush more pages per second than this on any hardware so far.
const PAGES_PER_S_MAX: f64 = 30_000.0;
/// Group commits per second of the one log writer: a share of what it can do alone, so that a slow
/// flush is not the limit by itself, and enough on a fast one for a high percentile.
const COMMIT_SHARE: f64 = 0.4;
const COMMITS_PER_S: [f64; 2] = [10.0, 400.0];
/// Share of the read rate at depth 8 that the readers ask for.
const READ_SHARE: f64 = 0.1;
const READS_PER_S_MAX: f64 = 4_000.0;
const READERS: u32 = 4;
/// Pages per batch, as InnoDB's doublewrite buffer has them.
const BATCH_PAGES: u32 = 128;
const DOUBLEWRITE_BYTES: u32 = 256 << 10;
const MILLIS: u64 = 1_300;

pub(super) fn blocks(shape: &Shape, events: &[Event]) -> Vec<Block> {
    let Some(pages) = measured(events, rung::WRITE_16K_FILES_4, OpKind::Write) else {
        return Vec::new();
    };
    let reads = measured(events, rung::READ_16K_DEPTH_8, OpKind::Read).unwrap_or(0.0);
    let pages_per_s = pages.min(PAGES_PER_S_MAX / LEVELS[LEVELS.len() - 1]);
    let commits = measured(events, rung::COMMIT_FDATASYNC, OpKind::Write).unwrap_or(0.0);
    let commits_per_s = (commits * COMMIT_SHARE).clamp(COMMITS_PER_S[0], COMMITS_PER_S[1]).round();
    let reads_per_s = (reads * READ_SHARE).clamp(10.0, READS_PER_S_MAX);
    let points = LEVELS
        .iter()
        .enumerate()
        .map(|(number, level)| {
            let beside = Beside { commits_per_s, reads_per_s };
            level_point(shape, number, pages_per_s * level, beside)
        })
        .collect();
    vec![Block { points, replicates: 3 }]
}

/// What runs beside the page writes at every level.
#[derive(Clone, Copy)]
struct Beside {
    commits_per_s: f64,
    reads_per_s: f64,
}

fn level_point(shape: &Shape, number: usize, pages_per_s: f64, beside: Beside) -> Point {
    let Beside { commits_per_s, reads_per_s } = beside;
    // Whole pages per second read better on an axis than what a share happens to give.
    let pages_per_s = round_to_two_digits(pages_per_s);
    let mut streams = vec![redo(shape, commits_per_s)];
    if pages_per_s > 0.0 {
        streams.push(pages(shape, pages_per_s));
        streams.push(doublewrite(shape, pages_per_s));
    }
    streams.push(readers(shape, reads_per_s));
    let metric = Metric {
        stream: 0,
        op: OpKind::Sync,
        kind: MetricKind::ResponseMeanUs,
        unit: "us".to_owned(),
        better: Better::Lower,
    };
    let title = format!(
        "commit latency while {} pages/s are flushed and {} reads/s are served",
        pages_per_s,
        reads_per_s.round()
    );
    let id = format!("database_level_{number}");
    let mut point = point(id, title, Layer::Transactions, "database", streams, metric);
    point.curve = Some(CurvePlace {
        curve: "database".to_owned(),
        axis: "pages flushed per second".to_owned(),
        x: pages_per_s,
    });
    point
}

fn redo(shape: &Shape, commits_per_s: f64) -> Stream {
    let mut spec = spec(shape, Mix::Write, IoApi::Sync, MILLIS);
    (spec.access, spec.block_bytes) = (Access::Sequential, shape.block_bytes);
    spec.size_bytes = shape.log_bytes;
    spec.flush = Some(flush_every(1));
    spec.pacing = Pacing::Open { rate_iops: commits_per_s, process: RateProcess::Fixed };
    whole_window(&mut spec);
    Stream { name: "redo".to_owned(), spec }
}

fn pages(shape: &Shape, pages_per_s: f64) -> Stream {
    let mut spec = with_depth(spec(shape, Mix::Write, shape.deep_api, MILLIS), 32);
    spec.files = 4;
    spec.flush = Some(flush_every(BATCH_PAGES / spec.jobs));
    spec.pacing = Pacing::Open {
        rate_iops: pages_per_s / f64::from(spec.jobs),
        process: RateProcess::Poisson,
    };
    whole_window(&mut spec);
    Stream { name: "pages".to_owned(), spec }
}

fn doublewrite(shape: &Shape, pages_per_s: f64) -> Stream {
    let mut spec = spec(shape, Mix::Write, IoApi::Sync, MILLIS);
    (spec.access, spec.block_bytes) = (Access::Sequential, DOUBLEWRITE_BYTES);
    spec.size_bytes = shape.log_bytes;
    spec.flush = Some(flush_every(1));
    let pages_per_write = f64::from(DOUBLEWRITE_BYTES / PAGE_BYTES);
    spec.pacing =
        Pacing::Open { rate_iops: pages_per_s / pages_per_write, process: RateProcess::Poisson };
    whole_window(&mut spec);
    Stream { name: "doublewrite".to_owned(), spec }
}

fn readers(shape: &Shape, reads_per_s: f64) -> Stream {
    let mut spec = spec(shape, Mix::Read, IoApi::Sync, MILLIS);
    (spec.jobs, spec.block_bytes) = (READERS, PAGE_BYTES);
    spec.pacing =
        Pacing::Open { rate_iops: reads_per_s / f64::from(READERS), process: RateProcess::Poisson };
    whole_window(&mut spec);
    Stream { name: "readers".to_owned(), spec }
}

/// Streams that are compared with each other all run the whole window.
fn whole_window(spec: &mut IoSpec) {
    spec.runtime = Some(spec.point_time);
}

fn round_to_two_digits(value: f64) -> f64 {
    if value <= 0.0 {
        return 0.0;
    }
    let step = 10.0_f64.powf(value.log10().floor() - 1.0);
    (value / step).round() * step
}
