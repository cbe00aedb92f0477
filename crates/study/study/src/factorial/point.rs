//! A cell as a point: the workload on its volume, and the figure it is measured for.

use std::path::Path;
use std::time::Duration;

use iostrata_plan::study::{Cell, VolumeKind};
use iostrata_plan::{
    Better, CurvePlace, Layer, Metric, MetricKind, OpKind, Point, Stream, TransactionSpec,
};

use crate::transaction_point;

/// The point of a cell on a place, measured for `window`: windows of one length are comparable, and
/// a study takes as long as it says.
pub(super) fn point(cell: &Cell, place: &Path, window: Duration) -> Point {
    let mut spec = cell.workload.clone();
    spec.path = place.to_owned();
    spec.point_time = window;
    // Never precise enough to end early.
    spec.precision = 0.0;
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
        transactions: None,
    }
}

/// The point of a cell that is a load of transactions.
pub(super) fn transactions(cell: &Cell, load: &TransactionSpec) -> Point {
    Point {
        id: cell.id.clone(),
        title: cell.title.clone(),
        curve: None,
        block: cell.parts.first().cloned().unwrap_or_default(),
        levels: cell.levels.clone(),
        ..transaction_point(load)
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
