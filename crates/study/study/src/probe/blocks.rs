//! The blocks of a probe: points that are compared with each other and measured interleaved.
//!
//! Invariant: streams and units are fixed here and nowhere else; ids that others name stand in
//! `iostrata_plan::rung`.

use std::time::Duration;

use iostrata_plan::{
    Access, Better, CurvePlace, Flush, FlushCount, FlushMethod, FlushScope, IoApi, IoSpec, Layer,
    Metric, MetricKind, Mix, OpKind, Pacing, Point, Preparation, RateProcess, Stream, SyncWrites,
    rung,
};
use iostrata_run::{Event, Replicate};

use super::budget::{PAGE_BYTES, SUSTAINED, Shape};

/// A block and how often its points are measured.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub points: Vec<Point>,
    pub replicates: u32,
}

/// One part of the probe, planned when its turn comes, with what was measured before at hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    SelfCost,
    /// The same reads and writes each time.
    Reference(Moment),
    Reads,
    Api,
    Files,
    Appends,
    Flushed,
    InOrder,
    Commits,
    Database,
    Sustained,
    /// Overwrites before everything else, where they are requested.
    Precondition,
    /// Of a database, where one is named; planned by its own rounds.
    Transactions,
}

/// When the reference points are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    Start,
    Middle,
    End,
}

impl Part {
    /// The parts of a whole probe, in order.
    pub(super) const ALL: [Part; 13] = [
        Part::SelfCost,
        Part::Reference(Moment::Start),
        Part::Reads,
        Part::Api,
        Part::Reference(Moment::Middle),
        Part::Files,
        Part::Appends,
        Part::Flushed,
        Part::InOrder,
        Part::Commits,
        Part::Database,
        Part::Sustained,
        Part::Reference(Moment::End),
    ];

    /// Whether it writes anything but the file it reads.
    pub(super) fn writes(self) -> bool {
        !matches!(self, Part::SelfCost | Part::Reference(_) | Part::Reads | Part::Api)
    }

    /// What it does, for the progress line.
    pub(super) fn title(self) -> &'static str {
        match self {
            Part::SelfCost => "the meter itself",
            Part::Reference(_) => "the same reads and writes again",
            Part::Reads => "random reads at rising concurrency",
            Part::Api => "file APIs at equal depth",
            Part::Files => "random writes on 1 to 8 files",
            Part::Appends => "appending against overwriting",
            Part::Flushed => "direct against buffered",
            Part::InOrder => "large writes in order",
            Part::Commits => "the sync laboratory",
            Part::Database => "the database-shaped load",
            Part::Sustained => "sustained writes",
            Part::Precondition => "overwriting the files first",
            Part::Transactions => "transactions",
        }
    }

    /// Seconds that it takes at most at time factor 1, pauses between points included.
    pub(super) fn planned_s(self) -> f64 {
        match self {
            Part::SelfCost => 1.0,
            Part::Reference(_) => 2.4,
            Part::Reads => 24.0,
            Part::Api => 7.0,
            Part::Files => 22.0,
            Part::Appends => 4.5,
            Part::Flushed => 4.5,
            Part::InOrder => 2.5,
            Part::Commits => 19.0,
            Part::Database => 26.0,
            Part::Sustained => SUSTAINED.as_secs_f64(),
            Part::Precondition | Part::Transactions => 0.0,
        }
    }

    /// Its blocks on this directory.
    pub(super) fn blocks(self, shape: &Shape, events: &[Event], sustained_max: u64) -> Vec<Block> {
        match self {
            Part::SelfCost => self_cost(shape),
            Part::Reference(_) => reference(shape, shape.writes),
            Part::Reads => [reads(shape), reads_in_order(shape)].concat(),
            Part::Api => apis(shape),
            Part::Files => file_blocks(shape),
            Part::Appends => append_blocks(shape),
            Part::Flushed => flushed(shape),
            Part::InOrder => writes_in_order(shape),
            Part::Commits => commit_blocks(shape),
            Part::Database => database_blocks(shape, events),
            Part::Sustained => sustained(shape, sustained_max),
            Part::Precondition | Part::Transactions => Vec::new(),
        }
    }
}

/// How much longer a point may last where its requests are slow.
const SLOW_FACTOR: u32 = 2;

