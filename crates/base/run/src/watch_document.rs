//! What `watch --record` and `tune` keep.
//!
//! Invariant: fields may be added, never renamed. What a target does not report is null, never 0.

use std::collections::BTreeMap;

use iostrata_stats::Measured;
use serde::{Deserialize, Serialize};

use crate::watched::WatchSample;
use crate::{
    Advice, ExpectedEffect, Finding, FlushRecording, SamplerCost, SettingOrigin, StallSnapshot,
    TransactionStall, Unavailable, Verification,
};

/// What is watched.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WatchTarget {
    /// Its address, without secrets.
    pub name: String,
    /// Its family: `mysql`, `mariadb`, `percona`, `engine`.
    pub flavour: String,
    /// Its version in its own words.
    pub version: String,
    /// Its settings at the beginning, by name.
    pub settings: BTreeMap<String, String>,
    /// Those of them that were changed since the server started, as they were at the beginning;
    /// empty also where the server does not report it.
    #[serde(default)]
    pub changed_settings: Vec<SettingOrigin>,
    /// The connection of an `iostrata tune` that was at work on it at the beginning.
    #[serde(default)]
    pub tuner: Option<u64>,
    /// What it does not report, and why.
    pub missing: Vec<String>,
}

/// A setting that `tune` changed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TunedSetting {
    /// When, in seconds since tuning began.
    pub t_s: f64,
    /// Which.
    pub name: String,
    /// Its value before.
    pub from: String,
    /// Its value after, as read back.
    pub to: String,
    /// Why.
    pub why: String,
}

/// A figure of a server while it was tuned, and the same with its own settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TunedFigure {
    /// Which: `tps`, `worst_2s_tps`, `stalled_s`, `commit_p99_us`, `pages_written_per_txn`,
    /// `device_ms_per_txn`, `observed_s`.
    pub name: String,
    /// In words.
    pub title: String,
    /// Its unit.
    pub unit: String,
    /// With the settings of its own, under a load like that when it was tuned; null where that was
    /// not seen.
    pub untuned: Option<Measured>,
    /// While it was tuned.
    pub tuned: Option<Measured>,
}

/// A command that was to be run when a target began to stall.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StallCommand {
    /// Which target.
    pub target: String,
    /// When its stall began, in seconds since watching began.
    pub stall_t_s: f64,
    /// How long the command ran, in seconds; null where it did not.
    pub took_s: Option<f64>,
    /// How it ended, or why it was not run.
    pub ended: String,
    /// Whether it ended by itself and well.
    pub is_sound: bool,
}

/// What `watch --record` and `tune` keep at their end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WatchDocument {
    /// What was watched.
    pub target: WatchTarget,
    /// How long, in seconds.
    pub duration_s: f64,
    /// The samples, evenly spaced: the longer it lasted, the smaller their share of the samples
    /// taken.
    pub samples: Vec<WatchSample>,
    /// Every stall.
    pub stalls: Vec<TransactionStall>,
    /// The activity when stalls began: of many stalls, only of the last ones.
    #[serde(default)]
    pub snapshots: Vec<StallSnapshot>,
    /// What became of the command of `--on-stall`: of the first hundred stalls.
    #[serde(default)]
    pub on_stall: Vec<StallCommand>,
    /// How long the stalls lasted together, in seconds.
    #[serde(default)]
    pub stalled_s: f64,
    /// The highest checkpoint age, in percent of its limit.
    #[serde(default)]
    pub checkpoint_age_pct_max: Option<f64>,
    /// The cost of querying the target.
    #[serde(default)]
    pub sampler: SamplerCost,
    /// Transactions per second over all of it.
    pub tps: Option<f64>,
    /// Pages written per transaction over all of it.
    pub pages_written_per_txn: Option<f64>,
    /// Every setting that was changed, in the order of time. Empty for `watch`.
    pub settings: Vec<TunedSetting>,
    /// What tuning saved and what it cost; empty where nothing was tuned.
    #[serde(default)]
    pub tuned: Vec<TunedFigure>,
    /// What is concluded.
    pub findings: Vec<Finding>,
    /// What should be set.
    pub advice: Vec<Advice>,
    /// The model of flushing that predicts what advice changes, and how well it does what was
    /// recorded; null where there is none.
    #[serde(default)]
    pub expected_from: Option<FlushRecording>,
    /// The expected change of all advice together that can be tried and that the model covers; null
    /// where that is a single piece or none.
    #[serde(default)]
    pub expected_together: Option<ExpectedEffect>,
    /// The result of trying it, in turns with the previous settings. Empty unless requested.
    #[serde(default)]
    pub verifications: Vec<Verification>,
    /// Advice that was to be tried and could not, with the reason.
    #[serde(default)]
    pub unavailable: Vec<Unavailable>,
}
