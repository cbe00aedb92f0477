//! What `iostrata engine` prints with `--json`.
//!
//! Invariant: counts are plain; nothing here is measured with an interval.

use serde::{Deserialize, Serialize};

/// What `engine check` found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EngineCheckDocument {
    /// The engine's directory.
    pub directory: String,
    /// Whether every structure is as it should be.
    pub ok: bool,
    /// Pages that the data files have room for.
    pub pages_total: u64,
    /// Pages in use.
    pub pages_used: u64,
    /// Every table, the table of tables first.
    pub tables: Vec<EngineTable>,
    /// All problems.
    pub problems_total: u64,
    /// The first thousand of them.
    pub problems: Vec<EngineProblem>,
    /// What opening the engine had to do before.
    pub recovery: EngineRecovery,
}

/// One table of an engine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EngineTable {
    /// Its name.
    pub name: String,
    /// Its pages.
    pub pages: u64,
    /// Its rows.
    pub rows: u64,
    /// Bytes of keys and values with their overhead.
    pub used_bytes: u64,
    /// Levels of its tree.
    pub levels: u32,
}

/// Something that is not as it should be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EngineProblem {
    /// The page it was found on.
    pub page: u64,
    /// What is wrong.
    pub what: String,
}

/// What recovery did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EngineRecovery {
    /// The engine had been closed cleanly.
    pub was_clean: bool,
    /// Redo between the checkpoint and the end.
    pub redo_bytes: u64,
    /// Frames of redo read.
    pub frames: u64,
    /// Records read.
    pub records: u64,
    /// Pages that records were applied to.
    pub pages_changed: u64,
    /// Torn pages restored from the doublewrite files.
    pub pages_restored: u64,
    /// How long it took, in seconds.
    pub took_s: f64,
}

/// The counters of an engine: `engine stats`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EngineStatsDocument {
    /// The engine's directory.
    pub directory: String,
    /// The process that published them.
    pub pid: u32,
    /// Whether that process is still there.
    pub is_running: bool,
    /// When they were published, in seconds of Unix time.
    pub published_unix_s: f64,
    /// Every counter.
    pub counters: Vec<EngineCounter>,
}

/// One counter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EngineCounter {
    /// Its name, as InnoDB has it.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// Its value.
    pub value: u64,
}

/// What `engine crash-test` came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CrashTestDocument {
    /// Times that the writer was cut off, by killing or by power.
    pub kills: u64,
    /// Of these, power cuts of an emulated disk.
    pub power_cuts: u64,
    /// Power cuts after a kill and a restart on the same disk; those kills are not in `kills`.
    pub restarts: u64,
    /// Times that the files were copied from under a writer that stood still, as a kill would have
    /// left them.
    pub copies: u64,
    /// Commits that were acknowledged, each by itself or by a later one of its thread.
    pub acknowledged: u64,
    /// Acknowledged commits that were not there afterwards.
    pub lost: u64,
    /// Times that the engine was opened after a cut or a close under load, or from a copy.
    pub recoveries: u64,
    /// Times that rows did not fit together or a structure was damaged.
    pub check_failures: u64,
    /// What was found, in words; the first hundred.
    pub failures: Vec<String>,
    /// The longest recovery, in seconds.
    pub recovery_s_max: f64,
    /// Times that the engine was closed while others wrote.
    pub closes: u64,
    /// The longest of these closes, in seconds.
    pub close_s_max: f64,
    /// What could not be done here, and why.
    pub unavailable: Vec<String>,
    /// How long it took, in seconds.
    pub duration_s: f64,
}