/// A spec on the probe's directory that runs at most `millis`.
fn spec(shape: &Shape, mix: Mix, api: IoApi, millis: u64) -> IoSpec {
    let mut spec = IoSpec::new(&shape.dir);
    (spec.mix, spec.api, spec.direct) = (mix, api, shape.direct);
    spec.block_bytes = if mix == Mix::Read { shape.block_bytes } else { PAGE_BYTES };
    spec.size_bytes = if mix == Mix::Read { shape.read_bytes } else { shape.write_bytes };
    spec.point_time = time(shape, millis);
    spec.point_time_slow = Some((spec.point_time * SLOW_FACTOR).min(shape.point_time_max));
    spec.precision = shape.precision;
    if mix.writes() {
        spec.write_bytes_max = Some(shape.point_write_bytes_max);
    }
    spec
}

fn time(shape: &Shape, millis: u64) -> Duration {
    Duration::from_millis(millis)
        .mul_f64(shape.time_factor)
        .clamp(Duration::from_millis(60), shape.point_time_max.max(Duration::from_millis(60)))
}

/// Keeps `depth` requests in flight: in one job where the API can, else in as many jobs.
fn with_depth(mut spec: IoSpec, depth: u32) -> IoSpec {
    if spec.api == IoApi::Sync {
        spec.jobs = depth;
    } else {
        spec.depth = depth;
    }
    spec
}

fn alone(spec: IoSpec) -> Vec<Stream> {
    vec![Stream { name: "data".to_owned(), spec }]
}

/// Requests per second of one kind of the first stream.
fn rate_of(op: OpKind, unit: &str) -> Metric {
    Metric { stream: 0, op, kind: MetricKind::Iops, unit: unit.to_owned(), better: Better::Higher }
}

fn point(
    id: impl Into<String>,
    title: impl Into<String>,
    layer: Layer,
    block: &str,
    streams: Vec<Stream>,
    metric: Metric,
) -> Point {
    Point {
        id: id.into(),
        title: title.into(),
        layer,
        streams,
        metric,
        curve: None,
        block: block.to_owned(),
        levels: Vec::new(),
        transactions: None,
    }
}

fn size(bytes: u32) -> String {
    iostrata_stats::units::bytes(f64::from(bytes))
}

/// Mean of a point's figure so far, to plan with.
fn measured(events: &[Event], id: &str, op: OpKind) -> Option<f64> {
    let rate =
        |replicate: &Replicate| Some(replicate.streams.first()?.ops[op].as_ref()?.iops.value);
    let replicates = events.iter().filter_map(Event::replicate);
    let rates: Vec<f64> = replicates.filter(|one| one.point.id == id).filter_map(rate).collect();
    (!rates.is_empty()).then(|| rates.iter().sum::<f64>() / rates.len() as f64)
}

// Random writes on one and on several files: where the file lock bites, and where it does not.

/// Threads that write at the same time.
const JOBS: u32 = 8;

fn file_blocks(shape: &Shape) -> Vec<Block> {
    let overwrite = |files| {
        let mut point = over_files("write", "overwrites", shape, files, |_| ());
        point.curve = Some(CurvePlace {
            curve: "write_files".to_owned(),
            axis: "files".to_owned(),
            x: f64::from(files),
        });
        point
    };
    let mixed = |files| {
        over_files("mixed", "reads and writes 70:30", shape, files, |spec| {
            spec.mix = Mix::Both { read_pct: 70 };
        })
    };
    let unwritten = |files| {
        over_files("unwritten", "first writes", shape, files, |spec| {
            (spec.preparation, spec.access) = (Preparation::Fallocated, Access::Coverage);
        })
    };
    let buffered = |files| {
        over_files("buffered", "buffered overwrites", shape, files, |spec| {
            spec.direct = false;
            spec.flush = Some(flush_every(64));
        })
    };
    let block = |points: Vec<Point>| Block { points, replicates: 4 };
    vec![
        block([1, 2, 4, 8].map(overwrite).to_vec()),
        block([1, 8].map(mixed).to_vec()),
        block([1, 8].map(unwritten).to_vec()),
        block([1, 8].map(buffered).to_vec()),
    ]
}

