//! A point: one thing to measure, with the words a reader needs to understand its figure.
//!
//! Invariant: a point holds everything its measurement needs; two points with equal streams do
//! equal work. When and how often it is measured is part of a plan.

use serde::{Deserialize, Serialize};

use crate::study::LevelAt;
use crate::{IoSpec, OpKind, TransactionSpec};

/// The layer that a figure belongs to, from the device up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// The machine: clock, processors.
    Host,
    /// The device.
    Device,
    /// Scheduler and queue.
    Block,
    /// An I/O limit of a control group or a volume.
    Limit,
    /// The file system.
    Filesystem,
    /// System call, direct or buffered, sync method, number of files.
    FileApi,
    /// The storage engine.
    Engine,
    /// Transactions.
    Transactions,
}

impl Layer {
    /// The layer as readers see it.
    pub fn title(self) -> &'static str {
        match self {
            Layer::Host => "host",
            Layer::Device => "device",
            Layer::Block => "block layer",
            Layer::Limit => "limit",
            Layer::Filesystem => "file system",
            Layer::FileApi => "file API",
            Layer::Engine => "engine",
            Layer::Transactions => "transactions",
        }
    }
}

/// What is taken from the requests of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MetricKind {
    /// Requests per second.
    Iops,
    /// Reads and writes of all streams together per second.
    TotalIops,
    /// Mean service latency in microseconds.
    LatencyMeanUs,
    /// Mean response latency in microseconds: from the scheduled start. For flushes, from the start
    /// of the first write that the flush covers.
    ResponseMeanUs,
    /// Processor time of the workers per request, in nanoseconds.
    CpuNsPerIo,
}

/// Whether more or less is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
}

/// The figure that a point is measured for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Metric {
    /// The stream it is taken from, an index into the point's streams; 0 of transactions.
    pub stream: usize,
    /// The kind of request.
    pub op: OpKind,
    /// What is taken.
    pub kind: MetricKind,
    /// The unit as printed: `reads/s`, `commits/s`, `us`, `ns`.
    pub unit: String,
    /// Whether more or less is better.
    pub better: Better,
}

/// Where a point stands on a curve that a report draws.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CurvePlace {
    /// The curve: points with the same name belong together.
    pub curve: String,
    /// The axis: `requests in flight`, `files`, `pages flushed per second`.
    pub axis: String,
    /// The place on the axis.
    pub x: f64,
}

/// One workload of a point. Streams of a point run at the same time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Stream {
    /// What it stands for: `reads`, `redo`, `pages`, `doublewrite`.
    pub name: String,
    /// The workload.
    pub spec: IoSpec,
}

/// One thing to measure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Point {
    /// Name in snake case, unique in its plan: `read_4k_depth_1`.
    pub id: String,
    /// One line for a reader: `4 KiB random reads, one at a time`.
    pub title: String,
    /// The layer that its figure speaks of.
    pub layer: Layer,
    /// The I/O workloads that run at the same time; the first is the main one.
    pub streams: Vec<Stream>,
    /// The figure it is measured for.
    pub metric: Metric,
    /// Its place on a curve, if it has one.
    pub curve: Option<CurvePlace>,
    /// Points with the same block are measured together, interleaved, because they are compared.
    pub block: String,
    /// Every factor of its study at this point's level; empty outside studies.
    #[serde(default)]
    pub levels: Vec<LevelAt>,
    /// The load of transactions, where the point is one; then it has no streams of requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transactions: Option<TransactionSpec>,
}
