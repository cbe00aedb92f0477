//! The file APIs at equal depth: the same reads through each.

use iostrata_spec::{IoApi, Layer, Mix, OpKind};

use super::{Block, one_stream, point, rate_of, size, spec, with_depth};
use crate::probe::shape::{PAGE_BYTES, Shape};

const DEPTH: u32 = 16;

pub(super) fn blocks(shape: &Shape) -> Vec<Block> {
    let points = shape.apis.iter().filter(|api| **api != IoApi::Null).map(|api| {
        let mut spec = with_depth(spec(shape, Mix::Read, *api, 500), DEPTH);
        spec.block_bytes = PAGE_BYTES;
        let how = match api {
            IoApi::Sync => "pread, 16 threads",
            IoApi::Libaio => "libaio, 16 in flight",
            _ => "io_uring, 16 in flight",
        };
        let id = format!("read_16k_{}_{DEPTH}", api.name());
        let title = format!("{} random reads, {how}", size(PAGE_BYTES));
        let metric = rate_of(OpKind::Read, "reads/s");
        point(id, title, Layer::FileApi, "api", one_stream(spec), metric)
    });
    let points: Vec<_> = points.collect();
    vec![Block { points, replicates: 4 }]
}
