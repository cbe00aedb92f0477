//! The blocks of a probe: points that are compared with each other and measured interleaved.
//!
//! Invariant: streams and units are fixed here and nowhere else; ids that others name stand in
//! `iostrata_plan::rung`.

mod commits;
mod database;
mod files;
mod workloads;

use std::time::Duration;

use iostrata_plan::{Better, IoApi, IoSpec, Layer, Metric, MetricKind, Mix, OpKind, Point, Stream};
use iostrata_run::Event;

use super::budget::SUSTAINED;
use super::shape::{PAGE_BYTES, Shape};

pub(super) use workloads::precondition;

/// A block and how often its points are measured.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub points: Vec<Point>,
    pub replicates: u32,
}

/// One part of the probe, planned when its turn comes, with what was measured before at hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    SelfCost,
    /// The same reads and writes each time.
    Reference(Moment),
    Reads,
    Api,
    Files,
    Appends,
    Flushed,
    InOrder,
    Commits,
    Database,
    Sustained,
    /// Overwrites before everything else, where they are asked for.
    Precondition,
    /// Of a database, where one is named; planned by its own rounds.
    Transactions,
}

/// When the reference points are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    Start,
    Middle,
    End,
}

impl Part {
    /// The parts of a whole probe, in order.
    pub(super) const ALL: [Part; 13] = [
        Part::SelfCost,
        Part::Reference(Moment::Start),
        Part::Reads,
        Part::Api,
        Part::Reference(Moment::Middle),
        Part::Files,
        Part::Appends,
        Part::Flushed,
        Part::InOrder,
        Part::Commits,
        Part::Database,
        Part::Sustained,
        Part::Reference(Moment::End),
    ];

    /// Whether it writes anything but the file it reads.
    pub(super) fn writes(self) -> bool {
        !matches!(self, Part::SelfCost | Part::Reference(_) | Part::Reads | Part::Api)
    }

    /// What it does, for the progress line.
    pub(super) fn title(self) -> &'static str {
        match self {
            Part::SelfCost => "the meter itself",
            Part::Reference(_) => "the same reads and writes again",
            Part::Reads => "random reads at rising concurrency",
            Part::Api => "file APIs at equal depth",
            Part::Files => "random writes on 1 to 8 files",
            Part::Appends => "appending against overwriting",
            Part::Flushed => "direct against buffered",
            Part::InOrder => "large writes in order",
            Part::Commits => "the sync laboratory",
            Part::Database => "the database-shaped load",
            Part::Sustained => "sustained writes",
            Part::Precondition => "overwriting the files first",
            Part::Transactions => "transactions",
        }
    }

    /// Seconds that it takes at most at time factor 1, pauses between points included.
    pub(super) fn planned_s(self) -> f64 {
        match self {
            Part::SelfCost => 1.0,
            Part::Reference(_) => 2.4,
            Part::Reads => 24.0,
            Part::Api => 7.0,
            Part::Files => 22.0,
            Part::Appends => 4.5,
            Part::Flushed => 4.5,
            Part::InOrder => 2.5,
            Part::Commits => 19.0,
            Part::Database => 26.0,
            Part::Sustained => SUSTAINED.as_secs_f64(),
            Part::Precondition | Part::Transactions => 0.0,
        }
    }

    /// Its blocks on this directory.
    pub(super) fn blocks(self, shape: &Shape, events: &[Event], sustained_max: u64) -> Vec<Block> {
        match self {
            Part::SelfCost => workloads::self_cost(shape),
            Part::Reference(_) => workloads::reference(shape, shape.writes),
            Part::Reads => [workloads::reads(shape), workloads::reads_in_order(shape)].concat(),
            Part::Api => workloads::apis(shape),
            Part::Files => files::blocks(shape),
            Part::Appends => files::append_blocks(shape),
            Part::Flushed => workloads::flushed(shape),
            Part::InOrder => workloads::writes_in_order(shape),
            Part::Commits => commits::blocks(shape),
            Part::Database => database::blocks(shape, events),
            Part::Sustained => workloads::sustained(shape, sustained_max),
            Part::Precondition | Part::Transactions => Vec::new(),
        }
    }
}

/// How much longer a point may last where its requests are slow.
const SLOW_FACTOR: u32 = 2;

/// A spec on the probe's directory that runs at most `millis`.
fn spec(shape: &Shape, mix: Mix, api: IoApi, millis: u64) -> IoSpec {
    let mut spec = IoSpec::new(&shape.dir);
    (spec.mix, spec.api, spec.direct) = (mix, api, shape.direct);
    spec.block_bytes = if mix == Mix::Read { shape.block_bytes } else { PAGE_BYTES };
    spec.size_bytes = if mix == Mix::Read { shape.read_bytes } else { shape.write_bytes };
    spec.point_time = time(shape, millis);
    spec.point_time_slow = Some((spec.point_time * SLOW_FACTOR).min(shape.point_time_max));
    spec.precision = shape.precision;
    if mix.writes() {
        spec.write_bytes_max = Some(shape.point_write_bytes_max);
    }
    spec
}

fn time(shape: &Shape, millis: u64) -> Duration {
    Duration::from_millis(millis)
        .mul_f64(shape.time_factor)
        .clamp(Duration::from_millis(60), shape.point_time_max.max(Duration::from_millis(60)))
}

/// Keeps `depth` requests in flight: in one job where the API can, else in as many jobs.
fn with_depth(mut spec: IoSpec, depth: u32) -> IoSpec {
    if spec.api == IoApi::Sync {
        spec.jobs = depth;
    } else {
        spec.depth = depth;
    }
    spec
}

fn alone(spec: IoSpec) -> Vec<Stream> {
    vec![Stream { name: "data".to_owned(), spec }]
}

/// Requests per second of one kind of the first stream.
fn rate_of(op: OpKind, unit: &str) -> Metric {
    Metric { stream: 0, op, kind: MetricKind::Iops, unit: unit.to_owned(), better: Better::Higher }
}

fn point(
    id: impl Into<String>,
    title: impl Into<String>,
    layer: Layer,
    block: &str,
    streams: Vec<Stream>,
    metric: Metric,
) -> Point {
    Point {
        id: id.into(),
        title: title.into(),
        layer,
        streams,
        metric,
        curve: None,
        block: block.to_owned(),
        levels: Vec::new(),
        transactions: None,
    }
}

fn size(bytes: u32) -> String {
    iostrata_stats::units::bytes(f64::from(bytes))
}

/// Mean of a point's figure so far, to plan with.
fn measured(events: &[Event], id: &str, op: OpKind) -> Option<f64> {
    let rates: Vec<f64> = events
        .iter()
        .filter_map(|event| match event {
            Event::Replicate(replicate) if replicate.point.id == id => {
                let stream = replicate.streams.first()?;
                stream.ops[op].as_ref().map(|figures| figures.iops.value)
            }
            _ => None,
        })
        .collect();
    (!rates.is_empty()).then(|| rates.iter().sum::<f64>() / rates.len() as f64)
}
