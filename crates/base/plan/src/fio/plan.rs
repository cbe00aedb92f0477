//! The result of job files: waves of jobs, each a workload of ours.
//!
//! Invariant: plain data; every spec in it has passed its check. It does not define how files are
//! made or what is printed.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::error::FioWarning;
use crate::IoSpec;

/// The plan of job files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FioPlan {
    /// Jobs that run together, wave after wave.
    pub waves: Vec<FioWave>,
    /// Options that are ignored, and what is not as fio does it.
    pub warnings: Vec<FioWarning>,
    /// Options of the global sections of the last file.
    pub global_options: BTreeMap<String, String>,
}

/// Jobs that run together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FioWave {
    /// In the order of their sections.
    pub jobs: Vec<FioJob>,
}

/// One job section.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FioJob {
    /// Its name.
    pub name: String,
    /// Its description.
    pub description: Option<String>,
    /// The group it is reported in; counts over all waves.
    pub group: u32,
    /// Whether its clones, and the jobs of its group that set it too, are reported as one.
    pub group_reporting: bool,
    /// Whether the files that are made for it are removed at the end.
    pub unlink: bool,
    /// Whether its files are made and nothing is measured on them.
    #[serde(default, skip_serializing_if = "is_false")]
    pub create_only: bool,
    /// Bytes that fio's forms of the output count as one request, where a request is a call for a
    /// file as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted_bytes: Option<u32>,
    /// Whether its directions are reported as one in fio's forms of the output.
    #[serde(default, skip_serializing_if = "FioReporting::is_none")]
    pub unified: FioReporting,
    /// The latency by which its depth is chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_target: Option<LatencyTarget>,
    /// Percentiles of latency in fio's forms of the output.
    pub percentiles: Vec<f64>,
    /// The latencies that these are reported of.
    pub percentiles_of: FioPercentiles,
    /// Logs to write.
    pub logs: FioLogs,
    /// The options of its own section, as they were written.
    pub options: BTreeMap<String, String>,
    /// Its workloads: one for all clones, or one for each.
    pub streams: Vec<FioStream>,
}

/// Whether the directions of a job are reported as one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FioReporting {
    /// Each by itself.
    #[default]
    None,
    /// As one.
    Mixed,
    /// Each by itself, and as one.
    Both,
}

impl FioReporting {
    fn is_none(&self) -> bool {
        *self == Self::None
    }
}

/// A latency that a share of the requests must keep; the largest depth that does is measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LatencyTarget {
    /// From the start of a request to its completion.
    pub latency: Duration,
    /// How long each depth is tried.
    pub window: Duration,
    /// Requests in a hundred that must keep it.
    pub percentile: f64,
    /// Whether the depth that was found is measured for the job's runtime, not for one window.
    pub goes_on: bool,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// The latencies of which fio's forms of the output have percentiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FioPercentiles {
    /// From the start until the submission.
    pub slat: bool,
    /// From the submission to the completion.
    pub clat: bool,
    /// The whole.
    pub lat: bool,
}

/// Logs of a job in fio's format.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FioLogs {
    /// Prefix of the log of bandwidth.
    pub bandwidth: Option<String>,
    /// Prefix of the log of requests per second.
    pub iops: Option<String>,
    /// Prefix of the log of latencies.
    pub latency: Option<String>,
    /// Width of a line; absent: as narrow as the series is.
    pub every: Option<Duration>,
    /// Whether clones have logs of their own.
    pub per_job: bool,
    /// Whether lines count from 1970 instead of from the start of the job.
    pub unix_epoch: bool,
    /// Whether lines have a column for the offset.
    pub offset: bool,
    /// Whether the priority is written as the kernel has it.
    pub priority: bool,
}

/// One workload of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FioStream {
    /// Unique in its wave; of letters, digits, `_`, `-` and `.`.
    pub name: String,
    /// The first clone in it; there are `spec.jobs`.
    pub first_clone: u32,
    /// The workload.
    pub spec: IoSpec,
    /// Its files, clone by clone where each has its own.
    pub paths: Vec<PathBuf>,
}

impl FioPlan {
    /// Every stream of every wave.
    pub fn streams(&self) -> impl Iterator<Item = &FioStream> {
        self.waves.iter().flat_map(|wave| &wave.jobs).flat_map(|job| &job.streams)
    }
}
