//! What `iostrata study run --json` prints and keeps as `result.json`.
//!
//! Invariant: fields may be added, never renamed; every figure has its interval, count and
//! verdicts.

use std::collections::BTreeMap;

use iostrata_plan::study::{Extent, FactorLevels, LevelAt};
use iostrata_plan::{Layer, PerKind};
use iostrata_stats::{AxisKind, Conclusion, Interval, LatencyUs, Measured, Percentile, Verdicts};
use serde::{Deserialize, Serialize};

use crate::host::{BlockLatency, CpuShares, EmulatedDisk, Iostat, Profile, QueueReadback};
use crate::{
    ChangeRecord, Finding, ProbeHost, QueueChange, StudyTransactions, Unavailable, Unknown,
};

/// Latency of requests of one kind at a point, over all its replicates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StudyOp {
    /// Requests per second.
    pub iops: f64,
    /// 95 % interval.
    pub iops_ci95: Option<Interval>,
    /// Samples behind it.
    pub iops_n: u64,
    /// Service latency of all requests of all replicates together.
    pub latency_us: LatencyUs,
    /// 95 % interval of the mean.
    pub latency_us_mean_ci95: Option<Interval>,
    /// Its percentiles with their intervals; absent in runs of older versions.
    #[serde(default)]
    pub latency_percentiles: Vec<Percentile>,
    /// Response latency, when rated; for flushes always.
    pub response_us: Option<LatencyUs>,
    /// Its percentiles with their intervals.
    #[serde(default)]
    pub response_percentiles: Vec<Percentile>,
}

/// One point of a study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StudyPoint {
    /// Its id in the plan.
    pub id: String,
    /// One line for a reader.
    pub title: String,
    /// Its levels.
    pub levels: Vec<LevelAt>,
    /// The figure: reads and writes per second, all streams together.
    pub value: f64,
    /// 95 % interval: the wider of within and between replicates.
    pub value_ci95: Option<Interval>,
    /// Samples behind it.
    pub value_n: u64,
    /// The lowest and the highest of its replicates, where there are two to five.
    #[serde(default)]
    pub value_range: Option<Interval>,
    /// `IOPS` or `transactions/s`.
    pub unit: String,
    /// Bytes per second.
    pub bytes_per_s: f64,
    /// Replicates measured.
    pub replicates: u32,
    /// Seconds measured, over all replicates.
    pub measured_s: f64,
    /// Each kind of operation that occurred.
    #[serde(flatten)]
    pub ops: PerKind<StudyOp>,
    /// Mean requests in flight.
    pub depth_mean: f64,
    /// Processor time of the workers per request, nanoseconds.
    pub cpu_ns_per_io: Option<f64>,
    /// Context switches of the workers per request.
    pub switches_per_io: Option<f64>,
    /// The machine's processors, mean over the replicates.
    pub cpu: Option<CpuShares>,
    /// The device's columns, mean over the replicates, weighted by time.
    pub device: Option<Iostat>,
    /// What the device's queue was set to, and what the kernel took.
    #[serde(default)]
    pub queue: Vec<QueueReadback>,
    /// What reached the emulated disks, over all replicates.
    #[serde(default)]
    pub emulated: Option<EmulatedDisk>,
    /// Share of the window in which all tasks waited for I/O, percent.
    pub io_pressure_full_pct: Option<f64>,
    /// How far the tightest I/O limit was used, percent.
    pub io_limit_used_pct: Option<f64>,
    /// On-CPU profile over all replicates.
    pub profile: Option<Profile>,
    /// Latency by layer, from the traced pass.
    pub latency_by_layer: Option<BlockLatency>,
    /// What transactions have besides; absent for requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transactions: Option<StudyTransactions>,
    /// What speaks against the figure.
    pub verdicts: Verdicts,
}

/// One part of the answer to a study's question.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StudyAnswer {
    /// What it decides.
    pub asks: String,
    /// The sentence that holds; else why none does.
    pub text: String,
    /// Whether it could be decided.
    pub is_known: bool,
    /// The points above the line over those below it; null where another finding is quoted or the
    /// difference stands in its place.
    pub ratio: Option<f64>,
    /// 95 % interval.
    pub ratio_ci95: Option<Interval>,
    /// Pairs of replicates behind it.
    pub ratio_n: u64,
    /// The points above the line less those below it, where figures may be 0.
    pub difference: Option<Measured>,
    /// The points above the line.
    pub of: Vec<String>,
    /// Those below it.
    pub over: Vec<String>,
    /// What is compared, by the name that printed figures have; empty where a finding is quoted.
    #[serde(default)]
    pub metric: String,
    /// The unit of its figures.
    #[serde(default)]
    pub unit: String,
    /// The factors in which the two sides are set apart.
    #[serde(default)]
    pub factors: Vec<String>,
    /// The metric of every point of the two sides, and of the points that differ from one of them
    /// in these factors alone.
    #[serde(default)]
    pub figures: Vec<AnswerFigure>,
    /// What each of the changes that lie between the two sides does alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<AnswerSplit>,
    /// Verdicts of what went in.
    pub verdicts: Verdicts,
}

