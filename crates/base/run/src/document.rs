//! The documents that commands print with `--json` and keep as `result.json`.
//!
//! Invariant: field names and shapes are the contract's; fields may be added, never renamed.

use std::collections::BTreeMap;

use iostrata_plan::{Better, Layer, PerKind};
use iostrata_stats::{Interval, LatencyUs, Verdicts};
use serde::{Deserialize, Serialize};

use crate::host::{HostFacts, PathFacts};
use crate::{Cpu, ExpectedEffect, IoErrorCount, Series, TransactionBound, Unavailable, Unknown};

/// Requests of one kind, as `iostrata io` prints them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IoOpDocument {
    /// Completed requests.
    pub ios: u64,
    /// `ios / duration_s`.
    pub iops: f64,
    /// 95 % interval of the mean over this window. It does not hold for another time.
    pub iops_ci95: Option<Interval>,
    /// Independent samples behind it.
    pub iops_n: u64,
    /// Holds what the same command measures within the next hour, in 95 of 100 cases. It rests on
    /// `iops_repeat_n` earlier runs of the same workload; absent in runs of older versions.
    #[serde(default)]
    pub iops_repeat_ci95: Option<Interval>,
    /// Earlier runs on this host and path, of the last day and kept next to this one. With none the
    /// interval assumes a drift of 5 % and adds what moved within this window.
    #[serde(default)]
    pub iops_repeat_n: u64,
    /// Bytes per second.
    pub bytes_per_s: f64,
    /// Service latency.
    pub latency_us: LatencyUs,
    /// 95 % interval of the mean service latency.
    pub latency_us_mean_ci95: Option<Interval>,
    /// Response latency, when rated.
    pub response_us: Option<LatencyUs>,
}

/// What `iostrata io --json` prints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IoDocument {
    /// Each kind of operation that was requested.
    #[serde(flatten)]
    pub ops: PerKind<IoOpDocument>,
    /// Processor time of the workers in the measured window.
    pub cpu: Cpu,
    /// Length of the measured window.
    pub duration_s: f64,
    /// Requests per 100 ms.
    pub series: Series,
    /// Mean requests in flight over all jobs.
    pub depth_mean: f64,
    /// 99th percentile of how late requests started, when rated.
    pub start_lateness_us_p99: Option<f64>,
    /// Requests that failed.
    pub errors: Vec<IoErrorCount>,
    /// What was refused and done otherwise.
    pub notes: Vec<String>,
    /// Where the events are.
    pub run: Option<String>,
    /// Kinds of requests whose rate is not known, and why.
    #[serde(default)]
    pub unknown: Vec<Unknown>,
    /// What speaks against the figures.
    pub verdicts: Verdicts,
}

/// The host as a probe reports it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProbeHost {
    /// The machine.
    pub machine: HostFacts,
    /// What lies under the directory.
    pub path: PathFacts,
}

/// One step of the ladder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rung {
    /// The point's id.
    pub name: String,
    /// One line for a reader.
    pub title: String,
    /// The layer.
    pub layer: Layer,
    /// The figure.
    pub value: f64,
    /// Its 95 % interval.
    pub value_ci95: Option<Interval>,
    /// Samples behind it.
    pub value_n: u64,
    /// The lowest and the highest of its replicates, where there are two to five: an interval of so
    /// few does not hold what differs from run to run in two ways only.
    #[serde(default)]
    pub value_range: Option<Interval>,
    /// Its unit.
    pub unit: String,
    /// Whether more is better.
    pub better: Better,
    /// Mean latency of the main requests seen by the application, microseconds.
    pub latency_us: Option<f64>,
    /// Mean latency of the same requests at the device (from its own counters), microseconds.
    pub device_latency_us: Option<f64>,
    /// What the rungs below would allow of transactions; null for other rungs, and where nothing
    /// below is known.
    #[serde(default)]
    pub bound: Option<TransactionBound>,
    /// What speaks against it.
    pub verdicts: Verdicts,
}