/// Sequential writes of one thread: extending an empty file against overwriting.
fn append_blocks(shape: &Shape) -> Vec<Block> {
    let sequential = |id: &str, title: &str, preparation| {
        let mut spec = spec(shape, Mix::Write, IoApi::Sync, 500);
        (spec.access, spec.preparation) = (Access::Sequential, preparation);
        let title = format!("{} {title}, 1 thread", size(PAGE_BYTES));
        let metric = rate_of(OpKind::Write, "writes/s");
        point(id, title, Layer::Filesystem, "append", alone(spec), metric)
    };
    let points = vec![
        sequential(rung::OVERWRITE_16K, "overwrites in order", Preparation::Written),
        sequential(rung::APPEND_16K, "appends", Preparation::Empty),
    ];
    vec![Block { points, replicates: 4 }]
}

fn over_files(
    kind: &str,
    words: &str,
    shape: &Shape,
    files: u32,
    change: impl FnOnce(&mut IoSpec),
) -> Point {
    let mut spec = spec(shape, Mix::Write, IoApi::Sync, 500);
    (spec.jobs, spec.files) = (JOBS, files);
    change(&mut spec);
    let plural = if files == 1 { "file" } else { "files" };
    let title = format!("{} {words}, {JOBS} threads, {files} {plural}", size(PAGE_BYTES));
    let unit = "writes/s";
    point(
        format!("{kind}_16k_files_{files}"),
        title,
        Layer::Filesystem,
        &format!("{kind}_files"),
        alone(spec),
        rate_of(OpKind::Write, unit),
    )
}

fn flush_every(every: u32) -> Flush {
    Flush {
        method: FlushMethod::Fdatasync,
        every,
        scope: FlushScope::File,
        count: FlushCount::Writes,
    }
}

// The sync laboratory: what it costs to make a small write durable, in every way there is.

const COMMIT_MILLIS: u64 = 500;

