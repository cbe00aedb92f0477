//! The sync laboratory: what it costs to make a small write durable, in every way there is.

use iostrata_plan::{
    Access, Better, CurvePlace, Flush, FlushCount, FlushMethod, FlushScope, IoApi, IoSpec, Layer,
    Metric, MetricKind, Mix, OpKind, Point, Preparation, Stream, SyncWrites, rung,
};

use super::{Block, point, rate_of, size, spec};
use crate::probe::shape::Shape;

const MILLIS: u64 = 500;

pub(super) fn blocks(shape: &Shape) -> Vec<Block> {
    let mut points = vec![
        commit(shape, rung::COMMIT_FSYNC, "write + fsync", |spec| flush(spec, FlushMethod::Fsync)),
        commit(shape, rung::COMMIT_FDATASYNC, "write + fdatasync", |spec| {
            flush(spec, FlushMethod::Fdatasync);
        }),
        commit(shape, rung::COMMIT_DSYNC, "O_DSYNC write", |spec| spec.sync = SyncWrites::Dsync),
        commit(shape, rung::APPEND_FSYNC, "append + fsync", |spec| {
            spec.preparation = Preparation::Empty;
            flush(spec, FlushMethod::Fsync);
        }),
        commit(shape, rung::APPEND_FDATASYNC, "append + fdatasync", |spec| {
            spec.preparation = Preparation::Empty;
            flush(spec, FlushMethod::Fdatasync);
        }),
    ];
    for jobs in [4, 16] {
        let id = format!("commit_fdatasync_{jobs}");
        let words = format!("write + fdatasync, {jobs} at once");
        points.push(commit(shape, &id, &words, |spec| {
            spec.jobs = jobs;
            flush(spec, FlushMethod::Fdatasync);
        }));
    }
    points.push(commit(shape, rung::COMMIT_DSYNC_16, "O_DSYNC write, 16 at once", |spec| {
        (spec.jobs, spec.sync) = (16, SyncWrites::Dsync);
    }));
    for (id, committers) in [
        (rung::COMMIT_FDATASYNC, 1.0),
        (rung::COMMIT_FDATASYNC_4, 4.0),
        (rung::COMMIT_FDATASYNC_16, 16.0),
    ] {
        if let Some(point) = points.iter_mut().find(|point| point.id == id) {
            point.curve = Some(CurvePlace {
                curve: "commit".to_owned(),
                axis: "committers".to_owned(),
                x: committers,
            });
        }
    }
    points.push(empty_flush(shape));
    vec![Block { points, replicates: 4 }]
}

fn commit(shape: &Shape, id: &str, words: &str, change: impl FnOnce(&mut IoSpec)) -> Point {
    let mut spec = log_spec(shape, Mix::Write);
    change(&mut spec);
    let title = format!("{} commits: {words}", size(spec.block_bytes));
    let streams = vec![Stream { name: "log".to_owned(), spec }];
    point(id, title, Layer::FileApi, "commits", streams, rate_of(OpKind::Write, "commits/s"))
}

fn log_spec(shape: &Shape, mix: Mix) -> IoSpec {
    let mut spec = spec(shape, mix, IoApi::Sync, MILLIS);
    (spec.access, spec.block_bytes) = (Access::Sequential, shape.block_bytes);
    spec.size_bytes = shape.log_bytes;
    spec
}

fn flush(spec: &mut IoSpec, method: FlushMethod) {
    spec.flush =
        Some(Flush { method, every: 1, scope: FlushScope::File, count: FlushCount::Writes });
}

fn empty_flush(shape: &Shape) -> Point {
    let spec = log_spec(shape, Mix::FlushOnly(FlushMethod::Fdatasync));
    let metric = Metric {
        stream: 0,
        op: OpKind::Sync,
        kind: MetricKind::LatencyMeanUs,
        unit: "us".to_owned(),
        better: Better::Lower,
    };
    let streams = vec![Stream { name: "log".to_owned(), spec }];
    point(
        rung::FLUSH_EMPTY,
        "fdatasync with nothing to flush",
        Layer::FileApi,
        "commits",
        streams,
        metric,
    )
}
