//! What `iostrata watch` prints for each sample, and what `watch --record` and `tune` keep.
//!
//! Invariant: fields may be added, never renamed. What a target does not tell is null, never 0.
//! Rates are of the time since the sample before; the first sample has none.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::host::{PressureShares, ThrottleEvidence};
use crate::{
    Advice, ExpectedEffect, FileIo, Finding, FlushRecording, SamplerCost, StallCause,
    TransactionStall, Unavailable, Verification,
};

/// A target at one moment, and what it did since the moment before.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WatchSample {
    /// Which target, where several are watched.
    #[serde(default)]
    pub target: Option<String>,
    /// Seconds since watching began.
    pub t_s: f64,
    /// Transactions that ended, per second.
    pub tps: Option<f64>,
    /// Redo that recovery would read, in bytes.
    pub checkpoint_age_bytes: Option<u64>,
    /// The checkpoint age at which writers wait for a checkpoint, in bytes.
    pub checkpoint_age_limit_bytes: Option<u64>,
    /// The checkpoint age from which pages are flushed as fast as possible, in bytes.
    pub checkpoint_age_async_bytes: Option<u64>,
    /// The checkpoint age from which flushing goes before everything else, in bytes.
    pub checkpoint_age_sync_bytes: Option<u64>,
    /// Checkpoint age in percent of the limit.
    pub checkpoint_age_pct: Option<f64>,
    /// Redo made per second, in bytes.
    pub redo_bytes_per_s: Option<f64>,
    /// Seconds until the limit is reached if redo is made as now and no checkpoint follows.
    pub redo_seconds_left: Option<f64>,
    /// Pages of the pool that are newer than on disk.
    pub dirty_pages: Option<u64>,
    /// Their share of the pool, in percent.
    pub dirty_pct: Option<f64>,
    /// Pages written per second, for whatever reason.
    pub flushed_pages_per_s: Option<f64>,
    /// Those written ahead, so that redo does not run out.
    pub flush_adaptive_pages_per_s: Option<f64>,
    /// Those written to free their frames.
    pub flush_lru_pages_per_s: Option<f64>,
    /// Those written because nothing else was to be done.
    pub flush_background_pages_per_s: Option<f64>,
    /// Those written because redo was about to run out.
    pub flush_sync_pages_per_s: Option<f64>,
    /// Times that pages had to be written at any price since watching began.
    pub furious_flushes: Option<u64>,
    /// Pages written per transaction.
    pub pages_written_per_txn: Option<f64>,
    /// Commits whose old row versions are not purged yet.
    pub history_list_length: Option<u64>,
    /// Commits whose old row versions were purged, per second.
    pub purge_per_s: Option<f64>,
    /// Reads of files in flight.
    pub pending_reads: Option<u64>,
    /// Writes of files in flight.
    pub pending_writes: Option<u64>,
    /// Syncs of files in flight.
    pub pending_syncs: Option<u64>,
    /// Row locks that are waited for.
    pub row_locks_waiting: Option<u64>,
    /// Sessions that wait for an answer, without the watcher's own.
    #[serde(default)]
    pub sessions_running: Option<u64>,
    /// For how long the oldest open transaction is open, in seconds; 0 where none is open. Servers
    /// are asked for it every five seconds.
    #[serde(default)]
    pub oldest_transaction_s: Option<f64>,
    /// How the target names it: by the connection of a server, by the transaction of an engine.
    #[serde(default)]
    pub oldest_transaction_id: Option<u64>,
    /// The device below the data, where it is on this host.
    pub device: Option<WatchDevice>,
    /// How long tasks of the target's control group waited for I/O, processors and memory, where it
    /// is on this host.
    #[serde(default)]
    pub pressure: Option<PressureShares>,
    /// The control group whose pressure it is; null where it is that of the whole machine.
    #[serde(default)]
    pub pressure_group: Option<String>,
    /// What control groups held back of the target, where it is on this host and in such a group.
    #[serde(default)]
    pub throttle: Option<ThrottleEvidence>,
    /// Share of the processor time of the target's host that its hypervisor gave to others, where
    /// that is this host.
    #[serde(default)]
    pub cpu_stolen_pct: Option<f64>,
    /// What the target did with its files, by what they hold.
    #[serde(default)]
    pub files: Option<FileIo>,
    /// Whether the target was started again since the sample before.
    #[serde(default)]
    pub restarted: bool,
    /// Whether the last second had less than half of the last minute's median rate.
    pub stalled: bool,
    /// What the target waits for; null where nothing stalls.
    pub stall_cause: Option<StallCause>,
    /// What speaks for the cause.
    pub stall_evidence: Option<String>,
    /// How long the target took to answer, in microseconds.
    pub sample_us: f64,
    /// Why this sample has no figures, where the target did not answer.
    pub error: Option<String>,
}

/// What a device did since the sample before.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WatchDevice {
    /// As the kernel names it.
    pub name: String,
    /// Reads per second.
    pub reads_per_s: f64,
    /// Writes per second.
    pub writes_per_s: f64,
    /// Flushes per second; null where the kernel does not count them.
    pub flushes_per_s: Option<f64>,
    /// Mean time of a read, in milliseconds.
    pub read_ms: Option<f64>,
    /// Mean time of a write, in milliseconds.
    pub write_ms: Option<f64>,
    /// Mean number of requests in flight.
    pub in_flight: f64,
}

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
    /// What it does not tell, and why.
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

/// What `watch --record` and `tune` keep at their end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WatchDocument {
    /// What was watched.
    pub target: WatchTarget,
    /// How long, in seconds.
    pub duration_s: f64,
    /// The samples, evenly spaced: the longer it lasted, the fewer of those that were taken.
    pub samples: Vec<WatchSample>,
    /// Every stall.
    pub stalls: Vec<TransactionStall>,
    /// How long the stalls lasted together, in seconds.
    #[serde(default)]
    pub stalled_s: f64,
    /// The highest checkpoint age, in percent of its limit.
    #[serde(default)]
    pub checkpoint_age_pct_max: Option<f64>,
    /// What it cost to ask the target.
    #[serde(default)]
    pub sampler: SamplerCost,
    /// Transactions per second over all of it.
    pub tps: Option<f64>,
    /// Pages written per transaction over all of it.
    pub pages_written_per_txn: Option<f64>,
    /// Every setting that was changed, in the order of time. Empty for `watch`.
    pub settings: Vec<TunedSetting>,
    /// What is concluded.
    pub findings: Vec<Finding>,
    /// What should be set.
    pub advice: Vec<Advice>,
    /// The model of flushing that tells what advice is expected to change, and how well it does
    /// what was recorded; null where there is none.
    #[serde(default)]
    pub expected_from: Option<FlushRecording>,
    /// What all of the advice that can be tried and that the model knows is expected to change
    /// together; null where that is a single piece or none.
    #[serde(default)]
    pub expected_together: Option<ExpectedEffect>,
    /// What came of trying it, in turns with the settings that held. Empty unless asked for.
    #[serde(default)]
    pub verifications: Vec<Verification>,
    /// Advice that was to be tried and could not, with the reason.
    #[serde(default)]
    pub unavailable: Vec<Unavailable>,
}