fn commit_blocks(shape: &Shape) -> Vec<Block> {
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
    let mut spec = spec(shape, mix, IoApi::Sync, COMMIT_MILLIS);
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

// Blocks of single workloads: what the meter itself costs, reads and writes at one depth or a
// rising one, in order, through each file API, flushed, and for as long as it takes.

const DEPTHS: [u32; 8] = [1, 2, 4, 8, 16, 32, 64, 128];
const API_DEPTH: u32 = 16;
const REFERENCE_DEPTH: u32 = 8;
const REFERENCE_MILLIS: u64 = 400;
/// At each of the three moments.
const REFERENCE_REPLICATES: u32 = 2;
const IN_ORDER_DEPTH: u32 = 8;
/// Of this size a request per second is a MiB per second.
const IN_ORDER_BYTES: u32 = 1 << 20;
const IN_ORDER_MILLIS: u64 = 400;
const FLUSHED_JOBS: u32 = 4;
const WRITES_PER_FLUSH: u32 = 32;
const SUSTAINED_DEPTH: u32 = 32;

/// The null API: what the meter itself costs.
fn self_cost(shape: &Shape) -> Vec<Block> {
    let (id, title) = (rung::METER_NULL, "the meter itself, touching nothing");
    let spec = spec(shape, Mix::Read, IoApi::Null, 200);
    let point = point(id, title, Layer::Host, "self", alone(spec), rate_of(OpKind::Read, "ops/s"));
    vec![Block { points: vec![point], replicates: 3 }]
}

/// The same reads and the same writes at the start, in the middle and at the end: whether what was
/// measured in between was measured on the same storage.
fn reference(shape: &Shape, with_writes: bool) -> Vec<Block> {
    let reference = |mix: Mix, id: &str, words: &str, op, unit| {
        let mut spec =
            with_depth(spec(shape, mix, shape.deep_api, REFERENCE_MILLIS), REFERENCE_DEPTH);
        spec.block_bytes = PAGE_BYTES;
        let title = format!(
            "{} random {words}, {REFERENCE_DEPTH} in flight, now and then",
            size(PAGE_BYTES)
        );
        point(id, title, Layer::Device, "reference", alone(spec), rate_of(op, unit))
    };
    let reads = reference(Mix::Read, "reference_read", "reads", OpKind::Read, "reads/s");
    let writes = reference(Mix::Write, "reference_write", "overwrites", OpKind::Write, "writes/s");
    let points = if with_writes { vec![reads, writes] } else { vec![reads] };
    vec![Block { points, replicates: REFERENCE_REPLICATES }]
}

/// Random reads at rising concurrency: latency over load, and where the knee is.
fn reads(shape: &Shape) -> Vec<Block> {
    [(shape.block_bytes, "4k"), (PAGE_BYTES, "16k")]
        .map(|(block_bytes, name)| reads_of(shape, block_bytes, name))
        .to_vec()
}

fn reads_of(shape: &Shape, block_bytes: u32, name: &str) -> Block {
    let curve = format!("read_{name}");
    let point_at = |depth: u32| {
        let mut spec = with_depth(spec(shape, Mix::Read, shape.deep_api, 300), depth);
        spec.block_bytes = block_bytes;
        let title = format!("{} random reads, {depth} in flight", size(block_bytes));
        let id = format!("{curve}_depth_{depth}");
        let metric = rate_of(OpKind::Read, "reads/s");
        let mut point = point(id, title, Layer::Device, &curve, alone(spec), metric);
        point.curve = Some(CurvePlace {
            curve: curve.clone(),
            axis: "requests in flight".to_owned(),
            x: f64::from(depth),
        });
        point
    };
    Block { points: DEPTHS.map(point_at).to_vec(), replicates: 4 }
}

/// The file APIs at equal depth: the same reads through each.
fn apis(shape: &Shape) -> Vec<Block> {
    let points = shape.apis.iter().filter(|api| **api != IoApi::Null).map(|api| {
        let mut spec = with_depth(spec(shape, Mix::Read, *api, 500), API_DEPTH);
        spec.block_bytes = PAGE_BYTES;
        let how = match api {
            IoApi::Sync => "pread, 16 threads",
            IoApi::Libaio => "libaio, 16 in flight",
            _ => "io_uring, 16 in flight",
        };
        let id = format!("read_16k_{}_{API_DEPTH}", api.name());
        let title = format!("{} random reads, {how}", size(PAGE_BYTES));
        let metric = rate_of(OpKind::Read, "reads/s");
        point(id, title, Layer::FileApi, "api", alone(spec), metric)
    });
    vec![Block { points: points.collect(), replicates: 4 }]
}

/// Direct against buffered writes with the same guarantee.
fn flushed(shape: &Shape) -> Vec<Block> {
    let written = |id: &str, words: &str, direct: bool| {
        let mut spec = spec(shape, Mix::Write, IoApi::Sync, 500);
        (spec.jobs, spec.direct) = (FLUSHED_JOBS, direct);
        spec.flush = Some(flush_every(WRITES_PER_FLUSH));
        let title = format!(
            "{} overwrites, {FLUSHED_JOBS} threads, {words}, flushed every {WRITES_PER_FLUSH}",
            size(PAGE_BYTES)
        );
        let metric = rate_of(OpKind::Write, "writes/s");
        point(id, title, Layer::FileApi, "flushed", alone(spec), metric)
    };
    let mut points = vec![written(rung::FLUSHED_16K_BUFFERED, "buffered", false)];
    if shape.direct {
        points.insert(0, written(rung::FLUSHED_16K_DIRECT, "direct", true));
    }
    vec![Block { points, replicates: 4 }]
}

/// Large reads one after the other: what a scan or a backup gets.
fn reads_in_order(shape: &Shape) -> Vec<Block> {
    in_order(shape, rung::SEQUENTIAL_READ_1M, "reads", Mix::Read, OpKind::Read)
}

/// Large writes one after the other: what a load of data gets.
fn writes_in_order(shape: &Shape) -> Vec<Block> {
    in_order(shape, rung::SEQUENTIAL_WRITE_1M, "writes", Mix::Write, OpKind::Write)
}

/// A block of its own: reads and writes are not compared.
fn in_order(shape: &Shape, id: &str, words: &str, mix: Mix, op: OpKind) -> Vec<Block> {
    let mut spec = with_depth(spec(shape, mix, shape.deep_api, IN_ORDER_MILLIS), IN_ORDER_DEPTH);
    (spec.access, spec.block_bytes) = (Access::Sequential, IN_ORDER_BYTES);
    let title = format!("{} {words} in order, {IN_ORDER_DEPTH} in flight", size(IN_ORDER_BYTES));
    let point = point(id, title, Layer::Device, id, alone(spec), rate_of(op, "MiB/s"));
    vec![Block { points: vec![point], replicates: 4 }]
}

/// The file that is read is overwritten in order, again and again: caches of flash and credit of
/// volumes are used up before anything is measured.
pub(in crate::probe) fn precondition(shape: &Shape, bytes_max: u64, time_max: Duration) -> Block {
    let millis = time_max.as_millis() as u64;
    let mut spec = with_depth(spec(shape, Mix::Write, shape.deep_api, millis), IN_ORDER_DEPTH);
    (spec.access, spec.block_bytes) = (Access::Sequential, IN_ORDER_BYTES);
    (spec.size_bytes, spec.point_time, spec.runtime) = (shape.read_bytes, time_max, Some(time_max));
    spec.write_bytes_max = Some(bytes_max);
    let title = "1 MiB overwrites before everything else";
    let metric = rate_of(OpKind::Write, "MiB/s");
    let id = rung::PRECONDITION;
    Block { points: vec![point(id, title, Layer::Device, id, alone(spec), metric)], replicates: 1 }
}

/// Writes for as long as time and budget allow: does the rate hold?
fn sustained(shape: &Shape, write_bytes_max: u64) -> Vec<Block> {
    let millis = SUSTAINED.as_millis() as u64;
    let mut spec = with_depth(spec(shape, Mix::Write, shape.deep_api, millis), SUSTAINED_DEPTH);
    spec.point_time = shape.lasting.unwrap_or(SUSTAINED.mul_f64(shape.time_factor));
    // Steadiness is the question: it never stops early because it is precise enough.
    spec.runtime = Some(spec.point_time);
    spec.write_bytes_max = Some(write_bytes_max);
    let title =
        format!("{} random writes, {SUSTAINED_DEPTH} in flight, sustained", size(PAGE_BYTES));
    let metric = rate_of(OpKind::Write, "writes/s");
    let point = point(rung::SUSTAINED_16K, title, Layer::Device, "sustained", alone(spec), metric);
    vec![Block { points: vec![point], replicates: 1 }]
}

// The database-shaped load: redo, page writes with their doublewrite, and readers at once.
//
// Levels rise in pages flushed per second; what commits and reads then take shows how much flushing
// the storage carries in addition.

/// Levels, as shares of the page rate that the storage takes when it does nothing else.
const LEVELS: [f64; 6] = [0.0, 0.1, 0.2, 0.35, 0.5, 0.7];
/// InnoDB's cleaners do not flush more pages per second than this on any hardware so far.
const PAGES_PER_S_MAX: f64 = 30_000.0;
/// Group commits per second of the one log writer: a share of what it can do alone, so that a slow
/// flush is not the limit by itself, and enough on a fast one for a high percentile.
const COMMIT_SHARE: f64 = 0.4;
const COMMITS_PER_S: [f64; 2] = [10.0, 400.0];
/// Share of the read rate at depth 8 that the readers request.
const READ_SHARE: f64 = 0.1;
const READS_PER_S_MAX: f64 = 4_000.0;
const READERS: u32 = 4;
/// Pages per batch, as InnoDB's doublewrite buffer has them.
const BATCH_PAGES: u32 = 128;
const DOUBLEWRITE_BYTES: u32 = 256 << 10;
const DATABASE_MILLIS: u64 = 1_300;

fn database_blocks(shape: &Shape, events: &[Event]) -> Vec<Block> {
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

/// What runs along with the page writes at every level.
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
    let mut spec = spec(shape, Mix::Write, IoApi::Sync, DATABASE_MILLIS);
    (spec.access, spec.block_bytes) = (Access::Sequential, shape.block_bytes);
    spec.size_bytes = shape.log_bytes;
    spec.flush = Some(flush_every(1));
    spec.pacing = Pacing::Open { rate_iops: commits_per_s, process: RateProcess::Fixed };
    whole_window(&mut spec);
    Stream { name: "redo".to_owned(), spec }
}

fn pages(shape: &Shape, pages_per_s: f64) -> Stream {
    let mut spec = with_depth(spec(shape, Mix::Write, shape.deep_api, DATABASE_MILLIS), 32);
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
    let mut spec = spec(shape, Mix::Write, IoApi::Sync, DATABASE_MILLIS);
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
    let mut spec = spec(shape, Mix::Read, IoApi::Sync, DATABASE_MILLIS);
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
