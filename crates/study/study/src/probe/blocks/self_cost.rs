//! What the meter itself costs.

use iostrata_spec::{IoApi, Layer, Mix, OpKind};

use super::{Block, one_stream, point, rate_of, spec};
use crate::probe::shape::Shape;

pub(super) fn blocks(shape: &Shape) -> Vec<Block> {
    let spec = spec(shape, Mix::Read, IoApi::Null, 200);
    let point = point(
        "meter_null",
        "the meter itself, touching nothing",
        Layer::Host,
        "self",
        one_stream(spec),
        rate_of(OpKind::Read, "ops/s"),
    );
    vec![Block { points: vec![point], replicates: 3 }]
}
