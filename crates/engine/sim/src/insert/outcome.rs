//! What came of a plan.

use iostrata_run::host::DeviceWindow;
use iostrata_stats::{LatencyUs, Measured};
use thiserror::Error;

use super::plan::InsertPlan;
use crate::drive::DriveFacts;
use crate::model::ModelError;

/// Why a plan can't be simulated.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InsertError {
    /// The disk can't be modelled.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The tables do not fit.
    #[error(
        "a table of {rows} rows and the table of the reader take {needed_bytes} bytes, and the \
         disk {disk} has {capacity_bytes}: take fewer rows or a larger disk"
    )]
    TooLarge {
        /// Rows of the largest table.
        rows: u64,
        /// Bytes that its files take.
        needed_bytes: u64,
        /// The disk.
        disk: String,
        /// Its size.
        capacity_bytes: u64,
    },
    /// Nothing to look at, or not in rising order.
    #[error("the row counts to look at must rise from at least {least}, found {found:?}")]
    Rows {
        /// The smallest table.
        least: u64,
        /// What the plan has.
        found: Vec<u64>,
    },
    /// No window.
    #[error("a point needs at least one replicate")]
    NoReplicates,
}

/// A reader beside the inserts.
#[derive(Clone, Debug, PartialEq)]
pub struct InsertReader {
    /// Latency of its reads over all replicates.
    pub latency_us: LatencyUs,
    /// The mean of the replicates' means, in us.
    pub latency_us_mean: Measured,
    /// The mean of the replicates' 99th percentiles, in us.
    pub latency_us_p99: Measured,
    /// The 99th percentile of each replicate, in us.
    pub replicates_p99_us: Vec<f64>,
    /// Reads in all.
    pub reads: u64,
    /// Rows inserted per hour while it reads.
    pub rows_per_hour: Measured,
    /// The device while it reads, over all replicates.
    pub device: DeviceWindow,
}

/// The load at one size of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct InsertPoint {
    /// Rows in the table.
    pub rows: u64,
    /// Bytes of its index.
    pub index_bytes: u64,
    /// Rows inserted per hour at this size, in the long run: pages written per hour over pages
    /// dirtied per row. `not_steady` when the two differed twofold within a window, `cpu_limited`
    /// when the drive had time left.
    pub rows_per_hour: Measured,
    /// The same of each replicate.
    pub replicates: Vec<f64>,
    /// The device over all replicates.
    pub device: DeviceWindow,
    /// Clean pages that a row dirties; as many are written per row in the long run.
    pub pages_per_row: f64,
    /// Virtual hours from the empty table to this size.
    pub reached_h: f64,
    /// Virtual seconds measured, over all replicates.
    pub measured_s: f64,
    /// A reader beside the inserts, when the plan has one.
    pub reader: Option<InsertReader>,
}

/// What came of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct InsertOutcome {
    /// The plan.
    pub plan: InsertPlan,
    /// What holds for the drive behind it.
    pub facts: DriveFacts,
    /// Requests that the kernel takes of what the plan asks for.
    pub nr_requests_taken: u32,
    /// The load at each size, rising.
    pub points: Vec<InsertPoint>,
}