/// A loss between two rungs that do identical work and differ in one layer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Loss {
    /// The lower rung.
    pub from: String,
    /// The upper rung.
    pub to: String,
    /// The layer in which they differ.
    pub layer: Layer,
    /// `100 * (1 - upper / lower)`.
    pub loss_pct: f64,
    /// Paired 95 % interval.
    pub loss_pct_ci95: Option<Interval>,
    /// Pairs behind it.
    pub loss_pct_n: u64,
    /// `paired_rungs`, `device_counters` where the lower rung is the device's own account, or
    /// `computed_bound` where it is what the lower rung would allow.
    pub basis: String,
    /// Its text, in one sentence.
    pub text: String,
}

/// What kind of statement a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// Performance that a setting or another layer takes away.
    Loss,
    /// A fact about the storage that a setting has to match.
    Sizing,
    /// Something that makes the figures less certain.
    Caution,
}

/// A statement with its evidence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding {
    /// Its entry in docs/findings.md.
    pub id: String,
    /// What kind of statement.
    pub kind: FindingKind,
    /// The statement, with its numbers.
    pub text: String,
    /// The layer it speaks of.
    pub layer: Layer,
    /// Size of the effect in percent; null for statements that are not about a loss.
    pub effect_pct: Option<f64>,
    /// Its 95 % interval.
    pub effect_pct_ci95: Option<Interval>,
    /// Pairs or replicates behind it.
    pub effect_pct_n: u64,
    /// The figures behind it, by name with their unit in the name.
    pub evidence: BTreeMap<String, serde_json::Value>,
}

/// What a change risks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    /// Nothing but speed.
    None,
    /// What a crash may lose.
    Durability,
    /// Wear of the device.
    Wear,
    /// What a client has not committed: it is rolled back.
    Uncommitted,
    /// Tables or volumes are rebuilt: time, space and a backup are needed.
    Rebuild,
    /// Memory that others may need: too much of it ends in swap or the OOM killer.
    Memory,
}

/// A setting to change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Advice {
    /// The setting's own name; or a statement to run.
    pub setting: String,
    /// The value to give it; empty for a statement.
    pub value: String,
    /// The servers' default, where that is known.
    #[serde(default)]
    pub default: Option<String>,
    /// The releases that have it, where not all have: `MySQL 8.0.26 and later`.
    #[serde(default)]
    pub versions: Option<String>,
    /// The manual that describes it; null where it is no server's setting.
    #[serde(default)]
    pub source: Option<String>,
    /// Where it is set: `my.cnf [mysqld]`, `mount option`, `udev rule`, `schema`.
    #[serde(rename = "where")]
    pub where_: String,
    /// Ids of the findings behind it.
    pub why: Vec<String>,
    /// Why, in one sentence with numbers.
    pub text: String,
    /// What it risks.
    pub risk: Risk,
    /// How to take it back.
    pub undo: String,
    /// What it is expected to change, by simulation; null where the model of flushing does not have
    /// the setting, and outside of recordings.
    #[serde(default)]
    pub expected: Option<ExpectedEffect>,
}

/// One row of the redo table: how long a redo log of a size lasts at a write rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RedoRow {
    /// Redo written per second.
    pub redo_bytes_per_s: f64,
    /// Capacity that holds half an hour of it.
    pub redo_capacity_bytes: u64,
    /// Seconds to flush the pages that a full log of that size keeps dirty, at the measured rate.
    pub drain_s: f64,
}

/// One line of a chart: points over an axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Curve {
    /// Unique name in snake case.
    pub name: String,
    /// One line for a reader.
    pub title: String,
    /// The axis.
    pub axis: String,
    /// The unit of the values.
    pub unit: String,
    /// What the curve shows, in one sentence.
    pub text: String,
    /// The points, by rising x.
    pub points: Vec<CurvePoint>,
    /// The x of the knee, where one was found.
    pub knee_x: Option<f64>,
}

/// One point of a curve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CurvePoint {
    /// The rung it comes from.
    pub rung: String,
    /// Place on the axis.
    pub x: f64,
    /// The value.
    pub value: f64,
    /// Its 95 % interval.
    pub value_ci95: Option<Interval>,
    /// Samples behind it.
    pub value_n: u64,
    /// Mean latency, microseconds.
    pub latency_mean_us: Option<f64>,
    /// 99th percentile, microseconds.
    pub latency_p99_us: Option<f64>,
}

