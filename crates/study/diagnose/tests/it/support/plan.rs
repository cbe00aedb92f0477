//! The points that a probe measures, with the ids and streams that it gives them.

use iostrata_plan::{
    Access, Better, CurvePlace, Flush, FlushCount, FlushMethod, FlushScope, IoApi, IoSpec, Layer,
    Metric, MetricKind, Mix, OpKind, Pacing, Point, Preparation, RateProcess, Stream, SyncWrites,
};

/// Page rates of the database-shaped levels.
const LEVELS: [f64; 6] = [0.0, 2_000.0, 5_000.0, 10_000.0, 20_000.0, 30_000.0];

/// Blocks of points that take turns, each with its number of replicates.
pub fn plan() -> Vec<(Vec<Point>, u32)> {
    let reference = || (vec![reads_deep("reference_read"), writes_deep("reference_write")], 2);
    let mut blocks =
        vec![(vec![reads("meter_null", Layer::Host, IoApi::Null, 1, 4096)], 3), reference()];
    for (curve, block) in [("read_4k", 4096), ("read_16k", 16384)] {
        let point = |depth: u32| {
            let id = format!("{curve}_depth_{depth}");
            let mut point = reads(&id, Layer::Device, IoApi::IoUring, depth, block);
            place(&mut point, curve, "requests in flight", f64::from(depth));
            point
        };
        blocks.push(([1, 2, 4, 8, 16, 32, 64, 128].map(point).to_vec(), 3));
    }
    let api =
        |api: IoApi| reads(&format!("read_16k_{}_16", api.name()), Layer::FileApi, api, 16, 16384);
    blocks.push(([IoApi::Sync, IoApi::Libaio, IoApi::IoUring].map(api).to_vec(), 4));
    blocks.push(reference());
    let overwrites = |files: u32| {
        let mut point = files_point("write", files, |_| ());
        place(&mut point, "write_files", "files", f64::from(files));
        point
    };
    blocks.push(([1, 2, 4, 8].map(overwrites).to_vec(), 4));
    let mixed = |files| files_point("mixed", files, |s| s.mix = Mix::Both { read_pct: 70 });
    let unwritten =
        |files| files_point("unwritten", files, |s| s.preparation = Preparation::Fallocated);
    let buffered =
        |files| files_point("buffered", files, |s| (s.direct, s.flush) = (false, flush(64)));
    blocks.push(([1, 8].map(mixed).to_vec(), 4));
    blocks.push(([1, 8].map(unwritten).to_vec(), 4));
    blocks.push(([1, 8].map(buffered).to_vec(), 4));
    let appends = [("overwrite_16k", Preparation::Written), ("append_16k", Preparation::Empty)];
    blocks.push((appends.map(|(id, preparation)| sequential(id, preparation)).to_vec(), 4));
    let ways = [("flushed_16k_direct", true), ("flushed_16k_buffered", false)];
    blocks.push((ways.map(|(id, direct)| flushed(id, direct)).to_vec(), 4));
    blocks.push((commits(), 4));
    blocks.push(((0..LEVELS.len()).map(level).collect(), 3));
    blocks.push((vec![writes_deep("sustained_16k")], 1));
    blocks.push(reference());
    blocks
}

fn reads_deep(id: &str) -> Point {
    reads(id, Layer::Device, IoApi::IoUring, 8, 16384)
}

fn place(point: &mut Point, curve: &str, axis: &str, x: f64) {
    point.curve = Some(CurvePlace { curve: curve.to_owned(), axis: axis.to_owned(), x });
}

fn one(id: &str, layer: Layer, name: &str, spec: IoSpec, op: OpKind, unit: &str) -> Point {
    Point {
        id: id.to_owned(),
        title: id.replace('_', " "),
        layer,
        streams: vec![Stream { name: name.to_owned(), spec }],
        metric: Metric {
            stream: 0,
            op,
            kind: MetricKind::Iops,
            unit: unit.to_owned(),
            better: Better::Higher,
        },
        curve: None,
        block: "block".to_owned(),
        levels: Vec::new(),
        transactions: None,
    }
}

fn spec(mix: Mix, block_bytes: u32) -> IoSpec {
    let mut spec = IoSpec::new("/data");
    (spec.mix, spec.block_bytes, spec.direct) = (mix, block_bytes, true);
    spec
}

fn flush(every: u32) -> Option<Flush> {
    Some(Flush {
        method: FlushMethod::Fdatasync,
        every,
        scope: FlushScope::File,
        count: FlushCount::Writes,
    })
}

