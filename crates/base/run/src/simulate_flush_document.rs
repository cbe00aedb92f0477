//! What `iostrata simulate flush --json` prints and keeps as `result.json`.
//!
//! Invariant: fields may be added, never renamed; every figure is of virtual time. Figures are of
//! the time after the warm-up, series of all of it.

use std::collections::BTreeMap;

use iostrata_stats::{Interval, LatencyUs, SECOND_EVENTS_MIN, Verdicts};
use serde::{Deserialize, Serialize};

use crate::Unavailable;

/// The course of a policy: a value for each second, of spans above an hour the mean of several.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlushSeries {
    /// The end of each stretch, in seconds.
    pub t_s: Vec<f64>,
    /// Transactions that became durable in it.
    pub tps: Vec<f64>,
    /// The greatest checkpoint age in it, as a share of the room in the redo, in percent.
    pub checkpoint_age_pct: Vec<f64>,
    /// Dirty pages at its end.
    pub dirty_pages: Vec<f64>,
    /// Pages written in it.
    pub flushed_per_s: Vec<f64>,
    /// Transactions that purge had before it at its end.
    pub history: Vec<f64>,
}

/// How a policy got on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FlushEvenness {
    /// Windows of one second fell below half of the mean, and not by chance.
    Stalls,
    /// None did, but users were stopped by a full redo.
    AtTheWall,
    /// Users were slowed down at most.
    Even,
}

/// One policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlushPolicyRun {
    /// Its name.
    pub name: String,
    /// Transactions per second.
    pub tps_mean: f64,
    /// 95 % interval of the mean over longer times: what chance and waves are left in one span.
    pub tps_mean_ci95: Option<Interval>,
    /// Batches of seconds behind it.
    pub tps_mean_n: u64,
    /// The worst second over the mean: 1 is even, 0 a second without a commit. Below 20 of them per
    /// second this is chance.
    pub min_over_mean_1s: f64,
    /// Time in which windows of one second were below half the mean, and not by chance, in seconds.
    pub stalled_s: f64,
    /// How often that happened.
    pub stalls: u64,
    /// The longest such time, in seconds.
    pub longest_stall_s: f64,
    /// How it got on.
    pub evenness: FlushEvenness,
    /// Times that flushing became furious over the whole span: a page cleaner went beyond its cap
    /// because redo ran out, or a user flushed and waited for it.
    pub furious_flushes: u64,
    /// From the request to write until the redo was durable, over the whole span; with an open rate
    /// also the wait for a session.
    pub commit_wait_us: LatencyUs,
    /// Pages written per transaction.
    pub pages_written_per_txn: f64,
    /// Write requests of the device per transaction, over the whole span.
    pub write_requests_per_txn: f64,
    /// Redo made per second, in bytes.
    pub redo_bytes_per_s: f64,
    /// The checkpoint age at which the policy stops users, in percent of the room in the redo.
    pub wall_pct: f64,
    /// The greatest checkpoint age, in percent of the same.
    pub checkpoint_age_pct_max: f64,
    /// Share of the users' time in which the policy's rule slowed them down, in percent.
    pub delayed_pct: f64,
    /// The same for the time in which they were stopped.
    pub stopped_pct: f64,
    /// Checkpoints taken over the whole span.
    pub checkpoints: u64,
    /// One sentence.
    pub text: String,
    /// Its course.
    pub series: FlushSeries,
    /// What speaks against the figures.
    pub verdicts: Verdicts,
}

impl FlushPolicyRun {
    /// The worst second over the mean, where a second has enough transactions to be judged.
    pub fn worst_second(&self) -> Option<f64> {
        (self.tps_mean >= SECOND_EVENTS_MIN).then_some(self.min_over_mean_1s)
    }
}

/// What changed on the way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlushTurn {
    /// When, in seconds.
    pub t_s: f64,
    /// What, in words.
    pub text: String,
}

/// Figures of flushing from a recording, or from the model of it; null is what is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlushFigures {
    /// Transactions per second.
    pub tps: f64,
    /// Redo made per second, in bytes.
    pub redo_bytes_per_s: Option<f64>,
    /// Pages that became dirty, per second.
    pub pages_dirtied_per_s: Option<f64>,
    /// Mean checkpoint age in percent of the max checkpoint age.
    pub checkpoint_age_pct_mean: Option<f64>,
    /// Share of the time in stalls for lack of redo space; of a model, the share of seconds below
    /// half the mean rate; in percent.
    #[serde(default)]
    pub redo_stalled_pct: Option<f64>,
    /// The worst second over the mean.
    #[serde(default)]
    pub min_over_mean_1s: Option<f64>,
    /// Pages written per transaction.
    #[serde(default)]
    pub pages_written_per_txn: Option<f64>,
    /// The most pages that were written in a second.
    #[serde(default)]
    pub flushed_pages_per_s_max: Option<f64>,
}

/// Something that is missing in a recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlushAssumption {
    /// What.
    pub what: String,
    /// The value that was assumed, and its source.
    pub taken_as: String,
}

/// The recorded run that the load and the settings come from, and how well the model does the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlushRecording {
    /// The run directory.
    pub run: String,
    /// What drove the database.
    pub workload: String,
    /// The database and its version.
    pub target: String,
    /// The policy that it has.
    pub policy: String,
    /// What was recorded.
    pub recorded: FlushFigures,
    /// The model under that policy and the recorded settings.
    pub modelled: FlushFigures,
    /// What is missing in the recording.
    pub assumed: Vec<FlushAssumption>,
    /// Whether the model reproduces what was recorded. If not, none of its figures can be trusted.
    pub fits: bool,
    /// In a few sentences.
    pub text: Vec<String>,
}

/// What `iostrata simulate flush --json` prints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlushDocument {
    /// One line.
    pub title: String,
    /// The verdict in a few sentences.
    pub headline: Vec<String>,
    /// The device in words.
    pub device: String,
    /// The load in words.
    pub load: String,
    /// Settings of the engine, by name, as every policy had them.
    pub settings: BTreeMap<String, String>,
    /// The recorded run that load and settings come from; null without one.
    #[serde(default)]
    pub from: Option<FlushRecording>,
    /// What changed on the way.
    pub turns: Vec<FlushTurn>,
    /// Every policy.
    pub policies: Vec<FlushPolicyRun>,
    /// Virtual seconds of each policy.
    pub span_s: f64,
    /// Seconds at the beginning that no figure is taken from.
    pub warm_up_s: f64,
    /// The seed.
    pub seed: u64,
    /// What belongs to the method, by name with the unit in the name.
    pub method: BTreeMap<String, serde_json::Value>,
    /// What the model leaves out, in sentences.
    pub limits: Vec<String>,
    /// Policies that were not simulated, and why.
    pub unavailable: Vec<Unavailable>,
    /// Seconds that the simulation took.
    pub duration_s: f64,
    /// Whether it was stopped before its end.
    pub interrupted: bool,
    /// What speaks against the whole.
    pub verdicts: Verdicts,
    /// Path of the report, when one was written.
    pub report: Option<String>,
}
