//! Replicates of a study as they are stored.

use iostrata_plan::study::Cell;
use iostrata_plan::{Better, Layer, Metric, MetricKind, OpKind, PerKind, Point, Stream};
use iostrata_run::{Cpu, Event, Replicate, Series, StreamFigures};
use iostrata_stats::{Measured, Verdicts};

/// So many requests per second, known within half a percent, and nothing else.
pub fn stream(iops: f64) -> StreamFigures {
    StreamFigures {
        name: "load".to_owned(),
        duration_s: Some(1.0),
        ops: PerKind::default(),
        total: Some(Measured::new(iops, [iops * 0.995, iops * 1.005], 40, Verdicts::none())),
        cpu: Cpu::default(),
        depth_mean: 1.0,
        start_lateness_us_p99: None,
        errors: Vec::new(),
        transactions: None,
        notes: Vec::new(),
        series: Series::default(),
        verdicts: Verdicts::none(),
    }
}

/// One replicate of a cell.
pub fn replicate(cell: &Cell, number: u32, stream: StreamFigures) -> Event {
    Event::Replicate(Box::new(Replicate {
        point: Point {
            id: cell.id.clone(),
            title: cell.title.clone(),
            layer: Layer::Filesystem,
            streams: vec![Stream { name: "load".to_owned(), spec: cell.workload.clone() }],
            metric: Metric {
                stream: 0,
                op: OpKind::Read,
                kind: MetricKind::TotalIops,
                unit: "IOPS".to_owned(),
                better: Better::Higher,
            },
            curve: None,
            block: "main".to_owned(),
            levels: cell.levels.clone(),
            transactions: None,
        },
        replicate: number,
        started_s: 0.0,
        duration_s: stream.duration_s.unwrap_or(1.0),
        streams: vec![stream],
        evidence: None,
        verdicts: Verdicts::none(),
    }))
}