fn reads(id: &str, layer: Layer, api: IoApi, depth: u32, block_bytes: u32) -> Point {
    let mut spec = spec(Mix::Read, block_bytes);
    spec.api = api;
    if api == IoApi::Sync {
        spec.jobs = depth
    } else {
        spec.depth = depth
    }
    one(id, layer, "data", spec, OpKind::Read, "reads/s")
}

fn files_point(kind: &str, files: u32, change: impl FnOnce(&mut IoSpec)) -> Point {
    let mut spec = spec(Mix::Write, 16384);
    (spec.jobs, spec.files) = (8, files);
    change(&mut spec);
    let id = format!("{kind}_16k_files_{files}");
    one(&id, Layer::Filesystem, "data", spec, OpKind::Write, "writes/s")
}

fn sequential(id: &str, preparation: Preparation) -> Point {
    let mut spec = spec(Mix::Write, 16384);
    (spec.access, spec.preparation) = (Access::Sequential, preparation);
    one(id, Layer::Filesystem, "data", spec, OpKind::Write, "writes/s")
}

fn flushed(id: &str, direct: bool) -> Point {
    let mut spec = spec(Mix::Write, 16384);
    (spec.jobs, spec.direct, spec.flush) = (4, direct, flush(32));
    one(id, Layer::FileApi, "data", spec, OpKind::Write, "writes/s")
}

fn commits() -> Vec<Point> {
    let commit = |id: &str, jobs: u32, change: &dyn Fn(&mut IoSpec)| {
        let mut spec = spec(Mix::Write, 4096);
        (spec.access, spec.flush, spec.jobs) = (Access::Sequential, flush(1), jobs);
        change(&mut spec);
        let mut point = one(id, Layer::FileApi, "log", spec, OpKind::Write, "commits/s");
        if id.starts_with("commit_fdatasync") {
            place(&mut point, "commit", "committers", f64::from(jobs));
        }
        point
    };
    let mut empty = commit("flush_empty", 1, &|spec| {
        (spec.mix, spec.flush) = (Mix::FlushOnly(FlushMethod::Fdatasync), None);
    });
    (empty.metric.op, empty.metric.kind) = (OpKind::Sync, MetricKind::LatencyMeanUs);
    (empty.metric.better, empty.metric.unit) = (Better::Lower, "us".to_owned());
    vec![
        commit("commit_fsync", 1, &|_| ()),
        commit("commit_fdatasync", 1, &|_| ()),
        commit("commit_dsync", 1, &|spec| (spec.flush, spec.sync) = (None, SyncWrites::Dsync)),
        commit("commit_dsync_16", 16, &|spec| {
            (spec.flush, spec.sync) = (None, SyncWrites::Dsync);
        }),
        commit("append_fsync", 1, &|_| ()),
        commit("append_fdatasync", 1, &|_| ()),
        commit("commit_fdatasync_4", 4, &|_| ()),
        commit("commit_fdatasync_16", 16, &|_| ()),
        empty,
    ]
}

fn level(number: usize) -> Point {
    let pages_per_s = LEVELS[number];
    let open = |mix, block, rate_iops| {
        let mut spec = spec(mix, block);
        spec.pacing = Pacing::Open { rate_iops, process: RateProcess::Poisson };
        spec
    };
    let mut redo = open(Mix::Write, 4096, 200.0);
    redo.flush = flush(1);
    let id = format!("database_level_{number}");
    let mut point = one(&id, Layer::Transactions, "redo", redo, OpKind::Sync, "us");
    (point.metric.kind, point.metric.better) = (MetricKind::ResponseMeanUs, Better::Lower);
    let mut add = |name: &str, spec| {
        point.streams.push(Stream { name: name.to_owned(), spec });
    };
    if pages_per_s > 0.0 {
        add("pages", open(Mix::Write, 16384, pages_per_s));
        add("doublewrite", open(Mix::Write, 262_144, pages_per_s / 16.0));
    }
    add("readers", open(Mix::Read, 16384, 1_000.0));
    place(&mut point, "database", "pages flushed per second", pages_per_s);
    point
}

fn writes_deep(id: &str) -> Point {
    let mut spec = spec(Mix::Write, 16384);
    (spec.api, spec.depth) = (IoApi::IoUring, if id.starts_with("sustained") { 32 } else { 8 });
    one(id, Layer::Device, "data", spec, OpKind::Write, "writes/s")
}