/// A setting that was tried, before and after: inside the probe's own files, or on a server that
/// is watched.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Verification {
    /// The advice that was tried: its setting.
    pub setting: String,
    /// What was done before and after, in words.
    pub text: String,
    /// The figure before.
    pub before: f64,
    /// Its 95 % interval.
    pub before_ci95: Option<Interval>,
    /// Samples behind it.
    pub before_n: u64,
    /// The figure after.
    pub after: f64,
    /// Its 95 % interval.
    pub after_ci95: Option<Interval>,
    /// Samples behind it.
    pub after_n: u64,
    /// Unit of both.
    pub unit: String,
    /// By how much the figure changed from pair to pair, in percent.
    #[serde(default)]
    pub effect_pct: Option<f64>,
    /// Its 95 % interval.
    #[serde(default)]
    pub effect_pct_ci95: Option<Interval>,
    /// Pairs behind it.
    #[serde(default)]
    pub effect_pct_n: u64,
    /// Whether the paired interval confirms the gain.
    pub confirmed: bool,
}

/// What `iostrata probe --json` prints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProbeDocument {
    /// The machine and what lies under the directory.
    pub host: ProbeHost,
    /// The verdict in a few sentences.
    pub headline: Vec<String>,
    /// The ladder, from the device up.
    pub rungs: Vec<Rung>,
    /// Figures that are not known, and why. Impossible ones are not among the rungs at all.
    #[serde(default)]
    pub unknown: Vec<Unknown>,
    /// Losses between rungs.
    pub losses: Vec<Loss>,
    /// Pairs of rungs with equal work that were compared.
    #[serde(default)]
    pub compared: u64,
    /// Those of them whose intervals allow a loss beyond its threshold and do not show one.
    #[serde(default)]
    pub undecided: Vec<Loss>,
    /// Losses beyond their interval that are smaller than what is worth a change.
    #[serde(default)]
    pub small_losses: Vec<Loss>,
    /// The most that a pair costs which shows no loss worth a change, in percent: the highest end
    /// of their 99 % intervals, which is too low in one case of 200; null where there is none.
    #[serde(default)]
    pub loss_at_most_pct: Option<f64>,
    /// The same of pairs whose requests take hardly longer, in microseconds a request.
    #[serde(default)]
    pub loss_at_most_us: Option<f64>,
    /// What was found.
    pub findings: Vec<Finding>,
    /// What to change.
    pub advice: Vec<Advice>,
    /// Redo sizes over write rates.
    pub redo_table: Vec<RedoRow>,
    /// Lines for charts.
    pub curves: Vec<Curve>,
    /// Before and after, with `--verify`.
    pub verifications: Vec<Verification>,
    /// What could not be measured here, and why.
    pub unavailable: Vec<Unavailable>,
    /// Bytes written in all.
    pub bytes_written: u64,
    /// Seconds in all.
    pub duration_s: f64,
    /// Whether the run was stopped before its end.
    pub interrupted: bool,
    /// Why parts are missing that would change what is concluded; null for a whole run.
    #[serde(default)]
    pub incomplete: Option<String>,
    /// What speaks against the whole run.
    pub verdicts: Verdicts,
    /// Path of the report, when one was written.
    pub report: Option<String>,
}

impl ProbeDocument {
    /// What the layers cost at most where no loss is worth a change: `No layer costs more than
    /// 24 % or 310 us a request`. Older runs do not know it.
    pub fn cost_at_most(&self) -> String {
        let percent = self.loss_at_most_pct.map(|most| format!("{:.0} %", most.max(1.0).ceil()));
        let time = self.loss_at_most_us.map(|most| {
            format!("{} a request", iostrata_stats::units::microseconds(most.max(1.0).ceil()))
        });
        match percent.into_iter().chain(time).collect::<Vec<_>>().join(" or ") {
            unknown if unknown.is_empty() => "No loss was found".to_owned(),
            most => format!("No layer costs more than {most}"),
        }
    }
}
