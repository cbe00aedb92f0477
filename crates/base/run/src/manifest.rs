//! `run.json`: what was run, when, by which version of the program.
//!
//! Invariant: holds no secret; the arguments are scrubbed when a manifest is made.

use std::path::PathBuf;

use iostrata_plan::Point;
use iostrata_plan::study::StudyPlan;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::layout::{FORMAT_MAJOR, FORMAT_MINOR};
use crate::{ProbeHost, scrub};

/// The version of the layout of a run directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FormatVersion {
    /// A reader refuses a larger one than its own.
    pub major: u32,
    /// A reader accepts any, and skips what it does not know.
    pub minor: u32,
}

impl FormatVersion {
    /// The version that this program writes.
    pub const CURRENT: Self = Self { major: FORMAT_MAJOR, minor: FORMAT_MINOR };
}

/// What sort of run it is, and so what `result.json` holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RunKind {
    /// The probe: a [`crate::ProbeDocument`].
    Probe,
    /// One I/O workload: a [`crate::IoDocument`].
    Io,
    /// Job files: a [`crate::FioDocument`].
    Fio,
    /// A factorial study: a [`crate::StudyDocument`].
    Study,
    /// The block queue of 2009 in virtual time: a [`crate::QueueDocument`].
    SimulateQueue,
    /// Flushing in virtual time: a [`crate::FlushDocument`].
    SimulateFlush,
    /// TPC-C's transactions: a [`crate::TransactionDocument`].
    Tpcc,
    /// Other transactions of an online database: a [`crate::TransactionDocument`].
    Oltp,
    /// The load of objects and their history: a [`crate::TransactionDocument`].
    Stress,
    /// Inserts into indexes: a [`crate::TransactionDocument`].
    Insert,
    /// Loading the tables of a workload: a [`crate::PrepareDocument`].
    Prepare,
    /// Watching a target: a [`crate::WatchDocument`].
    Watch,
    /// Leading a server: a [`crate::WatchDocument`].
    Tune,
    /// Something of a newer program.
    #[serde(other)]
    Unknown,
}

impl RunKind {
    /// That of the transactions of a workload, by its command. All hold the same document; those
    /// that manifests have had a word for keep it.
    pub fn of_workload(command: &str) -> Self {
        match command {
            "tpcc" => Self::Tpcc,
            "stress" => Self::Stress,
            "insert" => Self::Insert,
            _ => Self::Oltp,
        }
    }

    /// Whether it is of transactions.
    pub fn is_of_workload(self) -> bool {
        matches!(self, Self::Tpcc | Self::Oltp | Self::Stress | Self::Insert)
    }
}

/// What was run, when, by which version of the program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Manifest {
    /// Layout of this directory.
    pub format_version: FormatVersion,
    /// Version of the program that wrote it.
    pub program_version: String,
    /// What sort of run it is.
    pub kind: RunKind,
    /// The command's arguments without the program's name; passwords are replaced.
    pub arguments: Vec<String>,
    /// When the run began.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub started_at: Timestamp,
    /// The machine and what lies under the measured path, once known.
    #[serde(default)]
    pub host: Option<ProbeHost>,
    /// The points to be measured, once known; points that confirm a suspicion are added as it runs.
    #[serde(default)]
    pub plan: Option<Vec<Point>>,
    /// The study that is run, laid out.
    #[serde(default)]
    pub study: Option<Box<StudyPlan>>,
    /// The block device that the study was allowed to overwrite, if any.
    #[serde(default)]
    pub study_device: Option<PathBuf>,
}

impl Manifest {
    /// A manifest of this format version, with the passwords in `arguments` replaced.
    pub fn new(
        kind: RunKind,
        program_version: &str,
        arguments: &[String],
        started_at: Timestamp,
    ) -> Self {
        Self {
            format_version: FormatVersion::CURRENT,
            program_version: program_version.to_owned(),
            kind,
            arguments: scrub::scrubbed(arguments),
            started_at,
            host: None,
            plan: None,
            study: None,
            study_device: None,
        }
    }
}
