//! Direct against buffered writes with the same guarantee.

use iostrata_spec::{IoApi, Layer, Mix, OpKind};

use super::files::flush_every;
use super::{Block, one_stream, point, rate_of, size, spec};
use crate::probe::shape::{PAGE_BYTES, Shape};

const JOBS: u32 = 4;
const WRITES_PER_FLUSH: u32 = 32;

pub(super) fn blocks(shape: &Shape) -> Vec<Block> {
    let way = |id: &str, words: &str, direct: bool| {
        let mut spec = spec(shape, Mix::Write, IoApi::Sync, 500);
        (spec.jobs, spec.direct) = (JOBS, direct);
        spec.flush = Some(flush_every(WRITES_PER_FLUSH));
        let title = format!(
            "{} overwrites, {JOBS} threads, {words}, flushed every {WRITES_PER_FLUSH}",
            size(PAGE_BYTES)
        );
        let metric = rate_of(OpKind::Write, "writes/s");
        point(id, title, Layer::FileApi, "flushed", one_stream(spec), metric)
    };
    let mut points = vec![way("flushed_16k_buffered", "buffered", false)];
    if shape.direct {
        points.insert(0, way("flushed_16k_direct", "direct", true));
    }
    vec![Block { points, replicates: 4 }]
}
