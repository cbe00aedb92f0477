//! A cell as a point: the workload on its volume, and the figure it is measured for.

use std::path::Path;
use std::time::Duration;

use iostrata_spec::study::{Cell, VolumeKind};
use iostrata_spec::{Better, CurvePlace, Layer, Metric, MetricKind, OpKind, Point, Stream};

/// The part of the target precision that one window may be content with: replicates differ by more
/// than one window shows.
const WINDOW_PRECISION: f64 = 0.4;

/// The point of a cell on a place, measured for at most `window`.
pub(super) fn point(cell: &Cell, place: &Path, window: Duration, precision: f64) -> Point {
    let mut spec = cell.workload.clone();
    spec.path = place.to_owned();
    spec.point_time = window;
    spec.precision = (precision * WINDOW_PRECISION).max(0.002);
    Point {
        id: cell.id.clone(),
        title: cell.title.clone(),
        layer: match cell.volume.kind {
            _ if !cell.conditions.io_limits.is_none() => Layer::Limit,
            VolumeKind::Raw => Layer::Device,
            _ => Layer::Filesystem,
        },
        streams: vec![Stream { name: "load".to_owned(), spec }],
        metric: total_iops(),
        curve: None::<CurvePlace>,
        block: cell.parts.first().cloned().unwrap_or_default(),
        levels: cell.levels.clone(),
    }
}

/// Reads and writes of all streams together.
pub(super) fn total_iops() -> Metric {
    Metric {
        stream: 0,
        op: OpKind::Read,
        kind: MetricKind::TotalIops,
        unit: "IOPS".to_owned(),
        better: Better::Higher,
    }
}
