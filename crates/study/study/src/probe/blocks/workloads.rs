//! Blocks of single workloads: what the meter itself costs, reads and writes at one depth or a
//! rising one, in order, through each file API, flushed, and for as long as it takes.

use std::time::Duration;

use iostrata_plan::{Access, CurvePlace, IoApi, Layer, Mix, OpKind, rung};

use super::files::flush_every;
use super::{Block, alone, point, rate_of, size, spec, with_depth};
use crate::probe::budget::SUSTAINED;
use crate::probe::shape::{PAGE_BYTES, Shape};

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
pub(super) fn self_cost(shape: &Shape) -> Vec<Block> {
    let (id, title) = (rung::METER_NULL, "the meter itself, touching nothing");
    let spec = spec(shape, Mix::Read, IoApi::Null, 200);
    let point = point(id, title, Layer::Host, "self", alone(spec), rate_of(OpKind::Read, "ops/s"));
    vec![Block { points: vec![point], replicates: 3 }]
}

/// The same reads and the same writes at the start, in the middle and at the end: whether what was
/// measured in between was measured on the same storage.
pub(super) fn reference(shape: &Shape, with_writes: bool) -> Vec<Block> {
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
pub(super) fn reads(shape: &Shape) -> Vec<Block> {
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
pub(super) fn apis(shape: &Shape) -> Vec<Block> {
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
pub(super) fn flushed(shape: &Shape) -> Vec<Block> {
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
pub(super) fn reads_in_order(shape: &Shape) -> Vec<Block> {
    in_order(shape, rung::SEQUENTIAL_READ_1M, "reads", Mix::Read, OpKind::Read)
}

/// Large writes one after the other: what a load of data gets.
pub(super) fn writes_in_order(shape: &Shape) -> Vec<Block> {
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
pub(super) fn sustained(shape: &Shape, write_bytes_max: u64) -> Vec<Block> {
    let millis = SUSTAINED.as_millis() as u64;
    let mut spec = with_depth(spec(shape, Mix::Write, shape.deep_api, millis), SUSTAINED_DEPTH);
    spec.point_time = shape.lasting.unwrap_or(SUSTAINED.mul_f64(shape.time_factor));
    // Steadiness is what is asked: it never stops early because it is precise enough.
    spec.runtime = Some(spec.point_time);
    spec.write_bytes_max = Some(write_bytes_max);
    let title =
        format!("{} random writes, {SUSTAINED_DEPTH} in flight, sustained", size(PAGE_BYTES));
    let metric = rate_of(OpKind::Write, "writes/s");
    let point = point(rung::SUSTAINED_16K, title, Layer::Device, "sustained", alone(spec), metric);
    vec![Block { points: vec![point], replicates: 1 }]
}