/// What an answer compares, at one point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AnswerFigure {
    /// The point's id.
    pub point: String,
    /// The figure, in the answer's unit.
    pub value: f64,
    /// 95 % interval.
    pub value_ci95: Option<Interval>,
    /// Samples behind it.
    pub value_n: u64,
}

/// The changes behind an answer, each measured alone, and what they leave unexplained.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AnswerSplit {
    /// Each change in the order of the text.
    pub effects: Vec<AnswerEffect>,
    /// The whole over the product of the changes.
    pub rest: f64,
    /// 95 % interval.
    pub rest_ci95: Option<Interval>,
    /// Pairs behind it.
    pub rest_n: u64,
}

/// What one change does alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AnswerEffect {
    /// What it is, in words.
    pub name: String,
    /// The point with it over the one without.
    pub ratio: f64,
    /// 95 % interval.
    pub ratio_ci95: Option<Interval>,
    /// Pairs behind it.
    pub ratio_n: u64,
    /// Its share of the whole, percent: of the logarithms, which add up.
    pub share_pct: f64,
}

/// What changing one factor from one level to another does, over all points equal otherwise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StudyEffect {
    /// The factor.
    pub factor: String,
    /// From this level.
    pub from: String,
    /// To this level.
    pub to: String,
    /// Geometric mean of the ratios to / from.
    pub ratio: f64,
    /// 95 % interval.
    pub ratio_ci95: Option<Interval>,
    /// Pairs behind it.
    pub ratio_n: u64,
    /// The smallest ratio of any single pair of points.
    pub ratio_min: f64,
    /// The largest.
    pub ratio_max: f64,
    /// Whether each of several pairs of points shows it by itself, all in the same direction.
    #[serde(default)]
    pub is_everywhere: bool,
    /// What follows.
    pub conclusion: Conclusion,
    /// One sentence.
    pub text: String,
    /// Verdicts of what went in.
    pub verdicts: Verdicts,
}

/// The effect of one factor depends on another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StudyInteraction {
    /// The first factor with its two levels: from, to.
    pub factor: String,
    /// From this level.
    pub from: String,
    /// To this level.
    pub to: String,
    /// The factor that it depends on.
    pub by: String,
    /// Its first level.
    pub by_from: String,
    /// Its second level.
    pub by_to: String,
    /// The ratio at `by_to` over the ratio at `by_from`.
    pub ratio: f64,
    /// 95 % interval.
    pub ratio_ci95: Option<Interval>,
    /// Pairs of pairs behind it.
    pub ratio_n: u64,
    /// The conclusion, corrected for the number of interactions tested.
    pub conclusion: Conclusion,
    /// One sentence.
    pub text: String,
}

/// How long requests wait along an axis of rates, from their scheduled starts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StudyResponse {
    /// Mean response time at each level, in microseconds.
    pub mean_us: Vec<f64>,
    /// 99th percentile at each level, in microseconds.
    pub p99_us: Vec<f64>,
    /// Its 95 % interval at each level; empty in runs of older versions.
    #[serde(default)]
    pub p99_us_ci95: Vec<Option<Interval>>,
    /// The level from which on requests wait: from there to the end every 99th percentile is over
    /// three times the smallest of all.
    pub knee: Option<f64>,
    /// The highest level at which more requests come than are done, if any.
    pub backlog: Option<StudyBacklog>,
}

/// A queue that grows, because more requests come than are done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StudyBacklog {
    /// The level.
    pub at: f64,
    /// Requests by which the queue grows every second: those that come less those that are done.
    pub per_s: f64,
    /// 95 % interval.
    pub per_s_ci95: Interval,
    /// Length of a window in seconds.
    pub window_s: f64,
    /// Longest response time in a window, in microseconds: how far the queue had grown at its end.
    pub wait_us_max: f64,
}

