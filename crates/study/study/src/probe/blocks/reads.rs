//! Random reads at rising concurrency: latency over load, and where the knee is.

use iostrata_spec::{CurvePlace, Layer, Mix, OpKind};

use super::{Block, one_stream, point, rate_of, size, spec, with_depth};
use crate::probe::shape::{PAGE_BYTES, Shape};

const DEPTHS: [u32; 8] = [1, 2, 4, 8, 16, 32, 64, 128];

pub(super) fn blocks(shape: &Shape) -> Vec<Block> {
    let small = curve(shape, shape.block_bytes, "4k");
    let pages = curve(shape, PAGE_BYTES, "16k");
    vec![small, pages]
}

fn curve(shape: &Shape, block_bytes: u32, name: &str) -> Block {
    let curve = format!("read_{name}");
    let point_at = |depth: u32| {
        let mut spec = with_depth(spec(shape, Mix::Read, shape.deep_api, 300), depth);
        spec.block_bytes = block_bytes;
        let title = format!("{} random reads, {depth} in flight", size(block_bytes));
        let id = format!("{curve}_depth_{depth}");
        let metric = rate_of(OpKind::Read, "reads/s");
        let mut point = point(id, title, Layer::Device, &curve, one_stream(spec), metric);
        point.curve = Some(CurvePlace {
            curve: curve.clone(),
            axis: "requests in flight".to_owned(),
            x: f64::from(depth),
        });
        point
    };
    Block { points: DEPTHS.map(point_at).to_vec(), replicates: 4 }
}
