//! The sample's points and their replicates.

use iostrata_plan::{
    Better, CurvePlace, IoSpec, Layer, Metric, MetricKind, OpKind, PerKind, Point, Stream,
};
use iostrata_run::{Cpu, Event, OpFigures, Replicate, Series, StreamFigures, Unavailable};
use iostrata_stats::{Latencies, LatencyUs, Measured, Verdicts};

use super::rungs::{RUNGS, Row};

/// A generator of noise that is the same on every machine.
pub struct Noise(u64);

impl Noise {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) as f64 / f64::from(1_u32 << 31) * 2.0 - 1.0
    }
}

pub fn plan() -> Vec<Point> {
    RUNGS.iter().map(point).collect()
}

fn point(row: &Row) -> Point {
    let op = match row.unit {
        "writes/s" => OpKind::Write,
        "commits/s" | "us" => OpKind::Sync,
        _ => OpKind::Read,
    };
    Point {
        id: row.name.into(),
        title: row.title.into(),
        layer: row.layer,
        streams: vec![Stream {
            name: stream_name(row).into(),
            spec: IoSpec::new("/var/lib/mysql"),
        }],
        metric: Metric {
            stream: 0,
            op,
            kind: MetricKind::Iops,
            unit: row.unit.into(),
            better: Better::Higher,
        },
        curve: row.curve.map(|(curve, axis, x)| CurvePlace {
            curve: curve.into(),
            axis: axis.into(),
            x,
        }),
        block: row.block.into(),
        levels: Vec::new(),
        transactions: None,
    }
}

fn stream_name(row: &Row) -> &'static str {
    match row.unit {
        "writes/s" => "writes",
        "commits/s" | "us" => "redo",
        _ => "reads",
    }
}

pub fn all() -> Vec<Event> {
    let mut events = vec![Event::Unavailable(Unavailable::impossible(
        "the raw device below the file system",
        "reading /dev/sdb needs root",
        Some("run as root, or join the group disk".into()),
    ))];
    let mut started_s = 2.0;
    for row in RUNGS.iter().filter(|row| row.layer != Layer::Host) {
        for number in 0..3 {
            events.push(Event::Replicate(Box::new(replicate(row, number, started_s))));
            started_s += 1.1;
        }
    }
    events
        .push(Event::Suspected { id: "sync_method".into(), confirm: vec!["commit_dsync".into()] });
    events.push(Event::Finished { at_s: started_s, bytes_written: 3_221_225_472 });
    events
}

fn replicate(row: &Row, number: u32, started_s: f64) -> Replicate {
    let rate = if row.unit == "us" { 1e6 / row.value } else { row.value };
    let mut noise = Noise(row.name.len() as u64 * 977 + u64::from(number));
    let stall = row.name.starts_with("database") && number == 1;
    let counts: Vec<u32> = (0..10)
        .map(|slice| {
            let dip = if stall && slice == 6 { 0.3 } else { 1.0 };
            (rate * 0.1 * (1.0 + 0.04 * noise.next()) * dip).max(0.0) as u32
        })
        .collect();
    let latency: Vec<f32> =
        counts.iter().map(|&count| (1e5 * row.depth / f64::from(count.max(1))) as f32).collect();
    let mean = 1e6 * row.depth / rate;
    let figures = OpFigures {
        ios: counts.iter().map(|&count| u64::from(count)).sum(),
        bytes: 0,
        iops: Measured::new(rate, [rate * 0.985, rate * 1.015], 34, Verdicts::none()),
        latency_mean_us: Measured::new(mean, [mean * 0.985, mean * 1.015], 34, Verdicts::none()),
        latency_us: percentiles(mean),
        response_mean_us: None,
        response_us: None,
        latencies: Latencies::default(),
    };
    let mut stream = empty_stream(stream_name(row));
    stream.depth_mean = row.depth;
    stream.series = Series { width_s: 0.1, latency_mean_us: latency, ..Series::default() };
    let kind = match stream_name(row) {
        "reads" => OpKind::Read,
        "writes" => OpKind::Write,
        _ => OpKind::Sync,
    };
    stream.series.counts.insert(kind, counts);
    stream.ops.insert(kind, figures);
    Replicate {
        point: point(row),
        replicate: number,
        started_s,
        duration_s: 1.0,
        streams: vec![stream],
        evidence: None,
        verdicts: row.verdicts.iter().copied().collect(),
    }
}

pub fn percentiles(mean: f64) -> LatencyUs {
    LatencyUs {
        mean,
        p50: mean * 0.93,
        p95: mean * 1.4,
        p99: mean * 2.2,
        p99_9: mean * 4.9,
        max: mean * 31.0,
    }
}

pub fn empty_stream(name: &str) -> StreamFigures {
    StreamFigures {
        name: name.into(),
        ops: PerKind::default(),
        total: None,
        duration_s: None,
        cpu: Cpu { user_s: 0.11, sys_s: 0.42, ns_per_io: Some(5_300.0) },
        depth_mean: 1.0,
        start_lateness_us_p99: None,
        errors: vec![],
        transactions: None,
        notes: vec![],
        series: Series::default(),
        verdicts: Verdicts::none(),
    }
}

/// The only event of an I/O run.
pub fn io_event() -> Event {
    Event::Replicate(Box::new(replicate(&RUNGS[2], 0, 0.5)))
}
