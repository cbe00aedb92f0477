//! What `iostrata fio --json` prints and keeps as `result.json`.
//!
//! Invariant: a job's figures have the names and shapes of `iostrata io`, over the job's own part
//! of its wave.

use iostrata_plan::fio::FioWarning;
use iostrata_stats::Verdicts;
use serde::{Deserialize, Serialize};

use crate::IoDocument;

/// Job files that were run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FioDocument {
    /// Jobs that ran together, wave after wave.
    pub waves: Vec<FioWaveDocument>,
    /// Options that were ignored, and what was not as fio does it.
    pub warnings: Vec<FioWarning>,
    /// Bytes written in all: by filling files and by requests.
    pub bytes_written: u64,
    /// Where the events are.
    pub run: Option<String>,
    /// What speaks against any of the figures.
    pub verdicts: Verdicts,
}

/// Jobs that ran together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FioWaveDocument {
    /// From the start of the wave to the end of its last job, in seconds.
    pub duration_s: f64,
    /// One entry per workload: a clone, or all clones of a job with group_reporting.
    pub jobs: Vec<FioJobDocument>,
}

/// One workload of one job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FioJobDocument {
    /// The job's name, with the clone's number behind it where each is reported by itself.
    pub name: String,
    /// The job's description.
    pub description: Option<String>,
    /// The group it is reported in.
    pub group: u32,
    /// Clones in it.
    pub clones: u32,
    /// Its figures.
    #[serde(flatten)]
    pub figures: IoDocument,
}