/// Throughput along an axis, all other levels fixed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StudyAxis {
    /// The factor along the axis: `workers`, `files`.
    pub factor: String,
    /// The fixed levels.
    pub levels: Vec<LevelAt>,
    /// The points, by rising level.
    pub points: Vec<String>,
    /// The levels as numbers.
    pub x: Vec<f64>,
    /// What becomes of throughput.
    pub kind: AxisKind,
    /// From where it no longer rises, or falls.
    pub at: Option<f64>,
    /// Change from there to the end, percent.
    pub change_pct: Option<f64>,
    /// 95 % interval.
    pub change_pct_ci95: Option<Interval>,
    /// The smallest level that no larger one beats measurably by more than 5 %.
    pub enough: Option<f64>,
    /// The largest gain beyond that level, in percent, that the intervals allow.
    #[serde(default)]
    pub beyond_pct_max: Option<f64>,
    /// How long requests wait, along an axis of rates.
    #[serde(default)]
    pub response: Option<StudyResponse>,
    /// One sentence.
    pub text: String,
}

/// A printed figure of the original next to today's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThenRow {
    /// Its text.
    pub text: String,
    /// Printed then; null where the post prints none.
    pub then: Option<f64>,
    /// The upper end of a printed range.
    pub then_high: Option<f64>,
    /// Measured now; null where the point was not measured.
    pub now: Option<f64>,
    /// 95 % interval.
    pub now_ci95: Option<Interval>,
    /// Samples behind it.
    pub now_n: u64,
    /// Unit of both.
    pub unit: String,
    /// now / then.
    pub times: Option<f64>,
    /// The point or points behind `now`.
    pub points: Vec<String>,
    /// Verdicts of these points.
    pub verdicts: Verdicts,
}

impl ThenRow {
    /// What was printed then, the figure that today's is set against, and today's with its point.
    pub fn of(
        text: &str,
        unit: &str,
        then: f64,
        against: f64,
        now: Option<Measured>,
        point: Option<String>,
    ) -> Self {
        Self {
            text: text.to_owned(),
            then: Some(then),
            then_high: None,
            now: now.as_ref().map(|now| now.value),
            now_ci95: now.as_ref().and_then(|now| now.ci95),
            now_n: now.as_ref().map_or(0, |now| now.n),
            unit: unit.to_owned(),
            times: now.as_ref().filter(|_| against > 0.0).map(|now| now.value / against),
            points: point.into_iter().collect(),
            verdicts: now.map(|now| now.verdicts).unwrap_or_default(),
        }
    }
}

/// What `iostrata study run --json` prints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StudyDocument {
    /// The study's name.
    pub study: String,
    /// One line.
    pub title: String,
    /// What it wanted to know.
    pub question: String,
    /// Quick or full.
    pub extent: Extent,
    /// The machine and what lies under the directory that the volumes were made in.
    pub host: ProbeHost,
    /// The verdict in a few sentences.
    pub headline: Vec<String>,
    /// The answers to its question, where its text defines what answers it.
    #[serde(default)]
    pub answers: Vec<StudyAnswer>,
    /// The factors with their levels.
    pub factors: Vec<FactorLevels>,
    /// The points.
    pub points: Vec<StudyPoint>,
    /// Points whose figure is not known, and why. Impossible ones are not among the points at all.
    #[serde(default)]
    pub unknown: Vec<Unknown>,
    /// Main effects.
    pub effects: Vec<StudyEffect>,
    /// Interactions that matter.
    pub interactions: Vec<StudyInteraction>,
    /// Curves along the axes.
    pub axes: Vec<StudyAxis>,
    /// What a longer request queue does, disk by disk, where the study varies its length.
    #[serde(default)]
    pub queue_changes: Vec<QueueChange>,
    /// What was found.
    pub findings: Vec<Finding>,
    /// The original, in words; null for a study that replicates nothing.
    pub then_source: Option<String>,
    /// The original's machine.
    pub then_machine: Option<String>,
    /// Then and now.
    pub then: Vec<ThenRow>,
    /// System changes made, with what the kernel took.
    pub changes: Vec<ChangeRecord>,
    /// What was not possible here, and why.
    pub unavailable: Vec<Unavailable>,
    /// Points whose interval is within the target precision, in percent.
    pub precise_pct: f64,
    /// The target precision.
    pub precision: f64,
    /// Replicates that the budget did not allow.
    pub replicates_dropped: u64,
    /// Seconds in all.
    pub duration_s: f64,
    /// Seconds that the same points would take at a fixed 60 s each, once.
    pub fixed_minute_s: f64,
    /// Bytes written in all.
    pub bytes_written: u64,
    /// Whether it was stopped before its end.
    pub interrupted: bool,
    /// What speaks against the whole.
    pub verdicts: Verdicts,
    /// Figures by name that belong to the method: costs of profile and trace, loop ceilings.
    pub method: BTreeMap<String, serde_json::Value>,
    /// Layers in the order of the path, for colours and legends.
    pub layers: Vec<Layer>,
    /// Path of the report, when one was written.
    pub report: Option<String>,
}
