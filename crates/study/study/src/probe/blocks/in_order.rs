//! Large requests one after the other: what a scan, a backup or a load of data gets.

use iostrata_spec::{Access, Layer, Mix, OpKind};

use super::{Block, one_stream, point, rate_of, size, spec, with_depth};
use crate::probe::shape::Shape;

const DEPTH: u32 = 8;
/// Of this size a request per second is a MiB per second.
const BLOCK_BYTES: u32 = 1 << 20;
const MILLIS: u64 = 400;

pub(super) fn reads(shape: &Shape) -> Vec<Block> {
    alone(shape, "sequential_read_1m", "reads", Mix::Read, OpKind::Read)
}

pub(super) fn writes(shape: &Shape) -> Vec<Block> {
    alone(shape, "sequential_write_1m", "writes", Mix::Write, OpKind::Write)
}

/// A block of its own: reads and writes are not compared.
fn alone(shape: &Shape, id: &str, words: &str, mix: Mix, op: OpKind) -> Vec<Block> {
    let mut spec = with_depth(spec(shape, mix, shape.deep_api, MILLIS), DEPTH);
    (spec.access, spec.block_bytes) = (Access::Sequential, BLOCK_BYTES);
    let title = format!("{} {words} in order, {DEPTH} in flight", size(BLOCK_BYTES));
    let metric = rate_of(op, "MiB/s");
    let points = vec![point(id, title, Layer::Device, id, one_stream(spec), metric)];
    vec![Block { points, replicates: 4 }]
}
