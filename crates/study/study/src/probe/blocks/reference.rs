//! The same reads and the same writes at the start, in the middle and at the end: whether what was
//! measured in between was measured on the same storage.

use iostrata_spec::{Layer, Mix, OpKind};

use super::{Block, one_stream, point, rate_of, size, spec, with_depth};
use crate::probe::shape::{PAGE_BYTES, Shape};

const DEPTH: u32 = 8;
const MILLIS: u64 = 400;
/// At each of the three moments.
const REPLICATES: u32 = 2;

pub(super) fn blocks(shape: &Shape, with_writes: bool) -> Vec<Block> {
    let reference = |mix: Mix, id: &str, words: &str, op, unit| {
        let mut spec = with_depth(spec(shape, mix, shape.deep_api, MILLIS), DEPTH);
        spec.block_bytes = PAGE_BYTES;
        let title = format!("{} random {words}, {DEPTH} in flight, now and then", size(PAGE_BYTES));
        point(id, title, Layer::Device, "reference", one_stream(spec), rate_of(op, unit))
    };
    let reads = reference(Mix::Read, "reference_read", "reads", OpKind::Read, "reads/s");
    let writes = reference(Mix::Write, "reference_write", "overwrites", OpKind::Write, "writes/s");
    let points = if with_writes { vec![reads, writes] } else { vec![reads] };
    vec![Block { points, replicates: REPLICATES }]
}
