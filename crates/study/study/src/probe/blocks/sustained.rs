//! Writes for as long as time and budget allow: does the rate hold?

use std::time::Duration;

use iostrata_spec::{Layer, Mix, OpKind};

use super::{Block, one_stream, point, rate_of, size, spec, with_depth};
use crate::probe::shape::{PAGE_BYTES, Shape};

const DEPTH: u32 = 32;
const MILLIS: u64 = 12_000;

pub(super) fn blocks(shape: &Shape, write_bytes_max: u64) -> Vec<Block> {
    let mut spec = with_depth(spec(shape, Mix::Write, shape.deep_api, MILLIS), DEPTH);
    spec.point_time = Duration::from_millis(MILLIS).mul_f64(shape.time_factor);
    // Steadiness is what is asked: it never stops early because it is precise enough.
    spec.runtime = Some(spec.point_time);
    spec.write_bytes_max = Some(write_bytes_max);
    let title = format!("{} random writes, {DEPTH} in flight, sustained", size(PAGE_BYTES));
    let metric = rate_of(OpKind::Write, "writes/s");
    let point = point("sustained_16k", title, Layer::Device, "sustained", one_stream(spec), metric);
    vec![Block { points: vec![point], replicates: 1 }]
}
